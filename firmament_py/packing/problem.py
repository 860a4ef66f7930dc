"""What is packed, and a packing of it."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, add_rows, run_positions


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
    """What is placed, node by node, because most classes are on few nodes: kinds (N,), the number of classes on each
    node, and these, cls (N, W), with how many tasks of each are there, number (N, W). left (C,): how many tasks of each
    class are on no node; free (N, R)."""

    kinds: I64
    cls: I64
    number: I64
    left: I64
    free: I64

    @classmethod
    def empty(cls, problem: Problem) -> "Packing":
        nodes = len(problem.free)
        least = problem.requests.min(axis=0, initial=np.iinfo(np.int64).max)
        tasks = problem.free.max(axis=0, initial=0)[least > 0] // least[least > 0]  # no node can hold more
        lists = np.zeros((nodes, min(len(problem.count), int(tasks.min(initial=len(problem.count))))), np.int64)
        kinds = np.zeros(nodes, np.int64)
        return cls(kinds, lists, lists.copy(), problem.count.copy(), problem.free.copy())

    @classmethod
    def of(cls, problem: Problem, placed: I64, node: I64, number: I64) -> "Packing":
        """The packing with `number` > 0 tasks of classes `placed` on nodes, (P,) each, every pair once; they must
        fit."""
        packing = cls.empty(problem)
        order = np.argsort(node, kind="stable")
        placed, node, number = placed[order], node[order], number[order]
        packing.kinds += np.bincount(node, minlength=len(packing.kinds))
        at = (node, run_positions(packing.kinds))
        packing.cls[at], packing.number[at] = placed, number
        np.subtract.at(packing.left, placed, number)
        add_rows(packing.free, node, -number[:, None] * problem.requests[placed])
        return packing

    def entries(self) -> tuple[I64, I64, I64]:
        """(P,) class, node and number of tasks of each class on each node where there are any, by class and node."""
        used = np.arange(self.cls.shape[1]) < self.kinds[:, None]
        cls, node, number = self.cls[used], np.repeat(np.arange(len(self.kinds)), self.kinds), self.number[used]
        order = np.lexsort((node, cls))
        return cls[order], node[order], number[order]

    def copy(self) -> "Packing":
        return Packing(self.kinds.copy(), self.cls.copy(), self.number.copy(), self.left.copy(), self.free.copy())


def values(problem: Problem, packing: Packing) -> F64:
    """(L,) the value of all that is placed, by level."""
    return values_of(problem, packing.left)


def values_of(problem: Problem, left: I64) -> F64:
    """(L,) the value of all but the tasks left (C,), by level."""
    placed = (problem.count - left) * problem.value
    by_level: F64 = np.bincount(problem.level, placed, minlength=problem.levels).astype(np.float64)
    return by_level


def better(problem: Problem, one: Packing, other: Packing) -> Packing:
    """The one whose values are higher at the first level at which they differ; `one` at a tie."""
    return other if higher(values(problem, other), values(problem, one)) else one


def higher(values: F64, others: F64) -> bool:
    """Whether values (L,) are higher than others (L,) at the first level at which they differ."""
    difference = values - others
    first = np.flatnonzero(np.abs(difference) > EPSILON)[:1]
    return bool((difference[first] > 0).any())


EPSILON = 1e-6
"""Values that differ by less are equal."""
