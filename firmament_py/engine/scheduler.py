"""A scheduling round: snapshot, placing (placement/placement.py), independent check, commit, reasons for those who
wait."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from firmament_py.admission.backfill import RESERVE_AFTER_US
from firmament_py.admission.queue_order import Admission
from firmament_py.audit.placements import Checker
from firmament_py.engine.stats import RoundStats
from firmament_py.explain.reasons import Waiting, reservation_holders_among, waiting_classes
from firmament_py.flow.certificate import certify
from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import Solver
from firmament_py.model.arrays import I64
from firmament_py.model.lifecycle import TaskState
from firmament_py.network.build import PlacementNetwork
from firmament_py.network.telemetry import Telemetry
from firmament_py.placement.placement import Placement
from firmament_py.placement.second_opinion import better, left_out, place_one_by_one, worth_asking
from firmament_py.policy import AnywherePolicy, Costs, Policy, PolicyError, View, checked_costs, rack_labels
from firmament_py.snapshot.snapshot import Snapshot, take_snapshot
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Reading, Usage

log = logging.getLogger(__name__)

PRICING_SECONDS = 30.0
"""When a policy has taken so long in a round it is not asked again before the next: the round has to come to an end
before who waits for it gives up, a minute by default. Ours take a quarter of a second for 5,000 nodes, 256 classes."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Task rows (K,) and the node rows (K,) that they were placed on; who waits and why; figures."""

    tasks: I64
    nodes: I64
    waiting: list[Waiting]
    stats: RoundStats


Observer = Callable[[PlacementNetwork, Solution], None]
"""Sees each network and its solution; tests check the optimum with it."""


