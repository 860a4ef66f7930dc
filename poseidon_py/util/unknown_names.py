"""Tells whether JSON has fields that a type of msgspec does not have, which decoding skips without a word."""

from functools import cache
from types import GenericAlias, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from poseidon_py.util.decoding import FAILURES


def has_unknown_names(data: bytes | Raw, kind: type[Struct]) -> bool:
    """Whether an object, which can be decoded as `kind`, has fields at any depth that are none of it. What `kind`
    leaves undecoded is not looked at."""
    try:
        _decoder(kind).decode(data)
    except FAILURES:
        return True
    return False


@cache
def _decoder(kind: type[Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(kind) | None)


@cache
def _strict(kind: Any) -> Any:
    """A type that refuses unknown fields, and takes any values."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        fields = [
            (each.name, _strict(each.type) | None, msgspec.field(default=None, name=each.encode_name))
            for each in msgspec.structs.fields(kind)
        ]
        return msgspec.defstruct(f"Strict{kind.__name__}", fields, forbid_unknown_fields=True)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        inner = [each for each in map(_strict, arguments) if each not in (Any, type(None))]
        return inner[0] if len(inner) == 1 else Any
    if origin is list:
        (inner_kind,) = map(_strict, arguments)
        return Any if inner_kind is Any else GenericAlias(list, (inner_kind,))
    if origin is dict:
        inner_kind = _strict(arguments[1])
        return Any if inner_kind is Any else GenericAlias(dict, (str, inner_kind))
    return Any
