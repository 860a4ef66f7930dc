"""What the state assumes of decisions that have passed the independent check, those of searches and packings beside the
rounds included, and the limits that they count against."""

import numpy as np

from firmament_py.engine.late_decisions import LateDecisions
from firmament_py.engine.packings import LatePacking, Packings
from firmament_py.engine.searches import Search, Searches
from firmament_py.engine.verification import Verification
from firmament_py.placement.migration import SUCCESSOR_US, Migration
from firmament_py.placement.move_rate import MoveRate
from firmament_py.preemption.eviction_rates import EvictionRates
from firmament_py.preemption.outcome import Preemption
from firmament_py.state.cluster import ClusterState


class Commit:
    """For the rounds on one state. rate, moves_at_once: how many tasks move; evictions: how many queues lose."""

    def __init__(
        self,
        state: ClusterState,
        verification: Verification,
        rate: MoveRate,
        moves_at_once: int,
        evictions: EvictionRates,
    ) -> None:
        self._state, self._verification = state, verification
        self.rate, self._moves_at_once, self.evictions = rate, moves_at_once, evictions

    def moves_left(self, now_us: int) -> int:
        """How many more tasks may begin to move for waiting ones."""
        return min(self._moves_at_once - len(self._state.successors), self.rate.left(now_us))

    def preemption(self, preemption: Preemption, now_us: int) -> None:
        """What is decided on running tasks, and on nominations."""
        if preemption.is_empty:
            return
        state, moved = self._state, preemption.moved
        state.successors.displace(np.concatenate([preemption.nominated[0], preemption.unnominated]))
        state.preempt(np.concatenate([preemption.victims, moved.tasks]))
        self.evictions.note(state, preemption.victims, preemption.preemptors, now_us)
        state.successors.expect(moved.tasks, moved.nodes, now_us + SUCCESSOR_US)
        state.nominate(*preemption.nominated)
        state.nominate(preemption.unnominated, np.full(len(preemption.unnominated), -1))
        self.rate.note(len(moved.tasks), now_us)

    def migration(self, migration: Migration, now_us: int) -> None:
        """Tasks leave for nodes that cost them less."""
        self.rate.note(len(migration.tasks), now_us)
        self._state.preempt(migration.tasks)
        self._state.successors.expect(migration.tasks, migration.nodes, now_us + SUCCESSOR_US)

    def found(self, searches: Searches, search: Search, now_us: int) -> LateDecisions:
        """Those decisions of a search that still hold."""
        holds = self._verification.late(search, now_us, self.moves_left(now_us), self.evictions)
        searches.carried_out(search, holds)
        return self._late(search.decisions.only(holds), now_us)

    def packed(self, packings: Packings, packing: LatePacking, now_us: int) -> LateDecisions:
        """Those placements of a packing that still hold; nothing is kept any more for the others."""
        decisions, stays = packing.decisions(self._state, now_us)
        holds = self._verification.late_placements(decisions, stays, packing.provisional(self._state))
        found = self._late(decisions.only(holds), now_us)
        packings.release(packing.provisional(self._state))
        return found

    def _late(self, decisions: LateDecisions, now_us: int) -> LateDecisions:
        self._state.place(*decisions.placed, decisions.placed_by)
        self.preemption(decisions.preemption, now_us)
        return decisions