class Scheduler:
    """Runs rounds on a cluster state. Not safe for concurrent use with anything that touches the state.

    With certified, each solution is proved to be optimal (flow/certificate.py); one that is not is counted and logged,
    and used all the same: the independent check does not depend on it. reserve_after_us: how long a gang waits before
    room is kept for it, None: that is never done.
    """

    def __init__(
        self,
        state: ClusterState,
        policy: Policy,
        solver: Solver,
        observer: Observer | None = None,
        usage: Usage | None = None,
        *,
        certified: bool = False,
        reserve_after_us: int | None = RESERVE_AFTER_US,
    ) -> None:
        self.state = state
        self._usage = usage or Usage()
        self.policy = policy
        self._solver = solver
        self._observer = observer
        self._certified = certified
        self._reserve_after_us = reserve_after_us
        self._checker = Checker(state)
        self._fallback = AnywherePolicy()
        self._pricing_seconds = 0.0
        self._seen_opportunities = -1
        self._last_now_us = 0
        self.gang_fits: dict[int, int] = {}
        """Ids of gangs that the last round turned away -> how many of the members that they lack fitted at best."""
        self.gang_starts_us: dict[int, int] = {}
        """Ids of gangs that the last round kept room for -> when they are expected to fit, 0: unknown."""
        self.task_starts_us: dict[int, int] = {}
        """Uids of single tasks that the last round kept room for -> likewise."""
        self.reservation_holders: list[tuple[int, str]] = []
        """Their priorities and names."""

    def due(self, now_us: int) -> bool:
        """Whether a round could do anything that the last one could not."""
        if self.state.opportunities != self._seen_opportunities:
            return True
        wake = self.wake_us(self._last_now_us)
        return wake != 0 and wake <= now_us

    def wake_us(self, now_us: int) -> int:
        """When the next task that is left out for a while comes back, 0 if there is none after `now_us`."""
        tasks = self.state.tasks
        later = tasks.not_before_us[(tasks.state == TaskState.WAITING) & (tasks.not_before_us > now_us)]
        return int(later.min()) if len(later) else 0

    def run(self, now_us: int) -> RoundResult:
        """One round at `now_us`, microseconds since the epoch; what it placed is assumed in the state."""
        seen = self.state.opportunities
        stats = RoundStats(started_us=now_us, policy=self.policy.name)
        telemetry = Telemetry()
        self._pricing_seconds = 0.0
        snapshot = self._snapshot(now_us)
        telemetry.lap("snapshot")
        stats.pending, stats.classes, stats.nodes = (
            len(snapshot.tasks),
            len(snapshot.classes),
            len(snapshot.nodes),
        )
        reading = self._usage.read(self.state, snapshot.nodes, now_us)
        stats.usage_measured, stats.usage_missing, stats.usage_stale = reading.measured, reading.missing, reading.stale
        telemetry.lap("usage")
        admission = self._admit(snapshot, reading, stats, telemetry)
        if admission.placement.in_portions and self._leaves_out(admission.placement):
            again = self._admit(self._snapshot(now_us), reading, stats, telemetry, at_once=True)
            if better(admission.placement, again.placement) is again.placement:
                admission = again
        placement = admission.placement
        if placement.columns.first is not None:
            network, solution = placement.columns.first
            stats.vertices, stats.arcs = len(network.flow.supply), len(network.flow.tail)
            stats.objective = solution.cost
        if worth_asking(placement):
            for emptiest_first in (False, True):
                other = self._placement(self._snapshot(now_us), reading, stats, telemetry)
                place_one_by_one(other, emptiest_first=emptiest_first)
                placement = better(placement, other)
            telemetry.lap("second opinion")
        tasks, nodes, batch = placement.ledger.outcome()
        checked = self._checker.check(tasks, nodes, batch)
        telemetry.lap("check")
        if checked.complaints:
            stats.dropped = int((~checked.sound).sum())
            log.error(
                "dropped %d placements that failed the independent check: %s",
                stats.dropped,
                checked.complaints,
            )
            tasks, nodes = tasks[checked.sound], nodes[checked.sound]
        self.state.place(tasks, nodes)
        telemetry.lap("commit")
        waiting = waiting_classes(self.state, admission.rejected)
        gangs = [r for r in admission.rejected if r.demand.task < 0]
        self.gang_starts_us = {r.demand.definition.id: r.starts_us for r in gangs if r.reserves}
        self.gang_fits = {r.demand.definition.id: r.fitted for r in gangs if not r.untried}
        uid = self.state.tasks.uid
        self.task_starts_us = {int(uid[r.demand.task]): r.starts_us for r in admission.rejected if r.demand.task >= 0}
        self.reservation_holders = reservation_holders_among(self.state, admission.rejected)
        telemetry.lap("explain")
        stats.stage_seconds, stats.solves, stats.trials = telemetry.stage_seconds, telemetry.solves, telemetry.trials
        stats.pricing_rounds = telemetry.pricing_rounds
        stats.placed, stats.waiting = len(tasks), sum(w.count for w in waiting)
        stats.seconds = sum(stats.stage_seconds.values())
        self.state.sweep()
        self._seen_opportunities, self._last_now_us = seen, now_us
        return RoundResult(tasks, nodes, waiting, stats)

    def _snapshot(self, now_us: int) -> Snapshot:
        return take_snapshot(
            self.state, now_us, rack_labels(self.policy), lambda rows: self._usage.cpu_of(self.state, rows, now_us)
        )

    def _admit(
        self,
        snapshot: Snapshot,
        reading: Reading,
        stats: RoundStats,
        telemetry: Telemetry,
        *,
        at_once: bool = False,
    ) -> Admission:
        """Everything that waits has had its turn. at_once: see View."""
        placement = self._placement(snapshot, reading, stats, telemetry, at_once=at_once)
        admission = Admission(placement, snapshot.gang_demands, self._reserve_after_us)
        admission.run()
        return admission

    def _leaves_out(self, placement: Placement) -> bool:
        """Whether tasks wait that had room, other than those of gangs that do not fit as a whole."""
        left = left_out(placement)
        for demand in placement.snapshot.gang_demands:
            left[demand.members] = False
        return bool(left.any())

    def _placement(
        self,
        snapshot: Snapshot,
        reading: Reading,
        stats: RoundStats,
        telemetry: Telemetry,
        *,
        at_once: bool = False,
    ) -> Placement:
        return Placement(
            snapshot,
            lambda view: self._prices(view, stats),
            lambda network: self._solve(network, stats, telemetry),
            telemetry,
            reading,
            at_once=at_once,
        )

    def _prices(self, view: View, stats: RoundStats) -> Costs:
        """The policy's prices, or flat ones if it fails or is slow: a broken policy never stops scheduling."""
        try:
            if self._pricing_seconds > PRICING_SECONDS:
                taken = f"costs() took more than {PRICING_SECONDS:g} s of a round"
                raise PolicyError(f"policy {self.policy.name}: {taken}, and was not asked again")
            started = perf_counter()
            try:
                return checked_costs(self.policy, view)
            finally:
                self._pricing_seconds += perf_counter() - started
        except PolicyError as error:
            if not stats.fallback:
                log.error("this round places tasks anywhere they fit: %s", error)
            stats.fallback = str(error)
            return checked_costs(self._fallback, view)

    def _solve(self, network: PlacementNetwork, stats: RoundStats, telemetry: Telemetry) -> Solution:
        solution = self._solver.solve(network.flow)
        if self._observer is not None:
            self._observer(network, solution)
        if solution.status is not Status.OPTIMAL:
            log.error("the solver %s found the network %s", self._solver.name, solution.status)
        if self._certified:
            telemetry.lap("solve")
            wrong = certify(network.flow, solution)
            telemetry.lap("certify")
            if wrong:
                stats.uncertified += 1
                log.error("a solution of %s has no certificate: %s", self._solver.name, "; ".join(wrong))
        return solution
