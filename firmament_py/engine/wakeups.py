"""When the next round is due: at once after a change that a waiting task awaits (explain/wakeups.py), or at the time of
a timer."""

from collections.abc import Mapping
from enum import Enum, auto

import numpy as np

from firmament_py.engine.plan_execution import PlanExecution
from firmament_py.explain.wakeups import ENDED_BY, Unreported
from firmament_py.model.arrays import I64
from firmament_py.model.changes import Change
from firmament_py.model.lifecycle import BOUND
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.placement.migration import Migrator
from firmament_py.placement.running import next_movable_us
from firmament_py.state.cluster import ClusterState
from firmament_py.state.tables import EXEMPT_FOREVER_US

REASONS_STEP_US = 5_000_000
"""After which time a round follows changes that no task awaits: they end no wait, but may change its reasons."""

RESERVED_STEP_US = 10_000_000
"""After which time tasks are tried again that wait for capacity that is reserved for others."""

_MOVES = int(ENDED_BY[Unreported.BETTER_NODE])
_EVICTABLE = int(Change.EVICTABLE)
_NEVER = 2**63 - 1


class Timer(Enum):
    """What a round leaves to be tried again at some time, though nothing changes."""

    DEFERRED = auto()
    """Tasks with many terms that were not considered since the last change: at once."""
    PASSED_OVER = auto()
    """Tasks that may use the quota of others, which no node takes: at once."""
    DELAYED = auto()
    """Tasks that wait for a node that costs less."""
    DROPPED = auto()
    """Decisions that the independent check refused."""
    RESERVED = auto()
    """Tasks for which a node has capacity that is reserved for others: where, depends on the time, too."""
    CLAIMS = auto()
    """Tasks of queues that may preempt later, or whose shares change by time alone."""
    MOVES = auto()
    """Moves for waiting tasks, after a pause."""
    AMOUNTS = auto()
    """Amounts that tasks lack of a quota, which have changed since they were reported."""


