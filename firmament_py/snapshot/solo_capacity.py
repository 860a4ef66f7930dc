"""Number of tasks of each class that a node can take without tasks of other classes."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools


@dataclass(frozen=True, slots=True)
class SoloCapacity:
    """slots (K, N): number of tasks that a node can take of a class alone, of which any number waits. of_class (C,):
    the row of each class, one for all that nodes can take the same number of."""

    slots: I64
    of_class: I64


def task_slots(free: I64, requests: I64, suitable: Bools, waiting: I64) -> I64:
    """slots[c, n] (C, N): number of tasks of class c alone that fit on node n, at most waiting[c] (C,).

    free (N, R) and requests (C, R) are amounts, suitable (C, N) whether labels and taints allow the node. A resource
    that a class does not request does not limit it, even if the node is over-committed in it, as in kube-scheduler.
    """
    slots = np.empty(suitable.shape, np.int64)
    available = np.ascontiguousarray(np.maximum(free, 0).T)
    # a class at a time, whose row the caches can hold; those with equal requests after one another share a division
    times, last = available.copy(), np.ones(len(available), np.int64)
    order = np.lexsort(requests.T) if requests.size else np.arange(len(requests))
    for c in order.tolist():
        row = slots[c]
        np.multiply(suitable[c], waiting[c], out=row)  # np.where is slower where the mask has no pattern
        for r in np.flatnonzero(requests[c]).tolist():
            if requests[c, r] != last[r]:
                last[r] = requests[c, r]
                np.floor_divide(available[r], last[r], out=times[r])
            np.minimum(row, times[r], out=row)
    return slots
