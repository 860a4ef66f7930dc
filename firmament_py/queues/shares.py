"""Shares of each queue and column by water filling on the tree.

A queue's demand is what its tasks and those of the queues below it request, running ones included, as far as absolute
limits permit. From the roots downwards each parent's share is divided among its children (`Division`):

- SURPLUS_BY_WEIGHT: first min(nominal, demand), then the surplus by weight up to the demand, from the queues of the
  highest priority to those of the lowest. Nominal amounts are given even if their sum is more than there is; an
  unlimited one is all that the parent has (KAI's setDeservedResource).
- TOTAL_BY_WEIGHT: all by weight up to the demand; no less than what the queue does not lend, demanded or not.
- AS_STATED: the nominal amount.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.model.queues import UNLIMITED, Division
from firmament_py.queues.quota import add_to_parents
from firmament_py.queues.tree import Queues
from firmament_py.queues.water_filling import divide


def fair_shares(queues: Queues, total: I64, request: I64, past: F64 | None = None) -> I64:
    """(Q, V) shares of the `total` (V,) by the tree's division.

    `request` (Q, V) is what the tasks of the queues themselves request, `past` (Q, V) their decayed usage as a part of
    the cluster's capacity (`past_use.past_share`), which counts if the tree has a `usage_weight`.
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
    arguments = (base, queues.nominal >= UNLIMITED, floor, cap, queues.weights, past, float(usage_weight), share)
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
        add_to_parents(below, level, guarantee[level.rows])
        np.maximum(guarantee, below, out=guarantee)
    return guarantee
