"""Linear and integer programs, solved by OR-Tools' GLOP, SCIP and CP-SAT, which no other module here imports.

They are imported when a program is first solved, because they take 14 MB, and most rounds need none.
"""

import datetime
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firmament_py.model.arrays import F64, I64

if TYPE_CHECKING:
    from ortools.math_opt import model_parameters_pb2, parameters_pb2, result_pb2, solution_pb2

_UNIT, _ROUNDINGS = 2.0**-53, 8
"""A rounding changes a number by this share of it at most; and how often a term of a bound is rounded at most, beside
once for each further one of its column: its factors, product and sum, and the share that is given here."""


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """bound: on the objective of all x; the best x (K,); dual (M,) >= 0: by how much the objective rises with each
    limit, about."""

    bound: float
    x: F64
    dual: F64


@dataclass(frozen=True, slots=True)
class IntegerSolution:
    """x (K,), and a bound on the objective of all others."""

    x: I64
    bound: float


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Maximise objective @ x, 0 <= x <= upper (K,), matrix @ x <= limit (M,). The matrix has entries at (row, column),
    each once."""

    objective: F64
    upper: F64
    limit: F64
    row: I64
    column: I64
    entry: F64

    def solve(self) -> LinearSolution | None:
        """None if the solver has found no solution.

        By weak duality every y (M,) >= 0 gives a bound, so that this one holds although the solver's y is rounded; it
        is increased by what the rounding of its terms, and of the program's numbers, may amount to.
        """
        from ortools.math_opt import parameters_pb2

        # several times faster here than the dual simplex: 0 is feasible
        parameters = parameters_pb2.SolveParametersProto(
            lp_algorithm=parameters_pb2.LP_ALGORITHM_PRIMAL_SIMPLEX, threads=1
        )
        result = self._solved(parameters_pb2.SOLVER_TYPE_GLOP, parameters, integer=False)
        if not result.solutions:
            return None
        found = result.solutions[0]
        y = np.zeros(len(self.limit))
        y[np.array(found.dual_solution.dual_values.ids, np.int64)] = found.dual_solution.dual_values.values
        y = np.maximum(y, 0.0)
        terms, width = self.entry * y[self.row], len(self.upper)
        reduced = self.objective - np.bincount(self.column, terms, minlength=width)
        size = np.abs(self.objective) + np.bincount(self.column, np.abs(terms), minlength=width)
        longest = np.bincount(self.column, minlength=width).max(initial=0)  # terms of a column
        error = (longest + _ROUNDINGS) * _UNIT * (y @ np.abs(self.limit) + size @ self.upper)
        bound = math.fsum(y * self.limit) + math.fsum(np.maximum(reduced, 0.0) * self.upper) + error
        return LinearSolution(float(bound), self._values(found.primal_solution), y) if math.isfinite(bound) else None

    def solve_integers(self, gap: float, nodes: int, seconds: float) -> IntegerSolution | None:
        """Integers x (K,) whose objective is the greatest but for a gap, or the best that are found with so many nodes
        of the search tree, or, on a slow machine, in so many seconds; None: none are found."""
        from ortools.math_opt import parameters_pb2

        parameters = parameters_pb2.SolveParametersProto(node_limit=nodes, absolute_gap_tolerance=gap, threads=1)
        parameters.time_limit.FromTimedelta(datetime.timedelta(seconds=seconds))
        result = self._solved(parameters_pb2.SOLVER_TYPE_GSCIP, parameters, integer=True)
        if not result.solutions:
            return None
        found = result.solutions[0].primal_solution
        x = np.rint(self._values(found)).astype(np.int64)
        return IntegerSolution(x, result.termination.objective_bounds.dual_bound)

    def solve_from(self, start: I64, work: float) -> I64 | None:
        """Integers x (K,) whose objective is the greatest, found from x = `start` by CP-SAT; None: that is not proved
        within so much deterministic time. All data are integers."""
        from ortools.math_opt import model_parameters_pb2, parameters_pb2, result_pb2

        parameters = parameters_pb2.SolveParametersProto(threads=1)
        parameters.cp_sat.max_deterministic_time = work
        parameters.cp_sat.max_presolve_iterations = 1  # further ones take longer than they save in small programs
        parameters.cp_sat.cp_model_probing_level = 0
        hint = model_parameters_pb2.ModelSolveParametersProto()
        values = hint.solution_hints.add().variable_values
        values.ids.extend(np.arange(len(start)))
        values.values.extend(start.astype(np.float64))
        result = self._solved(parameters_pb2.SOLVER_TYPE_CP_SAT, parameters, integer=True, hint=hint)
        if result.termination.reason != result_pb2.TERMINATION_REASON_OPTIMAL:
            return None
        return np.rint(self._values(result.solutions[0].primal_solution)).astype(np.int64)

    def _solved(
        self,
        kind: "parameters_pb2.SolverTypeProto",
        parameters: "parameters_pb2.SolveParametersProto",
        *,
        integer: bool,
        hint: "model_parameters_pb2.ModelSolveParametersProto | None" = None,
    ) -> "result_pb2.SolveResultProto":
        from ortools.math_opt import callback_pb2, model_parameters_pb2, model_pb2, parameters_pb2
        from ortools.math_opt.core.python import solver

        order = np.lexsort((self.column, self.row))
        program = model_pb2.ModelProto()
        variables = np.arange(len(self.upper))
        program.variables.ids.extend(variables)
        program.variables.lower_bounds.extend(np.zeros(len(variables)))
        program.variables.upper_bounds.extend(self.upper)
        program.variables.integers.extend(np.full(len(variables), integer))
        program.objective.maximize = True
        program.objective.linear_coefficients.ids.extend(variables)
        program.objective.linear_coefficients.values.extend(self.objective)
        program.linear_constraints.ids.extend(np.arange(len(self.limit)))
        program.linear_constraints.lower_bounds.extend(np.full(len(self.limit), -np.inf))
        program.linear_constraints.upper_bounds.extend(self.limit)
        program.linear_constraint_matrix.row_ids.extend(self.row[order])
        program.linear_constraint_matrix.column_ids.extend(self.column[order])
        program.linear_constraint_matrix.coefficients.extend(self.entry[order])
        return solver.solve(
            program,
            kind,
            parameters_pb2.SolverInitializerProto(),
            parameters,
            hint or model_parameters_pb2.ModelSolveParametersProto(),
            None,
            callback_pb2.CallbackRegistrationProto(),
            None,
            None,
        )

    def _values(self, found: "solution_pb2.PrimalSolutionProto") -> F64:
        """(K,)"""
        x = np.zeros(len(self.upper))
        x[np.array(found.variable_values.ids, np.int64)] = found.variable_values.values
        return x
