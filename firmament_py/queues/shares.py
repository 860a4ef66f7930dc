"""Shares of each queue and column by water filling on the tree, and usage in the past that reduces them.

A queue's demand is what its tasks and those of the queues below it request, running ones included, as far as absolute
limits permit. From the roots downwards each parent's share is divided among its children (`Division`):

- SURPLUS_BY_WEIGHT: first min(nominal, demand), then the surplus by weight up to the demand, from the queues of the
  highest priority to those of the lowest. Nominal amounts are given even if their sum is more than there is.
- TOTAL_BY_WEIGHT: all by weight up to the demand; no less than what the queue does not lend, demanded or not.
- AS_STATED: the nominal amount.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.model.queues import UNLIMITED, Division
from firmament_py.queues.tree import Queues
from firmament_py.queues.water_filling import divide


def fair_shares(queues: Queues, total: I64, request: I64, past: F64 | None = None) -> I64:
    """(Q, V) shares of the `total` (V,) by the tree's division.

    `request` (Q, V) is what the tasks of the queues themselves request, `past` (Q, V) their decayed usage as a part of
    the cluster's capacity (`past_share`), which counts if the tree has a `usage_weight`.
    """
    tree = queues.tree
    if tree.division is Division.AS_STATED:
        return np.minimum(queues.nominal, queues.limit)
    cap = demands(queues, request)
    base = floor = np.zeros_like(cap)
    priority = np.zeros_like(queues.priority)
    if tree.division is Division.SURPLUS_BY_WEIGHT:
        base = np.minimum(queues.nominal, cap)
        cap, priority = cap - base, queues.priority
    else:
        floor = guarantees(queues)
        cap = np.maximum(floor, cap)
    if past is None or tree.division is not Division.SURPLUS_BY_WEIGHT:
        past = np.zeros(cap.shape)
    total, past = np.array(total, np.int64), np.array(past, np.float64)  # read-only arrays would be compiled for anew
    share = np.zeros_like(cap)
    usage_weight = tree.usage_weight if past.any() else 0.0  # without a past all weights are multiplied by 1 + k
    arguments = (base, floor, cap, queues.weights, past, float(usage_weight), share)
    divide(queues.child_starts, queues.children, priority, total, *arguments)
    return share


def demands(queues: Queues, request: I64) -> I64:
    """(Q, V) requests (Q, V) of each queue and all below it, each within its limit."""
    demand = np.minimum(request, queues.limit)
    for level in reversed(queues.levels):
        np.add.at(demand, level.parents, demand[level.rows])
        parents = np.unique(level.parents)
        demand[parents] = np.minimum(demand[parents], np.minimum(queues.limit[parents], UNLIMITED))
    return demand


def guarantees(queues: Queues) -> I64:
    """(Q, V) nominal amounts that are not lent: what a queue has in any case, no less than the sum of those below."""
    lent = queues.lending_limit
    guarantee: I64 = np.where(lent < UNLIMITED, np.maximum(0, queues.nominal - lent), 0)
    for level in reversed(queues.levels):
        below = np.zeros_like(guarantee)
        np.add.at(below, level.parents, guarantee[level.rows])
        np.maximum(guarantee, below, out=guarantee)
    return guarantee


def decayed(past: F64, usage: I64, elapsed_s: float, half_life_s: float) -> F64:
    """Mean usage with exponential decay after `elapsed_s` of constant `usage` (Kueue's consumed resources)."""
    alpha = newness(elapsed_s, half_life_s)
    return (1.0 - alpha) * past + alpha * usage


def newness(elapsed_s: float, half_life_s: float) -> float:
    """How much the last `elapsed_s` count in a decayed mean: 0 .. 1; nothing without a half-life.

    Times a job's request it is Kueue's penalty for its admission, until its usage is sampled.
    """
    return float(1.0 - 0.5 ** (elapsed_s / half_life_s)) if half_life_s > 0.0 else 0.0


def usage_score(consumed: F64, penalty: F64, resource_weights: F64, weight: F64) -> F64:
    """(K,) what K rivals have used, weighted; the lowest is admitted first (Kueue's admission fair sharing).

    `consumed` and `penalty` are (K, R), `resource_weights` (R,), `weight` (K,): 0 is infinite usage.
    """
    used: F64 = (consumed + penalty) @ resource_weights
    score: F64 = np.divide(used, weight, out=np.full(len(weight), np.inf), where=weight > 0.0)
    return score


def past_share(queues: Queues, past: F64, capacity: I64) -> F64:
    """(Q, V) decayed usage (Q, V) of each queue and all below it as a part of the capacity (V,), 0 without one."""
    total = past.astype(np.float64)
    for level in reversed(queues.levels):
        np.add.at(total, level.parents, total[level.rows])
    return np.divide(total, capacity, out=np.zeros_like(total), where=capacity > 0)
