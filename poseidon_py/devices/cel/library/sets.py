"""cel-go's extension `sets`: lists as sets."""

from poseidon_py.devices.cel.comparison import contains
from poseidon_py.devices.cel.library.overload import overload
from poseidon_py.devices.cel.values import ListValue


def _contains(items: ListValue, others: ListValue) -> bool:
    return all(contains(items, each) for each in others)


def _equivalent(left: ListValue, right: ListValue) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: ListValue, right: ListValue) -> bool:
    return any(contains(right, each) for each in left)


def _pairs(left: ListValue, right: ListValue) -> int:
    return left.weight * right.weight


OVERLOADS = [
    overload("sets.contains(list(A), list(A)) -> bool", _contains, _pairs),
    overload("sets.equivalent(list(A), list(A)) -> bool", _equivalent, lambda left, right: 2 * _pairs(left, right)),
    overload("sets.intersects(list(A), list(A)) -> bool", _intersects, _pairs),
]
