"""Min-cost flow solvers behind one small interface; nothing that one answers is used before `solved` has checked it.

Range: OR-Tools multiplies unit costs by the number of vertices, and its potentials are sums of these along a path. It
guarantees costs that times twice the square of the number of vertices stay below 2**63, as residual paths may visit
every vertex; those of placement networks visit few, and it notices an overflow. The policy contract keeps costs below
2**40, and 2**19 vertices have been no problem. Beyond that the status is BAD_COST_RANGE, and the network is solved with
smaller costs (network/retry.py). Sums of capacities and supplies must stay below 2**63. docs/performance.md lists what
else solvers do.
"""

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Protocol

import numpy as np

from firmament_py.flow.certificate import unsound
from firmament_py.flow.network import FlowNetwork, Solution, Status

log = logging.getLogger(__name__)


_STATUS = {
    each.name: each
    for each in (
        Status.OPTIMAL,
        Status.INFEASIBLE,
        Status.UNBALANCED,
        Status.BAD_COST_RANGE,
        Status.BAD_CAPACITY_RANGE,
    )
}
"""Of OR-Tools, which has the same names."""


class Solver(Protocol):
    @property
    def name(self) -> str: ...

    def solve(self, network: FlowNetwork) -> Solution:
        """A flow of least cost that ships all supply; another status than OPTIMAL if there is none, or none is found.
        Raises nothing."""
        ...


def solved(solver: Solver, network: FlowNetwork) -> Solution:
    """The answer of a solver, which need not keep its contract: FAILED if it raises an error, WRONG if what it calls an
    optimum is no integer flow of the network at the cost that it states. Both are logged."""
    try:
        solution = solver.solve(network)
        wrong = unsound(network, solution) if solution.status is Status.OPTIMAL else []
    except Exception:  # it is foreign code, and a round without it is better than none
        log.exception("the solver %s has failed", solver.name)
        return unsolved(network, Status.FAILED)
    if wrong:
        log.error("the answer of the solver %s is wrong: %s", solver.name, "; ".join(wrong))
        return unsolved(network, Status.WRONG)
    return solution


def unsolved(network: FlowNetwork, status: Status) -> Solution:
    """Of a network without a flow."""
    return Solution(status, np.zeros(len(network.tail), np.int64), 0)


class OrToolsSolver:
    """Cost-scaling push-relabel (Goldberg, 1997) of OR-Tools' SimpleMinCostFlow."""

    name = "or-tools"

    def solve(self, network: FlowNetwork) -> Solution:
        from ortools.graph.python.min_cost_flow import SimpleMinCostFlow  # 19 MB that an idle engine does without

        if network.capacity.min(initial=0) < 0:  # OR-Tools may never return
            return unsolved(network, Status.BAD_CAPACITY_RANGE)
        solver = SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(
            network.tail, network.head, network.capacity, network.unit_cost
        )
        solver.set_nodes_supplies(np.arange(len(network.supply), dtype=np.int32), network.supply)
        status = _STATUS.get(solver.solve().name, Status.FAILED)
        if status is not Status.OPTIMAL:
            return unsolved(network, status)
        return Solution(status, solver.flows(arcs), solver.optimal_cost())


class NetworkxSolver:
    """networkx's network simplex: hundreds of times slower; the reference, as it is an independent implementation."""

    name = "networkx"

    def solve(self, network: FlowNetwork) -> Solution:
        empty = np.zeros(len(network.tail), np.int64)
        if network.supply.sum() != 0:
            return Solution(Status.UNBALANCED, empty, 0)
        import networkx  # rarely used, and a fifth of the start time of a flow service

        graph = networkx.MultiDiGraph()
        for vertex, supply in enumerate(network.supply.tolist()):
            graph.add_node(vertex, demand=-supply)
        columns = (network.tail, network.head, network.capacity, network.unit_cost)
        for arc, (tail, head, capacity, cost) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            graph.add_edge(tail, head, key=arc, capacity=capacity, weight=cost)
        try:
            cost, flows = networkx.network_simplex(graph)
        except networkx.NetworkXUnfeasible:
            return Solution(Status.INFEASIBLE, empty, 0)
        for targets in flows.values():
            for arcs in targets.values():
                for arc, amount in arcs.items():
                    empty[arc] = amount
        return Solution(Status.OPTIMAL, empty, int(cost))


_LIBRARIES = {"or-tools": "ortools.graph.python.min_cost_flow", "networkx": "networkx"}


def load(name: str) -> None:
    """Loads the library of a solver, so that its first network need not wait for that: a tenth of a second."""
    import_module(_LIBRARIES[name])


SOLVERS: dict[str, Callable[[], Solver]] = {"or-tools": OrToolsSolver, "networkx": NetworkxSolver}
"""The values of --solver."""
