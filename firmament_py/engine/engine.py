"""The engine behind the services: one cluster state, one scheduler, one lock, and epochs.

Both services (service/flow_service.py, service/firmament_service.py) work on the same Engine. A call holds the lock
from start to end, so a call never sees part of another's changes, and updates that arrive during a round wait for its
end.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from firmament_py.drawing.network_log import NetworkLog
from firmament_py.engine.execution import Execution
from firmament_py.engine.packings import Packings
from firmament_py.engine.round import Observer
from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.scheduler import DEFAULT_OPTIONS, Scheduler
from firmament_py.engine.searches import Searches
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import Solver
from firmament_py.model.events import Event, Outcome
from firmament_py.model.lifecycle import WAITING
from firmament_py.model.options import EngineOptions
from firmament_py.policy import Policy
from firmament_py.sharing.past_use import settle
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Basis, Usage, UsageOptions

log = logging.getLogger(__name__)


class Engine:
    """Owns the state. Hold `lock` during every use."""

    def __init__(
        self,
        policy: Policy,
        solver: Solver,
        now_us: Callable[[], int] | None = None,
        usage: UsageOptions | None = None,
        *,
        options: EngineOptions = DEFAULT_OPTIONS,
        searching: Execution | None = None,
        packing: Execution | None = None,
        observer: Observer | None = None,
        prepare: Callable[[], object] | None = None,
        load_solver: Callable[[], object] | None = None,
    ) -> None:
        """searching: what carries out searches beside the rounds (engine/searches.py); None: rounds search
        themselves. packing: likewise long packings (engine/packings.py), if there are searches. prepare: called once,
        when compiled functions are likely to be needed: there are queues, or a round has left tasks waiting.
        load_solver: called once, when tasks wait in a state that is on its way."""
        self.lock = threading.Lock()
        self.usage = Usage(usage)
        self.policy = policy
        self.solver = solver
        self.options = options
        self._observer = observer
        self._searching, self._packing = searching, packing
        self._prepare = prepare
        self._load_solver = load_solver
        self.now_us = now_us or (lambda: time.time_ns() // 1000)
        self.rounds = 0
        self.last_round: RoundStats | None = None
        self._start(ClusterState())
        self.resynced = False

    def _start(self, state: ClusterState) -> None:
        self.epoch = _new_epoch()
        self.state = state
        self.scheduler = Scheduler(state, self.policy, self.solver, self._observer, self.usage, self.options)
        packings = None if self._packing is None else Packings(state, self._packing)
        beside = self.scheduler.searching, self.scheduler.learn_from, packings
        self.searches = None if self._searching is None else Searches(state, self._searching, *beside)
        self.round_of_epoch = 0
        self.networks = NetworkLog(self.options.kept_networks)
        """Of the rounds of this epoch."""
        self._prepare_if(state.queues.count > 0)

    def _prepare_if(self, needed: bool) -> None:
        if needed and self._prepare is not None:
            prepare, self._prepare = self._prepare, None
            prepare()

    def apply(self, events: Iterable[Event]) -> Outcome:
        """Applies events in order; their outcomes combined."""
        self.settle()
        outcome = apply_all(self.state, events)
        self._prepare_if(self.state.queues.count > 0)
        return outcome

    def settle(self) -> None:
        """Counts what queues have used until now; called before the state changes or is shown."""
        settle(self.state, self.now_us())

    def expect(self, state: ClusterState) -> None:
        """A state, or the part of it that has come, is to replace the present one."""
        if self._load_solver is not None and (state.tasks.state == WAITING).any():
            load, self._load_solver = self._load_solver, None
            load()

    def replace(self, state: ClusterState) -> None:
        """Replaces the state, in a new epoch. Kept are the counts of outcomes, usage samples of tasks and nodes in the
        new state, and what queues used in the past."""
        self.settle()
        if self.state.past_use.at_us:
            state.past_use = self.state.past_use
        self.usage.carry(self.state, state)
        state.outcomes = self.state.outcomes
        self._start(state)
        self.settle()
        self.resynced = True

    @contextmanager
    def delivery(self) -> Iterator[None]:
        """For running a round and encoding its reply. If that fails after the state has assumed the decisions, the
        client never gets them: a new epoch begins, so that the client resynchronises."""
        scheduler, before = self.scheduler, self.scheduler.commits
        try:
            yield
        except BaseException:
            if scheduler.commits != before:
                self.epoch = _new_epoch()
                log.error("a round failed after its decisions were assumed: a new epoch begins")
            raise

    @property
    def wants_usage(self) -> bool:
        """Whether the policy or the basis of usage needs usage samples."""
        return self.usage.options.basis is not Basis.REQUESTS or bool(getattr(self.policy, "wants_usage", False))

    def wake_us(self, now_us: int) -> int:
        """When the next round is due if nothing changes any more, `now_us` if at once, 0: never. While a search goes
        on: when to ask for the next time."""
        times = self.scheduler.wake_us(now_us), 0 if self.searches is None else self.searches.wake_us(now_us)
        return min((time for time in times if time), default=0)

    @property
    def quiet(self) -> bool:
        """Whether no round is due, now or later, unless the state changes."""
        return self.scheduler.quiet and (self.searches is None or self.searches.quiet())

    def run_round(self, now_us: int, *, original: bool = False) -> RoundResult | None:
        """Runs a round; None if no change since the last one could matter. original: for a client of the original
        contract."""
        scheduler, searches = self.scheduler, self.searches
        if not (scheduler.due(now_us) or (searches is not None and not original and searches.due(now_us))):
            return None
        if searches is None or original or searches.exhausted:
            if searches is not None:
                searches.round_searches()
            result = scheduler.run(now_us, preempts=self.options.original_preempts or not original)
            if searches is not None and original:
                searches.undecided(scheduler.searchable)
            elif searches is not None:
                searches.searched_in_round(scheduler.searchable, scheduler.timers)
        else:
            result = scheduler.run(now_us, searches=searches)
            searches.start_if_due(now_us)
        self._prepare_if(result.stats.placed < result.stats.pending)
        self.rounds += 1
        self.round_of_epoch += 1
        self.last_round = result.stats
        self.networks.add(self.state, self.rounds, result.stats.started_us, result.stats.placed, result.networks)
        log.debug(  # a line would wake the bridge, which reads it, before the reply that it waits for
            "round %d: placed %d of %d in %.1f ms, %d solves, %d vertices, %d arcs",
            self.rounds,
            result.stats.placed,
            result.stats.pending,
            1000 * result.stats.seconds,
            result.stats.solves,
            result.stats.vertices,
            result.stats.arcs,
        )
        return result


def _new_epoch() -> int:
    return int.from_bytes(os.urandom(8)) >> 1 | 1  # not by `secrets`, which loads OpenSSL


def apply_all(state: ClusterState, events: Iterable[Event]) -> Outcome:
    """Applies events in order; their outcomes combined."""
    total = Outcome()
    for event in events:
        outcome = state.apply(event)
        total.refused += outcome.refused
        total.unknown_classes |= outcome.unknown_classes
        total.unknown_label_sets |= outcome.unknown_label_sets
        total.unknown_gangs |= outcome.unknown_gangs
        total.unknown_inputs |= outcome.unknown_inputs
        total.unknown += outcome.unknown
    return total
