"""Linear relaxations of an instance: requests are divisible, and the hosts of a group are one.

A group is all hosts of a type, or those of a type in one rack. Columns are requests of a kind on a group that suits it.
Rows: the requests of a kind, or if these are fewer the domains that each can hold one of it; what the hosts of a group
offer together of each resource; optionally a floor for what is placed of high priority. The number of hosts or racks of
the group is an upper bound of a column whose kind has a domain. Every placement meets all of these.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.pdlp import solvers_pb2

from benchmarks.loads.cvxcluster.catalogue import HIGH, HOST
from benchmarks.loads.cvxcluster.instance import Instance
from firmament_py.model.arrays import F64, I64
from firmament_py.packing.linear_program import LinearProgram

TOLERANCE = 1e-6
"""Of PDLP, relative and absolute."""

SOLVERS: Mapping[str, mathopt.SolverType] = {"glop": mathopt.SolverType.GLOP, "pdlp": mathopt.SolverType.PDLP}


@dataclass(frozen=True, slots=True)
class Solved:
    """objective: of the best solution, NaN if there is none. seconds: of the solver, by its own clock."""

    objective: float
    seconds: float
    optimal: bool


def relaxation(instance: Instance, level: int, floor: int = 0, *, by_rack: bool = False) -> LinearProgram:
    """The most requests of priority `level` that can be placed if at least `floor` of high priority are."""
    types = len(instance.offered)
    group = instance.type_of + (types * instance.rack_of if by_rack else 0)
    number, of_host, hosts = np.unique(group, return_inverse=True, return_counts=True)
    type_of = number % types  # (G,)
    cls, at = np.nonzero(instance.suitable[:, type_of])
    limit_of_group = instance.offered[type_of] * hosts[:, None]
    racks = np.bincount(np.unique(np.stack([of_host, instance.rack_of]), axis=1)[0], minlength=len(number))
    upper = instance.count[cls].astype(np.float64)
    limit = instance.count.astype(np.float64)
    for c, kind in enumerate(instance.kinds):
        if kind.domain:
            upper[cls == c] = np.minimum(upper, (hosts if kind.domain == HOST else racks)[at])[cls == c]
            limit[c] = min(limit[c], instance.domains(c))
    rows: list[tuple[I64, I64, F64]] = [(cls, np.arange(len(cls)), np.ones(len(cls)))]
    limits = [limit]
    for r in np.flatnonzero(instance.requests.any(axis=0)).tolist():
        columns = np.flatnonzero(instance.requests[cls, r])
        unit = np.maximum(instance.offered[type_of[at[columns]], r], 1)  # amounts are shares of a host
        rows.append((len(limit) + r * len(number) + at[columns], columns, instance.requests[cls[columns], r] / unit))
        limits.append(np.where(limit_of_group[:, r] > 0, hosts, 0).astype(np.float64))
    if floor:
        columns = np.flatnonzero(instance.priority[cls] == HIGH)
        rows.append((np.full(len(columns), sum(map(len, limits))), columns, np.full(len(columns), -1.0)))
        limits.append(np.array([-float(floor)]))
    row, column, entry = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    objective = (instance.priority[cls] == level).astype(np.float64)
    return LinearProgram(objective, upper, np.concatenate(limits), row, column, entry)


def solve(program: LinearProgram, solver: str, limit_s: float) -> Solved:
    """What one of SOLVERS makes of a program within `limit_s` seconds."""
    parameters = mathopt.SolveParameters(time_limit=datetime.timedelta(seconds=limit_s), threads=2)
    if solver == "pdlp":
        criteria = solvers_pb2.TerminationCriteria()
        criteria.simple_optimality_criteria.eps_optimal_relative = TOLERANCE
        criteria.simple_optimality_criteria.eps_optimal_absolute = TOLERANCE
        parameters.pdlp = solvers_pb2.PrimalDualHybridGradientParams(termination_criteria=criteria)
    else:
        parameters.threads = 1
    result = mathopt.solve(mathopt.Model.from_model_proto(_proto(program)), SOLVERS[solver], params=parameters)
    objective = result.objective_value() if result.has_primal_feasible_solution() else float("nan")
    optimal = result.termination.reason == mathopt.TerminationReason.OPTIMAL
    return Solved(objective, result.solve_time().total_seconds(), optimal)


def _proto(program: LinearProgram) -> model_pb2.ModelProto:
    order = np.lexsort((program.column, program.row))
    found = model_pb2.ModelProto()
    columns = np.arange(len(program.upper))
    found.variables.ids.extend(columns)
    found.variables.lower_bounds.extend(np.zeros(len(columns)))
    found.variables.upper_bounds.extend(program.upper)
    found.variables.integers.extend(np.zeros(len(columns), np.bool_))
    found.objective.maximize = True
    found.objective.linear_coefficients.ids.extend(np.flatnonzero(program.objective))
    found.objective.linear_coefficients.values.extend(program.objective[program.objective != 0])
    found.linear_constraints.ids.extend(np.arange(len(program.limit)))
    found.linear_constraints.lower_bounds.extend(np.full(len(program.limit), -np.inf))
    found.linear_constraints.upper_bounds.extend(program.limit)
    found.linear_constraint_matrix.row_ids.extend(program.row[order])
    found.linear_constraint_matrix.column_ids.extend(program.column[order])
    found.linear_constraint_matrix.coefficients.extend(program.entry[order])
    return found
