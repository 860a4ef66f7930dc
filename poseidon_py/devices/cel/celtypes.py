"""Static types, and the notation in which functions are declared.

A declaration reads like `string::contains(string) -> bool` for a method, `size(list(A)) -> int` for a function; a
single capital letter is a type parameter.
"""

import re
from typing import NamedTuple


class CelType(NamedTuple):
    """A type by name, with the types of its elements: `list(int)`. Variables have names that begin with "$"."""

    name: str
    parameters: tuple["CelType", ...] = ()

    def __str__(self) -> str:
        if self.name == "dyn" or self.variable:
            return "dyn"
        shown = ", ".join(map(str, self.parameters))
        return f"{self.name}({shown})" if shown else self.name

    @property
    def variable(self) -> bool:
        return self.name.startswith("$")


BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(CelType, ("bool", "int", "uint", "double", "string", "bytes"))
NULL, DYN, DEVICE = map(CelType, ("null_type", "dyn", "kubernetes.DRADevice"))


def list_of(element: CelType) -> CelType:
    return CelType("list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("optional_type", (value,))


def type_of(instance: CelType) -> CelType:
    return CelType("type", (instance,))


_WORD = re.compile(r"\s*([\w.@]+|[(),])")
_ALIASES = {"optional": "optional_type", "null": "null_type"}
_ALIASES |= {"quantity": "kubernetes.Quantity", "semver": "kubernetes.Semver", "url": "kubernetes.URL"}
_ALIASES |= {"ip": "net.IP", "cidr": "net.CIDR", "format": "kubernetes.NamedFormat"}
_ALIASES |= {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


class Signature(NamedTuple):
    """The types of the arguments, the target's first if it is a method, and of the result."""

    function: str
    method: bool
    arguments: tuple[CelType, ...]
    result: CelType


def type_from(text: str) -> CelType:
    """`map(string, A)` as a type."""
    words = _WORD.findall(text)
    found, after = _read(words, 0)
    assert after == len(words), text
    return found


def _read(words: list[str], index: int) -> tuple[CelType, int]:
    name = words[index]
    index += 1
    if len(name) == 1 and name.isupper():
        return CelType(f"${name}"), index
    parameters = []
    if index < len(words) and words[index] == "(":
        while words[index] != ")":
            parameter, index = _read(words, index + 1)
            parameters.append(parameter)
        index += 1
    return CelType(_ALIASES.get(name, name), tuple(parameters)), index


_DECLARATION = re.compile(
    r"(?:(?P<target>[\w]+(?:\([^>]*?\))?)::)?(?P<name>[^(\s]+)\((?P<arguments>.*)\) -> (?P<result>.+)"
)


def signature_from(declaration: str) -> Signature:
    """A function as `size(string) -> int`, a method as `string::contains(string) -> bool`."""
    found = _DECLARATION.fullmatch(declaration)
    assert found is not None, declaration
    arguments = type_from(f"arguments({found['arguments']})").parameters if found["arguments"] else ()
    target = (type_from(found["target"]),) if found["target"] else ()
    return Signature(found["name"], bool(target), target + arguments, type_from(found["result"]))
