"""A solver whose solutions are compared with another solver's: the cost of placements relative to the optimum."""

from __future__ import annotations

from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import SOLVERS, Solver


class AuditedSolver:
    """OR-Tools; networkx also solves every `every`-th network of at most `max_arcs` arcs, up to `max_audits` networks.

    gap: the largest relative difference of costs so far. audits: the number of comparisons.
    """

    def __init__(self, every: int = 20, max_arcs: int = 3_000, max_audits: int = 40) -> None:
        self._solver: Solver = SOLVERS["or-tools"]()
        self._reference: Solver = SOLVERS["networkx"]()
        self._every, self._max_arcs, self._max_audits = every, max_arcs, max_audits
        self._seen = 0
        self.audits = 0
        self.gap = 0.0

    @property
    def name(self) -> str:
        """The name of the solver whose solutions are used."""
        return self._solver.name

    def solve(self, network: FlowNetwork) -> Solution:
        """The solution of OR-Tools."""
        solution = self._solver.solve(network)
        if len(network.tail) <= self._max_arcs:
            if self._seen % self._every == 0 and self.audits < self._max_audits:
                self._compare(network, solution)
            self._seen += 1
        return solution

    def _compare(self, network: FlowNetwork, solution: Solution) -> None:
        best = self._reference.solve(network)
        self.audits += 1
        if (best.status is Status.OPTIMAL) != (solution.status is Status.OPTIMAL):
            self.gap = float("inf")
        elif best.status is Status.OPTIMAL:
            self.gap = max(self.gap, abs(solution.cost - best.cost) / max(abs(best.cost), 1))
