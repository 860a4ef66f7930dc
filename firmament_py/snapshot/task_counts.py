"""Counts of tasks by node and by the selectors that match them, updated while a round places tasks."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from firmament_py.model.arrays import I32, I64, NO_ROWS, Bools, group_starts, run_positions, stable_order

T = TypeVar("T")


class Numbering(Generic[T]):
    """Values numbered from 0 in the order in which they are first seen."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._number: dict[T, int] = {}
        for value in values:
            self.number(value)

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> Iterator[T]:
        return iter(self._number)

    def number(self, value: T) -> int:
        """The number of a value; the next one if it has none."""
        return self._number.setdefault(value, len(self._number))


class TaskCounts:
    """Number of tasks of each of H kinds on each node; a task can be of several kinds.

    by_node: (H, N) the tasks that run at the start; there can be a kind for each of thousands of classes.
    of_class: (H, C) whether the tasks of each class are of each kind.
    """

    def __init__(self, by_node: I32, of_class: Bools) -> None:
        self.by_node = by_node
        self._of_class = of_class

    def __getitem__(self, kind: int) -> I64:
        """(N,) the counts of one kind."""
        counts: I64 = self.by_node[kind].astype(np.int64)
        return counts

    def copy(self) -> "TaskCounts":
        return TaskCounts(self.by_node.copy(), self._of_class)

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if not len(self.by_node):  # as in most rounds
            return
        kind, entry = np.nonzero(self._of_class[:, cls])
        np.add.at(self.by_node, (kind, node[entry]), count[entry])


class SparseCounts:
    """Number of tasks of each of H kinds on each of N nodes, where there are any: kinds of thousands of classes, each
    on a few nodes.

    kind, node (E,): an entry for each task and kind of it. of_class: kinds (K,) and classes (K,) < `classes`, a pair
    for each class whose tasks are of a kind.
    """

    def __init__(self, kind: I64, node: I64, nodes: int, of_class: tuple[I64, I64], classes: int) -> None:
        self._nodes = nodes
        self._key, self._count = np.unique(kind * nodes + node, return_counts=True) if len(kind) else (NO_ROWS, NO_ROWS)
        self._added: list[tuple[I64, I64]] = []  # keys and counts
        by_class = np.argsort(of_class[1], kind="stable")
        self._kinds = of_class[0][by_class]  # class after class
        self._kinds_of_class: I64 = np.bincount(of_class[1], minlength=classes)
        self._first_kind = group_starts(self._kinds_of_class)

    def __getitem__(self, kind: int) -> I64:
        """(N,) the counts of one kind."""
        _, node, count = self.entries(np.array([kind]))
        counts = np.zeros(self._nodes, np.int64)
        counts[node] = count
        return counts

    def entries(self, kinds: I64) -> tuple[I64, I64, I64]:
        """Positions in `kinds` (K,), ascending, nodes and counts other than 0: (E,) each."""
        self._take_in()
        first = np.searchsorted(self._key, kinds * self._nodes)
        lengths = np.searchsorted(self._key, (kinds + 1) * self._nodes) - first
        at = np.repeat(first, lengths) + run_positions(lengths)
        return np.repeat(np.arange(len(kinds)), lengths), self._key[at] % self._nodes, self._count[at]

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if not len(self._kinds):  # as in most rounds
            return
        kinds = self._kinds_of_class[cls]
        entry = np.repeat(np.arange(len(cls)), kinds)
        if len(entry):
            kind = self._kinds[self._first_kind[cls[entry]] + run_positions(kinds)]
            self._added.append((kind * self._nodes + node[entry], count[entry]))

    def _take_in(self) -> None:
        """Merges what was added into the entries."""
        if not self._added:
            return
        keys, counts = zip(*self._added, strict=True)
        self._added = []
        key, count = np.concatenate([self._key, *keys]), np.concatenate([self._count, *counts])
        order = np.argsort(key, kind="stable")  # all but a few are sorted already
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        count = np.add.reduceat(count[order], starts) if len(starts) else count
        self._key, self._count = key[starts][count != 0], count[count != 0]


def incidence(rows: list[I64], values: I64, capacity: int) -> tuple[I64, I64]:
    """Kinds (E,), ascending, and positions (E,) in `values` (P,), 0 <= value < capacity: of each kind the positions
    whose values are among rows[kind]."""
    if not rows:  # as in most rounds
        return NO_ROWS, NO_ROWS
    order, row = stable_order(values, capacity), np.concatenate(rows)
    first, end = np.searchsorted(values[order], row), np.searchsorted(values[order], row, side="right")
    kind = np.repeat(np.arange(len(rows)), [len(of_kind) for of_kind in rows])
    return np.repeat(kind, end - first), order[np.repeat(first, end - first) + run_positions(end - first)]


def of_classes(matching: list[Bools], label_sets: I64) -> Bools:
    """(H, C) the values of H columns of the label set table, (capacity,) each, at the label sets (C,) of classes."""
    return np.array([m[label_sets] for m in matching], np.bool_).reshape(len(matching), len(label_sets))
