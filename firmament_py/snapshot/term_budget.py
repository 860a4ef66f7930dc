"""How many inter-task terms one round evaluates.

Classes with many terms beyond that are deferred to the next rounds, in the order in which they were last considered, so
that no sender of such tasks slows down rounds for all others.

Each term of a class is evaluated on all nodes, a dozen times in a round: about 0.4 ms for 1,000 nodes.
"""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.lifecycle import TaskState
from firmament_py.snapshot.round_classes import by_class
from firmament_py.state.cluster import ClusterState

TERMS_PER_ROUND = 768
"""Terms of the classes with many terms that one round considers together."""

FEW_TERMS = 16
"""A class with at most so many terms is never deferred."""


def waiting_tasks(state: ClusterState, now_us: int) -> I64:
    """Rows (T,) of the tasks that may be placed at `now_us`, microseconds since the epoch."""
    tasks = state.tasks
    return np.flatnonzero((tasks.state == TaskState.WAITING) & (tasks.not_before_us <= now_us))


def defer(state: ClusterState, now_us: int) -> I64:
    """Rows (K,) of the waiting tasks that the round at `now_us` leaves out; of the others with many terms, notes that
    this round considers them. A gang is deferred as a whole."""
    tasks, terms = state.tasks, state.classes.terms
    waiting = waiting_tasks(state, now_us)
    if not (terms[tasks.cls[waiting]] > FEW_TERMS).any():
        return waiting[:0]
    rows, starts = by_class(state, waiting)
    of_group = terms[tasks.cls[rows[starts]]]
    many = np.flatnonzero(of_group > FEW_TERMS)
    since_us = np.minimum.reduceat(np.maximum(tasks.considered_us[rows], tasks.created_us[rows]), starts)
    queue = many[np.lexsort((-state.classes.priority[tasks.cls[rows[starts[many]]]], since_us[many]))]
    fits = np.cumsum(of_group[queue]) <= TERMS_PER_ROUND
    fits[0] = True
    group = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(rows)]))
    tasks.considered_us[rows[np.isin(group, queue[fits])]] = now_us
    deferred = rows[np.isin(group, queue[~fits])]
    gangs = np.unique(tasks.gang[deferred])
    return np.union1d(deferred, waiting[np.isin(tasks.gang[waiting], gangs[gangs >= 0])])
