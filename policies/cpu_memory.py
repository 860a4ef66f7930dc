"""cpu-memory: keeps cpu and memory of all nodes evenly used, and in balance with each other.

    slot[n, k] = 1000 x max over cpu, memory of (load + k x m) / allocatable     m: mean request of those who wait
    place[c, n] = 250 x |cpu share - memory share| of n after one task of c

`load` is View.load: what is requested, or measured. The first term levels nodes like water: the next task goes where
the fuller of the two is emptiest. The second sends tasks that are heavy in one to nodes that are light in it
(Poseidon's cpu-memory cost model adds the two the same way; kube-scheduler's BalancedAllocation is the second).
Example: a node of 4 cpu and 8 Gi with 1 cpu and 4 Gi in use stands at 500; a task of 1 cpu, 0 Gi costs
250 x |0.5 - 0.5| = 0 more there, one of 0 cpu, 2 Gi 250 x |0.25 - 0.75| = 125.
"""

import numpy as np

from firmament_py.arrays import F64
from firmament_py.policy import Prices, View, waiting_cost

_RESOURCES = ("cpu", "memory")
_LEVEL = 1000
_IMBALANCE = 250


class CpuMemory:
    """Evenly used cpu and memory, in balance with each other."""

    name = "cpu-memory"

    def price(self, view: View) -> Prices:
        columns = [view.resources.index(name) for name in _RESOURCES if name in view.resources]
        allocatable = view.allocatable[:, columns].astype(np.float64)
        used = view.load[:, columns].astype(np.float64)
        waiting = view.requests[:, columns].astype(np.float64)
        mean = view.waiting @ waiting / max(int(view.waiting.sum()), 1)
        level = _share(used[:, None, :] + view.slot_offsets[None, :, None] * mean, allocatable[:, None, :])
        after = _share(used[None, :, :] + waiting[:, None, :], allocatable[None, :, :])
        imbalance = after.max(axis=2, initial=0.0) - after.min(axis=2, initial=1.0 if columns else 0.0)
        return Prices(
            place=np.rint(_IMBALANCE * imbalance).astype(np.int64),
            slot=np.rint(_LEVEL * level.max(axis=2, initial=0.0)).astype(np.int64),
            wait=waiting_cost(view),
        )


def _share(amount: F64, allocatable: F64) -> F64:
    """amount / allocatable within 0 .. 1; 0 where there is nothing of it."""
    share = np.divide(
        amount, allocatable, out=np.zeros(np.broadcast_shapes(amount.shape, allocatable.shape)), where=allocatable > 0
    )
    return np.clip(share, 0.0, 1.0)
