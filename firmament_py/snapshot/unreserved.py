"""What nodes have free, and do not reserve."""

from firmament_py.model.arrays import I64, add_rows
from firmament_py.model.lifecycle import WAITING
from firmament_py.state.cluster import ClusterState


def unreserved(state: ClusterState) -> I64:
    """(capacity of the node table, R) allocatable less what tasks use, and less what is reserved for nominated tasks
    and expected successors. Below 0 where a node has less than its tasks use."""
    tasks = state.tasks
    free: I64 = state.nodes.allocatable - state.nodes.used
    (rows,) = ((tasks.nominated >= 0) & (tasks.state == WAITING)).nonzero()
    if len(rows):
        add_rows(free, tasks.nominated[rows], -state.classes.requests[tasks.cls[rows]])
    if len(state.successors):
        at, amounts = state.successors.reserved()
        add_rows(free, at, -amounts)
    return free
