"""Packing beside the rounds: where the flow has left single tasks that would have fitted, and it takes longer than a
flow to pack them with those that it has placed (placement/repacking.py).

Of the placements of such a round, those that packing may still move are *provisional*: their tasks wait, and the nodes
are kept for them, as for nominated tasks. All others leave at once, and rounds for other tasks go on. The search works
on arrays of its own. Its effort is limited in steps, about as many as take the time of a flow for so many tasks. The
first round after its end carries out its placements, each of which is a decision with preconditions
(engine/late_decisions.py): the task still waits, with the node kept for it if one was, the node is what it was, and has
the capacity. Tasks whose placements do not hold any more are placed anew by the same round. So a task waits for one
packing at most, and rounds pack no others meanwhile.
"""

import logging
from time import perf_counter

import numpy as np

from firmament_py.engine.execution import POLL_US, Execution
from firmament_py.engine.identity import NodeIdentity, TaskIdentity
from firmament_py.engine.late_decisions import LateDecisions
from firmament_py.model.arrays import I64, NO_ROWS, U8, Bools
from firmament_py.model.lifecycle import WAITING
from firmament_py.placement.repacking import Found, Packs, Repacking
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState

log = logging.getLogger(__name__)


class LatePacking:
    """One search, for the tasks of a round. provisional: task rows (H,) of those among them that have a node, which is
    kept for them in the state; placed_by (H,): PlacedBy.

    Once it has ended: found, None: it has failed; seconds."""

    def __init__(
        self, state: ClusterState, some: Repacking, snapshot: Snapshot, provisional: I64, placed_by: U8
    ) -> None:
        self._some = some
        self._rows, self._node_rows = snapshot.tasks[some.tasks], snapshot.nodes[some.nodes]
        self._nominated: I64 = state.tasks.nominated[self._rows]
        self._placed_by = np.full(state.tasks.capacity, some.by, np.uint8)
        self._placed_by[provisional] = placed_by
        self._is_provisional: Bools = np.isin(self._rows, provisional)
        self._tasks, self._nodes = TaskIdentity.of(state, self._rows), NodeIdentity.of(state, self._node_rows)
        self.seconds = 0.0
        self.ended = False
        self.found: Found | None = None

    def work(self) -> None:
        started = perf_counter()
        try:
            self.found = self._some.search()
        except Exception:  # whatever it is, the flow's placements stand
            log.exception("packing beside the rounds has failed; tasks stay where the flow has placed them")
        self.seconds = perf_counter() - started
        self.ended = True

    def _waiting(self, state: ClusterState) -> Bools:
        """(K,) which are still the same tasks, and wait with the same node kept for them, or none."""
        tasks = state.tasks
        waits = (tasks.state[self._rows] == WAITING) & (tasks.nominated[self._rows] == self._nominated)
        same: Bools = waits & self._tasks.same(state)
        return same

    def provisional(self, state: ClusterState) -> I64:
        """Rows of the tasks that keep a node until the search is over."""
        rows: I64 = self._rows[self._is_provisional & self._waiting(state)]
        return rows

    def left(self, state: ClusterState) -> I64:
        """Rows of the others that wait."""
        rows: I64 = self._rows[~self._is_provisional & self._waiting(state)]
        return rows

    def decisions(self, state: ClusterState, now_us: int) -> tuple[LateDecisions, Bools]:
        """Where it places tasks, and which of these placements (K',) leave them where the flow has put them: those
        whose preconditions hold."""
        at = self._some.at.copy()
        if self.found is not None:
            at[self.found.moving] = self.found.to
        holds = (at >= 0) & self._waiting(state) & (state.tasks.not_before_us[self._rows] <= now_us)
        holds[holds] = self._nodes.same(state)[at[holds]]
        rows, nodes = self._rows[holds], self._node_rows[at[holds]]
        stays = nodes == self._nominated[holds]
        by = np.where(stays, self._placed_by[rows], np.uint8(self._some.by))
        return LateDecisions.of_placements(rows, nodes, by), stays


class Packings:
    """Of the rounds on one state, one at a time."""

    def __init__(self, state: ClusterState, execution: Execution) -> None:
        self._state, self._execution = state, execution
        self._packing: LatePacking | None = None

    @property
    def packs(self) -> Packs:
        """What the next round packs."""
        if self._packing is not None:
            return Packs.NONE
        return Packs.ALL if self._execution.running else Packs.BRIEFLY  # running: one that is forgotten

    @property
    def under_way(self) -> bool:
        """Whether placements wait for a packing."""
        return self._packing is not None

    @property
    def due(self) -> bool:
        """Whether a round has one to carry out."""
        return self._packing is not None and self._packing.ended

    def wake_us(self, now_us: int) -> int:
        """When to ask again whether a round is due because of the packing that is under way."""
        return now_us if self.due else now_us + POLL_US

    def provisional(self) -> I64:
        """Rows of the tasks whose placements wait."""
        return NO_ROWS if self._packing is None else self._packing.provisional(self._state)

    def undecided(self) -> I64:
        """Rows of the waiting tasks that may still get a node by the packing, and have none yet."""
        found = self._packing
        return NO_ROWS if found is None else found.left(self._state)

    def take(self) -> LatePacking | None:
        """The one that has ended, once. One that holds nothing any more is forgotten: tasks that were left are placed
        without it."""
        if not len(self.provisional()):
            self._packing = None
        if not self.due:
            return None
        packing, self._packing = self._packing, None
        return packing

    def release(self, rows: I64) -> None:
        """Nothing is kept any more for those of task rows (K,) that wait."""
        rows = rows[self._state.tasks.state[rows] == WAITING]
        self._state.nominate(rows, np.full(len(rows), -1))

    def forget(self) -> None:
        """A round considers all tasks, and packs them itself."""
        self.release(self.provisional())
        self._packing = None

    def begin(self, some: Repacking, snapshot: Snapshot, placed: tuple[I64, I64, U8]) -> Bools:
        """Begins to pack tasks of a round anew, which the state has not assumed yet. placed: task rows (K,), node
        rows (K,) and steps (K,), all placements of the round. Which of these (K,) leave at once."""
        rows, nodes, by = placed
        provisional = np.isin(rows, snapshot.tasks[some.tasks])
        self._state.nominate(rows[provisional], nodes[provisional])
        self._packing = LatePacking(self._state, some, snapshot, rows[provisional], by[provisional])
        self._execution.start(self._packing.work)
        return ~provisional
