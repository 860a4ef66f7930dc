"""Priority preemption: which running tasks are evicted, so that waiting tasks of higher priority fit.

The victims are those of least cost for all preemptors of the round together (packing/eviction.py): none of a higher
priority where lower ones do, then as few as possible, then those that have run for the shortest time. A preemptor is
*nominated*: its node keeps what it requests until its victims are gone, and counts as full for others meanwhile. It
waits, and a later round places it: there, or sooner elsewhere. A nominated task does not preempt again unless its
nomination has failed.

So nothing loops: each victim goes for a task of strictly higher priority that fits once its victims are gone. Semantics
are those of kube-scheduler's DefaultPreemption, except that disruption budgets hold unless they may be exceeded.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.placement.constrained_preemption import ConstrainedSearch
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.repacking import may_move
from firmament_py.placement.residents import (
    EvictionCosts,
    Kind,
    Resident,
    budgets_of,
    first_of_each,
    grouped,
    residents_below,
)
from firmament_py.policy import COST_MAX


class Preempting(Enum):
    """Whether tasks are preempted, and whether disruption budgets limit it."""

    OFF = "off"
    WITHIN_BUDGETS = "within budgets"
    BEYOND_BUDGETS = "beyond budgets"


TOGETHER = 2_000
"""Up to so many tasks, those that a round has placed compete with preemptors for their places."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Rows of the tables. victims (V,): tasks to evict; preemptors (V,): the most important task that needs each to
    leave. nominated: tasks (K,) that wait, with a new nomination, and their nodes (K,). unnominated (U,): tasks that
    wait and have lost theirs."""

    victims: I64
    preemptors: I64
    nominated: tuple[I64, I64]
    unnominated: I64

    @property
    def is_empty(self) -> bool:
        return not (len(self.victims) or len(self.nominated[0]) or len(self.unnominated))


NO_PREEMPTION = Preemption(NO_ROWS, NO_ROWS, (NO_ROWS, NO_ROWS), NO_ROWS)


class Preemptor:
    """Preempts for the tasks of a ledger."""

    def __init__(self, ledger: Ledger, preempting: Preempting, eviction_costs: EvictionCosts) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._preempting = preempting
        self._eviction_costs = eviction_costs
        self._victims: list[I64] = []
        self._preemptors: list[I64] = []

    def run(self, single: Bools) -> I64:
        """Preempts for those of the tasks `single` (T,) that wait. Returns tasks (K,), ascending, that were placed
        before and wait again."""
        ledger, snapshot = self._ledger, self._snapshot
        self._end_failed_nominations()
        able = single & (ledger.node_of < 0) & (ledger.nominated < 0)
        if self._preempting is Preempting.OFF or not able.any():
            return NO_ROWS
        able &= ~snapshot.never_preempts[snapshot.task_class]
        able &= snapshot.priority[snapshot.task_class] > snapshot.releases.state.least_priority
        if not able.any():
            return NO_ROWS
        independent = may_move(snapshot)[snapshot.task_class]
        removed = self._preempt(np.flatnonzero(able & independent), single & independent)
        self._preempt_constrained(np.flatnonzero(able & ~independent))
        return removed[ledger.node_of[removed] < 0]

    def outcome(self) -> Preemption:
        """All that changes by preemption."""
        ledger, snapshot = self._ledger, self._snapshot
        waits = (ledger.node_of < 0) & (ledger.nominated != snapshot.nominated)
        new, over = np.flatnonzero(waits & (ledger.nominated >= 0)), np.flatnonzero(waits & (ledger.nominated < 0))
        return Preemption(
            np.concatenate([NO_ROWS, *self._victims]),
            np.concatenate([NO_ROWS, *self._preemptors]),
            (snapshot.tasks[new], snapshot.nodes[ledger.nominated[new]]),
            snapshot.tasks[over],
        )

    def _end_failed_nominations(self) -> None:
        """Ends the nominations of tasks that their node cannot take even when all that leave it are gone, the least
        important first."""
        ledger, snapshot = self._ledger, self._snapshot
        nominated = np.flatnonzero((ledger.node_of < 0) & (ledger.nominated >= 0))
        if not len(nominated):
            return
        state = snapshot.releases.state
        leaving = np.flatnonzero(state.tasks.leaving & (state.tasks.node >= 0))
        position = np.full(state.nodes.capacity, -1, np.int64)
        position[snapshot.nodes] = np.arange(len(snapshot.nodes))
        leaving = leaving[position[state.tasks.node[leaving]] >= 0]
        released = np.zeros_like(ledger.free)
        np.add.at(released, position[state.tasks.node[leaving]], state.classes.requests[state.tasks.cls[leaving]])
        for task in nominated[::-1].tolist():
            c, node = snapshot.task_class[task], ledger.nominated[task]
            asked = snapshot.requests[c] > 0
            left = ledger.free[node] + released[node]
            # without tasks that leave, it would have been placed if it could be
            if not released[node].any() or (left[asked] < 0).any() or not snapshot.suitable[c, node]:
                ledger.nominate(task, -1)

    def _preempt_constrained(self, preemptors: I64) -> None:
        """Preempts for tasks (K,), ascending, that have constraints on others, one after the other."""
        if not len(preemptors):
            return
        victims_so_far = np.concatenate([NO_ROWS, *self._victims])
        search = ConstrainedSearch(self._ledger, victims_so_far, self._eviction_costs)
        for task in preemptors.tolist():
            found = search.find(task, beyond_budgets=False)
            if found is None and self._preempting is Preempting.BEYOND_BUDGETS:
                found = search.find(task, beyond_budgets=True)
            if found is not None:
                node, victims = found
                self._ledger.nominate(task, node)
                self._victims.append(victims)
                self._preemptors.append(np.full(len(victims), self._snapshot.tasks[task]))

    def _preempt(self, preemptors: I64, movable: Bools) -> I64:
        """Preempts for tasks (K,), ascending. Those that the round has placed compete with them, and move where that is
        better: the round has not decided yet. Returns the tasks that lose the place that the round has given them."""
        if not len(preemptors):
            return NO_ROWS
        ledger, snapshot = self._ledger, self._snapshot
        placed = movable & (ledger.node_of >= 0) & ~snapshot.never_preempts[snapshot.task_class]
        tasks = np.union1d(preemptors, np.flatnonzero(placed))
        if len(tasks) > TOGETHER:
            tasks, placed = preemptors, np.zeros_like(placed)
        decision = self._decide(tasks, movable & ~placed)
        return NO_ROWS if decision is None else self._carry_out(decision)

    def _decide(self, tasks: I64, movable: Bools) -> "_Decision | None":
        """The residents to displace so that as many of `tasks` (K,), ascending, as possible fit; those of them that are
        placed may move. movable (T,): others that may lose their places. None: there are no residents to displace."""
        ledger, snapshot = self._ledger, self._snapshot
        priority = snapshot.priority[snapshot.task_class[tasks]]
        victims = np.concatenate([NO_ROWS, *self._victims])
        resident = residents_below(ledger, int(priority.max()), movable, victims)
        if not len(resident.kind):
            return None
        tasks = tasks[(ledger.node_of[tasks] >= 0) | (priority > resident.priority.min())]
        if (ledger.node_of[tasks] >= 0).all():
            return None
        from firmament_py.packing.eviction import Arrivals, Residents, evict  # numba: see placement/repacking.py

        state = snapshot.releases.state
        allowed, counts = budgets_of(state, resident)
        rank, cost = resident.rank(), resident.costs(state, self._eviction_costs)
        pattern = grouped(*counts.T.astype(np.int64))[0] if counts.shape[1] else np.zeros(len(rank), np.int64)
        kind, first = grouped(resident.cls, rank, cost, pattern)
        group, of_group = grouped(resident.node, kind)
        # those that are placed before the others of their class, which may cost more
        placed_first = np.lexsort((ledger.node_of[tasks] < 0, snapshot.task_class[tasks]))
        classes, number = np.unique(snapshot.task_class[tasks], return_counts=True)
        eviction = evict(
            Arrivals(
                requests=snapshot.requests[classes],
                count=number,
                priority=snapshot.priority[classes],
                suitable=snapshot.suitable[classes],
                home=ledger.node_of[tasks[placed_first]],
            ),
            Residents(
                node=resident.node[of_group],
                kind=kind[of_group],
                count=np.bincount(group),
                requests=state.classes.requests[resident.cls[first]],
                priority=resident.priority[first],
                rank=rank[first],
                value=cost[first] / COST_MAX,
                budgets=counts[first],
            ),
            ledger.unreserved + ledger.usage_of(tasks),
            allowed,
            beyond_budgets=self._preempting is Preempting.BEYOND_BUDGETS,
        )
        newest_first = np.argsort(resident.run_us, kind="stable")
        displaced = first_of_each(group, newest_first, eviction.evicted)
        of, node, count = eviction.placed.T
        return _Decision(tasks, resident, displaced, classes[of], node, count)

    def _carry_out(self, decision: "_Decision") -> I64:
        """Removes the residents, and gives their capacity to the tasks. Returns the tasks that lose their places."""
        ledger, snapshot, resident = self._ledger, self._snapshot, decision.resident
        kind, ident = resident.kind[decision.displaced], resident.id[decision.displaced]
        before = ledger.node_of[decision.tasks]
        tasks, nodes = np.array([*decision.assigned(snapshot.task_class, before)], np.int64).reshape(-1, 2).T
        affected = np.zeros(len(ledger.free), np.bool_)
        affected[resident.node[decision.displaced]] = True
        affected[nodes[ledger.node_of[tasks] != nodes]] = True
        again = affected[nodes]  # the tasks of the other nodes stay
        removed = np.union1d(ident[kind == Kind.PLACED], np.setdiff1d(decision.tasks[before >= 0], tasks[~again]))
        ledger.remove(removed)
        for task in ident[kind == Kind.NOMINATED].tolist():
            ledger.nominate(task, -1)
        first: dict[int, int] = {}  # of each node, the most important preemptor
        for task, node in zip(tasks[again].tolist(), nodes[again].tolist(), strict=True):
            first.setdefault(node, task)
            requests = snapshot.requests[snapshot.task_class[task]]
            if (ledger.free[node] >= requests)[requests > 0].all():
                ledger.place(np.array([task]), np.array([node]))
            else:
                ledger.nominate(task, node)
        victims = decision.displaced[kind == Kind.RUNNING]
        self._victims.append(resident.id[victims])
        of_victim = [first[node] for node in resident.node[victims].tolist()]
        self._preemptors.append(snapshot.tasks[np.array(of_victim, np.int64)])
        lost: I64 = removed[(ledger.node_of[removed] < 0) & (ledger.nominated[removed] < 0)]
        return lost


@dataclass(frozen=True, slots=True)
class _Decision:
    """Which residents go (D,), and how many tasks of classes (P,), by priority, get which nodes (P,). tasks (K,),
    ascending: those that were to be served."""

    tasks: I64
    resident: Resident
    displaced: I64
    cls: I64
    node: I64
    count: I64

    def assigned(self, task_class: I64, before: I64) -> Iterator[tuple[int, int]]:
        """(task, node) by priority. before (K,): where the tasks were; as many as possible stay, else the oldest go
        first."""
        for c in np.unique(self.cls).tolist():
            mine = task_class[self.tasks] == c
            tasks, at = self.tasks[mine].tolist(), before[mine].tolist()
            places = Counter(
                dict(zip(self.node[self.cls == c].tolist(), self.count[self.cls == c].tolist(), strict=True))
            )
            others = []
            for task, node in zip(tasks, at, strict=True):
                if places[node] > 0:
                    places[node] -= 1
                    yield task, node
                else:
                    others.append(task)
            yield from zip(others, places.elements(), strict=False)
