"""List scheduling: places the single tasks of a small round anew, one at a time, where that places more of them.

Flows place batches well, and packing uses capacity of the wrong shape (placement/repacking.py), but it moves no tasks
that have constraints on others. So if tasks wait that would have fitted at the start of the round, the single tasks
that it has placed are taken back, and all are placed from a list: by priority, then age, each on the first node that
takes it, and over again until no further task is placed. The nodes are tried in the order of their costs, then
emptiest first. Then the classes of the tasks that a list has left out come first among those of their priority in the
next one, and so on (squeaky wheel optimization: Joslin and Clements, JAIR 10, 1999). Of each class, the oldest tasks
get the places.

The result of a list replaces the placements only if it places more of the highest priority, or as many and more of the
next one, and so on. Of each priority, tasks that are overdue count first, and none of those that have a place loses it.
So a small round never places fewer tasks of a priority, given the same of all higher ones, than a scheduler that knows
one task at a time. Gangs, nominated tasks and what runs stay as they are.
"""

from collections import deque
from collections.abc import Callable

import numpy as np

from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.placer import CLASSES_AT_ONCE, Placer

MOST_TASKS = 500
"""Rounds with more single tasks are left as they are: placing one by one would take too long."""

MOST_TERMS = 10_000
"""So are those whose tasks have more intertask constraints than this in sum: each is evaluated for each task."""

LISTS = 9
"""At most so many lists are tried for each order of the nodes."""

STEPS = 1_000
"""With each order of the nodes, tasks are tried at most so often; on more than a thousand nodes a try counts more."""

EFFORT_LIMIT = 10.0
"""Largest multiple of the usual number of lists and tries: a round must end before its caller gives up."""

NodesFor = Callable[[int], I64]
"""A task -> the nodes (N,) in the order in which they are tried for it."""


def place_from_lists(placer: Placer, single: Bools, overdue: Bools, effort: float) -> bool:
    """Places the tasks `single` (T,) anew if a list places more of them; whether one did. overdue: (T,) those that have
    waited for long. effort: multiplies the number of lists and tries, at most by EFFORT_LIMIT."""
    tasks = np.flatnonzero(single)
    if effort <= 0 or not may_place_from_lists(placer, tasks):
        return False
    ledger = placer.ledger
    waiting = np.unique(placer.snapshot.task_class[tasks[ledger.node_of[tasks] < 0]])
    with ledger.transaction():
        ledger.remove(tasks)
        cheapest_first = by_cost(placer, tasks) if _some_fit(ledger, waiting) else None
    if cheapest_first is None:
        return False
    lists = _Lists(ledger, tasks, overdue[tasks], min(effort, EFFORT_LIMIT))
    moved = [lists.improve(nodes_for) for nodes_for in (cheapest_first, emptiest_first(ledger))]
    return any(moved)


def may_place_from_lists(placer: Placer, tasks: I64) -> bool:
    """Whether one of `tasks` (K,) waits, the round has constraints, is small enough, and nothing that stays could
    depend on where `tasks` are."""
    snapshot, intertask, ledger = placer.snapshot, placer.snapshot.intertask, placer.ledger
    if not intertask.any or len(tasks) > MOST_TASKS or not (ledger.node_of[tasks] < 0).any() or ledger.delayed.any():
        return False
    if intertask.terms[snapshot.task_class[tasks]].sum() > MOST_TERMS:
        return False
    stay = ledger.node_of >= 0
    stay[tasks] = False
    return not intertask.concerned[snapshot.task_class[stay]].any()


def _some_fit(ledger: Ledger, classes: I64) -> bool:
    """Whether a task of one of `classes` fits somewhere, or may once others are placed."""
    conceivable = ledger.snapshot.intertask.conceivable
    return any((_fits(ledger.free, ledger, c) & conceivable(c)).any() for c in classes.tolist())


def _fits(free: I64, ledger: Ledger, c: int) -> Bools:
    """(N,) the nodes that suit class c, and have what its tasks request of `free` (N, R)."""
    snapshot = ledger.snapshot
    needs = np.flatnonzero(snapshot.requests[c])
    fits: Bools = snapshot.suitable[c] & (free[:, needs] >= snapshot.requests[c, needs]).all(axis=1)
    return fits


def by_cost(placer: Placer, tasks: I64) -> NodesFor | None:
    """Nodes by what each of `tasks` (K,) costs as the first to go there; in any order if they have too many classes.
    None: tasks may wait for a better node, which no list knows."""
    nodes, task_class = len(placer.snapshot.nodes), placer.snapshot.task_class
    if len(np.unique(task_class[tasks])) > CLASSES_AT_ONCE:
        return lambda task: np.arange(nodes)
    subproblem, costs = placer.first_costs(tasks, one_slot=True)
    if costs.delay is not None:
        return None
    cost = np.broadcast_to(costs.place + costs.slot[:, 0], (len(subproblem.classes), nodes))
    by_class, data = np.argsort(cost, axis=1, kind="stable"), costs.data
    row = np.searchsorted(subproblem.classes, task_class)
    if data is None:
        return lambda task: by_class[row[task]]
    of_task = np.full(len(task_class), -1, np.int64)
    of_task[subproblem.tasks] = data.of_task
    return lambda task: np.argsort(cost[row[task]] + data.row(int(of_task[task])), kind="stable")


