"""What jobs could preempt, as amounts: an estimate by which queues with several flavors choose one (Kueue's
fungibility).

Whether victims leave is decided later, for a job on a flavor, with all that they depend on.
"""

from functools import cached_property
from math import prod

import numpy as np

from firmament_py.model.arrays import I64, Bools, counts_of, distinct_rows
from firmament_py.model.queues import Reclaim, Sharing, Within
from firmament_py.queues.quota import total_usage
from firmament_py.queues.tree import Queues
from firmament_py.sharing.flavors import add_amounts
from firmament_py.sharing.jobs import Jobs
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState


class VictimAmounts:
    """Of a round at `now_us`."""

    def __init__(self, state: ClusterState, use: QueueUse, now_us: int) -> None:
        self._state, self._use, self._now_us = state, use, now_us
        self._groups: tuple[I64, I64, I64, I64] | None = None

    @property
    def _matter(self) -> bool:
        queues = self._use.queues
        several = queues.flavor_order.shape[2] > 1 and bool((queues.flavor_order[:, :, 1:2] >= 0).any())
        return several and queues.tree.sharing in (Sharing.CLASSICAL, Sharing.FAIR)

    def of(self, jobs: Jobs) -> tuple[I64, I64] | None:
        """(J, V) each: what tasks of the job's own queue use, and those of others, that it may preempt; None: no queue
        has a choice between flavors."""
        if not self._matter:
            return None
        queues = self._use.queues
        queue, priority, least, amounts = self._running()
        own = np.zeros((len(jobs.queue), queues.nominal.shape[1]), np.int64)
        others = np.zeros_like(own)
        if not len(queue):
            return own, others
        excess = total_usage(queues, self._use.running(leaving=False)) - queues.nominal
        at_most = np.where(excess > 0, excess - 1 + self._largest(), 0)  # the last one may leave less than is nominal
        root = queues.roots()
        keys = np.c_[jobs.queue, jobs.priority]
        first, of_job = distinct_rows(keys)
        for number, (q, own_priority) in enumerate(keys[first].tolist()):
            definition = queues.definitions[q]
            may = least <= own_priority
            lower = may & (priority < own_priority)
            here = np.flatnonzero(of_job == number)
            if definition.within is not Within.NEVER:
                own[here] = amounts[(queue == q) & lower].sum(axis=0)
            if definition.reclaim is not Reclaim.NEVER:
                open_to = lower if definition.reclaim is Reclaim.LOWER_PRIORITY else may
                some = open_to & (queue != q) & (root[queue] == root[q]) & queues.reclaimable[queue]
                others[here] = _within(queues, queue, amounts, some, at_most)
        return own, others

    def _running(self) -> tuple[I64, I64, I64, I64]:
        """Tasks on nodes that may be preempted, in groups (G,) of a queue, a priority, and the lowest one of tasks that
        preempt them: these, and what they use (G, V)."""
        if self._groups is None:
            state, use = self._state, self._use
            rows, queue, node = self._evictable
            cls = state.tasks.cls[rows]
            levels, level = np.unique(state.tasks.least_preemptors(self._now_us)[rows], return_inverse=True)
            of = use.queues.count, state.classes.capacity, use.choices.kinds, max(len(levels), 1)
            alike = np.ravel_multi_index((queue, cls, use.choices.kind(rows, node), level.reshape(-1)), of)
            number, count = counts_of(alike, prod(of))
            queue, cls, kind, level = np.unravel_index(number, of)
            keys = np.c_[queue, state.classes.priority[cls], levels[level]]
            first, group = distinct_rows(keys)
            amounts = np.zeros((len(first), use.queues.nominal.shape[1]), np.int64)
            columns = use.choices.columns(queue, kind)
            add_amounts(amounts, group, columns, use.requests(cls) * count[:, None])
            queue, priority, least = keys[first].T
            self._groups = queue, priority, least, amounts
        return self._groups

    def _largest(self) -> I64:
        """(Q, V) the largest amount that leaves each queue at once: that of a task, or of a gang."""
        state, use = self._state, self._use
        rows, queue, node = self._evictable
        cls, kind, gang = state.tasks.cls[rows], use.choices.kind(rows, node), state.tasks.gang[rows]
        single = np.flatnonzero(gang < 0)
        of = use.queues.count, state.classes.capacity, use.choices.kinds
        alike = np.ravel_multi_index((queue[single], cls[single], kind[single]), of)
        some = single[np.unique(alike, return_index=True)[1]]  # one of each kind
        largest = np.zeros_like(use.queues.nominal)
        np.maximum.at(largest, queue[some], self._summed(np.arange(len(some)), some))
        members = np.flatnonzero(gang >= 0)
        _, first, unit = np.unique(gang[members], return_index=True, return_inverse=True)
        np.maximum.at(largest, queue[members[first]], self._summed(unit.reshape(-1), members))
        return largest

    def _summed(self, unit: I64, some: I64) -> I64:
        """(U, V) what the evictable tasks `some` (K,) use, by unit (K,)."""
        use, (rows, queue, node) = self._use, self._evictable
        amounts = np.zeros((int(unit.max(initial=-1)) + 1, use.queues.nominal.shape[1]), np.int64)
        columns = use.choices.columns(queue[some], use.choices.kind(rows[some], node[some]))
        add_amounts(amounts, unit, columns, use.requests(self._state.tasks.cls[rows[some]]))
        return amounts

    @cached_property
    def _evictable(self) -> tuple[I64, I64, I64]:
        """(K,) rows of tasks on nodes that may be preempted, rows of their queues, and positions of their nodes."""
        tasks, use = self._state.tasks, self._use
        rows = np.flatnonzero((tasks.node >= 0) & (tasks.queue != 0) & ~tasks.unevictable & ~tasks.leaving)
        queue, node = use.queue_of(rows), use.position(tasks.node[rows])
        some = (queue >= 0) & (node >= 0)
        return rows[some], queue[some], node[some]


def _within(queues: Queues, queue: I64, amounts: I64, some: Bools, at_most: I64) -> I64:
    """(V,) amounts (G, V) of some groups (G,) of queues (G,), no more of each queue than (Q, V)."""
    of_queue = np.zeros_like(at_most)
    np.add.at(of_queue, queue[some], amounts[some])
    found: I64 = np.minimum(of_queue, at_most)[queues.leaf].sum(axis=0)
    return found
