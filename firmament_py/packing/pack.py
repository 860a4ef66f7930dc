"""Packs tasks on nodes, and proves how far from the best a packing can be.

1. The relaxation gives a bound. If the given packing reaches it, that is a proof that it is best.
2. Otherwise ruin and recreate improves it for a while. If it still falls short, a packing by patterns is improved
   alike, for longer, or the rounded relaxation if that is better; then, if it is nearly as good, the given packing once
   more.
3. The relaxation is tightened and gives the bound of what a packing could win at most.
"""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.packing.equal_nodes import equal_nodes, on_nodes, repacked_by_patterns
from firmament_py.packing.problem import EPSILON, Packing, Problem, better, values, values_of
from firmament_py.packing.relaxation import Relaxation
from firmament_py.packing.rounding import fill, rounded
from firmament_py.packing.ruin_recreate import ruin_and_recreate

EFFORT, LEAST_EFFORT, GREATEST_EFFORT = 1_600, 2_000_000, 60_000_000
"""How often ruin and recreate tries a task on a node: for each task of the problem, at least, and at most, which bounds
a round. A million tries take some 15 milliseconds."""

_LEVEL_STEP = 16.0
"""In the objective of the relaxation that is rounded, a task weighs this many times one of the next level."""

_BOUNDED_LEVELS = 4
"""Of so many levels with tasks left, the most important ones, a bound is calculated: each needs a solve."""

_SMALL_GAP = 1e-3
"""If its bound is no further away, the given packing gets the rest of the effort, and no other is made."""

_FIRST = 0.25
"""Share of the effort that is spent before patterns are sought, and after: where little is missing, that is enough."""

_RIVAL = 3e-3
"""The given packing is improved further if it is worse than the rounded one by no more than this."""


@dataclass(frozen=True, slots=True)
class Packed:
    """gap (L,): by what value a packing could exceed this one at most at each level, given the same at all before;
    infinite where no bound was found."""

    packing: Packing
    gap: F64


def pack(problem: Problem, start: Packing, times: float = 1.0) -> Packed:
    """The best packing found, `start` or better. times: multiplies the effort; at 0 nothing is tried."""
    relaxation = Relaxation(problem)
    bounds = _Bounds(problem, relaxation)
    best = start.copy()
    fill(problem, best)
    if times > 0:
        effort = int(times * min(max(EFFORT * int(problem.count.sum()), LEAST_EFFORT), GREATEST_EFFORT))
        best = _improved(problem, relaxation, bounds, best, effort)
    return Packed(best, bounds.gap(best.left))


def greatest_effort(times: float) -> int:
    """Of the largest problems."""
    return int(times * GREATEST_EFFORT)


def gap_of_groups(problem: Problem, number: I64, left: I64) -> F64:
    """(L,) as in Packed, where each node of the problem stands for number (G,) equal ones, if tasks left (C,) are on
    none."""
    free, slots = problem.free * number[:, None], np.minimum(problem.slots * number, problem.count[:, None])
    problem = replace(problem, free=free, slots=slots)
    return _Bounds(problem, Relaxation(problem)).gap(left)


def _improved(problem: Problem, relaxation: Relaxation, bounds: "_Bounds", best: Packing, effort: int) -> Packing:
    target = bounds.given(best.left)
    if (target <= values(problem, best) + EPSILON).all():
        return best
    ruin_and_recreate(problem, best, int(_FIRST * effort), target)
    if _close(values(problem, best), target):
        ruin_and_recreate(problem, best, int((1 - _FIRST) * effort), target, seed=1)
        return best
    other = _by_patterns(problem, best, effort)
    if other is not None and _close(values(problem, other), target):
        ruin_and_recreate(problem, other, int(_FIRST * effort), target)
        return other
    other = _rounded(problem, relaxation, other)
    if other is None:
        ruin_and_recreate(problem, best, effort, target, seed=1)
        return best
    target = bounds.given(better(problem, best, other).left)
    ruin_and_recreate(problem, other, effort, target)
    reached = values(problem, other)
    if not _close(reached, target) and (values(problem, best) >= (1 - _RIVAL) * reached).all():
        ruin_and_recreate(problem, best, effort, target, seed=1)
    return better(problem, best, other)


def _by_patterns(problem: Problem, start: Packing, effort: int) -> Packing | None:
    """`start` with most nodes packed by patterns, if that is better; None: it is not, or too few nodes are equal."""
    group = equal_nodes(problem.free, problem.slots > 0, np.arange(len(problem.count)))
    _, first = np.unique(group, return_index=True)
    found = repacked_by_patterns(on_nodes(problem, first), group, start.entries(), effort)
    return None if found is None else Packing.of(problem, *found)


def _rounded(problem: Problem, relaxation: Relaxation, other: Packing | None) -> Packing | None:
    """The rounded relaxation, which is tightened, or a better one; None: there is none."""
    weight = _LEVEL_STEP ** -np.minimum(problem.level.astype(np.float64), 6.0)
    relaxed = relaxation.solve(problem.value * weight)
    if relaxed is None:
        return other
    if relaxation.tighten(relaxed):
        relaxed = relaxation.solve(problem.value * weight) or relaxed
    found = rounded(problem, relaxation.shares(relaxed))
    return found if other is None else better(problem, other, found)


def _close(reached: F64, target: F64) -> bool:
    return bool((target - reached <= _SMALL_GAP * target + EPSILON).all())


class _Bounds:
    """Bounds of the values of levels, from the relaxation as it is at the time."""

    def __init__(self, problem: Problem, relaxation: Relaxation) -> None:
        self._problem = problem
        self._relaxation = relaxation

    def given(self, left: I64) -> F64:
        """(L,) the most that each level can have if all before it have what they have where tasks left (C,) wait."""
        problem = self._problem
        reached = values_of(problem, left)
        bound = np.where(np.bincount(problem.level, left, minlength=problem.levels) > 0, np.inf, reached)
        for level in np.unique(problem.level[left > 0])[:_BOUNDED_LEVELS].tolist():
            floor = np.where(np.arange(problem.levels) < level, reached, 0.0)
            relaxed = self._relaxation.solve(np.where(problem.level == level, problem.value, 0.0), floor)
            bound[level] = np.inf if relaxed is None else max(self._rounded(level, relaxed.bound), reached[level])
        return bound

    def gap(self, left: I64) -> F64:
        gap: F64 = self.given(left) - values_of(self._problem, left)
        return gap

    def _rounded(self, level: int, bound: float) -> float:
        """The bound, rounded down to what whole tasks can reach if all of the level have the same value."""
        value = self._problem.value[self._problem.level == level]
        if (value == value[0]).all():
            return float(np.floor(bound / value[0] + EPSILON) * value[0])
        return bound
