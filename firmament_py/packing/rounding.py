"""A packing from a fractional one, and greedy filling."""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.problem import Packing, Problem
from firmament_py.packing.relaxation import Shares
from firmament_py.packing.search_tables import add

_TOLERANCE = 1e-6
"""Fractions that are this little above an integer count as that integer."""


def rounded(problem: Problem, shares: Shares) -> Packing:
    """Rounds a fractional packing down, then gives each class its missing tasks, by level and size: first on the nodes
    with the largest fractions, as many as the fractions add up to, then whatever fits, the smallest first."""
    packing = Packing.empty(problem)
    size = problem.requests @ problem.weight
    order = np.lexsort((-size, problem.level))
    of_nodes = packing.free, packing.kinds, packing.cls, packing.number
    of_shares = shares.of_groups, shares.group, shares.share
    _round(problem.requests, *of_nodes, packing.left, problem.slots, *of_shares, order)
    fill(problem, packing)
    return packing


@compiled
def _round(
    requests: I64,
    free: I64,
    kinds: I64,
    cls: I64,
    number: I64,
    left: I64,
    slots: I64,
    of_groups: F64,
    group: I64,
    share: F64,
    order: I64,
) -> None:
    for c in range(len(left)):
        for n in range(len(free)):
            fraction = _fraction(c, n, slots, of_groups, group, share)
            if fraction > 1.0:
                down = min(int(fraction - _TOLERANCE), left[c])
                for r in range(requests.shape[1]):
                    if requests[c, r] > 0:  # a solver's tolerance is many small tasks
                        down = min(down, free[n, r] // requests[c, r])
                if down <= 0:
                    continue
                add(c, n, down, kinds, cls, number)
                left[c] -= down
                for r in range(requests.shape[1]):
                    free[n, r] -= down * requests[c, r]
    some, negative = np.empty(len(free), np.int64), np.empty(len(free))
    for c in order:
        missing, fitting = 0.0, 0
        for n in range(len(free)):
            fraction = _fraction(c, n, slots, of_groups, group, share)
            fraction -= int(max(fraction - _TOLERANCE, 0.0))
            if fraction < 1e-9:
                continue
            missing += fraction
            fits = True
            for r in range(requests.shape[1]):
                fits &= requests[c, r] == 0 or free[n, r] >= requests[c, r]
            if fits:
                some[fitting], negative[fitting] = n, -fraction
                fitting += 1
        added = min(int(np.ceil(missing - _TOLERANCE)), left[c], fitting)
        if added <= 0:
            continue
        for i in np.argpartition(negative[:fitting], added - 1)[:added]:
            add(c, some[i], 1, kinds, cls, number)
            left[c] -= 1
            for r in range(requests.shape[1]):
                free[some[i], r] -= requests[c, r]


@inner
def _fraction(c: int, n: int, slots: I64, of_groups: F64, group: I64, share: F64) -> float:
    """How many tasks of class c a fractional packing has on node n."""
    return float(min(of_groups[c, group[n]] * share[n], slots[c, n]))


def fill(problem: Problem, packing: Packing) -> None:
    """Adds what fits, by level, then the smallest of the same value first, each at the node with the least slack."""
    size = problem.requests @ problem.weight
    order = np.lexsort((size / problem.value, problem.level))
    of_nodes = packing.free, packing.kinds, packing.cls, packing.number
    _fill(problem.requests, *of_nodes, packing.left, problem.slots, problem.weight, order)


@compiled
def _fill(
    requests: I64, free: I64, kinds: I64, cls: I64, number: I64, left: I64, slots: I64, weight: F64, order: I64
) -> None:
    for c in order:
        for _ in range(left[c]):
            found, least = -1, np.inf
            for n in range(len(free)):
                slack = _slack_left(c, n, requests, free, slots, weight)
                if slack < least:
                    found, least = n, slack
            if found < 0:
                break
            add(c, found, 1, kinds, cls, number)
            left[c] -= 1
            for r in range(len(weight)):
                free[found, r] -= requests[c, r]


@inner
def _slack_left(c: int, n: int, requests: I64, free: I64, slots: I64, weight: F64) -> float:
    """What one more task of class c leaves free on node n, weighted; infinite if it does not fit."""
    if not slots[c, n]:
        return np.inf
    slack = 0.0
    for r in range(len(weight)):
        left_over = free[n, r] - requests[c, r]
        if left_over < 0 and requests[c, r] > 0:
            return np.inf
        slack += left_over * weight[r]
    return slack
