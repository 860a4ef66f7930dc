"""Equality and order of values (cel-spec "Equality", "Ordering"; as cel-go has them across types)."""

import math

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.values import (
    DeviceValue,
    ListValue,
    MapValue,
    Optional,
    TypeValue,
    Uint,
    Value,
    no_such_overload,
    type_name,
)

_NUMBERS = (int, Uint, float)
_APART = (str, bytes, bool, TypeValue, DeviceValue)


def equal(left: Value, right: Value) -> bool:
    """`left == right`. Raises EvaluationError where a type of Kubernetes' libraries is compared with another type."""
    if left is None or right is None:
        return left is right
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return other in _NUMBERS and _equal_numbers(left, right)
    if kind in _APART:
        return bool(kind is other and left == right)
    if isinstance(left, ListValue):
        return isinstance(right, ListValue) and len(left) == len(right) and all(map(_not_unequal, left, right))
    if isinstance(left, MapValue):
        return isinstance(right, MapValue) and len(left) == len(right) and _equal_entries(left, right)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    if type_name(left) != type_name(right) or getattr(right, "summed", False):
        raise no_such_overload()
    return bool(left == right)


def contains(items: ListValue, value: Value) -> bool:
    """Whether an element equals the value; those that cannot be compared with it do not."""
    return any(matches(value, each) for each in items)


def matches(left: Value, right: Value) -> bool:
    """Whether the values are equal; not, where they cannot be compared."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def _not_unequal(left: Value, right: Value) -> bool:
    # as in cel-go, elements that cannot be compared do not make two lists or maps unequal
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def _equal_entries(left: MapValue, right: MapValue) -> bool:
    for key, value in left.items():
        found = right.find(key)
        if not found.present or not _not_unequal(value, found.value):
            return False
    return True


def _equal_numbers(left: Value, right: Value) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)
    return int(left) == int(right)


def ordered(left: Value, right: Value) -> int:
    """-1, 0 or 1. Raises EvaluationError for not-a-number, and for types that have no order or do not share one."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
            if math.isnan(left) or math.isnan(right):
                raise EvaluationError("NaN values cannot be ordered")
    elif kind is not other or kind not in _ORDERED:
        raise no_such_overload()
    return int(left > right) - int(left < right)


_ORDERED: set[type] = {str, bytes, bool}


def register_order(kind: type) -> None:
    """Declares that values of the class are ordered, by Python's `<` and `>`."""
    _ORDERED.add(kind)
