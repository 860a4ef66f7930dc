"""What the search for a packing calculates with: random numbers, sets, sorting, comparison by level. Compiled."""

from typing import NamedTuple

import numpy as np

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.numba_cache import inlined

_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inlined
def uniform(rng: U64) -> float:
    """A random number 0 <= x < 1 (SplitMix64: Steele, Lea and Flood, 2014); rng (1,): the state of the generator.

    A search draws more random numbers than anything else, and each of numpy's Generator takes a call by reference.
    """
    rng[0] += _STEP
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@inlined
def copy(source: I64 | F64, target: I64 | F64) -> None:
    for i in range(len(source)):  # numba compiles loops four seconds faster than an assignment to a slice
        target[i] = source[i]


class IndexSet(NamedTuple):
    """A set of numbers below K: the first length[0] of members (K,), in any order; contains (K,)."""

    members: I64
    contains: Bools
    length: I64

    @classmethod
    def of(cls, some: I64 | list[int], limit: int) -> "IndexSet":
        """The set of `some` different numbers below a limit."""
        members, contains = np.zeros(limit, np.int64), np.zeros(limit, np.bool_)
        members[: len(some)], contains[some] = some, True
        return cls(members, contains, np.array([len(some)]))


@inlined
def insert(i: int, some: IndexSet) -> None:
    if not some.contains[i]:
        some.members[some.length[0]], some.contains[i] = i, True
        some.length[0] += 1


@inlined
def clear(some: IndexSet) -> None:
    """Empties the set; `members` stays as it is."""
    for i in range(some.length[0]):
        some.contains[some.members[i]] = False
    some.length[0] = 0


@inlined
def any_with(number: I64, some: IndexSet, rng: U64) -> int:
    """A member i for which number[i] > 0, each as likely; -1: none. Others that are met on the way leave the set."""
    while some.length[0] > 0:
        at = int(some.length[0] * uniform(rng))
        i = some.members[at]
        if number[i] > 0:
            return int(i)
        some.length[0] -= 1
        some.members[at], some.contains[i] = some.members[some.length[0]], False
    return -1


@inlined
def sort(order: I64, key: F64, count: int) -> None:
    """Sorts the first `count` of `order` by `key`, both in place (insertion sort; few classes are left)."""
    for i in range(1, count):
        c, value = order[i], key[i]
        j = i - 1
        while j >= 0 and key[j] > value:
            order[j + 1], key[j + 1] = order[j], key[j]
            j -= 1
        order[j + 1], key[j + 1] = c, value


@inlined
def accepted(change: F64, temperature: float, rng: U64) -> bool:
    """Whether a change of the values of the levels is no loss, or a small one that is accepted."""
    for gain in change:
        if gain > 1e-9:
            return True
        if gain < -1e-9:
            return temperature > 0.0 and bool(uniform(rng) < np.exp(gain / temperature))
    return True


@inlined
def above(one: F64, other: F64) -> bool:
    """Whether values are higher at the first level at which they differ."""
    for i in range(len(one)):
        if abs(one[i] - other[i]) > 1e-9:
            return bool(one[i] > other[i])
    return False


@inlined
def reached(values: F64, target: F64) -> bool:
    """Whether no value is below its target."""
    reached = True
    for i in range(len(values)):
        reached &= bool(values[i] >= target[i])
    return reached
