"""Measures an overloaded cluster for AI jobs over weeks of virtual time: GPU use, balance, waits, and the cost of
delayed preemption beside Volcano's rules and beside no preemption."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.openi.play import RULES, Outcome, play, play_all
from benchmarks.loads.openi.workload import Spec

_MUST_HOLD = (
    "only waiting jobs start, each once",
    "no job starts in part",
    "jobs run on the nodes of their queues",
    "no node is over-committed",
    "no queue exceeds its limit",
    "only running jobs are evicted",
    "only preemptible jobs are evicted",
    "victims are of lower priority, of the same queue",
    "only jobs that may preempt do",
    "jobs are preempted as a whole",
    "the totals are those of the jobs that run",
    "jobs that run have nodes",
    "jobs end no sooner than their work is done",
)
"""Of every decision, under all rules."""

_LEAST_NODES, _LEAST_JOBS = 24, 400


def measure(case: Case, options: Options) -> Sample:
    """The same jobs under all rules."""
    sizes = case.sizes
    nodes = max(min(_LEAST_NODES, sizes["nodes"]), options.scaled(sizes["nodes"]))
    spec = Spec(max(_LEAST_JOBS, options.scaled(sizes["jobs"])), nodes, options.seed + sizes["seed"])
    _warm_up()
    found = play_all(spec)
    delayed, none, volcano = (found[rules] for rules in RULES)
    metrics = {
        "use": delayed.use_in_overload,
        "spread": delayed.spread,
        "imbalance": delayed.imbalance,
        "urgent_wait_s": delayed.urgent_wait_s,
        "wait_cut": none.urgent_wait_s / max(delayed.urgent_wait_s, 1e-9),
        "jobs": delayed.jobs,
        "pods": delayed.pods,
        "lost_gpu_h": delayed.lost_gpu_h,
        "jobs_of_volcano": _ratio(_each(delayed, delayed.jobs), _each(volcano, volcano.jobs)),
        "pods_of_volcano": _ratio(_each(delayed, delayed.pods), _each(volcano, volcano.pods)),
        "lost_of_volcano": _ratio(_each(delayed, delayed.lost_gpu_h), _each(volcano, volcano.lost_gpu_h)),
        "none_use": none.use_in_overload,
        "none_wait_s": none.urgent_wait_s,
        "volcano_use": volcano.use_in_overload,
        "volcano_wait_s": volcano.urgent_wait_s,
        "volcano_jobs": volcano.jobs,
        "volcano_pods": volcano.pods,
        "volcano_lost_gpu_h": volcano.lost_gpu_h,
        "round_s": delayed.round_s,
        "cpu_s": sum(outcome.cpu_s for outcome in found.values()),
    }
    facts: dict[str, Any] = {"nodes": spec.nodes, "jobs": spec.jobs, "seed": spec.seed}
    facts |= {rules: asdict(outcome) for rules, outcome in found.items()}
    return Sample(metrics, facts, [check for rules in RULES for check in _checks(rules, found[rules])])


def _checks(rules: str, outcome: Outcome) -> list[Check]:
    wrong = outcome.violations
    names = [*_MUST_HOLD, *(name for name in wrong if name not in _MUST_HOLD)]
    checks = [Check(f"{rules}: {name}", name not in wrong, wrong.get(name, "")) for name in names]
    checks.append(Check(f"{rules}: the engine dropped nothing", not outcome.dropped, f"{outcome.dropped} dropped"))
    if rules == "none":
        checks.append(Check("none: no job is evicted", not outcome.jobs, f"{outcome.jobs} are"))
    return checks


def _each(outcome: Outcome, amount: float) -> float:
    """The amount for each job that others were preempted for."""
    return amount / max(outcome.preemptions, 1)


def _ratio(one: float, other: float) -> float:
    """1 if both are 0."""
    return one / other if other else float(one == 0) or float("inf")


@cache
def _warm_up() -> None:
    """The first rounds of a process load the searches."""
    play(Spec(jobs=_LEAST_JOBS, nodes=_LEAST_NODES), "delayed")
