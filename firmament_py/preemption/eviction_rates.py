"""How many tasks other queues have evicted from queues that limit this, in the last hour.

What is evicted for a queue counts in the queue of the victim and in those above it, up to the one that both are below.
The count is of one process: after a restart it begins anew.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.queues.tree import Queues
from firmament_py.state.cluster import ClusterState

_HOUR_US = 3_600_000_000


class EvictionRates:
    """From round to round the same object."""

    def __init__(self) -> None:
        self._recent: dict[int, deque[tuple[int, int]]] = {}
        """By id of a queue: when, and how many."""

    def copy(self, limited: bool = True) -> "EvictionRates":
        """One that counts separately from now on; limited: False: as if nothing had been evicted. May be called while
        another thread counts."""
        found = EvictionRates()
        if limited:
            found._recent = {queue: recent.copy() for queue, recent in list(self._recent.items())}
        return found

    def left(self, queues: Queues, now_us: int) -> dict[int, int]:
        """By row of each queue with a limit: how many more of its tasks may be evicted at `now_us`, microseconds since
        the epoch."""
        found = {}
        for row, queue in enumerate(queues.definitions):
            if queue.evictions_per_hour is not None:
                recent = self._recent.get(queue.id, deque())
                while recent and recent[0][0] <= now_us - _HOUR_US:
                    recent.popleft()
                found[row] = queue.evictions_per_hour - sum(number for _, number in recent)
        return found

    def next_us(self, queue_id: int) -> int:
        """When more of its tasks may be evicted than now, 0: it is not known."""
        recent = self._recent.get(queue_id)
        return recent[0][0] + _HOUR_US if recent else 0

    def permits(self, state: ClusterState, victims: I64, preemptors: I64, now_us: int) -> bool:
        """Whether task rows (K,) may be evicted for task rows (K,) at `now_us`."""
        left = self.left(state.queues, now_us)
        for row, number in self._lost(state, victims, preemptors):
            left[row] = left.get(row, number) - number
        return all(number >= 0 for number in left.values())

    def note(self, state: ClusterState, victims: I64, preemptors: I64, now_us: int) -> None:
        """Task rows (K,) have been evicted for task rows (K,)."""
        for row, number in self._lost(state, victims, preemptors):
            self._recent.setdefault(state.queues.definitions[row].id, deque()).append((now_us, number))

    def _lost(self, state: ClusterState, victims: I64, preemptors: I64) -> Iterator[tuple[int, int]]:
        """Rows of queues with a limit, and how many tasks each loses to a queue; a row for each of the latter."""
        queues, of_task = state.queues, state.tasks.queue_row
        victims, preemptors = of_task[victims], of_task[preemptors]
        for preemptor in np.unique(preemptors[preemptors >= 0]).tolist():
            counts = evictions(queues, victims[(preemptors == preemptor) & (victims >= 0)], preemptor)
            for row in np.flatnonzero(counts).tolist():
                if queues.definitions[row].evictions_per_hour is not None:
                    yield row, int(counts[row])


def evictions(queues: Queues, victims: I64, preemptor: int) -> I64:
    """(Q,) how many tasks each queue loses to the queue `preemptor`, a row, if tasks of queues (K,), rows, leave."""
    lost = queues.paths[victims]
    counts = np.bincount(lost[lost >= 0], minlength=queues.count).astype(np.int64)
    shared = queues.paths[preemptor]
    counts[shared[shared >= 0]] = 0
    return counts
