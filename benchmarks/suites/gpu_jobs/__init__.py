"""Measures jobs on a small GPU cluster over virtual time, beside queues in strict order."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.gpu_jobs import GPU, mix
from benchmarks.simulate.metrics import jobs_s
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.replay import Settings
from benchmarks.simulate.running import Run, measured, run
from benchmarks.simulate.strict_queue import STRICT
from benchmarks.traces.form import HOUR, Trace

STARVED_S = 1_800
_LONG_US = 2_000 * HOUR
"""Longer than all jobs take one after the other in any case."""


def measure(case: Case, options: Options) -> Sample:
    """The same jobs by the engine and by each queue in strict order."""
    sizes = case.sizes
    jobs = options.scaled(sizes["jobs"], 20)
    trace = mix(sizes["mix"], jobs, sizes["nodes"], sizes["load"], sizes["task_gpus"], options.seed)
    metrics, checks, outcome = _replayed(trace, sizes["policy"])
    metrics["round_s"] = measured(outcome).get("round_s", 0.0)
    for name in STRICT:
        figures, further, _ = _replayed(trace, name)
        metrics |= {f"{name}_{metric}": value for metric, value in figures.items() if metric != "longest_wait_s"}
        checks += further
    gpus = trace.requests[trace.task_shape, trace.resources.index(GPU)]
    facts = {
        "tasks": len(trace.task_us),
        "gpu_hours": float(gpus @ trace.task_duration_us / HOUR),
        "arrivals_h": float(trace.task_us.max() / HOUR),
    }
    return Sample(metrics, facts, checks)


def _replayed(trace: Trace, scheduler: str) -> tuple[dict[str, float], list[Check], Outcome]:
    """The figures of one scheduler. Queues in strict order leave tasks waiting that fit."""
    settings = Settings(expectations=True, check_waiting_every=0 if scheduler in STRICT else 16)
    sample, outcome = run(trace, Run(scheduler, settings), _LONG_US)
    checks = [Check(f"{scheduler}: {check.name}", check.ok, check.detail) for check in sample.checks]
    wait, completion, _, _ = jobs_s(outcome)
    unfinished = int(np.isnan(completion).sum())
    checks.append(Check(f"{scheduler}: all jobs end", not unfinished, f"{unfinished} do not"))
    return figures_of(outcome, wait), checks, outcome


def figures_of(outcome: Outcome, wait: np.ndarray) -> dict[str, float]:
    """The figures of a replay in which all jobs have ended, with waits (J,) in seconds."""
    trace = outcome.trace
    gpus = trace.requests[trace.task_shape, trace.resources.index(GPU)]
    offered = int(trace.capacity[trace.resources.index(GPU)])
    hours = int(outcome.end_us.max() - trace.task_us.min()) / HOUR
    return {
        "use": float(gpus @ trace.task_duration_us / HOUR) / (offered * hours),
        "jobs_per_hour": len(trace.jobs) / hours,
        "starved": float((wait > STARVED_S).sum()),
        "wait_s": float(wait.mean()),
        "longest_wait_s": float(wait.max()),
    }
