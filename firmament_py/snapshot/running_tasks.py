"""The running tasks as arrays, and their counts by node."""

from collections.abc import Iterable

import numpy as np

from firmament_py.model.arrays import I32, I64, Bools
from firmament_py.model.lifecycle import TaskState
from firmament_py.state.cluster import ClusterState


class RunningTasks:
    """The P assumed and bound tasks on `nodes` (N,), rows of the node table. only: rows of those that count, ascending,
    None: all. also: further task rows (K,), and the positions in `nodes` (K,) where they count as running."""

    def __init__(
        self, state: ClusterState, nodes: I64, only: I64 | None = None, also: tuple[I64, I64] | None = None
    ) -> None:
        tasks = state.tasks
        running = only
        if running is None:
            running = np.flatnonzero((tasks.state == TaskState.ASSUMED) | (tasks.state == TaskState.BOUND))
        position = np.full(state.nodes.capacity, -1, np.int64)
        position[nodes] = np.arange(len(nodes))
        where = position[tasks.node[running]]
        running, where = running[where >= 0], where[where >= 0]
        if also is not None:
            running, where = np.concatenate([running, also[0]]), np.concatenate([where, also[1]])
        self._nodes = len(nodes)
        self.rows: I64 = running  # (P,) task rows
        self.where: I64 = where  # (P,) positions in `nodes`
        self.cls: I64 = tasks.cls[running]  # (P,) class rows
        self.label_set: I64 = tasks.label_set[running]  # (P,) label set rows
        self.leaving: Bools = tasks.leaving[running]  # (P,)
        self.classes: I64 = np.flatnonzero(np.bincount(self.cls))  # class rows, ascending

    def classes_that(self, marked: Bools) -> list[int]:
        """Those of `classes` for which a column of the class table is true."""
        rows: list[int] = self.classes[marked[self.classes]].tolist()
        return rows

    def by_node(self, hits: Iterable[Bools]) -> I32:
        """(H, N) number of tasks on each node for which each of `hits`, (P,) each, is true; `hits` can be lazy."""
        counts = [np.bincount(self.where[hit], minlength=self._nodes).astype(np.int32) for hit in hits]
        return np.array(counts, np.int32).reshape(len(counts), self._nodes)

    def kinds(self, of_class: dict[int, int]) -> I64:
        """(P,) the kind of each task; of_class: class row -> kind; -1: none."""
        kind = np.full(int(self.classes.max(initial=-1)) + 1, -1, np.int64)
        kind[list(of_class)] = list(of_class.values())
        return kind[self.cls]

    def by_node_and(self, of_task: I64, kinds: int) -> I64:
        """(N, kinds) number of tasks of each kind on each node; of_task: (P,) their kinds, -1: not counted."""
        counted = of_task >= 0
        pairs = self.where[counted] * kinds + of_task[counted]
        return np.bincount(pairs, minlength=self._nodes * kinds).astype(np.int64).reshape(self._nodes, kinds)
