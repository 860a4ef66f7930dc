"""Measures how many pods of each priority a round places in a cluster that is nearly full or slightly too small."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import CannotMeasureError, Options
from benchmarks.harness.specs import Case
from benchmarks.loads.priorities import START_US, PriorityLoad
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.policy import registry

_COMBINATIONS = tuple(product((1, 2, 4), (0.9, 0.95, 1.0, 1.05)))
"""Number of priorities, and the share of the cluster that all pods request."""

_TRIES, _NEXT = 10_000, 1_000_003


def measure(case: Case, options: Options) -> Sample:
    """One random cluster: a round, and what it is compared with."""
    sizes = case.sizes
    load = _load(options.seed, options.scaled(sizes["nodes"], 4), sizes["pods_per_node"])
    _warm_up()
    placed, stats = _round(load)
    reached = load.by_priority(placed.sum(axis=1))
    kube = load.by_priority(load.kube_scheduler())
    metrics = {
        "of_kube": stats.placed / sum(kube),
        "no_worse_than_kube": float(reached >= kube),
        "placed": stats.placed,
        "round_s": stats.seconds,
    }
    facts: dict[str, object] = {"pods": len(load.set_of), "by_priority": reached, "kube": kube, "gap": stats.gap}
    wrong = load.violations(placed)
    checks = [
        Check("no node is over-committed, no pod is placed twice", not wrong, wrong),
        Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
    ]
    if sizes["best_s"]:
        best, proved = load.cp_sat(sizes["best_s"])
        metrics["no_worse"] = float(reached >= best)
        metrics["proved"] = float(proved)
        metrics["worse_than_proved"] = float(proved and reached < best)
        facts["best"] = best
        checks.append(Check("nothing is better than the best", not proved or reached <= best, f"{reached} > {best}"))
    return Sample(metrics=metrics, facts=facts, checks=checks)


def _load(seed: int, nodes: int, pods_per_node: int) -> PriorityLoad:
    """The first load from the seed on, of its combination, that kube-scheduler's rules do not place completely."""
    priorities, utilisation = _COMBINATIONS[seed % len(_COMBINATIONS)]
    for tried in range(seed, seed + _TRIES * _NEXT, _NEXT):
        load = PriorityLoad.random(tried, nodes, pods_per_node, priorities, utilisation)
        if load.kube_scheduler().sum() < len(load.set_of):
            return load
    raise CannotMeasureError(f"kube-scheduler's rules place all pods of {_TRIES} loads; use more nodes")


@cache
def _warm_up() -> None:
    """The first round of a process loads the search."""
    _round(PriorityLoad.random(0, 4, 4, 1, 1.2))


def _round(load: PriorityLoad) -> tuple[I64, RoundStats]:
    """(C, N) what one round of a fresh engine places, and its statistics."""
    engine = Engine(registry.load("load-spreading", {}), SOLVERS["or-tools"]())
    outcome = engine.apply(load.events())
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    placed = np.zeros((len(load.requests), load.nodes), np.int64)
    of_set = load.set_of[engine.state.tasks.uid[result.tasks].astype(np.int64) - 1]
    ids = engine.state.nodes.id
    at = np.array([int(ids[row].removeprefix("node-")) for row in result.nodes.tolist()], np.int64)
    np.add.at(placed, (of_set, at), 1)
    return placed, result.stats
