"""Measures a round on a cluster of many types of hosts with more requests than fit, and solvers of its relaxation."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cache
from time import perf_counter

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.live.processes import peak_mib
from benchmarks.loads.cvxcluster.catalogue import HIGH, LOW
from benchmarks.loads.cvxcluster.exact import most_placed
from benchmarks.loads.cvxcluster.instance import START_US, Instance
from benchmarks.loads.cvxcluster.relaxation import Solved, relaxation, solve
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.policy import registry

_LEVELS = {"high": HIGH, "low": LOW}
_LEAST_HOSTS = 100
"""In fewer some types of hosts would be missing."""


def measure(case: Case, options: Options) -> Sample:
    """One instance: a round, the bound, and the solvers."""
    sizes = case.sizes
    hosts = max(min(_LEAST_HOSTS, sizes["hosts"]), options.scaled(sizes["hosts"]))
    instance = Instance.random(options.seed, hosts, sizes["demand"], sizes["least_cores"])
    _warm_up()
    cls, host, stats = _round(instance, sizes["policy"])
    placed = np.bincount(cls, minlength=len(instance.kinds))
    reached = {name: int(placed[instance.priority == level].sum()) for name, level in _LEVELS.items()}
    bound, metrics = _bounds(instance, reached)
    gaps = {name: (bound[name] - reached[name]) / max(bound[name], 1.0) for name in _LEVELS}
    metrics |= {
        "gap": max(gaps.values()),
        **{f"gap_{name}": gap for name, gap in gaps.items()},
        **{f"placed_{name}": float(number) for name, number in reached.items()},
        "round_s": stats.seconds,
    }
    facts: dict[str, object] = {
        "requests": int(instance.count.sum()),
        "kinds": len(instance.kinds),
        "bounds": bound,
        "stats_gap": stats.gap,
        "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
    }
    wrong = instance.violations(cls, host)
    checks = [
        Check("hosts, selectors and anti-affinity are respected", not wrong, wrong),
        Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
        Check("the bound holds for what is placed", min(gaps.values()) >= -1e-9, f"{reached} > {bound}"),
    ]
    metrics["peak_mib"] = peak_mib(os.getpid())
    solved = _solvers(instance, reached["high"], sizes["limit_s"], metrics, by_rack=False)
    facts["solvers"] = _as_facts(solved)
    checks.append(_agree(solved, bound))
    if sizes["racks"]:
        by_rack = _solvers(instance, reached["high"], sizes["limit_s"], metrics, by_rack=True)
        facts["solvers by rack"] = _as_facts(by_rack)
        metrics["round_of_racks_pdlp"] = stats.seconds / metrics["racks_pdlp_s"]
    metrics["relaxation_of_pdlp"] = metrics["relaxation_s"] / metrics["pdlp_s"]
    if sizes["exact_s"]:
        checks.append(_compare(instance, list(reached.values()), sizes["exact_s"], metrics, facts))
    return Sample(metrics, facts, checks)


def _bounds(instance: Instance, reached: dict[str, int]) -> tuple[dict[str, float], dict[str, float]]:
    """The most of each priority, and the time to solve the programs."""
    bound, seconds = {}, 0.0
    for name, level in _LEVELS.items():
        program = relaxation(instance, level, reached["high"] if level == LOW else 0)
        began = perf_counter()
        found = program.solve()
        seconds += perf_counter() - began
        bound[name] = found.bound if found is not None else float("inf")
    return bound, {"relaxation_s": seconds}


def _solvers(
    instance: Instance, high: int, limit_s: float, metrics: dict[str, float], *, by_rack: bool
) -> dict[str, dict[str, Solved]]:
    """What each solver makes of the programs of both priorities; adds up its times in `metrics`."""
    found: dict[str, dict[str, Solved]] = {}
    for name, level in _LEVELS.items():
        program = relaxation(instance, level, high if level == LOW else 0, by_rack=by_rack)
        for solver in ("glop", "pdlp"):
            solved = solve(program, solver, limit_s)
            found.setdefault(solver, {})[name] = solved
            key = f"racks_{solver}_s" if by_rack else f"{solver}_s"
            metrics[key] = metrics.get(key, 0.0) + solved.seconds
    if not by_rack:
        metrics["pdlp_error"] = max(
            abs(found["pdlp"][name].objective - found["glop"][name].objective) / max(found["glop"][name].objective, 1.0)
            for name in _LEVELS
        )
    return found


def _as_facts(solved: dict[str, dict[str, Solved]]) -> dict[str, dict[str, object]]:
    return {solver: {name: asdict(one) for name, one in levels.items()} for solver, levels in solved.items()}


def _agree(solved: dict[str, dict[str, Solved]], bound: dict[str, float]) -> Check:
    """Whether GLOP finds the objective that our bound proves to be the most."""
    glop = solved["glop"]
    wrong = {name: abs(glop[name].objective - bound[name]) > 1e-6 * max(bound[name], 1.0) for name in _LEVELS}
    return Check("GLOP reaches our bound", not any(wrong.values()), f"{glop}, {bound}")


def _compare(
    instance: Instance, reached: list[int], seconds: float, metrics: dict[str, float], facts: dict[str, object]
) -> Check:
    """Compares with the best that CP-SAT finds, priority by priority: all requests if that of high priority is equal,
    else those of high priority."""
    best, proved = most_placed(instance, seconds)
    metrics["proved"] = float(proved)
    metrics["of_best"] = sum(reached) / sum(best) if reached[0] == best[0] else reached[0] / best[0]
    facts["best"] = best
    return Check("nothing is better than the best", not proved or reached <= best, f"{reached} > {best}")


@cache
def _warm_up() -> None:
    """The first round of a process loads the search."""
    _round(Instance.random(0, _LEAST_HOSTS, 1.2, 16), "bin-packing")


def _round(instance: Instance, policy: str) -> tuple[I64, I64, RoundStats]:
    """(P,) kinds and hosts of what one round of a fresh engine places, and its statistics."""
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"]())
    outcome = engine.apply(instance.events())
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    cls = instance.order()[engine.state.tasks.uid[result.tasks].astype(np.int64) - 1]
    ids = engine.state.nodes.id
    host = np.array([int(ids[row].removeprefix("host-")) for row in result.nodes.tolist()], np.int64)
    return cls, host, result.stats
