"""The context of one round: the state at its start, guarded calls of policy and solver, and statistics."""

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import numpy as np

from firmament_py.engine.stats import RoundStats
from firmament_py.flow.certificate import certify
from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import Solver, solved
from firmament_py.model.arrays import F64, I64, NO_ROWS
from firmament_py.model.options import EngineOptions
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.telemetry import Telemetry
from firmament_py.placement.all_at_once import may_fit_at_once
from firmament_py.placement.placer import Placer
from firmament_py.policy import (
    AnywherePolicy,
    Costs,
    Policy,
    PolicyError,
    Victims,
    View,
    checked_costs,
    checked_eviction_costs,
    checked_moving_costs,
    checked_place_kinds,
    rack_labels,
)
from firmament_py.queues.ranking import Ranking
from firmament_py.sharing.decision import QueueDecision, decide
from firmament_py.snapshot.snapshot import Snapshot, running_snapshot, take_snapshot
from firmament_py.snapshot.term_budget import defer, waiting_tasks
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Usage

log = logging.getLogger(__name__)

COSTS_SECONDS = 30.0
"""A policy that has taken longer than this in a round is not called again in it: a round must end before its caller
gives up, after a minute by default. Ours take a quarter of a second for 5,000 nodes and 256 classes."""

_FALLBACK = AnywherePolicy()

_Answer = TypeVar("_Answer")

Observer = Callable[[PlacementNetwork, Solution], None]
"""Sees each network and its solution; tests check the optimum with it."""


