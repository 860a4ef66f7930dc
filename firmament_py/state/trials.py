"""Changes that no event brings, for trials on a copy of the state."""

from firmament_py.model.arrays import I64
from firmament_py.model.changes import ANY, Change
from firmament_py.model.lifecycle import BOUND, WAITING
from firmament_py.model.placed_by import PlacedBy
from firmament_py.state.cluster import ClusterState


def relocate(state: ClusterState, rows: I64, nodes: I64) -> None:
    """Task rows (K,), all BOUND, run on other node rows (K,), and stay there."""
    state.node_usage.subtract(rows)
    state.tasks.node[rows], state.tasks.movable[rows] = nodes, False
    state.node_usage.add(rows)


def displace(state: ClusterState, rows: I64) -> None:
    """Task rows (K,), all BOUND or ASSUMED, have lost their nodes and wait."""
    tasks = state.tasks
    state.node_usage.subtract(rows)
    state.end_preemptions(rows)
    tasks.node[rows], tasks.leaving[rows], tasks.awaits[rows] = -1, False, int(ANY)
    tasks.move(rows, WAITING)
    tasks.placed_by[rows] = PlacedBy.UNKNOWN
    state.changes.note(Change.ARRIVAL | Change.RELEASE)


def begin(state: ClusterState, rows: I64, at_us: int) -> None:
    """Task rows (K,), all ASSUMED, run since `at_us`, microseconds since the epoch."""
    tasks = state.tasks
    tasks.started_us[rows] = at_us
    tasks.move(rows, BOUND)
