"""Which part of a flow's placements really fits: a flow counts tasks, nodes have several resources."""

from collections.abc import Callable, Iterable

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, add_rows
from firmament_py.network.decode import NodeCounts


def accept(
    sent: NodeCounts,
    requests: I64,
    free: I64,
    value: F64 | None,
    alone: Bools | None = None,
    commit: Callable[[I64, I64, I64], I64] = lambda cls, node, count: count,
) -> NodeCounts:
    """The most valuable part of `sent` that fits into `free` (N, R), which is reduced by it in place.

    requests (C, R) and value (C,) are those of the classes. Classes are taken by value per share of the machine that
    they need (the greedy rule for knapsacks), or, if value is None, the largest share first (which fits more where all
    are to be placed). commit(cls, node, count) decides how many of the tasks that fit, (K,) each, may stay, and counts
    them as placed; it sees the classes `alone` (C,) one at a time, None: there are none.
    """
    taken = np.zeros_like(sent.count)
    for some in _in_order(sent, requests, free, value, alone):
        part = NodeCounts(sent.cls[some], sent.node[some], sent.count[some])
        fitting = _fitting(part, requests, free)
        taken[some] = commit(part.cls, part.node, fitting)
        add_rows(free, part.node, -taken[some][:, None] * requests[part.cls])
    if (taken == sent.count).all():
        return sent
    return NodeCounts(sent.cls, sent.node, taken).where(taken > 0)


def _in_order(sent: NodeCounts, requests: I64, free: I64, value: F64 | None, alone: Bools | None) -> Iterable[I64]:
    """The entries of `sent`, in the order in which they are taken; those of each class `alone` are apart."""
    if len(sent.cls) < 2:
        return [np.arange(len(sent.cls))]
    scale = np.maximum(free.max(axis=0, initial=1), 1)
    share = (requests / scale).max(axis=1, initial=0.0)
    order = np.argsort((-share if value is None else share / value)[sent.cls], kind="stable")
    cls = sent.cls[order]
    apart = np.zeros(len(cls), np.bool_) if alone is None else alone[cls]
    begins = (cls[1:] != cls[:-1]) & (apart[1:] | apart[:-1])
    return np.split(order, 1 + np.flatnonzero(begins))


def _fitting(sent: NodeCounts, requests: I64, free: I64) -> I64:
    """(K,) how many of each entry of `sent` fit into `free` (N, R) after those before it."""
    fitting, demand = sent.count.copy(), sent.count[:, None] * requests[sent.cls]
    if len(sent.cls) and sent.cls[0] == sent.cls[-1]:  # of one class: each node is there once
        unused = free[sent.node] - demand
    else:
        after = free.copy()
        add_rows(after, sent.node, -demand)
        unused = after[sent.node]
    short: Bools = np.logical_or.reduce(unused < 0, axis=1)
    (by_node,) = short.nonzero()
    if not len(by_node):
        return fitting
    by_node = by_node[np.argsort(sent.node[by_node], kind="stable")]
    nodes, start, entries = np.unique(sent.node[by_node], return_index=True, return_counts=True)
    left = free[nodes]
    for number in range(int(entries.max(initial=0))):  # all nodes at once, each with its next entry
        some = np.flatnonzero(entries > number)
        entry = by_node[start[some] + number]
        request = requests[sent.cls[entry]]
        capacity = np.where(request > 0, np.maximum(left[some], 0) // np.maximum(request, 1), sent.count[entry, None])
        fitting[entry] = np.minimum(sent.count[entry], capacity.min(axis=1))
        left[some] -= fitting[entry, None] * request
    return fitting
