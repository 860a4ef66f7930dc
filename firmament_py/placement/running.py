"""Running tasks as a round sees them: as if they arrived now."""

from typing import Protocol

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.repacking import may_move
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState


class Snapshots(Protocol):
    """The state now as if running task rows (K,) arrived, those `gone` (K',) of them not being on their nodes any more;
    with the locations of their data or without."""

    def __call__(self, rows: I64, gone: I64, *, data: bool) -> Snapshot: ...


def examples_of(state: ClusterState, rows: I64) -> tuple[I64, I64]:
    """Rows (K,) of one task of each class, and of each label set if labels can matter; and (P,) which of these is like
    each of task rows (P,)."""
    tasks, classes = state.tasks, state.classes
    if classes.has_intertask_terms:
        kinds = tasks.cls[rows] * state.label_sets.capacity + tasks.label_set[rows]
        _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
        return rows[first], kind.reshape(-1)
    example = np.full(classes.capacity, -1, np.int64)
    example[tasks.cls[rows]] = rows
    number = np.cumsum(example >= 0) - 1
    return example[example >= 0], number[tasks.cls[rows]]


def positions_of(snapshot: Snapshot, capacity: int) -> I64:
    """(capacity + 1,) the position in the snapshot of each row of the node table, -1: none."""
    position = np.full(capacity + 1, -1, np.int64)
    position[snapshot.nodes] = np.arange(len(snapshot.nodes))
    return position


def independent_classes(snapshot: Snapshot) -> Bools:
    """(C,) classes whose tasks neither have nor count for constraints or preferences between tasks."""
    independent = may_move(snapshot)
    independent &= [not snapshot.preferences.depends(c) for c in range(len(independent))]
    return independent
