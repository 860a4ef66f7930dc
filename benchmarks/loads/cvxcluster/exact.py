"""The best placement of an instance whose hosts take few requests each, by patterns and CP-SAT.

A pattern is what one host can take; hosts of a type have the same ones, and those suffice to which nothing can be
added (Gilmore and Gomory, 1961). Kinds that differ in priority alone are one shape. Services over racks are no
property of one host: there must be none.
"""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from benchmarks.loads.cvxcluster.catalogue import HIGH, HOST, LOW
from benchmarks.loads.cvxcluster.instance import Instance
from firmament_py.model.arrays import I64


def most_placed(instance: Instance, seconds: float) -> tuple[list[int], bool]:
    """The most requests of high priority, then of low, that are found in so many seconds for each; and whether it is
    proved that no more can be placed."""
    of_shape = _shapes(instance)
    model = cp_model.CpModel()
    supply: list[list[cp_model.LinearExprT]] = [[] for _ in of_shape]
    for k, hosts in enumerate(np.bincount(instance.type_of, minlength=len(instance.offered)).tolist()):
        found = patterns(instance, k, [members[0] for members in of_shape]) if hosts else []
        times = [model.new_int_var(0, hosts, "") for _ in found]
        model.add(sum(times) <= hosts)
        for pattern, x in zip(found, times, strict=True):
            for s, number in enumerate(pattern):
                if number:
                    supply[s].append(number * x)
    placed = {c: model.new_int_var(0, int(instance.count[c]), "") for members in of_shape for c in members}
    for members, of_patterns in zip(of_shape, supply, strict=True):
        model.add(sum(placed[c] for c in members) <= sum(of_patterns))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 4
    best: list[int] = []
    proved = True
    for level in (HIGH, LOW):
        chosen = sum(x for c, x in placed.items() if instance.priority[c] == level)
        model.maximize(chosen)
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return [*best, 0, 0][:2], False
        best.append(round(solver.objective_value))
        proved &= status == cp_model.OPTIMAL
        model.add(chosen >= best[-1])
    return best, proved


def _shapes(instance: Instance) -> list[list[int]]:
    """The kinds of each shape."""
    found: dict[object, list[int]] = {}
    for c, kind in enumerate(instance.kinds):
        if kind.domain not in ("", HOST):
            raise ValueError(f"{kind.name} has the domain {kind.domain!r}; patterns can have the domain {HOST!r} alone")
        found.setdefault((kind.amounts, kind.gpu, kind.name if kind.domain else ""), []).append(c)
    return list(found.values())


def patterns(instance: Instance, k: int, kinds: list[int]) -> list[tuple[int, ...]]:
    """What a host of type k can take of `kinds` (S,), one row of S numbers each, to which none can be added."""
    free, limits, requests = instance.offered[k], [], instance.requests[kinds]
    for c in kinds:
        needs = instance.requests[c] > 0
        fitting = int((free[needs] // instance.requests[c, needs]).min()) if instance.suitable[c, k] else 0
        limits.append(min(fitting, 1) if instance.kinds[c].domain else fitting)
    found: list[tuple[int, ...]] = []
    _extend(found, [], free, requests, limits)
    return found


def _extend(found: list[tuple[int, ...]], begun: list[int], left: I64, requests: I64, limits: list[int]) -> None:
    s = len(begun)
    if s == len(limits):
        fits = (requests <= left).all(axis=1) & (np.array(begun) < limits)
        if not fits.any():
            found.append(tuple(begun))
        return
    needs = requests[s] > 0
    fitting = min(int((left[needs] // requests[s, needs]).min()), limits[s])
    for number in range(fitting, -1, -1):
        _extend(found, [*begun, number], left - number * requests[s], requests, limits)
