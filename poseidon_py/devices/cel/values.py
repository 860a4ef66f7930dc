"""Values at run time.

bool, int, double, string and bytes are Python's bool, int, float, str and bytes, null is None; the others are classes
here or in library/. Lists and maps carry their weight, the number of values in them at all depths and a tenth of the
characters, so that the work of comparing or printing them is known beforehand.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from poseidon_py.devices.cel.errors import EvaluationError, LimitError

Value: TypeAlias = Any

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1

LARGEST = 1_000_000
"""Characters of a string, or weight of a list or map: what exceeds this ends the evaluation."""


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


def weight_of(value: Value) -> int:
    if isinstance(value, ListValue | MapValue):
        return value.weight
    if isinstance(value, Optional):
        return 1 + weight_of(value.value)
    return 1 + len(value) // 10 if isinstance(value, str | bytes) else 1


def limited(size: int) -> int:
    """The size, if it is below LARGEST. Raises LimitError."""
    if size > LARGEST:
        raise LimitError(f"a value of the expression exceeds {LARGEST} characters or elements")
    return size


class ListValue:
    """An immutable list."""

    __slots__ = ("items", "weight")

    def __init__(self, items: Iterable[Value] = (), weight: int | None = None) -> None:
        self.items = tuple(items)
        self.weight = limited(1 + sum(map(weight_of, self.items)) if weight is None else weight)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.items)


def _key(value: Value) -> Value:
    """Keys are equal across the numeric types, as Python's are; bool is apart."""
    return ("bool", value) if isinstance(value, bool) else value


class MapValue:
    """An immutable map; keys are int, uint, bool or string."""

    __slots__ = ("_entries", "weight")

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self._entries = {_key(key): (key, value) for key, value in entries}
        self.weight = limited(1 + sum(weight_of(key) + weight_of(value) for key, value in self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _ in self._entries.values())

    def items(self) -> Iterable[tuple[Value, Value]]:
        return self._entries.values()

    def find(self, key: Value) -> "Optional":
        """The value of the key, if the map has it."""
        if type(key) not in (int, Uint, float, bool, str):
            return NONE
        entry = self._entries.get(_key(key))
        return NONE if entry is None else Optional(entry[1])


class DomainMap(MapValue):
    """A device's attributes or capacities by domain: a domain that is not there is an empty map, but is not `in` it."""

    __slots__ = ()

    def find(self, key: Value) -> "Optional":
        found = super().find(key)
        return found if found.present else Optional(MapValue())


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional.of(value)`, or `optional.none()` if nothing is present."""

    value: Value = None
    present: bool = True


NONE = Optional(present=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, by its name: `int`, `list`, `kubernetes.Quantity`."""

    name: str


@dataclass(frozen=True, slots=True)
class DeviceValue:
    """The variable `device`."""

    driver: str
    attributes: MapValue
    capacity: MapValue
    allowMultipleAllocations: bool  # named as expressions have it


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    ListValue: "list",
    MapValue: "map",
    DomainMap: "map",
    Optional: "optional_type",
    TypeValue: "type",
    DeviceValue: "kubernetes.DRADevice",
}


def register(kind: type, name: str) -> None:
    """Declares a class of values with its name in CEL."""
    _NAMES[kind] = name


def type_name(value: Value) -> str:
    return _NAMES[type(value)]


def no_such_key(key: Value) -> EvaluationError:
    shown = type_name(key) if isinstance(key, ListValue | MapValue) else str(key)
    return EvaluationError(f"no such key: {shown[:60]}")


def no_such_overload(function: str = "") -> EvaluationError:
    return EvaluationError(f"no such overload: {function}" if function else "no such overload")
