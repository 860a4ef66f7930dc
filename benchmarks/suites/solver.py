"""Measures solvers on networks that rounds build."""

from __future__ import annotations

from time import perf_counter

from benchmarks.engine_load import START_US, EngineLoad, LoadSpec
from benchmarks.results import Check, Sample
from benchmarks.runner import Options
from benchmarks.specs import Case
from firmament_py import registry
from firmament_py.cluster import ClusterState
from firmament_py.events import Event
from firmament_py.network import FlowNetwork, PlacementNetwork
from firmament_py.round import Scheduler
from firmament_py.solver import SOLVERS, Solution, Status


def measure(case: Case, options: Options) -> Sample:
    """Builds the network, then solves it with each solver."""
    sizes = dict(case.sizes)
    reference = sizes.pop("reference")
    spec = LoadSpec(**sizes, seed=options.seed)
    network = first_network(spec.scaled(options, least_nodes=2))
    ours, ours_s = _timed("or-tools", network)
    metrics = {"ortools_s": ours_s}
    checks = [Check("OR-Tools finds an optimum", ours.status is Status.OPTIMAL, ours.status)]
    if reference:
        theirs, metrics["networkx_s"] = _timed("networkx", network)
        metrics["speedup"] = metrics["networkx_s"] / ours_s
        detail = f"OR-Tools {ours.cost}, networkx {theirs.cost}"
        checks.append(Check("both find the same cost", ours.cost == theirs.cost, detail))
    return Sample(metrics, {"vertices": len(network.supply), "arcs": len(network.tail), "cost": ours.cost}, checks)


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


def _timed(solver: str, network: FlowNetwork) -> tuple[Solution, float]:
    chosen = SOLVERS[solver]()
    began = perf_counter()
    solution = chosen.solve(network)
    return solution, perf_counter() - began
