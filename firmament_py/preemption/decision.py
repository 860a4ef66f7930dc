"""One search: which residents of nodes are displaced, which running tasks move, and which waiting tasks get nodes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from firmament_py.eviction.evict import evict
from firmament_py.eviction.problem import Arrivals, Movers, Residents
from firmament_py.model.arrays import I64, NO_ROWS, Bools, distinct_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import EvictionCosts
from firmament_py.preemption.gang_victims import Surplus, surplus
from firmament_py.preemption.movable_tasks import MovableNearby, MovableTasks
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.residents import (
    Kind,
    Resident,
    first_of_each,
    residents_below,
)
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Decision:
    """displaced (D,): residents, positions in `resident`. tasks (K,), positions in the snapshot, by priority, get nodes
    (K,). movers (M,), rows of the task table, leave the nodes origins (M,) for targets (M,). condemned (V,): rows of
    the task table that are evicted with their whole gangs. least_moves: see Eviction."""

    resident: Resident
    displaced: I64
    tasks: I64
    nodes: I64
    movers: I64
    origins: I64
    targets: I64
    condemned: I64
    least_moves: int

    @property
    def victims(self) -> I64:
        """(V,) rows of the running tasks to evict; those that leave by an earlier decision are no victims."""
        running = self.displaced[self.resident.kind[self.displaced] == Kind.RUNNING]
        return np.concatenate([self.resident.id[running], self.condemned])


@dataclass(frozen=True, slots=True)
class Question:
    """tasks (K,), ascending: those that are to fit; those of them that the round has placed may get other nodes.

    movable (T,): other tasks that may lose the places that the round gave them. victims (V,): rows of the task table
    that leave by decisions of this round. seniority (T,): tasks of one class are served in this order. within: tasks
    (M,) of gangs, and the only nodes (N,) that each of these gangs may get. lacks_quota: the tasks may fit without
    victims, as the round has left them out for quota.
    """

    tasks: I64
    movable: Bools
    victims: I64
    seniority: I64
    within: Sequence[tuple[I64, Bools]] = ()
    lacks_quota: bool = False


class EvictionSearch:
    """Searches for the tasks of one ledger. precedence: who gives way to whom. evicts (C,): classes whose tasks may
    evict residents; nearby: finds the tasks that may move, None: none may. effort: multiplies that of each decision."""

    def __init__(
        self,
        ledger: Ledger,
        precedence: Precedence,
        evicts: Bools,
        eviction_costs: EvictionCosts,
        nearby: MovableNearby | None,
        *,
        beyond_budgets: bool,
        effort: float = 1.0,
    ) -> None:
        self._ledger = ledger
        self._effort = effort
        self.precedence = precedence
        self._snapshot = ledger.snapshot
        self._evicts = evicts
        self._eviction_costs = eviction_costs
        self._nearby = nearby
        self.beyond_budgets = beyond_budgets
        self._surplus: Surplus | None = None

    def decide(
        self,
        question: Question,
        *,
        condemned: I64 = NO_ROWS,
        loose: I64 = NO_ROWS,
        shared_by: I64 | None = None,
        effort: float = 1.0,
        moves: bool = True,
        waiving: I64 | None = None,
    ) -> Decision | None:
        """The residents to displace and the running tasks to move so that as many tasks as possible fit; None: no task
        waits that could gain by it. Rows of the task table: condemned (V,) leave in any case, loose (K,) may be evicted
        although their gangs need them. shared_by (T,): by how many of its gang each such task shares the cost of one
        victim; None: by none. effort: multiplies the effort of the search. moves: whether tasks may move. waiving (W,):
        tasks that may use what is reserved for them, None: all of the question."""
        again = partial(self.decide, question, condemned=condemned, loose=loose, shared_by=shared_by, effort=effort)
        ledger, state, variant = self._ledger, self.state, self._variant(question)
        victims, spare = np.concatenate([question.victims, condemned]), self.surplus.with_loose(loose)
        resident = self._residents_below(question, victims, spare)
        moving = self._moving(question.tasks, variant, question) if moves else None
        tasks = question.tasks
        if moving is None and not question.lacks_quota:
            tasks = self._evicting(tasks, resident)
        if (ledger.node_of[tasks] >= 0).all():
            return None
        moves_left = 0 if self._nearby is None else self._nearby.limit
        limits = _Limits(state, resident, moving, spare, moves_left, victims)
        waiving = tasks if waiving is None else waiving
        free = ledger.unreserved_for(waiving, self.precedence.lowest(self._snapshot, tasks))
        home, stays = ledger.node_of[tasks], np.zeros(len(tasks), np.bool_)
        # Where reservations exceed free capacity, placed tasks would not fit on their own node: they keep their places.
        stays[home >= 0] = (free[home[home >= 0]] < 0).any(axis=1)
        staying, tasks = tasks[stays], tasks[~stays]
        free = free + ledger.usage_of(tasks)
        if moving is not None:
            free += moving.usage(len(free))
        variants, arrivals = self._arrivals(tasks, variant, question)
        residents, group = self._grouped(resident, shared_by, limits)
        eviction = evict(
            arrivals,
            residents,
            free,
            limits.allowed,
            beyond_budgets=self.beyond_budgets,
            hard=limits.hard,
            movers=None if moving is None else _movers(moving, limits, len(resident.kind)),
            effort=self._effort * effort,
        )
        away = NO_ROWS if moving is None else np.flatnonzero(eviction.node_of_mover != moving.node)
        leaves = np.zeros(len(resident.kind), np.bool_)
        if moving is not None:
            leaves = (resident.kind == Kind.RUNNING) & np.isin(resident.id, moving.row[away])
        displaced = first_of_each(group, np.lexsort((resident.run_us, leaves)), eviction.evicted)
        if leaves[displaced].any():  # a task that both moves and is evicted would free its requests twice
            return again(moves=False, waiving=waiving)
        of, node, count = eviction.placed.T
        by_seniority = tasks[np.argsort(question.seniority[tasks], kind="stable")]
        served, nodes = _assigned(by_seniority, ledger.node_of, variant, variants[of], node, count)
        served, nodes = np.append(served, staying), np.append(nodes, ledger.node_of[staying])
        order = np.argsort(served)
        served, nodes = served[order], nodes[order]
        unserved = [holders for holders in ledger.reserved_for(waiving) if not np.isin(holders, served).all()]
        if unserved:  # what is reserved for them is not for others
            return again(moves=moves, waiving=np.setdiff1d(waiving, np.concatenate(unserved)))
        if moving is None:
            return Decision(resident, displaced, served, nodes, NO_ROWS, NO_ROWS, NO_ROWS, condemned, 0)
        of_moves = moving.row[away], moving.node[away], eviction.node_of_mover[away]
        return Decision(resident, displaced, served, nodes, *of_moves, condemned, eviction.least_moves)

    @property
    def state(self) -> ClusterState:
        return self._snapshot.releases.state

    @property
    def task_class(self) -> I64:
        """(T,) of the snapshot."""
        return self._snapshot.task_class

    @property
    def surplus(self) -> Surplus:
        """Members of gangs that may be evicted one by one."""
        self._surplus = self._surplus or surplus(self._snapshot.releases.state)
        return self._surplus

    def _variant(self, question: Question) -> I64:
        """(T,) equal for tasks of one class that may get the same nodes."""
        group = np.zeros(len(self.task_class), np.int64)
        for i, (members, _) in enumerate(question.within, start=1):
            group[members] = i
        variant: I64 = self.task_class * (len(question.within) + 1) + group
        return variant

    def _residents_below(self, question: Question, victims: I64, spare: Surplus) -> Resident:
        """The residents that some of the question's tasks may evict; `victims` (V,), rows of the task table, leave."""
        classes = self.task_class[question.tasks]
        priority = self.precedence.waiting[classes[self._evicts[classes]]]
        highest = int(priority.max(initial=np.iinfo(np.int64).min))
        return residents_below(self._ledger, self.precedence, highest, question.movable, victims, spare.evictable)

    def _evicting(self, tasks: I64, resident: Resident) -> I64:
        """Those of `tasks` (K,) that are placed, or may evict a resident."""
        classes = self.task_class[tasks]
        lowest = resident.priority.min(initial=np.iinfo(np.int64).max)
        may_evict = self._evicts[classes] & (self.precedence.waiting[classes] > lowest)
        some: I64 = tasks[(self._ledger.node_of[tasks] >= 0) | may_evict]
        return some

    def _arrivals(self, tasks: I64, variant: I64, question: Question) -> tuple[I64, Arrivals]:
        """The variants (W,) of `tasks` (K,), and the tasks as eviction/ knows them: a class is a variant."""
        node_of = self._ledger.node_of
        placed_first = tasks[np.lexsort((node_of[tasks] < 0, variant[tasks]))]  # evict() takes `home` in this order
        variants, number = np.unique(variant[tasks], return_counts=True)
        classes, suitable = self._arriving(variants, question)
        return variants, Arrivals(
            requests=self._snapshot.requests[classes],
            count=number,
            priority=self.precedence.waiting[classes],
            suitable=suitable,
            evicts=self._evicts[classes],
            home=node_of[placed_first],
        )

    def _grouped(self, resident: Resident, shared_by: I64 | None, limits: "_Limits") -> tuple[Residents, I64]:
        """Residents as eviction/ knows them, alike ones of a node in one group; and the group (P,) of each."""
        rank, cost = resident.rank(), resident.costs(self.state, self._eviction_costs)
        if shared_by is not None:
            running = resident.kind == Kind.RUNNING
            cost[running] = -(-cost[running] // shared_by[resident.id[running]])
        first, kind = distinct_rows(np.column_stack([resident.cls, rank, cost, limits.pattern]))
        of_group, group = distinct_rows(np.column_stack([resident.node, kind]))
        return Residents(
            node=resident.node[of_group],
            kind=kind[of_group],
            count=np.bincount(group),
            requests=self.state.classes.requests[resident.cls[first]],
            priority=resident.priority[first],
            rank=rank[first],
            value=cost[first],
            budgets=limits.counts(first),
        ), group

    def _arriving(self, variants: I64, question: Question) -> tuple[I64, Bools]:
        """The classes (W,) of variants (W,), and (W, N) the nodes that suit them."""
        classes, group = np.divmod(variants, len(question.within) + 1)
        suitable = self._snapshot.suitable[classes]
        for i, (_, nodes) in enumerate(question.within, start=1):
            suitable[group == i] &= nodes
        return classes, suitable

    def _moving(self, tasks: I64, variant: I64, question: Question) -> MovableTasks | None:
        waiting = tasks[self._ledger.node_of[tasks] < 0]
        if self._nearby is None or not self._nearby.some or not len(waiting):
            return None
        variants, count = np.unique(variant[waiting], return_counts=True)
        classes, suitable = self._arriving(variants, question)
        return self._nearby.of(self._ledger, self._snapshot.requests[classes], suitable, count)


def _movers(moving: MovableTasks, limits: "_Limits", residents: int) -> Movers:
    """Tasks that may move, as eviction/ knows them; the limits count them after so many residents."""
    kinds = residents + np.arange(len(moving.cost))
    budgets = limits.counts(kinds)
    return Movers(moving.kind, moving.node, moving.requests, moving.suitable, moving.cost, budgets=budgets)


class _Limits:
    """Limits on evictions and moves: disruption budgets, members of gangs above their minimums, the number of moves.

    They count P residents, then D kinds of tasks that may move. gone (V,): rows of the task table that are evicted in
    any case. allowed (B,): how many evictions and moves each permits beside; hard (B,): which may never be exceeded.
    pattern (P,): equal for residents that the same limits count.
    """

    def __init__(
        self,
        state: ClusterState,
        resident: Resident,
        moving: MovableTasks | None,
        spare: Surplus,
        moves: int,
        gone: I64,
    ) -> None:
        number = len(resident.kind)
        label_set = resident.label_set if moving is None else np.r_[resident.label_set, moving.label_set]
        sets, of_task = np.unique(label_set, return_inverse=True)
        allowances = state.allowances()
        allowances.spend(state.tasks.label_set[gone])
        allowed = np.maximum(allowances.left, 0)
        self._running = np.r_[resident.kind == Kind.RUNNING, np.ones(len(label_set) - number, np.bool_)]
        self._counts, self._of_task = allowances.counted(sets).T.reshape(len(sets), len(allowed)), of_task.reshape(-1)
        self._gang = np.full((len(label_set), 2), -1, np.int64)
        running = np.flatnonzero(resident.kind == Kind.RUNNING)
        self._gang[running] = spare.of_row[resident.id[running]]
        self._moves = np.arange(len(label_set)) >= number
        self.allowed = np.r_[allowed, spare.limit, moves]
        self.hard = np.arange(len(self.allowed)) >= len(allowed)
        of_set = distinct_rows(self._counts)[1]
        of_resident = np.where(self._running, of_set[self._of_task], -1)[:number]
        self.pattern = distinct_rows(np.column_stack([of_resident, self._gang[:number]]))[1]

    def counts(self, some: I64) -> Bools:
        """(K, B) which limits count each of `some` (K,)."""
        budgets = self._counts[self._of_task[some]] & self._running[some, None]
        gangs = np.zeros((len(some), len(self.allowed) - budgets.shape[1]), np.bool_)
        for column in self._gang[some].T:
            gangs[np.flatnonzero(column >= 0), column[column >= 0]] = True
        gangs[:, -1] = self._moves[some]
        return np.hstack([budgets, gangs])


def _assigned(tasks: I64, node_of: I64, variant: I64, of: I64, node: I64, count: I64) -> tuple[I64, I64]:
    """The tasks of `tasks` (K,) that get one of the places (P,) of their variants, ascending, and their nodes. As many
    as possible stay where they are; the other places are given in the order of `tasks`. node_of, variant (T,); of (P,):
    variants."""
    of_task, before, assigned = variant[tasks], node_of[tasks], list[tuple[int, int]]()
    for v in np.unique(of).tolist():
        mine, some = of_task == v, of == v
        places = Counter(dict(zip(node[some].tolist(), count[some].tolist(), strict=True)))
        others = []
        for task, at in zip(tasks[mine].tolist(), before[mine].tolist(), strict=True):
            if places[at] > 0:
                places[at] -= 1
                assigned.append((task, at))
            else:
                others.append(task)
        assigned += zip(others, places.elements(), strict=False)
    served, nodes = np.array(sorted(assigned), np.int64).reshape(-1, 2).T
    return served, nodes
