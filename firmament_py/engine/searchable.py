"""For which waiting tasks others may leave their nodes."""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.options import Migrating, Preempting
from firmament_py.sharing.decision import may_claim
from firmament_py.state.cluster import ClusterState


def may_get_victims(state: ClusterState, preempting: Preempting, migrating: Migrating) -> I64:
    """Rows (K,) of the waiting tasks for which others may be evicted or moved, by their priority or by the rules of
    their queues."""
    tasks, classes = state.tasks, state.classes
    rows = tasks.waiting
    if migrating is not Migrating.NEVER or not len(rows):
        return rows
    if preempting is Preempting.OFF:
        return NO_ROWS
    cls, lowest = tasks.cls[rows], classes.priority[tasks.cls[tasks.on_nodes]].min(initial=np.iinfo(np.int64).max)
    claims = np.append(may_claim(state.queues), False)[tasks.queue_row[rows]]
    may = np.where(tasks.queue[rows] != 0, claims, classes.priority[cls] > lowest)
    return rows[may & ~classes.never_preempts[cls]]


def to_search(state: ClusterState, rows: I64, left_out: I64, now_us: int) -> I64:
    """Those of such task rows (K,) that a search would consider at `now_us`: no node is kept for them, they are not
    postponed, and not among those that the round has left out, rows (L,)."""
    tasks = state.tasks
    rows = rows[(tasks.nominated[rows] < 0) & (tasks.not_before_us[rows] <= now_us)]
    return np.setdiff1d(rows, left_out, assume_unique=True)
