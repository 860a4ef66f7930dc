"""The tasks that are placed, as arrays, and counting of them by node and by domain."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.lifecycle import TaskState
from firmament_py.state.cluster import ClusterState

T = TypeVar("T")


class RunningTasks:
    """The assumed and bound tasks on `nodes` (N,), rows of the node table; P tasks. only: task rows, ascending, of such
    that count, None: all."""

    def __init__(self, state: ClusterState, nodes: I64, only: I64 | None = None) -> None:
        tasks = state.tasks
        placed = only
        if placed is None:
            placed = np.flatnonzero((tasks.state == TaskState.ASSUMED) | (tasks.state == TaskState.BOUND))
        position = np.full(state.nodes.capacity, -1, np.int64)
        position[nodes] = np.arange(len(nodes))
        where = position[tasks.node[placed]]
        placed = placed[where >= 0]
        self._nodes = len(nodes)
        self.rows: I64 = placed  # (P,) task rows
        self.where: I64 = where[where >= 0]  # (P,) positions in `nodes`
        self.cls: I64 = tasks.cls[placed]  # (P,) class rows
        self.label_set: I64 = tasks.label_set[placed]  # (P,) label set rows
        self.leaving: Bools = tasks.leaving[placed]  # (P,)
        self.classes: I64 = np.flatnonzero(np.bincount(self.cls))  # class rows, ascending

    def classes_that(self, do: Bools) -> list[int]:
        """The class rows among `classes` that a column `do` of the class table marks."""
        rows: list[int] = self.classes[do[self.classes]].tolist()
        return rows

    def by_node(self, hits: Iterable[Bools]) -> I64:
        """(H, N): how many of the tasks that each of H `hits` (P,) marks are on each node. Takes one at a time."""
        counts = [np.bincount(self.where[hit], minlength=self._nodes) for hit in hits]
        return np.array(counts, np.int64).reshape(len(counts), self._nodes)

    def kinds(self, of_class: dict[int, int]) -> I64:
        """(P,): the kind of each task, where of_class names that of class rows; -1: none."""
        kind = np.full(int(self.classes.max(initial=-1)) + 1, -1, np.int64)
        kind[list(of_class)] = list(of_class.values())
        return kind[self.cls]

    def by_node_and(self, of_task: I64, kinds: int) -> I64:
        """(N, kinds): how many tasks of each kind (P,), 0 .. kinds - 1 or not counted, are on each node."""
        counted = of_task >= 0
        pairs = self.where[counted] * kinds + of_task[counted]
        return np.bincount(pairs, minlength=self._nodes * kinds).astype(np.int64).reshape(self._nodes, kinds)


class Numbering(Generic[T]):
    """Values numbered in the order they are first seen."""

    def __init__(self) -> None:
        self._number: dict[T, int] = {}
        self._values: list[T] = []

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def number(self, value: T) -> int:
        found = self._number.get(value)
        if found is None:
            found = self._number[value] = len(self._values)
            self._values.append(value)
        return found


def per_domain(domain: I64, counts: I64) -> I64:
    """(D + 1,) sums of counts (N,) by domain (N,); the last is 0, for nodes without the label (domain -1)."""
    inside = domain >= 0
    size = int(domain.max(initial=-1)) + 1
    return np.append(np.bincount(domain[inside], counts[inside], minlength=size).astype(np.int64), 0)


def of_classes(by: list[Bools], label_sets: I64) -> Bools:
    """(len(by), C): what each of `by` (label set rows,) says of the classes' label sets (C,)."""
    return np.array([m[label_sets] for m in by], np.bool_).reshape(len(by), len(label_sets))
