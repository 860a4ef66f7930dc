"""Steps of the search for a packing: the choice of nodes, the comparison of values by level, sorting."""

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.numba_cache import inner


@inner
def copy(source: I64 | F64, target: I64 | F64) -> None:
    for i in range(len(source)):  # numba compiles loops four seconds faster than an assignment to a slice
        target[i] = source[i]


@inner
def sort(order: I64, key: F64, count: int) -> None:
    """Sorts the first `count` of `order` by `key`, both in place (insertion sort; few classes are left)."""
    for i in range(1, count):
        c, value = order[i], key[i]
        j = i - 1
        while j >= 0 and key[j] > value:
            order[j + 1], key[j + 1] = order[j], key[j]
            j -= 1
        order[j + 1], key[j + 1] = c, value


@inner
def accepted(change: F64, temperature: float, rng: Generator) -> bool:
    """Whether a change of the values of the levels is no loss, or a small one that is accepted."""
    for gain in change:
        if gain > 1e-9:
            return True
        if gain < -1e-9:
            return temperature > 0.0 and bool(rng.random() < np.exp(gain / temperature))
    return True


@inner
def above(one: F64, other: F64) -> bool:
    """Whether values are higher at the first level at which they differ."""
    for i in range(len(one)):
        if abs(one[i] - other[i]) > 1e-9:
            return bool(one[i] > other[i])
    return False


@inner
def reached(values: F64, target: F64) -> bool:
    """Whether no value is below its target."""
    reached = True
    for i in range(len(values)):
        reached &= bool(values[i] >= target[i])
    return reached


@inner
def rivals(nodes: int) -> int:
    """Of so many nodes at random the one that lacks least is chosen."""
    return min(max(nodes // 100, 3), 20)


@inner
def choose_nodes(chosen: int, requests: I64, free: I64, takes: Bools, weight: F64, some: I64, rng: Generator) -> int:
    """Fills `some` with different nodes; the first can take a task of class `chosen` if others go. Their number."""
    nodes = len(free)
    target_nodes = min(2 + int((len(some) - 1) * rng.random()), nodes)
    among = rivals(nodes)
    k = 0
    for _ in range(2 * target_nodes):
        if k == target_nodes:
            break
        least, nearest = np.inf, -1
        for _ in range(among):
            n = int(nodes * rng.random())
            if k == 0 and not takes[chosen, n]:
                continue
            lacking = 0.0
            for r in range(len(weight)):
                lacking += max(requests[chosen, r] - free[n, r], 0) * weight[r]
            for i in range(k):
                if some[i] == n:
                    lacking = np.inf
            if lacking < least:
                least, nearest = lacking, n
        if nearest >= 0:
            some[k] = nearest
            k += 1
    return k
