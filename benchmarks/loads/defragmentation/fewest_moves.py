"""The fewest moves for a result, by mixed integer programming: so many nodes emptied, or so many waiting pods placed.

Pods that a budget protects for ever stay; of the others any number may move, in as many steps as budgets require. Pods
of equal requests are interchangeable, and so are waiting pods, which must be equal.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np
from ortools.math_opt.python import mathopt

from benchmarks.loads.defragmentation.pods import Pods


@dataclass(frozen=True, slots=True)
class Fewest:
    """moves: of the best plan found; bound: no plan has fewer."""

    moves: int
    bound: int


def fewest_moves(load: Pods, *, emptied: int = 0, served: int = 0, seconds: float = 60.0) -> Fewest | None:
    """The best plan found within `seconds`; None: there is none."""
    model = mathopt.Model()
    nodes = len(load.allocatable)
    kinds, kind = np.unique(load.requests, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    count, movable = (np.zeros((len(kinds), nodes), np.int64) for _ in range(2))
    np.add.at(count, (kind, load.node), 1)
    np.add.at(movable, (kind[load.evictable], load.node[load.evictable]), 1)
    leave = {
        (k, n): model.add_integer_variable(lb=0, ub=int(movable[k, n]))
        for k, n in zip(*(column.tolist() for column in np.nonzero(movable)), strict=True)
    }
    arrive = {(k, n): model.add_integer_variable(lb=0, ub=int(movable[k].sum())) for k, n in np.ndindex(count.shape)}
    for k in range(len(kinds)):
        left, arrived = (mathopt.fast_sum(x for (of, _), x in xs.items() if of == k) for xs in (leave, arrive))
        model.add_linear_constraint(left == arrived)
    waiting = [model.add_integer_variable(lb=0, ub=served) for _ in range(nodes)]
    model.add_linear_constraint(mathopt.fast_sum(waiting) == served)
    asked = load.waiting[0] if len(load.waiting) else np.zeros(load.allocatable.shape[1], np.int64)
    free = load.free(load.node, load.unserved())
    empty = []
    for n in range(nodes):
        here = [(leave.get((k, n)), arrive[k, n], kinds[k]) for k in range(len(kinds))]
        is_empty = model.add_binary_variable() if emptied and count[:, n].any() else 0.0
        for r in range(free.shape[1]):
            released = mathopt.fast_sum(int(size[r]) * out for out, _, size in here if out is not None)
            used = mathopt.fast_sum(int(size[r]) * arrived for _, arrived, size in here) + int(asked[r]) * waiting[n]
            model.add_linear_constraint(used <= int(free[n, r]) + released - int(load.allocatable[n, r]) * is_empty)
        for k in range(len(kinds)):
            if emptied and count[k, n]:
                model.add_linear_constraint(leave.get((k, n), 0.0) + 0.0 * arrive[k, n] >= int(count[k, n]) * is_empty)
        empty.append(is_empty)
    if emptied:
        model.add_linear_constraint(mathopt.fast_sum(empty) >= emptied)
    model.minimize(mathopt.fast_sum(leave.values()))
    limits = mathopt.SolveParameters(time_limit=datetime.timedelta(seconds=seconds))
    result = mathopt.solve(model, mathopt.SolverType.GSCIP, params=limits)
    if not result.has_primal_feasible_solution():
        return None
    return Fewest(round(result.objective_value()), int(np.ceil(result.dual_bound() - 1e-6)))
