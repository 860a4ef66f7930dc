"""Counts of tasks by node and by the selectors that match them, updated while a round places tasks."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from firmament_py.model.arrays import I32, I64, Bools

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

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        kind, entry = np.nonzero(self._of_class[:, cls])
        np.add.at(self.by_node, (kind, node[entry]), count[entry])


def of_classes(matching: list[Bools], label_sets: I64) -> Bools:
    """(H, C) the values of H columns of the label set table, (capacity,) each, at the label sets (C,) of classes."""
    return np.array([m[label_sets] for m in matching], np.bool_).reshape(len(matching), len(label_sets))


def membership(numbers: list[list[int]], kinds: int) -> Bools:
    """(kinds, K) whether each of K lists contains each number."""
    marked = np.zeros((kinds, len(numbers)), np.bool_)
    for k, of_one in enumerate(numbers):
        marked[of_one, k] = True
    return marked
