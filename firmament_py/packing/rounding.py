"""A packing from a fractional one, and greedy filling."""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.problem import Packing, Problem

_TOLERANCE = 1e-6
"""The solver's tolerance must not over-commit a node."""


def rounded(problem: Problem, fractional: F64) -> Packing:
    """Rounds `fractional` (C, N) down, then gives each class its missing tasks, by level and size: first on the nodes
    with the largest fractions, as many as the fractions add up to, then whatever fits, the smallest first."""
    packing = Packing(np.zeros(problem.slots.shape, np.int64), problem.count.copy(), problem.free.copy())
    size = problem.requests @ problem.weight
    order = np.lexsort((-size, problem.level))
    _round(problem.requests, packing.free, packing.placed, packing.left, problem.slots, fractional, order)
    fill(problem, packing)
    return packing


@compiled
def _round(requests: I64, free: I64, placed: I64, left: I64, slots: I64, fractional: F64, order: I64) -> None:
    for c in range(len(left)):
        for n in range(len(free)):
            if fractional[c, n] > 1.0:
                down = int(fractional[c, n] - _TOLERANCE)
                placed[c, n] = down
                left[c] -= down
                for r in range(requests.shape[1]):
                    free[n, r] -= down * requests[c, r]
    some, negative = np.empty(len(free), np.int64), np.empty(len(free))
    for c in order:
        missing, fitting = 0.0, 0
        for n in range(len(free)):
            fraction = fractional[c, n] - int(max(fractional[c, n] - _TOLERANCE, 0.0))
            if fraction < 1e-9:
                continue
            missing += fraction
            fits = True
            for r in range(requests.shape[1]):
                fits &= requests[c, r] == 0 or free[n, r] >= requests[c, r]
            if fits and placed[c, n] < slots[c, n]:
                some[fitting], negative[fitting] = n, -fraction
                fitting += 1
        added = min(int(np.ceil(missing - _TOLERANCE)), left[c], fitting)
        if added <= 0:
            continue
        for i in np.argpartition(negative[:fitting], added - 1)[:added]:
            placed[c, some[i]] += 1
            left[c] -= 1
            for r in range(requests.shape[1]):
                free[some[i], r] -= requests[c, r]


def fill(problem: Problem, packing: Packing) -> None:
    """Adds what fits, by level, then the smallest of the same value first, each at the node with the least slack."""
    size = problem.requests @ problem.weight
    order = np.lexsort((size / problem.value, problem.level))
    _fill(problem.requests, packing.free, packing.placed, packing.left, problem.slots, problem.weight, order)


@compiled
def _fill(requests: I64, free: I64, placed: I64, left: I64, slots: I64, weight: F64, order: I64) -> None:
    for c in order:
        for _ in range(left[c]):
            found, least = -1, np.inf
            for n in range(len(free)):
                slack = _slack_left(c, n, requests, free, placed, slots, weight)
                if slack < least:
                    found, least = n, slack
            if found < 0:
                break
            placed[c, found] += 1
            left[c] -= 1
            for r in range(len(weight)):
                free[found, r] -= requests[c, r]


@inner
def _slack_left(c: int, n: int, requests: I64, free: I64, placed: I64, slots: I64, weight: F64) -> float:
    """What one more task of class c leaves free on node n, weighted; infinite if it does not fit."""
    if placed[c, n] >= slots[c, n]:
        return np.inf
    slack = 0.0
    for r in range(len(weight)):
        left_over = free[n, r] - requests[c, r]
        if left_over < 0 and requests[c, r] > 0:
            return np.inf
        slack += left_over * weight[r]
    return slack
