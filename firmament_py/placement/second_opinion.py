"""A second opinion on small rounds with constraints between tasks: would placing one at a time have placed more?

Flows place batches well, and packing uses capacity of the wrong shape (placement/repacking.py), but it moves no tasks
that have constraints on others. So if a round with few tasks has left some waiting that would have fitted at its start,
the tasks are placed again on copies, one at a time: by priority, then age, each on the first node that takes it, once
in the order of the nodes' costs and once emptiest node first, and over again until no further task is placed. The
result that places more of the highest priority, then of the next, and so on, counts; at a tie the flow's does. So such
a round never places fewer tasks of a priority, given the same of all higher ones, than either of these schedulers.

It is needed: without it some random rounds with constraints place fewer tasks (the test
test_rounds_with_a_second_opinion_place_more of tests/firmament_py/engine/test_no_fewer.py).
"""

from collections.abc import Callable

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.placer import CLASSES_AT_ONCE, Placer
from firmament_py.snapshot.solo_capacity import task_slots

MOST_TASKS = 500
"""Rounds with more tasks are not compared: placing one by one would take too long."""

MOST_TERMS = 10_000
"""Nor those whose tasks have more intertask constraints than this in sum: each is evaluated for each task."""


def worth_asking(placer: Placer) -> bool:
    """Whether the round left tasks waiting that would have fitted at its start, and is small enough."""
    snapshot, ledger = placer.snapshot, placer.ledger
    left = ledger.pending
    if (
        not snapshot.intertask.any
        or not left.any()
        or len(left) > MOST_TASKS
        or snapshot.gang_demands
        or len(snapshot.quota)
    ):
        return False
    if ledger.has_reservations or ledger.delayed.any():
        return False
    waiting = np.bincount(snapshot.task_class, minlength=len(snapshot.classes))
    if waiting @ snapshot.intertask.terms > MOST_TERMS:
        return False
    return bool(left_out(placer).any())


def left_out(placer: Placer) -> Bools:
    """(T,) the tasks that wait and would have fitted when the round began."""
    snapshot = placer.snapshot
    waiting = np.bincount(snapshot.task_class, minlength=len(snapshot.classes))
    slots = task_slots(snapshot.free, snapshot.requests, snapshot.suitable, waiting)
    left: Bools = placer.ledger.pending & (slots.max(axis=1, initial=0) > 0)[snapshot.task_class]
    return left


def place_one_by_one(placer: Placer, *, emptiest_first: bool) -> None:
    """Places the tasks of a placer that has placed none yet like a scheduler that knows one task at a time."""
    snapshot, ledger = placer.snapshot, placer.ledger
    by_cost = None if emptiest_first else nodes_by_cost(placer)
    waiting = np.lexsort((snapshot.task_uid, snapshot.task_created_us, -snapshot.priority[snapshot.task_class]))
    waiting = waiting[~snapshot.withheld[waiting]]
    while True:
        for task in waiting.tolist():
            order = np.argsort(ledger.running, kind="stable") if by_cost is None else by_cost(task)
            _place_first_fit(ledger, task, order)
        left = waiting[ledger.node_of[waiting] < 0]
        if len(left) in (0, len(waiting)):
            return
        waiting = left  # a task that was placed last may be one that others must be near


def better(one: Placer, other: Placer) -> Placer:
    """The one that places more of the highest priority, then of the next, ...; `one` at a tie."""
    return other if _counts(other) > _counts(one) else one


def nodes_by_cost(placer: Placer) -> Callable[[int], I64]:
    """A function from a task to the nodes (N,) by what it costs as the first to go there; in any order if there are too
    many classes."""
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


def _place_first_fit(ledger: Ledger, task: int, order: I64) -> None:
    """Places one task on the first node of `order` (N,) that takes it, if any does."""
    snapshot, c = ledger.snapshot, int(ledger.snapshot.task_class[task])
    request = snapshot.requests[c]
    needs = np.flatnonzero(request)
    fits = snapshot.suitable[c] & np.greater_equal(ledger.free[:, needs], request[needs]).all(axis=1)
    if snapshot.intertask.concerned[c]:
        fits &= snapshot.intertask.allowed(c)
    first = order[fits[order]][:1]
    if len(first) and ledger.commit_counts(np.array([c]), first, np.array([1])).any():
        ledger.assign(np.array([task]), np.array([c]), first)
        ledger.free[first] -= request


def _counts(placer: Placer) -> list[int]:
    """Placed tasks of each priority, highest first."""
    snapshot = placer.snapshot
    priority: I64 = snapshot.priority[snapshot.task_class]
    ranks = np.unique(-priority, return_inverse=True)[1]
    counts: list[int] = np.bincount(ranks, placer.ledger.node_of >= 0).astype(np.int64).tolist()
    return counts
