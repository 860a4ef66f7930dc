"""List scheduling: places the single tasks of a small round anew, one at a time, where that places more of them.

Flows place batches well, and packing uses capacity of the wrong shape (placement/repacking.py), but it moves no tasks
that have constraints on others. So if tasks wait that would have fitted at the start of the round, the single tasks
that it has placed are taken back, and all are placed from a list: by priority, then age, each on the first node that
takes it, and over again until no further task is placed. The nodes are tried in the order of their costs, then
emptiest first. Then the tasks that a list has left out come first among those of their priority in the next one, and
so on (squeaky wheel optimization: Joslin and Clements, JAIR 10, 1999).

The result of a list replaces the placements only if it places more of the highest priority, or as many and more of the
next one, and so on; of each priority, tasks that are overdue count first. So a small round never places fewer tasks of
a priority, given the same of all higher ones, than a scheduler that knows one task at a time. Gangs, nominated tasks
and what runs stay as they are.
"""

from collections.abc import Callable

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.placer import CLASSES_AT_ONCE, Placer

MOST_TASKS = 500
"""Rounds with more single tasks are left as they are: placing one by one would take too long."""

MOST_TERMS = 10_000
"""So are those whose tasks have more intertask constraints than this in sum: each is evaluated for each task."""

LISTS = 9
"""At most so many lists are tried for each order of the nodes."""

TASKS_OF_LISTS = 1_000
"""With so many tasks in the lists of a round no further one is tried than the first of each order of the nodes."""

NodesFor = Callable[[int], I64]
"""A task -> the nodes (N,) in the order in which they are tried for it."""

NodeOrder = Callable[[Placer], NodesFor]


