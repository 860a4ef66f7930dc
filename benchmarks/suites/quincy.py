"""Measures one round of the engine for pods that each read data of their own."""

from __future__ import annotations

from dataclasses import fields

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.data import DataLoad, DataSpec
from benchmarks.loads.engine import START_US, LoadSpec
from benchmarks.suites.round import check_round
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.policy import registry


def measure(case: Case, options: Options) -> Sample:
    """A fresh engine receives the load, then runs a round."""
    sizes = dict(case.sizes)
    policy = sizes.pop("policy", "quincy")
    data = DataSpec(**{field.name: sizes.pop(field.name) for field in fields(DataSpec) if field.name in sizes})
    chosen = {key: str(value) for key, value in sizes.pop("options", {}).items()}
    spec = LoadSpec(**sizes, seed=options.seed).scaled(options)
    load = DataLoad(spec, data)
    engine = Engine(registry.load(policy, chosen), SOLVERS["or-tools"]())
    engine.apply(load.nodes())
    engine.apply(load.load.classes)
    engine.apply(load.inputs())
    outcome = engine.apply([load.tasks()])
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes or outcome.unknown_inputs:
        return Sample({}, checks=[Check("the engine accepts the load", False, str(outcome.refused[:1]))])
    stats = result.stats
    uids = engine.state.tasks.uid[result.tasks]
    nodes = [engine.state.nodes.id[row] for row in result.nodes.tolist()]
    read, core, rack = load.moved(uids, nodes)
    return Sample(
        metrics={
            "round_s": stats.seconds,
            "solve_s": stats.stage_seconds.get("solve", 0.0),
            "core": 100 * core / max(read, 1),
            "rack": 100 * rack / max(read, 1),
            "placed": stats.placed,
        },
        facts={
            "pending": stats.pending,
            "placed": stats.placed,
            "running": load.load.running,
            "solves": stats.solves,
            "vertices": stats.vertices,
            "arcs": stats.arcs,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        },
        checks=check_round(load.load, engine, result),
    )
