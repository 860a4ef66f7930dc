"""Lower bounds on the cost of the evictions and moves that make tasks fit."""

import numpy as np

from firmament_py.eviction.problem import Arrivals
from firmament_py.model.arrays import F64, I64, Bools

TOLERANCE = 0.001
"""A search ends once its victims and moves cost no more than this share above the lower bound."""


def clearing_costs(asked: I64, suitable: Bools, home: I64, requests: I64, cost: F64, free: I64) -> F64:
    """(W, N) lower bounds on the cost of moves that make one task of each class fit on each node; infinite: none do.

    asked (W, R), suitable (W, N): of the classes. home (M,), requests (M, R), cost (M,): of tasks that may move. free
    (N, R): without these.
    """
    used = np.zeros_like(free)
    np.add.at(used, home, requests)
    found = np.where(suitable, 0.0, np.inf)
    for r in range(free.shape[1]):
        some = np.flatnonzero(requests[:, r] > 0)
        some = some[np.lexsort((cost[some] / requests[some, r], home[some]))]
        start = np.searchsorted(home[some], np.arange(len(free) + 1))
        size, price = np.r_[0, np.cumsum(requests[some, r])], np.r_[0.0, np.cumsum(cost[some])]
        for c, amount in enumerate(asked[:, r].tolist()):
            lacking = amount - (free[:, r] - used[:, r])
            lacks = np.flatnonzero((lacking > 0) & (amount > 0) & np.isfinite(found[c]))
            reached = size[start[lacks]] + lacking[lacks]
            possible = reached <= size[start[lacks + 1]]
            found[c, lacks[~possible]] = np.inf
            lacks, reached = lacks[possible], reached[possible]
            # the tasks that free most for their cost, the last one in part: a relaxed knapsack
            last = np.searchsorted(size, reached) - 1
            part = (reached - size[last]) / requests[some[last], r]
            least = price[last] - price[start[lacks]] + part * cost[some[last]]
            found[c, lacks] = np.maximum(found[c, lacks], least)
    return found


def least_cost(arrivals: Arrivals, free: I64, clearing: F64) -> float:
    """A lower bound on the cost of evictions and moves that make all arrivals fit. clearing (W, N): see clearing_costs,
    of all tasks that may be evicted or move; free (N, R): without these.

    Each class alone: a node takes as many of its arrivals as fit without those tasks, and the first of them costs what
    clearing the node for one does. The nodes of least cost for one arrival are a relaxed knapsack.
    """
    found = 0.0
    for c, count in enumerate(arrivals.count.tolist()):
        asked = arrivals.requests[c] > 0
        times = (free[:, asked] // arrivals.requests[c, asked]).min(axis=1, initial=count)
        some = np.flatnonzero(np.isfinite(clearing[c]) & (times > 0))
        some = some[np.argsort(clearing[c, some] / times[some], kind="stable")]
        left = count - np.cumsum(times[some]) + times[some]
        taken = np.clip(left, 0, times[some])
        found = max(found, float((clearing[c, some] / times[some] * taken).sum()))
    return found