class Wakeups:
    """For the rounds on one state."""

    def __init__(
        self,
        state: ClusterState,
        migrator: Migrator,
        plan: PlanExecution,
        options: EngineOptions,
    ) -> None:
        self._state, self._migrator, self._plan = state, migrator, plan
        self._moves_for_waiting = options.migrating is not Migrating.NEVER
        self._migrate_after_us = options.migrate_after_us
        self._last_us = 0
        self._explained = -1  # the last change before the reasons were found
        self._awaited_kinds = 0  # by any task when the last round ended
        self._timers: dict[Timer, int] = {}

    @property
    def timers(self) -> Mapping[Timer, int]:
        """Those that are set -> when, microseconds since the epoch."""
        return self._timers

    def time_counts(self, now_us: int) -> bool:
        """Whether time alone may change what is found of waiting tasks and those that could leave for them, beside what
        begins anew with changes."""
        state = self._state
        times = [self._timers.get(timer, 0) for timer in (Timer.RESERVED, Timer.CLAIMS, Timer.DROPPED, Timer.MOVES)]
        times += state.successors.next_end_us, state.budgets.late_until_us
        times.append(self._next_preemptible_us(self._last_us))
        if self._moves_for_waiting:
            times.append(next_movable_us(state, self._migrate_after_us, self._last_us))
        return any(0 < time <= now_us for time in times)

    def round_ended(self, now_us: int, timers: dict[Timer, int]) -> None:
        """The round at `now_us` has ended. timers: microseconds since the epoch, 0: not set."""
        state, tasks = self._state, self._state.tasks
        state.changes.round_ends()
        self._last_us, self._explained = now_us, state.changes.number
        self._awaited_kinds = int(np.bitwise_or.reduce(tasks.awaits[tasks.waiting]))
        self._timers = {timer: time_us for timer, time_us in timers.items() if time_us}

    def woken(self, now_us: int) -> I64:
        """Rows (K,) of the waiting tasks that may be placed at `now_us` and await a change that has happened since the
        last round."""
        tasks = self._state.tasks
        rows = tasks.waiting
        woken: I64 = rows[((tasks.awaits[rows] & self._changed) != 0) & (tasks.not_before_us[rows] <= now_us)]
        return woken

    def due(self, now_us: int) -> bool:
        """Whether a round could do anything that the last one could not."""
        return self._awaited(now_us) or 0 < self._timer_us(self._last_us) <= now_us

    def quiet(self) -> bool:
        """Whether no round is due, now or later, unless the state changes."""
        return not (self._awaited(_NEVER) or self._timer_us(self._last_us))

    def wake_us(self, now_us: int) -> int:
        """When the next round is due if nothing changes any more, `now_us` if at once, 0: never."""
        return now_us if self._awaited(now_us) else self._timer_us(now_us)

    def _timer_us(self, now_us: int) -> int:
        """When the next round is due although nothing changes, `now_us` if at once, 0: never."""
        state, tasks = self._state, self._state.tasks
        if not self._any_work:
            return 0
        if Timer.DEFERRED in self._timers or Timer.PASSED_OVER in self._timers:
            return now_us
        waiting = tasks.waiting
        times = [self._plan.wake_us, *self._timers.values()]
        if len(waiting):
            later = tasks.not_before_us[waiting]
            times.append(int(later.min(initial=_NEVER, where=later > now_us)))
            times += state.successors.next_end_us, state.budgets.late_until_us, self._next_preemptible_us(now_us)
            times.append(self._last_us + REASONS_STEP_US if state.changes.number != self._explained else 0)
        if self._migrator.enabled or (self._moves_for_waiting and len(waiting)):
            times.append(next_movable_us(state, self._migrate_after_us, now_us))
        return min((time for time in times if time and time != _NEVER), default=0)

    def _next_preemptible_us(self, now_us: int) -> int:
        """When the next running task may be evicted for one that waits for victims, as it is exempt no longer; 0:
        never, unless the state changes."""
        tasks, priority = self._state.tasks, self._state.classes.priority
        waiting = tasks.waiting  # few, if any: a look at all tasks takes long
        waiting = waiting[(tasks.awaits[waiting] & _EVICTABLE) != 0]
        if not len(waiting):
            return 0
        rows = tasks.rows_with("exempt_until_us")
        exempt_us = tasks.exempt_until_us[rows]
        rows = rows[(exempt_us > now_us) & (exempt_us < EXEMPT_FOREVER_US)]
        if not len(rows):
            return 0
        for_priority = priority[tasks.cls[waiting]]
        may_be = (tasks.state[rows] == BOUND) & ~tasks.unevictable[rows]
        may_be &= tasks.least_preemptor[rows] > for_priority.min()
        may_be &= (tasks.queue[rows] != 0) | (priority[tasks.cls[rows]] < for_priority.max())
        return int(tasks.exempt_until_us[rows[may_be]].min(initial=_NEVER)) if may_be.any() else 0

    @property
    def _changed(self) -> int:
        """The kinds of changes since the last round. What that one has decided does not count if some of it was
        dropped: the next round would decide the same."""
        happened = self._state.changes.happened
        return happened & ~int(Change.DECISION) if Timer.DROPPED in self._timers else happened

    @property
    def _any_work(self) -> bool:
        """Whether a round could have anything to do."""
        return len(self._state.tasks.waiting) > 0 or self._migrator.enabled or self._plan.active

    def _awaited(self, now_us: int) -> bool:
        """Whether a change has happened that something awaits which may be done at `now_us`."""
        changed = self._changed
        if not changed:
            return False
        if changed & int(Change.ARRIVAL | Change.WITHDRAWAL):  # other tasks wait than when the last round ended
            woken = len(self.woken(now_us)) > 0
        else:
            woken = (changed & self._awaited_kinds) != 0
        return woken or self._plan.active or (self._migrator.enabled and (changed & _MOVES) != 0)
