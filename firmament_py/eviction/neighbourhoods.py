"""Improves evictions by integer programs: one for all nodes if these are few, else on a few nodes at a time.

The latter is large neighbourhood search: nodes are chosen at random, mostly such that tasks arrive at. What is on them,
and some of the tasks without a node, is decided anew, as well as possible; all other nodes stay as they are. A result
counts only if it is proved to be best, so that no resident leaves in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.problem import Arrivals, Residents, Subproblem
from firmament_py.eviction.program import EvictionProgram, Solution
from firmament_py.model.arrays import I64, Bools

if TYPE_CHECKING:
    from numpy.random import Generator

_WHOLE, _WHOLE_WORK = 250, 0.3
"""Largest number of variables of a program for all nodes, and deterministic time for each of its objectives."""

_SIZE = 150
"""Nodes are added to a program until it has this many variables. Tuned with the suite `preemption`: with 90, answers on
20 to 1,000 nodes are worse in as much time; with 200, programs take longer and answers are no better."""

_WORK = 0.02
"""Deterministic time for each objective of a program for some nodes."""

_SHRINKING = 0.75
"""If a program is not solved in this time, the next ones are smaller by this factor."""

_IDLE = 0.1
"""The probability that a further node is one that no task arrives at."""

_IDLE_NODES = 500
"""Limit on such nodes that are considered."""

_WAITING = 8
"""Limit on the classes of tasks without a node that a program has."""


def is_small(arrivals: Arrivals, residents: Residents) -> bool:
    """Whether one program for all nodes may be solved in time."""
    return len(residents.node) <= _WHOLE and int(_sizes(arrivals, residents).sum()) <= _WHOLE


def solved(problem: Subproblem, start: Solution, effort: float) -> Solution | None:
    """The best solution in a small problem; None: not proved with so much effort."""
    return EvictionProgram(problem).improved(start, _WHOLE_WORK * effort)


def candidate_nodes(arrivals: Arrivals, busy: I64, rng: Generator) -> I64:
    """Nodes to improve evictions on, ascending: the `busy` ones (N,), that tasks arrive at, and some others."""
    idle: Bools = np.any(arrivals.suitable[arrivals.count > 0], axis=0)
    idle[busy] = False
    return np.union1d(busy, rng.permutation(np.flatnonzero(idle))[:_IDLE_NODES])


def improved(problem: Subproblem, start: Solution, steps: int, rng: Generator) -> Solution:
    """A solution no worse than the start, by so many programs; `start` itself if none finds a better one."""
    solution = start
    if not len(problem.free):
        return start
    sizes, limit = _sizes(problem.arrivals, problem.residents), float(_SIZE)
    for _ in range(steps):
        found = _step(problem, solution, _nodes(sizes, solution, limit, rng), rng)
        if found is None:
            limit *= _SHRINKING
        else:
            solution = found
    return solution


def _sizes(arrivals: Arrivals, residents: Residents) -> I64:
    """(N,) how many variables of a program are due to each node, roughly."""
    classes = arrivals.suitable[arrivals.count > 0].sum(axis=0)
    sizes: I64 = np.bincount(residents.node, minlength=len(classes)) + classes
    return sizes


def _nodes(sizes: I64, solution: Solution, limit: float, rng: Generator) -> I64:
    """Some nodes, ascending, two at least if there are as many."""
    busy = solution.placed.any(axis=0)
    weight = np.where(busy, (1 - _IDLE) / max(busy.sum(), 1), _IDLE / max((~busy).sum(), 1))
    nodes = rng.choice(len(weight), min(len(weight), _SIZE), replace=False, p=weight / weight.sum())
    return np.sort(nodes[: max(int(np.searchsorted(np.cumsum(sizes[nodes]), limit)), 2)])


def _step(problem: Subproblem, solution: Solution, nodes: I64, rng: Generator) -> Solution | None:
    """Decides anew what is on nodes (N,), ascending; None: what is best there is not proved in time."""
    arrivals, residents = problem.arrivals, problem.residents
    groups, there = residents.groups_on(nodes), solution.placed[:, nodes]
    waiting = arrivals.count - solution.placed.sum(axis=1)
    classes = np.flatnonzero((waiting > 0) & arrivals.suitable[:, nodes].any(axis=1))
    classes = rng.permutation(classes)[:_WAITING]
    count = there.sum(axis=1)
    count[classes] += waiting[classes]
    within = solution.evicted - solution.violating
    within[groups] = 0
    allowed = problem.allowed - within @ residents.budgets[residents.kind]
    before = Solution(there, solution.evicted[groups], solution.violating[groups])
    found = EvictionProgram(problem.on(nodes, count, allowed)).improved(before, _WORK)
    if found is None:
        return None
    if found is before:
        return solution
    placed, evicted, violating = (each.copy() for each in (solution.placed, solution.evicted, solution.violating))
    placed[:, nodes], evicted[groups], violating[groups] = found.placed, found.evicted, found.violating
    return Solution(placed, evicted, violating)
