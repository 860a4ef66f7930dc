"""What is packed, and a packing of it."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools


@dataclass(frozen=True, slots=True)
class Problem:
    """C classes of tasks, N nodes, R resources.

    requests (C, R) >= 0 of one task; free (N, R) >= 0; suitable (C, N): where a class may go; slots (C, N): how
    many of them a node can take if it takes no others; count (C,): tasks of each class; value (C,) > 0 of placing one;
    level (C,): 0 for the most important. No number of tasks of one level outweighs a task of a level before it.
    """

    requests: I64
    free: I64
    suitable: Bools
    slots: I64
    count: I64
    value: F64
    level: I64

    @property
    def levels(self) -> int:
        """Number of levels, L."""
        return int(self.level.max(initial=-1)) + 1

    @property
    def weight(self) -> F64:
        """(R,) what an amount of a resource is worth: share of the largest node, less if plentiful."""
        total = np.maximum(self.free.sum(axis=0), 1)
        scarcity = np.minimum((self.count[:, None] * self.requests).sum(axis=0) / total, 1.0)
        weight: F64 = scarcity / np.maximum(self.free.max(axis=0, initial=1), 1)
        return weight


@dataclass(slots=True)
class Packing:
    """placed (C, N): how many tasks of each class are on each node; left (C,): how many are on none; free (N, R)."""

    placed: I64
    left: I64
    free: I64

    @classmethod
    def of(cls, problem: Problem, placed: I64) -> "Packing":
        """The packing with `placed` (C, N), which must fit."""
        there, node = np.nonzero(placed)
        free = problem.free.copy()
        np.subtract.at(free, node, placed[there, node][:, None] * problem.requests[there])
        return cls(placed, problem.count - placed.sum(axis=1), free)

    def copy(self) -> "Packing":
        return Packing(self.placed.copy(), self.left.copy(), self.free.copy())


def values(problem: Problem, packing: Packing) -> F64:
    """(L,) the value of all that is placed, by level."""
    placed = (problem.count - packing.left) * problem.value
    by_level: F64 = np.bincount(problem.level, placed, minlength=problem.levels).astype(np.float64)
    return by_level


def better(problem: Problem, one: Packing, other: Packing) -> Packing:
    """The one whose values are higher at the first level at which they differ; `one` at a tie."""
    difference = values(problem, other) - values(problem, one)
    first = np.flatnonzero(np.abs(difference) > EPSILON)[:1]
    return other if len(first) and difference[first[0]] > 0 else one


EPSILON = 1e-6
"""Values that differ by less are equal."""
