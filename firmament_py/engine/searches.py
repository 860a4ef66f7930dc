"""Searches beside the rounds: what takes long, that is, to find victims, and tasks that move for others, happens on a
copy of the state, and rounds go on meanwhile.

A round places what fits, and decides which of the tasks that it leaves are to be searched for: those for which others
may leave, unless a search has found nothing for them and nothing has happened since that could change that. A search is
a whole round on a copy of the state, with the same settings, so what it decides is what a round would have decided at
that moment. The next round after its end carries out those of its decisions that still hold
(engine/late_decisions.py); if some do not, another search follows at once, and after a few such ones, the round itself
searches. So a search delays no task that fits, and none waits for ever because the cluster changes faster than a
search.
"""

import logging
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from firmament_py.engine.execution import POLL_US, Execution
from firmament_py.engine.late_decisions import LateDecisions
from firmament_py.engine.packings import Packings
from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.stats import RoundStats
from firmament_py.engine.wakeups import Timer
from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.lifecycle import WAITING
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG
from firmament_py.state.tables import Sought

log = logging.getLogger(__name__)

STALE_SEARCHES = 3
"""After so many searches one after the other of which some decisions did not hold any more, a round searches itself."""

FAILED_US = 10_000_000
"""After which time a search follows one that has failed."""


class Searcher(Protocol):
    """A scheduler on a copy of the state that belongs to the search alone."""

    state: ClusterState
    gangs_at_best: dict[int, tuple[int, int]]

    @property
    def timers(self) -> Mapping[Timer, int]: ...

    def run(self, now_us: int) -> RoundResult: ...


class Search:
    """One search. rows (K,): the tasks that it is for. first (F,): those of them that were never searched for before.
    nominated: the column of the task table when it began; started_us: when that was, by the client's clock.

    Once it has ended, and has not failed: decisions; then: the state that it has worked on; stats; seconds."""

    def __init__(self, searcher: Searcher, rows: I64, first: I64, nominated: I64, started_us: int) -> None:
        self.searcher, self.rows, self.first, self.nominated = searcher, rows, first, nominated
        self.started_us, self.seconds = started_us, 0.0
        self.ended = self.failed = False
        self.then = searcher.state
        self.stats: RoundStats
        self.decisions: LateDecisions

    def work(self) -> None:
        started = perf_counter()
        try:
            result = self.searcher.run(self.started_us)
            self.stats, self.decisions = result.stats, LateDecisions.of(result, self.then, self.nominated)
        except Exception:  # whatever it is, rounds go on, and the next search may succeed
            log.exception("a search of victims has failed; it is repeated in %.0f s", FAILED_US / 1e6)
            self.failed = True
        self.seconds = perf_counter() - started
        self.ended = True


