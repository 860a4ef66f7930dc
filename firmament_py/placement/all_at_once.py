"""Whether all tasks of a round may fit at once, so that it does not matter which of them come first."""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState


def may_fit_at_once(state: ClusterState, rows: I64) -> bool:
    """False if task rows (K,) request more than all nodes have free, those aside that request more than any node has,
    or if their order could matter although all fit: with gangs, constraints between tasks, and tasks that nodes are
    kept for."""
    tasks, classes = state.tasks, state.classes
    if classes.has_intertask_terms or (tasks.gang[rows] >= 0).any():
        return False
    if (tasks.nominated[rows] >= 0).any() or (state.successors.nodes_for(rows) >= 0).any():
        return False
    nodes = state.present_nodes()
    largest = state.nodes.allocatable[nodes].max(axis=0, initial=0)
    count = np.bincount(tasks.cls[rows], minlength=classes.capacity) * (classes.requests <= largest).all(axis=1)
    requested = (classes.requests * count[:, None]).sum(axis=0, dtype=np.float64)
    free = np.maximum(unreserved(state)[nodes], 0).sum(axis=0, dtype=np.float64)
    return bool((requested <= free).all())
