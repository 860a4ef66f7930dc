"""Steps of the search for a packing: the choice of nodes, the comparison of values by level, sorting."""

import numpy as np

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.numba_cache import inner

_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inner
def uniform(rng: U64) -> float:
    """A random number 0 <= x < 1 (SplitMix64: Steele, Lea and Flood, 2014); rng (1,): the state of the generator.

    A search draws more random numbers than anything else, and each of numpy's Generator takes a call by reference.
    """
    rng[0] += _STEP
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@inner
def copy(source: I64 | F64, target: I64 | F64) -> None:
    for i in range(len(source)):  # numba compiles loops four seconds faster than an assignment to a slice
        target[i] = source[i]


@inner
def add(c: int, n: int, tasks: int, kinds: I64, cls: I64, number: I64) -> None:
    """Counts so many more tasks of class c on node n."""
    for j in range(kinds[n]):
        if cls[n, j] == c:
            number[n, j] += tasks
            return
    cls[n, kinds[n]], number[n, kinds[n]] = c, tasks
    kinds[n] += 1


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
def accepted(change: F64, temperature: float, rng: U64) -> bool:
    """Whether a change of the values of the levels is no loss, or a small one that is accepted."""
    for gain in change:
        if gain > 1e-9:
            return True
        if gain < -1e-9:
            return temperature > 0.0 and bool(uniform(rng) < np.exp(gain / temperature))
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
def choose_nodes(chosen: int, requests: I64, free: I64, takes: Bools, weight: F64, some: I64, rng: U64) -> int:
    """Fills `some` with different nodes; the first can take a task of class `chosen` if others go. Their number."""
    nodes = len(free)
    target_nodes = min(2 + int((len(some) - 1) * uniform(rng)), nodes)
    among = rivals(nodes)
    k = 0
    for _ in range(2 * target_nodes):
        if k == target_nodes:
            break
        least, nearest = np.inf, -1
        for _ in range(among):
            n = int(nodes * uniform(rng))
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
