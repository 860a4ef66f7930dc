"""A solver that has some of its answers checked by another: what the placements cost against the optimum."""

from __future__ import annotations

from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import SOLVERS, Solver


class AuditedSolver:
    """OR-Tools; of every `every`-th network that has at most `most_arcs` arcs, networkx finds the optimum too.

    gap is the greatest relative difference of cost that was seen; audits says how often there was a comparison.
    """

    def __init__(self, every: int = 20, most_arcs: int = 3_000, most_audits: int = 40) -> None:
        self._ours: Solver = SOLVERS["or-tools"]()
        self._reference: Solver = SOLVERS["networkx"]()
        self._every, self._most_arcs, self._most_audits = every, most_arcs, most_audits
        self._seen = 0
        self.audits = 0
        self.gap = 0.0

    @property
    def name(self) -> str:
        return self._ours.name

    def solve(self, network: FlowNetwork) -> Solution:
        solution = self._ours.solve(network)
        if len(network.tail) <= self._most_arcs:
            if self._seen % self._every == 0 and self.audits < self._most_audits:
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
