"""Which running tasks the rules of queues permit a job to evict, and in which order.

The first are those of other queues, of the least important queue, with fair sharing of the one with the highest share,
and of the lowest priority; among these, the ones that leave their queue what it is entitled to, then the newest.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, distinct_rows
from firmament_py.model.queues import Sharing, Within
from firmament_py.placement.ledger import Ledger
from firmament_py.preemption.outcome import Outcome
from firmament_py.queues.fair_order import places
from firmament_py.queues.permissions import Situation, Why, permissions, sides
from firmament_py.queues.priorities import changes_priorities, seen_outside
from firmament_py.sharing.claims import Standing
from firmament_py.state.gangs import NO_GANG

_FOREVER_US = 2**60


@dataclass(frozen=True, slots=True)
class Candidates:
    """rows (K,) of the task table that may leave; precedence (K,), ascending: which of them first."""

    rows: I64
    precedence: I64


class CandidateSearch:
    """For the jobs of one ledger. outcome: its victims leave already."""

    def __init__(self, ledger: Ledger, standing: Standing, outcome: Outcome) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._state = ledger.snapshot.releases.state
        self._standing = standing
        self._outcome = outcome
        self.due_us = 0
        """When a job has waited, or a candidate has run, for long enough; 0: no time changes anything."""
        self._evictable = self._evictable_rows()
        self._least_preemptor = self._state.tasks.least_preemptors(self._snapshot.now_us)

    @property
    def is_empty(self) -> bool:
        """Whether no job has any candidates."""
        return not len(self._evictable)

    def later(self, time_us: int) -> bool:
        """Whether this is yet to come; notes it then."""
        later = time_us > self._snapshot.now_us
        if later and time_us < _FOREVER_US:
            self.due_us = min(time_us, self.due_us or time_us)
        return later

    def of(
        self, situation: Situation, refused: Bools, *, borrowing: bool = False, own_alone: bool = False
    ) -> Candidates:
        """Running tasks that may leave for a job, by the rules of their queues alone. refused (T,): not these.
        borrowing: those only that may leave although the job's queue borrows in the end; own_alone: those of the job's
        queue."""
        state, tasks, use = self._state, self._state.tasks, self._standing.use
        granted = permissions(situation)
        rows = self._evictable
        rows = rows[(granted.why != Why.NOT)[use.queue_of(rows)] & ~refused[rows]]
        leave = np.zeros(tasks.capacity, np.bool_)
        leave[self._outcome.victims] = True
        rows = rows[~leave[rows]]
        completed = np.unique(tasks.gang[self._snapshot.tasks[self._ledger.node_of >= 0]])
        rows = rows[~np.isin(tasks.gang[rows], completed[completed != NO_GANG])]  # else the new members would stay
        queue, priority = use.queue_of(rows), state.classes.priority[tasks.cls[rows]]
        may = granted.reasons(queue, priority) != Why.NOT
        if borrowing:
            may &= priority <= granted.highest_borrowing[queue]
        newer = (priority == situation.priority) & (tasks.created_us[rows] > situation.created_us)
        may |= granted.equal_if_newer[queue] & newer
        own = queue == situation.queue
        if use.queues.definitions[situation.queue].within is Within.NEVER:
            may &= ~own
        if own_alone:
            may &= own
        began_us = np.maximum(tasks.started_us[rows], tasks.created_us[rows])
        least_us = np.minimum(self._least_s[queue, own.astype(np.int64)] * 1e6, _FOREVER_US).astype(np.int64)
        protected = may & (least_us > 0) & (began_us + least_us > self._snapshot.now_us)
        self.later(int((began_us + least_us)[protected].min(initial=_FOREVER_US)))
        may &= ~protected
        exempt = may & (self._least_preemptor[rows] > situation.priority)
        self.later(int(tasks.exempt_until_us[rows][exempt].min(initial=_FOREVER_US)))
        may &= ~exempt
        rows, own, priority = rows[may], own[may], priority[may]
        amounts = self._standing.amounts(state, rows)
        uses = (amounts > 0)[:, situation.needed].any(axis=1)
        rows, own, priority, amounts = rows[uses], own[uses], priority[uses], amounts[uses]
        queue = use.queue_of(rows)
        too_large = ~own & (amounts > granted.excess[queue])[:, situation.needed].any(axis=1)
        side = sides(situation)
        of_queue = np.where(own, 0, use.queues.priority[side[queue]])
        if changes_priorities(use.queues):
            priority = np.where(own, priority, seen_outside(use.queues, side).priority(queue, priority))
        place = np.zeros(len(rows), np.int64)
        if use.queues.tree.sharing is Sharing.FAIR:
            others = np.flatnonzero(~own)
            others = others[np.lexsort((-tasks.started_us[rows[others]], too_large[others], priority[others]))]
            place[others] = places(situation, queue[others], amounts[others])
        keys = own, granted.within_floor[queue], of_queue, place, priority, too_large
        precedence = distinct_rows(np.column_stack(keys))[1]
        order = np.lexsort((-tasks.started_us[rows], precedence))
        return Candidates(rows[order], precedence[order])

    @cached_property
    def _least_s(self) -> F64:
        """(Q, 2) seconds that tasks of each queue run before others evict them, and before those of their own do."""
        definitions = self._standing.use.queues.definitions
        return np.array([(d.reclaim_min_runtime_s, d.preempt_min_runtime_s) for d in definitions])

    def _evictable_rows(self) -> I64:
        """(K,) rows of tasks in queues that may leave at all, ascending."""
        tasks, use = self._state.tasks, self._standing.use
        (rows,) = tasks.evictable.nonzero()
        return rows[(use.queue_of(rows) >= 0) & (use.position(tasks.node[rows]) >= 0)]
