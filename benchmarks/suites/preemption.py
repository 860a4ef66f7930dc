"""Measures the victims of a round for pods of higher priority, compared with kube-scheduler's rules and the best."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.exact_preemption import best_preemption
from benchmarks.loads.kube_preemption import KubePreemption
from benchmarks.loads.preemption import NOW_US, NOWHERE, PreemptionLoad, Result
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Preempting
from firmament_py.policy import registry


def measure(case: Case, options: Options) -> Sample:
    """One random cluster: a round, and what it is compared with."""
    sizes = case.sizes
    load = PreemptionLoad.random(
        options.seed,
        options.scaled(sizes["nodes"], 4),
        options.scaled(sizes["pods"], 6),
        options.scaled(sizes["classes"], 4),
    )
    preempting = Preempting(sizes["preempting"])
    _warm_up()
    result, stats = _round(load, preempting)
    started = time.perf_counter()
    kube = KubePreemption(load, beyond_budgets=preempting is Preempting.BEYOND_BUDGETS).run()
    kube_s = time.perf_counter() - started
    metrics = {
        "served_of_kube": _ratio(_served(result), _served(kube)),
        "victims_of_kube": _ratio(int(result.evicted.sum()), int(kube.evicted.sum())),
        "lost_of_kube": _ratio(load.lost_s(result), load.lost_s(kube)),
        "no_worse": float(load.standing(result) >= load.standing(kube)),
        "served": _served(result),
        "victims": int(result.evicted.sum()),
        "lost_h": load.lost_s(result) / 3600,
        "excess": load.excess(result),
        "round_s": stats.seconds,
    }
    facts = {
        "running": len(load.node),
        "served": load.served(result),
        "kube_served": load.served(kube),
        "victims": load.victims(result),
        "kube_victims": load.victims(kube),
        "kube_lost_h": round(load.lost_s(kube) / 3600, 1),
        "kube_excess": load.excess(kube),
        "kube_s": round(kube_s, 3),
        "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
    }
    checks = [
        *(
            Check(f"{name}: nodes are large enough, selectors are met, priorities hold", not wrong, wrong)
            for name, wrong in (("engine", load.violations(result)), ("kube", load.violations(kube)))
        ),
        Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} dropped"),
    ]
    if preempting is Preempting.WITHIN_BUDGETS:
        checks.append(Check("the budgets hold", not load.excess(result), f"{load.excess(result)} too many"))
    best = best_preemption(load, sizes["best_s"]) if sizes["best_s"] else None
    if best is not None:
        metrics["best"] = float(load.standing(result) == load.standing(best))
        metrics["victims_of_best"] = _ratio(int(result.evicted.sum()), int(best.evicted.sum()))
        metrics["lost_of_best"] = _ratio(load.lost_s(result), load.lost_s(best))
        facts |= {"best_served": load.served(best), "best_victims": load.victims(best)}
        wrong = load.violations(best)
        checks.append(Check("best: nodes are large enough, selectors are met, priorities hold", not wrong, wrong))
        standing = load.standing(result) <= load.standing(best)
        checks.append(Check("nothing is better than the best", standing, f"{facts['served']}, {facts['victims']}"))
    return Sample(metrics=metrics, facts=facts, checks=checks)


@cache
def _warm_up() -> None:
    """The first round of a process loads the search."""
    _round(PreemptionLoad.random(0, 8, 20, 5), Preempting.WITHIN_BUDGETS)


def _served(result: Result) -> int:
    return int((result.node != NOWHERE).sum())


def _ratio(one: float, other: float) -> float:
    """1 if both are 0."""
    return one / other if other else float(one == 0) or float("inf")


def _round(load: PreemptionLoad, preempting: Preempting) -> tuple[Result, RoundStats]:
    """What one round of a fresh engine decides, and its statistics."""
    engine = Engine(
        registry.load("load-spreading", {}), SOLVERS["or-tools"](), options=EngineOptions(preempting=preempting)
    )
    outcome = engine.apply(load.events())
    result = engine.run_round(NOW_US)
    if result is None or outcome.refused or outcome.unknown_classes or outcome.unknown_label_sets:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    uid, ids = engine.state.tasks.uid, engine.state.nodes.id
    node_of, evicted = np.full(len(load.waiting), NOWHERE, np.int64), np.zeros(len(load.node), np.bool_)
    for tasks, nodes in ((result.tasks, result.nodes), result.preemption.nominated):
        first = len(load.node) + 1
        node_of[uid[tasks].astype(np.int64) - first] = [int(ids[row].removeprefix("node-")) for row in nodes.tolist()]
    evicted[uid[result.preemption.victims].astype(np.int64) - 1] = True
    return Result(node_of, evicted), result.stats