def place_from_lists(placer: Placer, single: Bools, overdue: Bools, effort: float) -> bool:
    """Places the tasks `single` (T,) anew if a list places more of them; whether one did. overdue: (T,) those that have
    waited for long. effort: multiplies the number of lists."""
    snapshot, tasks = placer.snapshot, np.flatnonzero(single)
    if effort <= 0 or not _may_move(placer, tasks) or not _some_left_out(placer.ledger, tasks):
        return False
    level = np.unique(2 * snapshot.priority[snapshot.task_class[tasks]] + overdue[tasks], return_inverse=True)[1]
    by_age = np.lexsort((snapshot.task_uid[tasks], snapshot.task_created_us[tasks], -level))
    most = max(1, round(effort * min(LISTS, TASKS_OF_LISTS // (2 * len(tasks)))))
    moved = [_try_lists(placer, tasks, level, by_age, nodes_for, most) for nodes_for in (by_cost, emptiest_first)]
    return any(moved)


def _may_move(placer: Placer, tasks: I64) -> bool:
    """Whether a round has constraints, is small enough, and nothing that stays could depend on where `tasks` (K,)
    are."""
    snapshot, intertask = placer.snapshot, placer.snapshot.intertask
    if not intertask.any or len(tasks) > MOST_TASKS or intertask.terms[snapshot.task_class[tasks]].sum() > MOST_TERMS:
        return False
    stay = placer.ledger.node_of >= 0
    stay[tasks] = False
    return not intertask.concerned[snapshot.task_class[stay]].any()


def _some_left_out(ledger: Ledger, tasks: I64) -> bool:
    """Whether one of `tasks` (K,) waits that could have a node if the others had none."""
    waiting = np.unique(ledger.snapshot.task_class[tasks[ledger.node_of[tasks] < 0]])
    if not len(waiting):
        return False
    with ledger.transaction():
        ledger.remove(tasks)
        intertask = ledger.snapshot.intertask
        return any((_fits(ledger.free, ledger, c) & intertask.conceivable(c)).any() for c in waiting.tolist())


def _fits(free: I64, ledger: Ledger, c: int) -> Bools:
    """(N,) the nodes that suit class c, and have what its tasks request of `free` (N, R)."""
    snapshot = ledger.snapshot
    needs = np.flatnonzero(snapshot.requests[c])
    fits: Bools = snapshot.suitable[c] & (free[:, needs] >= snapshot.requests[c, needs]).all(axis=1)
    return fits


def _try_lists(placer: Placer, tasks: I64, level: I64, order: I64, node_order: NodeOrder, most: int) -> bool:
    """Tries up to `most` lists of `tasks` (K,), the first in `order` (K,), each with the tasks first that the last one
    has left out; whether one placed more, by level (K,). Tasks of a class are alike: a list in which their classes
    follow one another as in the last one is not tried."""
    moved, cls = False, placer.snapshot.task_class[tasks]
    for _ in range(most):
        better, left = _try_list(placer, tasks, level, order, node_order)
        moved |= better
        following = order[np.lexsort((~left[order], -level[order]))]
        if np.array_equal(cls[following], cls[order]):
            break
        order = following
    return moved


def _try_list(placer: Placer, tasks: I64, level: I64, order: I64, node_order: NodeOrder) -> tuple[bool, Bools]:
    """Places `tasks` (K,) anew, one at a time in `order` (K,), if that places more of them, by level (K,); whether it
    does, and those that it leaves out (K,)."""
    ledger = placer.ledger
    before = _counts(level[ledger.node_of[tasks] >= 0], level)
    with ledger.transaction() as transaction:
        ledger.remove(tasks)
        _place_all(ledger, tasks[order], node_order(placer))
        placed = ledger.node_of[tasks] >= 0
        if _counts(level[placed], level) > before:
            transaction.commit()
    return transaction.committed, ~placed


def _counts(some: I64, level: I64) -> list[int]:
    """How many of `some` are of each level, the highest first."""
    counts: list[int] = np.bincount(some, minlength=int(level.max(initial=0)) + 1)[::-1].tolist()
    return counts


def _place_all(ledger: Ledger, tasks: I64, nodes_for: NodesFor) -> None:
    """Places `tasks` (K,) in this order, over and over until no further one is placed: a task that was placed last may
    be one that others must be near."""
    task_class, shrinking = ledger.snapshot.task_class, ledger.snapshot.intertask.shrinking
    full: set[int] = set()  # classes that fit nowhere, whatever is placed
    while True:
        for task in tasks.tolist():
            c = int(task_class[task])
            if c not in full and not _place_first_fit(ledger, task, nodes_for) and shrinking[c]:
                full.add(c)
        left = tasks[ledger.node_of[tasks] < 0]
        left = left[~np.isin(task_class[left], list(full))]
        if len(left) in (0, len(tasks)):
            return
        tasks = left


def _place_first_fit(ledger: Ledger, task: int, nodes_for: NodesFor) -> bool:
    """Places one task on the first node that takes it; whether one does."""
    snapshot, c = ledger.snapshot, int(ledger.snapshot.task_class[task])
    fits = _fits(ledger.free_for(np.array([task])), ledger, c)
    if snapshot.intertask.concerned[c]:
        fits &= snapshot.intertask.allowed(c)
    if not fits.any():
        return False
    order = nodes_for(task)
    ledger.place_one(task, int(order[np.argmax(fits[order])]))
    return True


def by_cost(placer: Placer) -> NodesFor:
    """Nodes by what a task costs as the first to go there; in any order if there are too many classes."""
    snapshot = placer.snapshot
    (classes, nodes), tasks = snapshot.suitable.shape, len(snapshot.tasks)
    if classes > CLASSES_AT_ONCE:
        return lambda task: np.arange(nodes)
    subproblem, costs = placer.first_costs(np.arange(tasks))
    slot = np.broadcast_to(costs.slot, (nodes, len(subproblem.view.slot_offsets)))[:, 0]
    cost = np.broadcast_to(costs.place, (classes, nodes)) + slot
    by_class, task_class, data = np.argsort(cost, axis=1, kind="stable"), snapshot.task_class, costs.data
    if data is None:
        return lambda task: by_class[task_class[task]]
    of_task = np.full(tasks, -1, np.int64)
    of_task[subproblem.tasks] = data.of_task
    return lambda task: np.argsort(cost[task_class[task]] + data.row(int(of_task[task])), kind="stable")


def emptiest_first(placer: Placer) -> NodesFor:
    """Nodes by the number of tasks on them."""
    return lambda task: np.argsort(placer.ledger.running, kind="stable")
