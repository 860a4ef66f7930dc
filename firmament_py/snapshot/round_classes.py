"""The classes of a round: those of the state, divided where selectors of tasks distinguish the labels of others."""

from functools import lru_cache

import numpy as np

from firmament_py.model.arrays import I64, U64, group_starts
from firmament_py.model.constraints import PeerSelector
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
    begins = np.zeros(len(cls), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    return rows[order], begins.nonzero()[0]


def _signatures(state: ClusterState, classes: I64, label_sets: I64) -> I64:
    """(K,) numbers for tasks with these class and label set rows (K,), equal if no selector distinguishes the tasks.

    Only selectors of waiting classes, and of anti-affinity and preferences of running tasks, matter.
    """
    if not state.classes.has_intertask_terms:
        return np.zeros(len(classes), np.int64)
    running = state.tasks.on_nodes
    selectors: set[PeerSelector] = set()
    for row in set(classes.tolist()):
        definition = state.classes.definition(row)
        demand, preferences = definition.peers, definition.preferences
        selectors.update(term.selector for term in (*demand.affinity, *demand.anti_affinity))
        selectors.update(term.selector for _, term in preferences.peers)
        selectors.update(spread.selector for spread in (*demand.spread, *preferences.spread))
    of_running = state.tasks.cls[running]
    for row in set(of_running[(state.classes.repels | state.classes.wishes)[of_running]].tolist()):
        selectors.update(term.selector for term in state.classes.definition(row).peers.anti_affinity)
        selectors.update(term.selector for _, term in carried(state.classes.definition(row)))
    if not selectors:
        return np.zeros(len(classes), np.int64)
    matched = [rows for s in selectors if len(rows := state.label_sets.rows_matching(s))]
    if not matched:
        return np.zeros(len(classes), np.int64)
    # one weight for all selectors that match the same rows; not by their order, which differs from process to process
    lengths = np.array([len(rows) for rows in matched])
    number = _numbers(state.label_sets.capacity)
    weight, first = np.unique(
        np.add.reduceat(number[np.concatenate(matched)], group_starts(lengths)), return_index=True
    )
    signature = np.zeros(state.label_sets.capacity, np.uint64)
    rows = np.concatenate([matched[s] for s in first.tolist()])
    np.add.at(signature, rows, np.repeat(_scattered(weight), lengths[first]))
    return np.unique(signature[label_sets], return_inverse=True)[1]


@lru_cache(maxsize=2)
def _numbers(rows: int) -> U64:
    """(rows,) random numbers, always the same."""
    return np.random.default_rng(6).integers(0, 2**63, rows, dtype=np.uint64)


def _scattered(values: U64) -> U64:
    """(K,) numbers that look random: sums of different ones of them are different, unlike sums of `values` (K,)."""
    mixed: U64 = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
