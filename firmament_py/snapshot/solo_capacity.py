"""Number of tasks of each class that a node can take without tasks of other classes."""

import numpy as np

from firmament_py.model.arrays import I64, Bools


def task_slots(free: I64, requests: I64, suitable: Bools, waiting: I64) -> I64:
    """slots[c, n] (C, N): number of tasks of class c alone that fit on node n, at most waiting[c] (C,).

    free (N, R) and requests (C, R) are amounts, suitable (C, N) whether labels and taints allow the node. A resource
    that a class does not request does not limit it, even if the node is over-committed in it, as in kube-scheduler.
    """
    slots = suitable * waiting[:, None]  # np.where would take several times as long where the mask has no pattern
    available = np.ascontiguousarray(np.maximum(free, 0).T)
    for r, amounts in enumerate(requests.T):
        last = 0
        for c in np.argsort(amounts, kind="stable").tolist():
            if amounts[c] != last:
                # one division by a scalar for all equal requests: several times faster than by a matrix
                last = int(amounts[c])
                times = available[r] // last
            if last:
                np.minimum(slots[c], times, out=slots[c])
    return slots
