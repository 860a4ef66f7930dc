"""Measures solvers on networks that rounds build, and on networks of Quincy's form."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks.harness import solvers
from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.engine import START_US, EngineLoad, LoadSpec
from benchmarks.loads.quincy import QuincyLoad
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import SOLVERS, Solver
from firmament_py.model.events import Event
from firmament_py.network.build import PlacementNetwork
from firmament_py.policy import registry
from firmament_py.state.cluster import ClusterState

_TASKS_PER_NODE = 12


def measure(case: Case, options: Options) -> Sample:
    """Builds the network, then solves it with each solver."""
    network = _network(case, options)
    ours, ours_s = _timed(SOLVERS["or-tools"](), network)
    metrics = {"ortools_s": ours_s}
    checks = [_judge("OR-Tools", ours, network)]
    if case.sizes["reference"]:
        theirs, metrics["networkx_s"] = _timed(SOLVERS["networkx"](), network)
        metrics["speedup"] = metrics["networkx_s"] / ours_s
        detail = f"OR-Tools {ours.cost}, networkx {theirs.cost}"
        checks.append(Check("both find the same cost", ours.cost == theirs.cost, detail))
    for name in solvers.further():
        try:
            found, seconds = _timed(solvers.load(name), network)
        except Exception as error:  # it is other people's
            checks.append(Check(f"{name} solves the network", False, f"{type(error).__name__}: {error}"))
            continue
        metrics[f"{name}_s"] = seconds
        checks.append(_judge(name, found, network))
        checks.append(Check(f"{name} finds the least cost", found.cost == ours.cost, f"{found.cost}, not {ours.cost}"))
    return Sample(metrics, {"vertices": len(network.supply), "arcs": len(network.tail), "cost": ours.cost}, checks)


def _network(case: Case, options: Options) -> FlowNetwork:
    """Of Quincy's form where the case has a shape, else of a round."""
    sizes = dict(case.sizes)
    if "shape" in sizes:
        nodes = options.scaled(sizes["nodes"], 10)
        return QuincyLoad(sizes["shape"], nodes, _TASKS_PER_NODE * nodes, options.seed).network.flow_network()[0]
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


def _judge(name: str, solution: Solution, network: FlowNetwork) -> Check:
    """Whether a solution says that it is an optimum, and is a flow of the cost that it says."""
    what = f"{name} finds an optimum"
    if solution.status is not Status.OPTIMAL:
        return Check(what, False, str(solution.status))
    flow, left = np.asarray(solution.flow), network.supply.copy()
    if flow.shape != network.tail.shape:
        return Check(what, False, f"a flow of {flow.shape} for {len(network.tail)} arcs")
    np.subtract.at(left, network.tail, flow)
    np.add.at(left, network.head, flow)
    wrong = {
        "arcs have more than their capacity": int(((flow < 0) | (flow > network.capacity)).sum()),
        "vertices send on more or less than they get": int((left != 0).sum()),
        "is the difference to the flow's cost": int(solution.cost - (flow * network.unit_cost).sum()),
    }
    return Check(what, not any(wrong.values()), "; ".join(f"{n} {why}" for why, n in wrong.items() if n))