def emptiest_first(ledger: Ledger) -> NodesFor:
    """Nodes by the number of tasks on them."""
    return lambda task: np.argsort(ledger.running, kind="stable")


class _Lists:
    """Lists of `tasks` (K,), of which some are overdue (K,). A list is a sequence of turns, each of a *kind*: the tasks
    of one class that are overdue, or those that are not. It is the turn of the oldest that has no place yet."""

    def __init__(self, ledger: Ledger, tasks: I64, overdue: Bools, effort: float) -> None:
        snapshot = self._snapshot = ledger.snapshot
        self._ledger, self._tasks, self._overdue = ledger, tasks, overdue
        self._limit, self._steps = max(1, round(LISTS * effort)), STEPS * effort
        self._step = 1 + len(ledger.free) // 1000
        cls = snapshot.task_class[tasks]
        self._level = np.unique(2 * snapshot.priority[cls] + overdue, return_inverse=True)[1]
        """(K,) priority and whether it is overdue as one number, the highest last."""
        self._kind = np.unique(2 * cls + overdue, return_inverse=True)[1]
        self._by_age = np.lexsort((snapshot.task_uid[tasks], snapshot.task_created_us[tasks], -self._level))
        kinds = int(self._kind.max(initial=-1)) + 1
        self._level_of, self._class_of = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)  # by kind
        self._level_of[self._kind], self._class_of[self._kind] = self._level, cls

    def improve(self, nodes_for: NodesFor) -> bool:
        """Tries lists until all tasks have a place, a list was tried before, or the effort is spent; whether one placed
        more."""
        turns, tried, moved, self._left = self._kind[self._by_age], set[bytes](), False, self._steps
        while len(tried) < self._limit and self._left > 0 and turns.tobytes() not in tried:
            if (self._ledger.node_of[self._tasks] >= 0).all():
                break
            tried.add(turns.tobytes())
            better, left_out = self._try(turns, nodes_for)
            moved |= better
            turns = self._following(turns, left_out)
        return moved

    def _try(self, turns: I64, nodes_for: NodesFor) -> tuple[bool, I64]:
        """Places the tasks anew from a list of turns (K,) if that is better; whether it is, and how many tasks of each
        kind it leaves out."""
        ledger, tasks = self._ledger, self._tasks
        before = ledger.node_of[tasks] >= 0
        with ledger.transaction() as transaction:
            ledger.remove(tasks)
            self._place(turns.tolist(), nodes_for)
            after = ledger.node_of[tasks] >= 0
            if self._counts(after) > self._counts(before) and not (before & ~after & self._overdue).any():
                transaction.commit()
        return transaction.committed, np.bincount(self._kind[~after], minlength=len(self._class_of))

    def _counts(self, placed: Bools) -> list[int]:
        """Of each level, the highest first, how many are placed (K,)."""
        levels = int(self._level.max(initial=0)) + 1
        counts: list[int] = np.bincount(self._level[placed], minlength=levels)[::-1].tolist()
        return counts

    def _following(self, turns: I64, left_out: I64) -> I64:
        """The next list: of each level, as many turns of each kind first as it had left out, the last ones of these."""
        counts, order = np.bincount(turns), np.argsort(turns, kind="stable")
        number = np.empty(len(turns), np.int64)  # of each turn among those of its kind
        number[order] = run_positions(counts)
        first = number >= (counts - left_out)[turns]
        following: I64 = turns[np.lexsort((~first, -self._level_of[turns]))]
        return following

    def _place(self, turns: list[int], nodes_for: NodesFor) -> None:
        """Places tasks in this order, the turns in vain over and over until no further task is placed: one that was
        placed last may be one that others must be near."""
        shrinking = self._snapshot.intertask.shrinking[self._class_of]
        queues: list[deque[int]] = [deque() for _ in self._class_of]
        for position in self._by_age.tolist():
            queues[self._kind[position]].append(int(self._tasks[position]))
        full: set[int] = set()  # kinds that fit nowhere, whatever is placed
        placed, failed = 0, dict[int, int]()  # the number of placements at which a kind fitted nowhere
        while turns:
            in_vain, placed_before = [], placed
            for kind in turns:
                if kind in full:
                    continue
                if failed.get(kind) == placed:
                    in_vain.append(kind)
                    continue
                self._left -= self._step
                if self._left < 0:
                    return
                if self._place_first_fit(queues[kind][0], nodes_for):
                    queues[kind].popleft()
                    placed += 1
                elif shrinking[kind]:
                    full.add(kind)
                else:
                    failed[kind] = placed
                    in_vain.append(kind)
            if placed == placed_before:
                return
            turns = in_vain

    def _place_first_fit(self, task: int, nodes_for: NodesFor) -> bool:
        """Places one task on the first node that takes it; whether one does."""
        ledger, intertask, c = self._ledger, self._snapshot.intertask, int(self._snapshot.task_class[task])
        fits = _fits(ledger.free_for(np.array([task])), ledger, c)
        if intertask.concerned[c]:
            fits &= intertask.allowed(c)
        if not fits.any():
            return False
        order = nodes_for(task)
        ledger.place_one(task, int(order[np.argmax(fits[order])]), PlacedBy.LISTS)
        return True
