"""Whose quota others may use in the next round: that of tasks that no node takes."""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.lifecycle import WAITING
from firmament_py.sharing.decision import QueueDecision
from firmament_py.sharing.shortage import Cause
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


def pass_over(state: ClusterState, queues: QueueDecision, placed: I64, delayed: I64, undecided: I64 = NO_ROWS) -> bool:
    """Notes tasks that quotas admit and that no node takes: in the next round, others may use their quota; and those
    for which no victims were found: they take another flavor then, or others preempt instead of them. Forgets those
    that the round left out although what it has placed, rows (P,), may be what they lacked: a task beside which they
    run, or their gang's minimum. Whether there are any, and tasks that wait for quota.

    delayed (K,): rows of tasks that wait for another node. undecided (K,): of those for which victims are still
    searched for.
    """
    tasks, some = state.tasks, False
    if len(placed):
        rows = tasks.waiting
        rows = rows[tasks.passed_over[rows] | tasks.without_victims[rows]]
        rows = np.setdiff1d(rows, queues.admitted, assume_unique=True)
        of_gang = (tasks.gang[rows] != NO_GANG) & np.isin(tasks.gang[rows], tasks.gang[placed])
        rows = rows[state.classes.seeks[tasks.cls[rows]] | of_gang]
        tasks.begin_anew(rows)
        some = len(rows) > 0
    for rows, note in ((queues.admitted, "passed_over"), (queues.yielding, "without_victims")):
        left = rows[(tasks.state[rows] == WAITING) & (tasks.nominated[rows] < 0) & ~getattr(tasks, note)[rows]]
        left = np.setdiff1d(np.setdiff1d(left, delayed), undecided)
        tasks.note(left, **{note: True})
        some |= len(left) > 0
    return some and bool((queues.shortages.cause == Cause.OVER_QUOTA).any())