class Round:
    """A round at `now_us`, microseconds since the epoch. provisional (K,): rows of waiting tasks that have places
    already (engine/packings.py): they count for quotas, and are left out."""

    def __init__(
        self,
        state: ClusterState,
        usage: Usage,
        policy: Policy,
        solver: Solver,
        now_us: int,
        options: EngineOptions,
        observer: Observer | None = None,
        provisional: I64 = NO_ROWS,
    ) -> None:
        self._overdue_us = None if options.reserve_after_us is None else now_us - options.reserve_after_us
        self._state, self._usage, self._policy, self._solver = state, usage, policy, solver
        self.now_us = now_us
        self._observer = observer
        self._certified = options.certified
        self._policy_seconds = 0.0
        self.stats = RoundStats(started_us=now_us, policy=policy.name)
        self.telemetry = Telemetry(keeps_networks=options.kept_networks > 0)
        waiting = waiting_tasks(state, now_us)
        self.deferred = defer(state, waiting, now_us)
        """Rows of the waiting tasks that are left to the next rounds."""
        if len(self.deferred):
            waiting = np.setdiff1d(waiting, self.deferred, assume_unique=True)
        self.queues = decide(state, waiting, now_us)
        """What the queues of tasks decide; None: no task that waits has one."""
        self.telemetry.lap("queues")
        self.provisional = provisional
        self._reading = usage.read(state, state.present_nodes(), now_us)
        self.telemetry.lap("usage")
        self.stats.usage_measured = self._reading.measured
        self.stats.usage_missing, self.stats.usage_stale = self._reading.missing, self._reading.stale

    def first_placer(self) -> Placer:
        """A new placer, that of the statistics. Where all that quotas admit fits at once, it is placed already, and its
        snapshot has no ranks, since these have no effect: far fewer classes, and one flow."""
        placer = None
        if self.queues is not None and may_fit_at_once(self._state, self._pending(self.queues)):
            placer = self._placer(self.queues.unranked)
            placer = placer if placer.place_at_once() else None
        placer = placer or self.placer()
        self.stats.pending = len(placer.snapshot.tasks)
        self.stats.classes, self.stats.nodes = len(placer.snapshot.classes), len(placer.snapshot.nodes)
        return placer

    def placer(self) -> Placer:
        """A new placer on a snapshot of its own."""
        ranking = None if self.queues is None else self.queues.ranking
        self.telemetry.lap("queues")
        return self._placer(ranking)

    def _placer(self, ranking: Ranking | None) -> Placer:
        left_out = self.deferred, self.provisional, NO_ROWS if self.queues is None else self.queues.excluded
        deferred = np.concatenate(left_out)
        snapshot = take_snapshot(
            self._state, self.now_us, rack_labels(self._policy), self._cpu_of, deferred, ranking, self._overdue_us
        )
        self.telemetry.lap("snapshot")
        return Placer(snapshot, self._costs, self._solve, self.telemetry, self._reading)

    def _pending(self, queues: QueueDecision) -> I64:
        """(K,) rows of the tasks that are to be placed."""
        left_out = queues.unranked.withheld.copy()
        left_out[queues.excluded] = left_out[self.deferred] = left_out[self.provisional] = True
        rows = waiting_tasks(self._state, self.now_us)
        return rows[~left_out[rows]]

    def finish(self, placed: int, waiting: int) -> RoundStats:
        """Ends the round; its statistics."""
        stats, telemetry = self.stats, self.telemetry
        stats.stage_seconds, stats.seconds = telemetry.stage_seconds, sum(telemetry.stage_seconds.values())
        stats.solves, stats.trials = telemetry.solves, telemetry.trials
        stats.pricing_rounds = telemetry.pricing_rounds
        stats.unsolved, stats.compressed = dict(telemetry.unsolved), telemetry.compressed
        stats.placed, stats.waiting = placed, waiting
        return stats

    def _cpu_of(self, rows: I64) -> F64:
        return self._usage.cpu_of(self._state, rows, self.now_us)

    def eviction_costs(self, victims: Victims) -> I64:
        """(P,) the policy's costs of evicting running tasks, or the usual ones if it fails or is slow."""
        return self._guarded(lambda policy: checked_eviction_costs(policy, victims))

    def moving_costs(self, victims: Victims) -> I64 | None:
        """(P,) the policy's costs of moving running tasks; None: it moves none, or fails or is slow."""
        return self._guarded(lambda policy: checked_moving_costs(policy, victims))

    def place_kinds(self, victims: Victims) -> I64 | None:
        """(C,) numbers of the classes of running tasks, equal for those with the same placement costs on every node;
        None: nothing is known of that."""
        return self._guarded(lambda policy: checked_place_kinds(policy, victims))

    def running_snapshot(self, rows: I64, gone: I64, *, data: bool) -> Snapshot:
        """The state now as if running task rows (K,) arrived: see snapshot.running_snapshot. data: with the locations
        of their data."""
        labels = rack_labels(self._policy) if data else None
        return running_snapshot(self._state, self.now_us, rows, gone, labels, self._cpu_of)

    def _costs(self, view: View) -> Costs:
        """The policy's costs, or equal ones if it fails or is slow."""
        return self._guarded(lambda policy: checked_costs(policy, view))

    def _guarded(self, ask: Callable[[Policy], _Answer]) -> _Answer:
        """The policy's answer, or that of one without preferences if it fails or is slow: a broken policy does not stop
        scheduling."""
        try:
            if self._policy_seconds > COSTS_SECONDS:
                taken = f"costs() took more than {COSTS_SECONDS:g} s of a round"
                raise PolicyError(f"policy {self._policy.name}: {taken}, and was not called again")
            started = perf_counter()
            try:
                return ask(self._policy)
            finally:
                self._policy_seconds += perf_counter() - started
        except PolicyError as error:
            if not self.stats.fallback:
                log.error("this round ignores the policy and places tasks anywhere they fit: %s", error)
            self.stats.fallback = str(error)
            return ask(_FALLBACK)

    def _solve(self, network: PlacementNetwork) -> Solution:
        solution = solved(self._solver, network.flow)
        if self._observer is not None:
            self._observer(network, solution)
        if solution.status is not Status.OPTIMAL:
            log.error("the solver %s finds no flow: %s; %s", self._solver.name, solution.status, _size(network.flow))
        if self._certified:
            self.telemetry.lap("solve")
            problems = certify(network.flow, solution)
            self.telemetry.lap("certify")
            if problems:
                self.stats.uncertified += 1
                log.error("a solution of %s has no certificate: %s", self._solver.name, "; ".join(problems))
        return solution


def _size(network: FlowNetwork) -> str:
    """What a solver's limits depend on."""
    costs, capacity = np.abs(network.unit_cost).max(initial=0), network.capacity.max(initial=0)
    supply = network.supply[network.supply > 0].sum()
    size = f"{len(network.supply)} vertices, {len(network.tail)} arcs, supply {supply}"
    return f"{size}, costs up to {costs}, capacities up to {capacity}"
