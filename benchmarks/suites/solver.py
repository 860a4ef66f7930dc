"""Measures solvers on networks that rounds build, and on networks of Quincy's form."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks.harness import solvers
from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.engine import START_US, EngineLoad, LoadSpec
from benchmarks.loads.quincy import quincy_network
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import SOLVERS, Solver
from firmament_py.model.events import Event
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import registry
from firmament_py.state.cluster import ClusterState

_TASKS_PER_NODE = 12


def measure(case: Case, options: Options) -> Sample:
    """Builds the network, then solves it with each solver."""
    network = _network(case, options)
    solution, ortools_s = _timed(SOLVERS["or-tools"](), network)
    cost, metrics = solution.cost, {"ortools_s": ortools_s}
    checks = [_check_solution("OR-Tools", solution, network)]
    if case.sizes["reference"]:
        reference, metrics["networkx_s"] = _timed(SOLVERS["networkx"](), network)
        metrics["speedup"] = metrics["networkx_s"] / ortools_s
        detail = f"OR-Tools {cost}, networkx {reference.cost}"
        checks.append(Check("both find the same cost", cost == reference.cost, detail))
    for name in solvers.further():
        try:
            found, seconds = _timed(solvers.load(name), network)
        except Exception as error:  # a solver of another package may raise anything
            checks.append(Check(f"{name} solves the network", False, f"{type(error).__name__}: {error}"))
            continue
        metrics[f"{name}_s"] = seconds
        checks.append(_check_solution(name, found, network))
        checks.append(Check(f"{name} finds the least cost", found.cost == cost, f"{found.cost}, not {cost}"))
    return Sample(metrics, {"vertices": len(network.supply), "arcs": len(network.tail), "cost": cost}, checks)


def _network(case: Case, options: Options) -> FlowNetwork:
    """A network of Quincy's form if the case has a shape, else the first network of a round."""
    sizes = dict(case.sizes)
    if "shape" in sizes:
        nodes = options.scaled(sizes["nodes"], 10)
        return quincy_network(sizes["shape"], nodes, _TASKS_PER_NODE * nodes, options.seed)
    del sizes["reference"]
    return first_network(LoadSpec(**sizes, seed=options.seed).scaled(options, least_nodes=2))


def first_network(spec: LoadSpec) -> FlowNetwork:
    """The first network of the round that places a load."""
    load, state = EngineLoad(spec), ClusterState()
    seen: list[FlowNetwork] = []

    def keep(network: PlacementNetwork, _: Solution) -> None:
        seen.append(network.flow)

    events: list[Event] = [*load.nodes, *load.classes, load.tasks()]
    for event in events:
        state.apply(event)
    policy = registry.load(registry.DEFAULT_POLICY, {})
    Scheduler(state, policy, SOLVERS["or-tools"](), keep).run(START_US + 1_000_000)
    return seen[0]


def _timed(solver: Solver, network: FlowNetwork) -> tuple[Solution, float]:
    began = perf_counter()
    solution = solver.solve(network)
    return solution, perf_counter() - began


def _check_solution(name: str, solution: Solution, network: FlowNetwork) -> Check:
    """Whether a solution claims to be an optimum, is a feasible flow, and states that flow's cost."""
    what = f"{name} finds an optimum"
    if solution.status is not Status.OPTIMAL:
        return Check(what, False, str(solution.status))
    flow, excess = np.asarray(solution.flow), network.supply.copy()
    if flow.shape != network.tail.shape:
        return Check(what, False, f"a flow of shape {flow.shape} for {len(network.tail)} arcs")
    np.subtract.at(excess, network.tail, flow)
    np.add.at(excess, network.head, flow)
    wrong = {
        "arcs with a negative flow or one over their capacity": int(((flow < 0) | (flow > network.capacity)).sum()),
        "vertices without flow conservation": int((excess != 0).sum()),
        "is the difference to the flow's cost": int(solution.cost - (flow * network.unit_cost).sum()),
    }
    return Check(what, not any(wrong.values()), "; ".join(f"{n} {why}" for why, n in wrong.items() if n))
