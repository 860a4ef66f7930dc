"""Whose tasks leave first under fair sharing: at each level, those below the child with the highest share (Kueue).

Kueue descends from the root to the child with the highest dominant share, takes the first candidate of the queue that
it comes to, and begins again with what is left. A share does not grow while tasks leave, so the candidates of siblings
can be merged by the share that their own child of the parent has before they leave; level by level, from the leaves up.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64, runs, stable_order
from firmament_py.queues.dominant import shares_of
from firmament_py.queues.permissions import Situation
from firmament_py.queues.quota import counted_usage

_DISTINCT = 32
"""Places that are told apart: the later ones are one. Searches of victims do not distinguish more of them."""


def places(s: Situation, queue: I64, amounts: I64) -> I64:
    """(K,) the places of tasks of other queues in the order in which they leave for a preemptor, from 0; equal where
    all shares are. queue (K,): their rows; amounts (K, V); those of one queue in the order in which they leave it."""
    queues, capacity, order = s.queues, s.capacity, np.arange(len(queue))
    with_request = s.own.copy()
    with_request[s.queue] += s.request
    usage = counted_usage(queues, capacity, with_request)
    node, freed = queue.copy(), amounts.copy()
    shares: F64 = np.zeros((queues.paths.shape[1], len(queue)))  # by depth of the child
    for depth in range(len(shares) - 1, 0, -1):
        at = order[queues.depth[node[order]] == depth]
        at = at[stable_order(node[at], queues.count)]
        start, of_run = runs(node[at])
        total = np.cumsum(freed[at], axis=0)
        left = (usage[node[at[start]]] + total[start] - freed[at[start]])[of_run] - total  # once the task has left, too
        before = left + freed[at]
        shares[depth, at] = shares_of(queues, capacity, node[at], before)
        local = capacity.local[node[at]]
        freed[at] = np.maximum(0, before - local) - np.maximum(0, left - local)  # of the parent's usage
        node[at] = queues.parent[node[at]]
        order = order[np.argsort(-shares[depth, order], kind="stable")]
    place = np.zeros(len(queue), np.int64)
    place[order[1:]] = np.minimum((np.diff(shares[:, order]) != 0).any(axis=0).cumsum(), _DISTINCT)
    return place
