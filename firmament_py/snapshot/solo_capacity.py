"""How many tasks of each class each node could take if it took only those."""

import numpy as np

from firmament_py.model.arrays import I64, Bools


def task_slots(free: I64, requests: I64, suitable: Bools, waiting: I64) -> I64:
    """slots[c, n] (C, N): the most tasks of class c that fit on node n alone, at most waiting[c] (C,).

    free (N, R) and requests (C, R) are amounts, suitable (C, N) what labels and taints allow. A resource that a
    class does not request does not limit it, however over-committed the node is in it: so does kube-scheduler.
    """
    slots = np.where(suitable, waiting[:, None], 0)
    available = np.ascontiguousarray(np.maximum(free, 0).T)
    for r, amounts in enumerate(requests.T):
        for amount in np.unique(amounts[amounts > 0]).tolist():
            # one division by a scalar for all that ask for the same: several times faster than by a matrix
            times = available[r] // amount
            for c in np.flatnonzero(amounts == amount).tolist():
                np.minimum(slots[c], times, out=slots[c])
    return slots
