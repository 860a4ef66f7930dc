"""A second opinion on small rounds: would placing one task at a time have placed more?

Flows place batches well, but demands between tasks, and several resources at once, can leave a case where a plain
pod-by-pod scheduler would have done better by a task or two. So where a round with few tasks has left some of them
waiting that had room at its start, the tasks are placed again on copies, one at a time: by priority, then age, each on
the first node that takes it, once in the order of the nodes' costs and once emptiest node first, and over again until
nobody is placed any more. Whichever places more of the highest priority, then of the next, and so on, counts; at a tie
the flow does. So such a round never places fewer of a priority, given the same of all higher ones, than either of these
schedulers.
"""

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.solo_capacity import task_slots

MOST_TASKS = 500
"""Larger rounds are not looked at again: one by one is what they are spared."""

MOST_TERMS = 10_000
"""Nor those whose tasks, added up, have more demands on other tasks than this: each is looked at for each task."""


def worth_asking(placing: Placing) -> bool:
    """Whether the round left tasks waiting that had room at its start, and is small enough."""
    snapshot = placing.snapshot
    left = placing.node_of < 0
    if not left.any() or len(left) > MOST_TASKS or snapshot.gang_demands or len(snapshot.quota) or placing.keeps_room:
        return False
    waiting = np.bincount(snapshot.task_class, minlength=len(snapshot.classes))
    if sum(count * snapshot.intertask.terms(c) for c, count in enumerate(waiting.tolist())) > MOST_TERMS:
        return False
    return bool(left_out(placing).any())


def left_out(placing: Placing) -> Bools:
    """(T,) the tasks that wait and had room when the round began."""
    snapshot = placing.snapshot
    waiting = np.bincount(snapshot.task_class, minlength=len(snapshot.classes))
    slots = task_slots(snapshot.free, snapshot.requests, snapshot.suitable, waiting)
    left: Bools = (placing.node_of < 0) & (slots.max(axis=1, initial=0) > 0)[snapshot.task_class]
    return left


def place_one_by_one(placing: Placing, *, emptiest_first: bool) -> None:
    """Places the tasks of a fresh `placing` like a scheduler that knows one task at a time."""
    snapshot = placing.snapshot
    by_price = None if emptiest_first else placing.cheapest_first()
    waiting = np.lexsort((snapshot.task_uid, snapshot.task_created_us, -snapshot.priority[snapshot.task_class]))
    while True:
        for task in waiting.tolist():
            order = placing.emptiest_first() if by_price is None else by_price(task)
            placing.place_first_fit(task, order)
        left = waiting[placing.node_of[waiting] < 0]
        if len(left) in (0, len(waiting)):
            return
        waiting = left  # who was placed last may be whom others wait to be near


def better(one: Placing, other: Placing) -> Placing:
    """The one that places more of the highest priority, then of the next, ...; `one` at a tie."""
    return other if _counts(other) > _counts(one) else one


def _counts(placing: Placing) -> list[int]:
    """Placed tasks of each priority, highest first."""
    snapshot = placing.snapshot
    priority: I64 = snapshot.priority[snapshot.task_class]
    ranks = np.unique(-priority, return_inverse=True)[1]
    counts: list[int] = np.bincount(ranks, placing.node_of >= 0).astype(np.int64).tolist()
    return counts
