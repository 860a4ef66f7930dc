"""Measures one round of the engine, in-process, checked independently of the engine."""

from __future__ import annotations

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.engine import START_US, EngineLoad, LoadSpec
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.flow.solver import SOLVERS
from firmament_py.policy import registry
from firmament_py.usage.usage import Basis, UsageOptions

_OUTSIDE = ("snapshot", "commit", "explain")
"""Stages that `core_s` leaves out."""


def measure(case: Case, options: Options) -> Sample:
    """A fresh engine receives the load, then runs a round."""
    sizes = dict(case.sizes)
    policy = sizes.pop("policy", registry.DEFAULT_POLICY)
    policy_options = sizes.pop("policy_options", {})
    basis = Basis(sizes.pop("usage", Basis.REQUESTS))
    spec = LoadSpec(**sizes, seed=options.seed).scaled(options)
    load = EngineLoad(spec)
    engine = Engine(registry.load(policy, policy_options), SOLVERS["or-tools"](), usage=UsageOptions(basis))
    engine.apply(load.nodes)
    engine.apply(load.classes)
    outcome = engine.apply([load.tasks()])
    if basis is not Basis.REQUESTS:
        load.measure(engine)
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes:
        return Sample({}, checks=[Check("the engine accepts the load", False, str(outcome.refused[:1]))])
    stats = result.stats
    stages = stats.stage_seconds
    return Sample(
        metrics={
            "round_s": stats.seconds,
            "core_s": stats.seconds - sum(stages.get(name, 0.0) for name in _OUTSIDE),
            "solve_s": stages.get("solve", 0.0),
            "placed": stats.placed,
        },
        facts={
            "pending": stats.pending,
            "placed": stats.placed,
            "running": load.running,
            "solves": stats.solves,
            "vertices": stats.vertices,
            "arcs": stats.arcs,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stages.items()},
        },
        checks=check_round(load, engine, result),
    )


def check_round(load: EngineLoad, engine: Engine, result: RoundResult) -> list[Check]:
    """What must hold for every round."""
    uids = engine.state.tasks.uid[result.tasks]
    nodes = [engine.state.nodes.id[row] for row in result.nodes.tolist()]
    violations = load.violations(uids, nodes)
    unused = load.unused(uids, nodes)
    return [
        Check("no node is over-committed, every taint is tolerated", not violations, "; ".join(violations)),
        Check("no task waits that fits in the free capacity of a node", not unused, unused),
        Check("the engine dropped nothing", result.stats.dropped == 0, f"{result.stats.dropped} placements dropped"),
        Check("every network is solved", not result.stats.unsolved, str(result.stats.unsolved)),
        Check("the policy kept its contract", not result.stats.fallback, result.stats.fallback),
    ]
