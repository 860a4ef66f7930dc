"""Runs of slots: the slots of a node that have one cost are one arc."""

import numpy as np

from firmament_py.model.arrays import I64

_EXACT_SLOTS = 16
"""Number of slots beyond twice the mean need that have separate costs; further slots form runs of doubling length."""


def slot_offsets(waiting: int, depth: I64) -> I64:
    """(K,) the first slot of each run of slots with one cost, for `waiting` tasks and nodes of `depth` (N,).

    Runs of one slot up to what an even spread plausibly needs, then runs of doubling length: the number of slot arcs
    does not grow with the capacity of nodes.
    """
    open_nodes = max(int((depth > 0).sum()), 1)
    exact = 2 * -(-waiting // open_nodes) + _EXACT_SLOTS
    deepest = int(depth.max(initial=0))
    offsets = list(range(min(exact, max(deepest, 1))))
    step = 1
    while offsets[-1] + step < deepest:
        offsets.append(offsets[-1] + step)
        step *= 2
    return np.array(offsets, np.int64)


def widths(offsets: I64, depth: I64) -> I64:
    """(N, K) number of slots in each run of a node of depth (N,)."""
    ends = np.append(offsets[1:], np.iinfo(np.int64).max)
    found: I64 = np.maximum(np.minimum(ends, depth[:, None]) - offsets, 0)
    return found
