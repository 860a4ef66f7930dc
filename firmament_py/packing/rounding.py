"""A packing from a fractional one, and greedy filling."""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled
from firmament_py.packing.problem import Packing, Problem
from firmament_py.packing.slack import slack_left


def rounded(problem: Problem, fractional: F64) -> Packing:
    """Rounds `fractional` (C, N) down, then gives each class its missing tasks, by level and size: first on the nodes
    with the largest fractions, as many as the fractions add up to, then whatever fits, the smallest first."""
    down = np.floor(np.maximum(fractional - 1e-6, 0.0))  # the solver's tolerance must not over-commit a node
    packing = Packing.of(problem, down.astype(np.int64))
    fraction = np.clip(fractional - down, 0.0, None)
    fraction[fraction < 1e-9] = 0.0
    quota = np.minimum(packing.left, np.ceil(fraction.sum(axis=1) - 1e-6).astype(np.int64))
    size = problem.requests @ problem.weight
    for c in np.lexsort((-size, problem.level)).tolist():
        nodes = np.flatnonzero(fraction[c])
        nodes = nodes[np.argsort(-fraction[c, nodes], kind="stable")]
        needs = np.flatnonzero(problem.requests[c])
        fits = (packing.free[np.ix_(nodes, needs)] >= problem.requests[c, needs]).all(axis=1)
        fits &= packing.placed[c, nodes] < problem.slots[c, nodes]
        nodes = nodes[fits][: quota[c]]
        packing.placed[c, nodes] += 1
        packing.left[c] -= len(nodes)
        packing.free[nodes] -= problem.requests[c]
    fill(problem, packing)
    return packing


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
                slack = slack_left(c, n, requests, free, placed, slots, weight)
                if slack < least:
                    found, least = n, slack
            if found < 0:
                break
            placed[c, found] += 1
            left[c] -= 1
            for r in range(len(weight)):
                free[found, r] -= requests[c, r]
