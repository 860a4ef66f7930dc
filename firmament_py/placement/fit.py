"""Which part of a flow's placements really fits: a flow counts tasks, nodes have several resources."""

from collections.abc import Callable

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.network.decode import NodeCounts


def accept(
    sent: NodeCounts,
    requests: I64,
    free: I64,
    value: F64 | None,
    commit: Callable[[int, I64, I64], I64] = lambda cls, node, count: count,
) -> NodeCounts:
    """The most valuable part of `sent` that fits into `free` (N, R), which is reduced by it in place.

    requests (C, R) and value (C,) are those of the classes. Classes are taken by value per share of the machine that
    they need (the greedy rule for knapsacks), or, if value is None, the largest share first (which fits more where all
    are to be placed). commit(c, node, count) decides how many of the tasks of a class that fit may stay, and counts
    them as placed.
    """
    scale = np.maximum(free.max(axis=0, initial=1), 1)
    share = (requests / scale).max(axis=1, initial=0.0)
    bounds = np.searchsorted(sent.cls, np.arange(len(requests) + 1))
    taken = np.zeros_like(sent.count)
    rank = -share if value is None else share / value
    for c in np.lexsort((np.arange(len(requests)), rank)).tolist():
        here = slice(bounds[c], bounds[c + 1])
        if here.start == here.stop:
            continue
        node, count = sent.node[here], sent.count[here]
        needs = np.flatnonzero(requests[c])
        left = free[np.ix_(node, needs)]
        capacity = (np.maximum(left, 0) // requests[c, needs]).min(axis=1)
        taken[here] = commit(c, node, np.minimum(count, capacity))
        free[np.ix_(node, needs)] = left - taken[here][:, None] * requests[c, needs]
    return NodeCounts(sent.cls, sent.node, taken).where(taken > 0)
