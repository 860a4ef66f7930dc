"""Measures how many pods of several resources a round places, compared with other ways to pack them."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.packing import START_US, PackingLoad
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.model.options import EngineOptions
from firmament_py.policy import registry

_LONG = 30.0
"""How many times the usual effort the best known packing gets."""

_CP_SAT_NODES = 200
"""In larger clusters CP-SAT finds nothing better in minutes."""


def measure(case: Case, options: Options) -> Sample:
    """One random cluster: a round, and what it is compared with."""
    sizes = case.sizes
    load = PackingLoad.random(options.seed, options.scaled(sizes["nodes"], 5), options.scaled(sizes["classes"], 4))
    placed, stats = _round(load, sizes["policy"], 1.0)
    longer, _ = _round(load, sizes["policy"], _LONG)
    kube = load.kube_scheduler()
    best = max(stats.placed, kube, int(longer.sum()))
    if len(load.free) <= _CP_SAT_NODES and best < load.pods and sizes["best_s"]:
        best = max(best, load.cp_sat(longer, sizes["best_s"]))
    wrong = load.violations(placed)
    return Sample(
        metrics={
            "of_best": stats.placed / best,
            "of_kube": stats.placed / kube,
            "of_bound": stats.placed / (stats.placed + stats.gap),
            "placed": stats.placed,
            "round_s": stats.seconds,
        },
        facts={
            "pods": load.pods,
            "kube": kube,
            "best": best,
            "gap": stats.gap,
            "solves": stats.solves,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        },
        checks=[
            Check("no node is over-committed, every selector is met", not wrong, wrong),
            Check("the bound holds", best <= stats.placed + stats.gap, f"{best} > {stats.placed} + {stats.gap}"),
            Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
        ],
    )


def _round(load: PackingLoad, policy: str, improve: float) -> tuple[I64, RoundStats]:
    """(C, N) what one round of a fresh engine places, and its statistics."""
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"](), options=EngineOptions(improve=improve))
    outcome = engine.apply(load.events())
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    placed = np.zeros(load.suitable.shape, np.int64)
    cls = load.order()[engine.state.tasks.uid[result.tasks].astype(np.int64) - 1]
    number = {f"node-{n}": n for n in range(len(load.free))}
    nodes = np.array([number[engine.state.nodes.id[row]] for row in result.nodes.tolist()], np.int64)
    np.add.at(placed, (cls, nodes), 1)
    return placed, result.stats