class Searches:
    """Of one scheduler. beside: a scheduler on a copy of its state; None: there is none. learn: is told of it when its
    search has ended. packings: those beside the rounds, None: rounds pack themselves. While one is under way, no search
    begins: it may place those that would be searched for."""

    def __init__(
        self,
        state: ClusterState,
        execution: Execution,
        beside: Callable[[], Searcher | None],
        learn: Callable[[Any], None],
        packings: Packings | None = None,
    ) -> None:
        self.packings = packings
        self._state, self._execution, self._beside, self._learn = state, execution, beside, learn
        self._unable = False  # the policy cannot be copied
        self._search: Search | None = None
        self._rows = NO_ROWS  # to be searched for next
        self._due_us = 0  # when all are searched for again, 0: never unless something changes
        self._not_before_us = 0
        self._stale = 0
        self.at_best: dict[int, tuple[int, int]] = {}
        """Ids of gangs -> as Scheduler.gangs_at_best, from the last search."""

    @property
    def exhausted(self) -> bool:
        """Whether the next round has to search itself."""
        return (self._unable or self._stale >= STALE_SEARCHES) and not self._packing

    @property
    def _packing(self) -> bool:
        return self.packings is not None and self.packings.under_way

    def round_searches(self) -> None:
        """The next round searches, and packs, itself."""
        if self.packings is not None:
            self.packings.forget()

    def searched_in_round(self, rows: I64, timers: Mapping[Timer, int]) -> None:
        """A round has considered these waiting tasks (K,) as a search does. A search that still goes on is forgotten.
        timers: what it leaves to be tried again."""
        self._state.tasks.note(rows, sought=Sought.IN_VAIN)
        self._rows, self._stale, self._search = NO_ROWS, 0, None
        self._due_us = _searches_due_us(timers)

    def quiet(self) -> bool:
        """Whether no search runs or is due, now or later, unless the state changes."""
        return self._search is None and not len(self._rows) and not self._due_us and not self._packing

    def due(self, now_us: int) -> bool:
        """Whether a round has anything to carry out, or a search to begin."""
        if self.packings is not None and self.packings.under_way:
            return self.packings.due
        if self._search is not None:
            return self._search.ended
        begins = len(self._rows) > 0 and self._not_before_us <= now_us
        return (begins and (self.exhausted or not self._execution.running)) or 0 < self._due_us <= now_us

    def wake_us(self, now_us: int) -> int:
        """When to ask again whether a round is due, 0: not because of a search."""
        if self.packings is not None and self.packings.under_way:
            return self.packings.wake_us(now_us)
        if self._search is not None:
            elapsed = now_us - self._search.started_us
            return now_us if self._search.ended else now_us + max(POLL_US, elapsed // 10)
        times = [self._due_us] if self._due_us else []
        if len(self._rows):
            # the search of an epoch that is over has not ended yet
            blocked = self._execution.running and not self.exhausted
            times.append(max(self._not_before_us, now_us + POLL_US if blocked else now_us))
        return min(times, default=0)

    def round_begins(self, now_us: int, *, again: bool) -> None:
        """again: time alone may change what searches find."""
        if again or 0 < self._due_us <= now_us:
            self._due_us = 0
            self._search_again(np.arange(self._state.tasks.capacity))

    def take(self, now_us: int) -> Search | None:
        """The search that has ended, once, with those of its tasks that still wait; None: there is none, it has failed,
        or some of its tasks may yet be packed."""
        search = self._search
        if search is None or not search.ended or self._packing:
            return None
        self._search = None
        search.rows = self._still_waiting(search, search.rows)
        if search.failed:
            self._search_again(search.rows)
            self._not_before_us = now_us + FAILED_US
            return None
        grown = self._grown(search)
        self._state.tasks.note(search.rows[grown], sought=Sought.ANEW)
        self._note_outcome(search, search.rows[~grown], now_us)
        self._learn(search.searcher)
        return search

    def _grown(self, search: Search) -> Bools:
        """(K,) which rows of a search are of gangs with members that have arrived since it began: what it says of fewer
        is not so of them all."""
        tasks, then = self._state.tasks, search.then.tasks
        rows = tasks.waiting
        rows = rows[tasks.gang[rows] != NO_GANG]
        known = np.zeros(tasks.capacity, np.bool_)
        known[: then.capacity] = then.live & (then.generation == tasks.generation[: then.capacity])
        gang = tasks.gang[search.rows]
        grown: Bools = np.isin(gang, tasks.gang[rows[~known[rows]]]) & (gang != NO_GANG)
        return grown

    def _still_waiting(self, search: Search, rows: I64) -> I64:
        """Those of task rows (K,) of a search that are of the same tasks as then, which wait."""
        tasks = self._state.tasks
        waiting = (tasks.state[rows] == WAITING) & (tasks.generation[rows] == search.then.tasks.generation[rows])
        found: I64 = rows[waiting]
        return found

    def _note_outcome(self, search: Search, rows: I64, now_us: int) -> None:
        """What the search says of its task rows (K,), and when another one is due."""
        tasks, found = self._state.tasks, search.searcher
        for note in ("passed_over", "without_victims"):
            tasks.note(rows[getattr(found.state.tasks, note)[rows]], **{note: True})
        self.at_best = dict(found.gangs_at_best)
        self._due_us = _searches_due_us(found.timers)
        if Timer.PASSED_OVER in found.timers:
            self._search_again(rows)
        # a search for each change would take all the time of a processor, though nothing is found
        self._not_before_us = 0 if search.decisions.count else now_us + round(1e6 * search.seconds)

    def carried_out(self, search: Search, chosen: Bools) -> None:
        """The decisions `chosen` (count,) still hold. If others do not, what they would have taken is there for all
        that were searched for."""
        if chosen.all():
            self._stale = 0
            return
        stale = search.decisions.cause[~chosen[search.decisions.cause_of]]
        rows = np.concatenate([search.rows, stale])
        self._state.tasks.note(self._still_waiting(search, rows), sought=Sought.ANEW)
        self._stale += 1

    def _search_again(self, rows: I64) -> None:
        """For task rows (K,), with what is noted of them."""
        tasks = self._state.tasks
        tasks.note(rows[tasks.sought[rows] == Sought.IN_VAIN], sought=Sought.AGAIN)

    def undecided(self, rows: I64) -> tuple[I64, I64]:
        """Of waiting task rows (K,) for which others may leave: those for which a search runs or is due, and those of
        them that none has ended for yet. To both belong those that may still be packed."""
        sought = self._state.tasks.sought
        self._rows = rows[sought[rows] != Sought.IN_VAIN]
        fresh = self._rows[sought[self._rows] == Sought.NEVER]
        undecided, unsaid = self._rows, fresh
        if self._search is not None:
            undecided, unsaid = np.union1d(undecided, self._search.rows), np.union1d(unsaid, self._search.first)
        if self.packings is not None and len(left := self.packings.undecided()):
            undecided, unsaid = np.union1d(undecided, left), np.union1d(unsaid, left)
        return undecided, unsaid

    def start_if_due(self, now_us: int) -> None:
        """At the end of a round."""
        if self._search is not None or not len(self._rows) or now_us < self._not_before_us or self._execution.running:
            return
        if self.exhausted or self._packing:
            return
        tasks = self._state.tasks
        first = self._rows[tasks.sought[self._rows] == Sought.NEVER]
        # what the last search has noted of these may not be so any more
        tasks.begin_anew(self._rows[tasks.sought[self._rows] == Sought.ANEW])
        searcher = self._beside()
        if searcher is None:
            self._unable = True
            return
        tasks.note(self._rows, sought=Sought.IN_VAIN)
        self._search = Search(searcher, self._rows, first, tasks.nominated.copy(), now_us)
        self._rows = NO_ROWS
        self._execution.start(self._search.work)


def _searches_due_us(timers: Mapping[Timer, int]) -> int:
    """When time alone may change what a search finds, by the timers that it has left; 0: never."""
    return min((timers[timer] for timer in (Timer.CLAIMS, Timer.MOVES, Timer.DROPPED) if timer in timers), default=0)
