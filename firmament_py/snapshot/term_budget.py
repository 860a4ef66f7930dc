"""How many inter-task terms one round evaluates.

Classes with many terms beyond that are deferred to the next rounds, in the order in which they were last considered, so
that no sender of such tasks slows down rounds for all others.

Each term of a class is evaluated on all nodes, several times in a round.
"""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.snapshot.round_classes import by_class
from firmament_py.state.cluster import ClusterState

TERMS_PER_ROUND = 768
"""Terms of the classes with many terms that one round considers together."""

FEW_TERMS = 16
"""A class with at most so many terms is never deferred."""


def waiting_tasks(state: ClusterState, now_us: int) -> I64:
    """Rows (T,) of the tasks that may be placed at `now_us`, microseconds since the epoch."""
    rows = state.tasks.waiting
    return rows[state.tasks.not_before_us[rows] <= now_us]


def defer(state: ClusterState, waiting: I64, now_us: int) -> I64:
    """Rows (K,) of the `waiting` tasks (T,) that the round at `now_us` leaves out; notes which of those with many terms
    it considers. A gang is one unit, and so are the other tasks of a class of the round. Units follow each other until
    the terms of their classes, each counted once, exceed the budget; the first is always considered."""
    tasks, terms = state.tasks, state.classes.terms
    if not (terms[tasks.cls[waiting]] > FEW_TERMS).any():
        return NO_ROWS
    rows, starts = by_class(state, waiting)
    cls, gang = tasks.cls[rows], tasks.gang[rows]
    group = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(rows)]))
    unit_of_row = np.where(gang >= 0, len(starts) + gang, group)
    many = terms[cls] > FEW_TERMS
    units, unit = np.unique(unit_of_row[many], return_inverse=True)
    since_us = np.full(len(units), np.iinfo(np.int64).max)
    np.minimum.at(since_us, unit, np.maximum(tasks.considered_us[rows], tasks.created_us[rows])[many])
    priority = np.full(len(units), np.iinfo(np.int64).min)
    np.maximum.at(priority, unit, state.classes.priority[cls[many]])
    queue = np.lexsort((-priority, since_us))
    place = np.empty_like(queue)
    place[queue] = np.arange(len(queue))
    order = np.argsort(place[unit], kind="stable")
    first = np.unique(group[many][order], return_index=True)[1]
    added = np.zeros(len(order), np.int64)
    added[first] = terms[cls[many][order][first]]
    last = np.searchsorted(place[unit][order], np.arange(len(queue)), side="right") - 1
    fits = np.cumsum(added)[last] <= TERMS_PER_ROUND
    fits[0] = True
    tasks.note(rows[np.isin(unit_of_row, units[queue[fits]])], considered_us=now_us)
    deferred: I64 = rows[np.isin(unit_of_row, units[queue[~fits]])]
    return deferred
