"""Functions of lists: Kubernetes' library, and cel-go's extension `lists`, version 3."""

from functools import cmp_to_key
from typing import Any

from poseidon_py.devices.cel.comparison import matches, ordered
from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.operators import as_int, as_uint
from poseidon_py.devices.cel.library.overload import Overload, every_element, overload, size_of
from poseidon_py.devices.cel.values import ListValue, Value, limited, no_such_overload, type_name, weight_of

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _is_sorted(items: ListValue) -> bool:
    return all(ordered(left, right) <= 0 for left, right in zip(items.items, items.items[1:], strict=False))


def _extreme(items: ListValue, sign: int, function: str) -> Value:
    if not items.items:
        raise EvaluationError(f"{function} called on empty list")
    found = items.items[0]
    for each in items.items[1:]:
        if ordered(found, each) == sign:
            found = each
    return found


def _min(items: ListValue) -> Value:
    return _extreme(items, 1, "min")


def _max(items: ListValue) -> Value:
    return _extreme(items, -1, "max")


def _index_of(items: ListValue, value: Value) -> int:
    return next((index for index, each in enumerate(items) if matches(each, value)), -1)


def _last_index_of(items: ListValue, value: Value) -> int:
    return next((index for index in reversed(range(len(items))) if matches(items.items[index], value)), -1)


LONGEST_ATTRIBUTE = 48
"""Values of a list attribute, as the API server accepts them."""


def _includes(target: Value, value: Value) -> bool:
    """Whether an attribute has the value, or is a list that has it."""
    if not isinstance(target, ListValue):
        return matches(target, value)
    if any(matches(each, value) for each in target.items[:LONGEST_ATTRIBUTE]):
        return True
    if len(target) > LONGEST_ATTRIBUTE:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {LONGEST_ATTRIBUTE} values")
    return False


def _slice(items: ListValue, start: int, end: int) -> ListValue:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return ListValue(items.items[start:end])


def _flatten(items: ListValue, depth: int = 1) -> ListValue:
    if not isinstance(items, ListValue):
        raise no_such_overload("flatten")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: tuple[Value, ...] = items.items
    while depth > 0 and any(isinstance(each, ListValue) for each in flat):
        flat = tuple(one for each in flat for one in (each if isinstance(each, ListValue) else (each,)))
        depth -= 1
    return ListValue(flat)


def _sorted(items: ListValue) -> ListValue:
    if not isinstance(items, ListValue):
        raise no_such_overload("sort")
    return _sorted_by(items, items)


def _sorted_by(items: ListValue, keys: ListValue) -> ListValue:
    if len(items) != len(keys):
        raise EvaluationError(f"a list of {len(items)} elements has {len(keys)} keys")
    if len({type_name(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")

    def compared(left: int, right: int) -> int:
        return ordered(keys.items[left], keys.items[right])

    return ListValue(items.items[index] for index in sorted(range(len(keys)), key=cmp_to_key(compared)))


def _range(count: int) -> ListValue:
    length = limited(max(0, count))
    return ListValue(range(length), length + 1)


def _distinct(items: ListValue) -> ListValue:
    unique: list[Value] = []
    for each in items:
        if not any(matches(each, other) for other in unique):
            unique.append(each)
    return ListValue(unique)


def _weight(items: Value, *_others: Any) -> int:
    return weight_of(items)


def _square(items: ListValue) -> int:
    return items.weight * max(1, len(items))


def _sort_cost(items: Value, *_keys: Any) -> int:
    return every_element(items) * max(1, size_of(items).bit_length())


def _sums() -> list[Overload]:
    def total(zero: Value, checked: Any) -> Any:
        def add(items: ListValue) -> Value:
            found = zero
            for each in items:
                found = checked(found + each)
            return found

        return add

    return [
        overload("list(int)::sum() -> int", total(0, as_int), every_element),
        overload("list(uint)::sum() -> uint", total(as_uint(0), as_uint), every_element),
        overload("list(double)::sum() -> double", total(0.0, float), every_element),
    ]


OVERLOADS = [
    *(overload(f"list({kind})::isSorted() -> bool", _is_sorted, every_element) for kind in _COMPARABLE),
    *(overload(f"list({kind})::min() -> {kind}", _min, every_element) for kind in _COMPARABLE),
    *(overload(f"list({kind})::max() -> {kind}", _max, every_element) for kind in _COMPARABLE),
    *_sums(),
    overload("list(A)::indexOf(A) -> int", _index_of, _weight),
    overload("list(A)::lastIndexOf(A) -> int", _last_index_of, _weight),
    overload("dyn::includes(dyn) -> bool", _includes),
    overload("list(A)::slice(int, int) -> list(A)", _slice, _weight),
    overload("list(list(A))::flatten() -> list(A)", _flatten, _weight, guarded=0),
    overload("list(dyn)::flatten(int) -> list(dyn)", _flatten, _weight),
    *(overload(f"list({kind})::sort() -> list({kind})", _sorted, _sort_cost, guarded=0) for kind in _COMPARABLE),
    *(
        overload(f"list(A)::@sort_by_keys(list({kind})) -> list(A)", _sorted_by, _sort_cost, guarded=1)
        for kind in _COMPARABLE
    ),
    overload("lists.range(int) -> list(int)", _range, lambda count: max(0, count)),
    overload("list(A)::reverse() -> list(A)", lambda items: ListValue(reversed(items.items)), _weight),
    overload("list(A)::distinct() -> list(A)", _distinct, _square),
]
