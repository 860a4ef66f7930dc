"""Nothing that a round decides is carried out before the independent check (audit/) has passed it."""

import logging

import numpy as np

from firmament_py.audit.placements import Checker
from firmament_py.audit.preemptions import preemption_problems
from firmament_py.engine.late_decisions import LateDecisions
from firmament_py.engine.searches import Search
from firmament_py.engine.stats import RoundStats
from firmament_py.model.arrays import I64, U8, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.migration import NO_MIGRATION, Migration
from firmament_py.preemption.eviction_rates import EvictionRates
from firmament_py.preemption.outcome import NO_PREEMPTION, Preemption
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState

log = logging.getLogger(__name__)


class Verification:
    """For the rounds on one state: what is refused is a defect, which is logged and counted in the statistics of the
    round. beyond_budgets: disruption budgets may be exceeded."""

    def __init__(self, state: ClusterState, *, beyond_budgets: bool) -> None:
        self._state, self._beyond_budgets = state, beyond_budgets
        self.checker = Checker(state)

    def placements(self, ledger: Ledger, stats: RoundStats) -> tuple[I64, I64, U8]:
        """Task rows (K,), their node rows (K,) and the steps that placed them (K,), of those that pass."""
        tasks, nodes, by, batch = ledger.outcome()
        checked = self.checker.check(tasks, nodes, batch)
        if not checked.complaints:
            return tasks, nodes, by
        stats.dropped = int((~checked.sound).sum())
        log.error("dropped %d placements that failed the independent check: %s", stats.dropped, checked.complaints)
        return tasks[checked.sound], nodes[checked.sound], by[checked.sound]

    def late_placements(self, decisions: LateDecisions, stays: Bools, own: I64) -> Bools:
        """(K,) which of the placements of decisions pass together, if nothing is kept any more for task rows `own`.
        Where a node has no room for all of its tasks, those come first that stay (K,) where they were to be, then the
        most important, then the oldest. Those that do not pass are no defect."""
        rows, nodes = decisions.placed
        tasks, classes = self._state.tasks, self._state.classes
        importance = tasks.uid[rows], tasks.created_us[rows], -classes.priority[tasks.cls[rows]]
        order = np.lexsort((*importance, ~stays, nodes))
        at, requests = nodes[order], classes.requests[tasks.cls[rows[order]]]
        asked = np.cumsum(requests, axis=0)
        begins = np.flatnonzero(np.r_[True, at[1:] != at[:-1]][: len(at)])
        before = asked[begins] - requests[begins]
        asked -= np.repeat(before, np.diff(np.r_[begins, len(at)]), axis=0)
        sound = np.zeros(len(rows), np.bool_)
        sound[order] = ((asked <= unreserved(self._state, own)[at]) | (requests == 0)).all(axis=1)
        some = np.flatnonzero(sound)
        sound[some] = self.checker.check(rows[some], nodes[some], np.zeros_like(some)).sound
        return sound

    def preemption(self, preemption: Preemption, tasks: I64, nodes: I64, now_us: int, stats: RoundStats) -> Preemption:
        """The preemptions, if they pass beside the placements of task rows on node rows (K,) at `now_us`."""
        complaints = self._problems(preemption, tasks, nodes, now_us)
        if not complaints:
            return preemption
        stats.dropped += len(preemption.victims) + len(preemption.moved.tasks) or len(preemption.nominated[0])
        log.error("no task is preempted in this round, by the independent check: %s", "; ".join(complaints))
        return NO_PREEMPTION

    def _problems(self, preemption: Preemption, tasks: I64, nodes: I64, now_us: int) -> list[str]:
        if preemption.is_empty:
            return []
        moved = preemption.moved
        complaints = preemption_problems(
            self._state,
            (tasks, nodes),
            (preemption.victims, preemption.preemptors),
            preemption.nominated,
            preemption.unnominated,
            (moved.tasks, moved.nodes),
            now_us=now_us,
            beyond_budgets=self._beyond_budgets,
        )
        return complaints + self.checker.migration_problems(moved.tasks, moved.nodes, at_once=False)

    def migration(self, migration: Migration, stats: RoundStats) -> Migration:
        """The migrations, if they pass."""
        if not len(migration.tasks):
            return NO_MIGRATION
        complaints = self.checker.migration_problems(migration.tasks, migration.nodes)
        if not complaints:
            return migration
        stats.dropped += len(migration.tasks)
        log.error("no task migrates in this round, by the independent check: %s", "; ".join(complaints))
        return NO_MIGRATION

    def late(self, search: Search, now_us: int, moves_left: int, rates: EvictionRates) -> Bools:
        """(count,) the decisions of a search that still hold. Those that do not are no defect. moves_left: how many
        tasks may move; rates: how many queues may lose."""
        state, found = self._state, search.decisions
        holds: Bools = found.holding(state, search.then, search.nominated, now_us)

        def passes(some: LateDecisions) -> bool:
            p = some.preemption
            if len(p.moved.tasks) > moves_left or not rates.permits(state, p.victims, p.preemptors, now_us):
                return False
            tasks, nodes = some.placed
            together = np.zeros_like(tasks)
            complaints = self.checker.check(tasks, nodes, together).complaints
            return not (complaints or self._problems(p, tasks, nodes, now_us))

        return found.sound(holds, passes) if holds.any() else np.zeros_like(holds)
