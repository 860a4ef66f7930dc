"""What nodes have free, and do not reserve."""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, add_rows
from firmament_py.state.cluster import ClusterState


def unreserved(state: ClusterState, own: I64 = NO_ROWS) -> I64:
    """(capacity of the node table, R) allocatable less what tasks use, and less what is reserved for nominated tasks
    and expected successors, but not for task rows `own` (K,). Below 0 where a node has less than its tasks use."""
    tasks = state.tasks
    free: I64 = state.nodes.allocatable - state.nodes.used
    rows = tasks.nominees
    if len(rows):
        rows = np.setdiff1d(rows, own, assume_unique=True)
        add_rows(free, tasks.nominated[rows], -state.classes.requests[tasks.cls[rows]])
    if len(state.successors):
        at, amounts = state.successors.reserved(own)
        add_rows(free, at, -amounts)
    return free
