"""The classes of a round: those of the state, divided where selectors of tasks distinguish the labels of others."""

import numpy as np

from firmament_py.model.arrays import I64, Bools, mix
from firmament_py.model.constraints import PeerSelector
from firmament_py.model.lifecycle import TaskState
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState


def by_class(state: ClusterState, rows: I64, apart: I64 | None = None) -> tuple[I64, I64]:
    """Waiting task rows (K,) reordered by class of the round, and the start of each class (C,).

    apart: (K,) tasks with different values belong to different classes.
    """
    cls = state.tasks.cls[rows]
    signature = _signatures(state, cls, state.tasks.label_set[rows])
    keys = (signature, cls) if apart is None else (apart, signature, cls)
    order = np.lexsort(keys)
    changes = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
    starts = np.flatnonzero(np.r_[True, changes][: len(cls)])
    return rows[order], starts


def _signatures(state: ClusterState, classes: I64, label_sets: I64) -> I64:
    """(K,) numbers for tasks with these class and label set rows (K,), equal if no selector distinguishes the tasks.

    Only selectors of waiting classes, and of anti-affinity and preferences of running tasks, matter.
    """
    if not state.classes.has_intertask_terms:
        return np.zeros(len(classes), np.int64)
    running = (state.tasks.state == TaskState.ASSUMED) | (state.tasks.state == TaskState.BOUND)
    selectors: set[PeerSelector] = set()
    for row in np.unique(classes).tolist():
        definition = state.classes.definition(row)
        demand, preferences = definition.peers, definition.preferences
        selectors.update(term.selector for term in (*demand.affinity, *demand.anti_affinity))
        selectors.update(term.selector for _, term in preferences.peers)
        selectors.update(spread.selector for spread in (*demand.spread, *preferences.spread))
    of_running = state.tasks.cls[running]
    for row in np.unique(of_running[(state.classes.repels | state.classes.wishes)[of_running]]).tolist():
        selectors.update(term.selector for term in state.classes.definition(row).peers.anti_affinity)
        selectors.update(term.selector for _, term in carried(state.classes.definition(row)))
    if not selectors:
        return np.zeros(len(classes), np.int64)
    rows, index = np.unique(label_sets, return_inverse=True)
    bits: Bools = np.array([state.label_sets.matching(s)[rows] for s in selectors], np.bool_)
    # one of each, sorted, since the order of a set differs from process to process
    bits = bits[np.unique(mix(bits.T, seed=6), return_index=True)[1]]
    return np.unique(mix(bits, seed=4), return_inverse=True)[1][index]
