"""The residents of nodes that tasks of higher priority may displace: running tasks, and what a round has placed."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, run_positions
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import EvictionCosts, run_times, victims_of
from firmament_py.preemption.precedence import Precedence
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


class Kind(IntEnum):
    """What a resident of a node is, the least important first."""

    LEAVING = 0  # its resources are about to be released
    NOMINATED = 1  # waits; the node is kept for it
    PLACED = 2  # by this round
    RUNNING = 3


_COSTS: I64 = np.array([0, 1, 5, 0])
"""Of displacing one of each kind but RUNNING."""


@dataclass(frozen=True, slots=True)
class Resident:
    """P residents. kind (P,); id (P,): rows of the task table of those that run, else positions in the snapshot; node
    (P,): positions in the snapshot's nodes; cls (P,): rows of the class table; priority (P,): their precedence; run_us,
    lost_us (P,): see Victims; label_set (P,): rows of the label set table."""

    kind: I64
    id: I64
    node: I64
    cls: I64
    priority: I64
    run_us: I64
    lost_us: I64
    label_set: I64

    def only(self, some: Bools) -> "Resident":
        """Those of `some` (P,)."""
        return Resident(*(getattr(self, name)[some] for name in self.__dataclass_fields__))

    def costs(self, state: ClusterState, eviction_costs: EvictionCosts) -> I64:
        """(P,) what displacing each costs, within its priority."""
        costs = _COSTS[self.kind]
        running = np.flatnonzero(self.kind == Kind.RUNNING)
        if len(running):
            victims = victims_of(state, self.cls[running], self.run_us[running], self.lost_us[running])
            costs[running] = eviction_costs(victims)
        return costs

    def rank(self) -> I64:
        """(P,) by importance: what leaves anyway is 0."""
        importance = 2 * self.priority + (self.kind == Kind.RUNNING)
        rank = 1 + np.unique(importance, return_inverse=True)[1].reshape(-1)
        return np.where(self.kind == Kind.LEAVING, 0, rank)


def residents_below(
    ledger: Ledger,
    precedence: Precedence,
    priority: int,
    movable: Bools,
    victims: I64,
    members: Bools | None = None,
) -> Resident:
    """All residents of a precedence below `priority` that may be displaced. movable (T,): tasks of the snapshot that
    the round may take back. victims (K,): rows of the task table that leave by a decision of this round. members (R,):
    rows of the task table of members of gangs that may be evicted; None: no members are.

    A running task is evictable if it is bound, can be evicted, and its gang, if any, does not need it: what a gang
    loses with such a member is more than that member.
    """
    snapshot = ledger.snapshot
    state = snapshot.releases.state
    tasks = state.tasks
    leaving = tasks.leaving.copy()
    leaving[victims] = True
    evictable = tasks.evictable
    evictable &= (tasks.gang == NO_GANG) if members is None else (tasks.gang == NO_GANG) | members
    rows = np.flatnonzero((evictable | leaving) & (tasks.node >= 0))
    importance = np.where(leaving, precedence.leaving, precedence.running)
    rows = rows[importance[rows] < priority]
    position = np.full(state.nodes.capacity + 1, -1, np.int64)
    position[snapshot.nodes] = np.arange(len(snapshot.nodes))
    rows = rows[position[tasks.node[rows]] >= 0]
    waiting = np.flatnonzero(movable & (precedence.placed[snapshot.task_class] < priority))
    placed = waiting[ledger.node_of[waiting] >= 0]
    nominated = waiting[(ledger.node_of[waiting] < 0) & (ledger.nominated[waiting] >= 0)]
    own = np.concatenate([placed, nominated])
    row_of = np.concatenate([rows, snapshot.tasks[own]])
    cls = tasks.cls[row_of]
    run_us, lost_us = run_times(state, row_of, snapshot.now_us)
    return Resident(
        kind=np.concatenate(
            [
                np.where(leaving[rows], Kind.LEAVING, Kind.RUNNING),
                np.full(len(placed), Kind.PLACED),
                np.full(len(nominated), Kind.NOMINATED),
            ]
        ),
        id=np.concatenate([rows, own]),
        node=np.concatenate([position[tasks.node[rows]], ledger.node_of[placed], ledger.nominated[nominated]]),
        cls=cls,
        priority=np.concatenate([importance[rows], precedence.placed[snapshot.task_class[own]]]),
        run_us=run_us,
        lost_us=lost_us,
        label_set=tasks.label_set[row_of],
    )


def budgets_of(state: ClusterState, resident: Resident, victims: I64 = NO_ROWS) -> tuple[I64, Bools]:
    """(B,) how many evictions each budget that counts residents permits beside those of `victims` (V,), rows of the
    task table, and (P, B) the running residents it counts."""
    if not len(state.budgets) or not len(resident.kind):
        return np.zeros(0, np.int64), np.zeros((len(resident.kind), 0), np.bool_)
    allowances = state.allowances()
    allowances.spend(state.tasks.label_set[victims])
    counts = allowances.counted(resident.label_set) & (resident.kind == Kind.RUNNING)
    some = counts.any(axis=1)
    return allowances.left[some], counts[some].T


def first_of_each(group: I64, order: I64, taken: I64) -> I64:
    """Positions (K,): of each group the first taken[g] of its members in `order` (P,); group (P,)."""
    by_group = order[np.argsort(group[order], kind="stable")]
    sizes = np.bincount(group, minlength=len(taken))
    return by_group[run_positions(sizes) < np.repeat(taken, sizes)]
