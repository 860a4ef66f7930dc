"""Operators on numbers, strings and lists, indexing, `in`, size; results out of range are errors."""

import operator
from collections.abc import Callable
from itertools import product as pairs

from poseidon_py.devices.cel.comparison import contains, ordered
from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import Overload, nothing, once, overload, size_of, tenth
from poseidon_py.devices.cel.moments import duration, moved
from poseidon_py.devices.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    ListValue,
    MapValue,
    Optional,
    Uint,
    Value,
    limited,
    no_such_key,
)


def as_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return value


def as_uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _divided(left: int, right: int) -> int:
    """Integers divide towards zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """The remainder has the sign of the dividend."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _double_quotient(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or left != left:
        return float("nan")
    return left * float("inf") * (1 if str(right) == "0.0" else -1)


def _concatenated(left: Value, right: Value) -> Value:
    limited(len(left) + len(right))
    return left + right


def _reads_both(left: Value, right: Value) -> int:
    return tenth(len(left) + len(right))


def _reads_shorter(left: Value, right: Value) -> int:
    return tenth(min(size_of(left), size_of(right)))


def _adds(left: ListValue, right: ListValue) -> int:
    """One, as upstream has it, for short lists."""
    return tenth(left.weight + right.weight - 2) or 1


def _joined(left: ListValue, right: ListValue) -> ListValue:
    weight = limited(left.weight + right.weight - 1)
    return ListValue(left.items + right.items, weight)


def index_from(index: Value) -> int:
    """The position that an int, uint or whole double names."""
    if isinstance(index, float):
        if not index.is_integer():
            raise EvaluationError(f"unsupported index value {index:g}")
        return int(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise EvaluationError("no such overload: unsupported index type")
    if index > INT_MAX:
        raise EvaluationError(f"unsupported index value {index}")
    return int(index)


def item(items: ListValue, index: Value) -> Value:
    at = index_from(index)
    if not 0 <= at < len(items):
        raise EvaluationError(f"index out of bounds: {at}")
    return items.items[at]


def entry(entries: MapValue, key: Value) -> Value:
    found = entries.find(key)
    if not found.present:
        raise no_such_key(key)
    return found.value


def optional_index(value: Value, index: Value) -> Optional:
    """What is there; nothing within a value that has no elements, or within an optional without value."""
    if isinstance(value, Optional):
        return optional_index(value.value, index) if value.present else NONE
    if isinstance(value, MapValue):
        return value.find(index)
    if isinstance(value, ListValue):
        at = index_from(index)
        return Optional(value.items[at]) if 0 <= at < len(value) else NONE
    return NONE


def _has_key(key: Value, entries: MapValue) -> bool:
    return MapValue.find(entries, key).present


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
    "_/_": _divided,
    "_%_": _remainder,
}


def _checked(operation: Callable[[int, int], int], limit: Callable[[int], int]) -> Callable[[int, int], int]:
    return lambda left, right: limit(operation(int(left), int(right)))


def _integers(name: str) -> list[Overload]:
    operation = _OPERATIONS[name]
    return [
        overload(f"{name}({kind}, {kind}) -> {kind}", _checked(operation, limit))
        for kind, limit in (("int", as_int), ("uint", as_uint))
    ]


_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "_<_": lambda left, right: ordered(left, right) < 0,
    "_<=_": lambda left, right: ordered(left, right) <= 0,
    "_>_": lambda left, right: ordered(left, right) > 0,
    "_>=_": lambda left, right: ordered(left, right) >= 0,
}


def _comparisons() -> list[Overload]:
    numbers = [*pairs(("int",), ("int", "double", "uint")), *pairs(("uint",), ("uint", "double", "int"))]
    numbers += pairs(("double",), ("double", "int", "uint"))
    same = [(kind, kind) for kind in ("bool", "string", "bytes", "timestamp", "duration")]
    return [
        overload(f"{name}({left}, {right}) -> bool", function, _reads_shorter if left in ("string", "bytes") else once)
        for name, function in _COMPARISONS.items()
        for left, right in (same[0], *numbers, *same[1:])
    ]


# where the type of an operand is not known yet, it becomes that of the first implementation: the order is cel-go's
OVERLOADS = [
    overload("_+_(bytes, bytes) -> bytes", _concatenated, _reads_both),
    overload("_+_(double, double) -> double", operator.add),
    overload("_+_(duration, duration) -> duration", lambda left, right: duration(left.nanos + right.nanos)),
    overload("_+_(duration, timestamp) -> timestamp", lambda span, moment: moved(moment, span.nanos)),
    overload("_+_(timestamp, duration) -> timestamp", lambda moment, span: moved(moment, span.nanos)),
    *_integers("_+_"),
    overload("_+_(list(A), list(A)) -> list(A)", _joined, _adds),
    overload("_+_(string, string) -> string", _concatenated, _reads_both),
    overload("_-_(double, double) -> double", operator.sub),
    overload("_-_(duration, duration) -> duration", lambda left, right: duration(left.nanos - right.nanos)),
    *_integers("_-_"),
    overload("_-_(timestamp, duration) -> timestamp", lambda moment, span: moved(moment, -span.nanos)),
    overload("_-_(timestamp, timestamp) -> duration", lambda left, right: duration(left.nanos - right.nanos)),
    overload("_*_(double, double) -> double", operator.mul),
    *_integers("_*_"),
    overload("_/_(double, double) -> double", _double_quotient),
    *_integers("_/_"),
    *_integers("_%_"),
    overload("-_(double) -> double", operator.neg),
    overload("-_(int) -> int", lambda value: as_int(-value)),
    overload("!_(bool) -> bool", operator.not_),
    *_comparisons(),
    overload("_[_](list(A), int) -> A", item, guarded=1),
    overload("_[_](map(A, B), A) -> B", entry),
    *(
        overload(declaration, optional_index, guarded=guarded)
        for declaration, guarded in (
            ("_[_](optional(list(A)), int) -> optional(A)", 1),
            ("_[_](optional(map(A, B)), A) -> optional(B)", 1),
            ("_[?_](list(A), int) -> optional(A)", 0),
            ("_[?_](map(A, B), A) -> optional(B)", 0),
            ("_[?_](optional(list(A)), int) -> optional(A)", 0),
            ("_[?_](optional(map(A, B)), A) -> optional(B)", 0),
        )
    ),
    overload("@in(A, list(A)) -> bool", lambda value, items: contains(items, value), lambda _, items: items.weight - 1),
    overload("@in(A, map(A, B)) -> bool", _has_key),
    *(
        overload(f"{form} -> int", len)
        for kind in ("bytes", "list(A)", "map(A, B)", "string")
        for form in (f"size({kind})", f"{kind}::size()")
    ),
    overload("@empty_map() -> map(A, B)", MapValue, nothing),
]
