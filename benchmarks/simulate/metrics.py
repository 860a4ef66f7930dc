"""Figures of merit of complete replays, for any scheduler."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.harness.series import Series, cdf, timeline
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.world import State
from benchmarks.traces.form import FOREVER, SECOND
from firmament_py.model.arrays import F64, I64

SHORTEST_S = 10.0
"""Lower bound of run times in slowdowns, so that short waits of short tasks do not dominate (the bounded slowdown of
Feitelson and Rudolph)."""

_LARGE = 8
"""A job is large if it requests more than this number of the largest machine."""

_OVER_TIME = {
    "link_use": "link use",
    "link_use_p99": "link p99",
    "link_use_max": "fullest link",
    "links_over": "links over",
    "interference": "interference",
}
_SO_FAR = {"bytes_moved": "bytes moved", "bytes_across_racks": "bytes across racks"}
_EFFECTS = (
    ("nodes used", "nodes", "count"),
    ("link p99", "p99 of traffic / capacity of links", "ratio"),
    ("bytes moved", "share of input from other machines, so far", "ratio"),
    ("interference", "mean penalty of a task", "points"),
)
"""Timelines of the effects of policies, besides the spread: drawn where the trace has the labels."""


def waits_s(outcome: Outcome) -> F64:
    """(T',) seconds from the submission of each submitted task to its first start, or to the end of the replay."""
    submitted = outcome.trace.task_us <= outcome.horizon_us
    started = np.where(outcome.first_start_us >= 0, outcome.first_start_us, outcome.horizon_us)
    return np.asarray((started - outcome.trace.task_us)[submitted] / SECOND, np.float64)


def jobs_s(outcome: Outcome) -> tuple[F64, F64, F64, I64]:
    """Of the submitted jobs (J',): the wait until the last task has started (or to the end of the replay), completion
    (NaN: not completed), the completion without any wait (NaN: endless tasks), and the number of the job."""
    trace = outcome.trace
    jobs = len(trace.jobs)
    submitted, last_start, last_end, ideal = (np.zeros(jobs, np.int64) for _ in range(4))
    submitted[:] = np.iinfo(np.int64).max
    started = np.where(outcome.first_start_us >= 0, outcome.first_start_us, outcome.horizon_us)
    endless = np.zeros(jobs, np.bool_)
    unfinished = np.zeros(jobs, np.bool_)
    np.minimum.at(submitted, trace.task_job, trace.task_us)
    np.maximum.at(last_start, trace.task_job, started)
    np.maximum.at(last_end, trace.task_job, outcome.end_us)
    np.maximum.at(ideal, trace.task_job, trace.task_us + np.maximum(trace.task_duration_us, 0))
    np.logical_or.at(endless, trace.task_job, trace.task_duration_us == FOREVER)
    np.logical_or.at(unfinished, trace.task_job, outcome.end_us < 0)
    chosen = np.flatnonzero(submitted <= outcome.horizon_us)
    wait = np.maximum(last_start - submitted, 0)[chosen] / SECOND
    completion = np.where(unfinished, np.nan, (last_end - submitted) / SECOND)[chosen]
    alone = np.where(endless, np.nan, (ideal - submitted) / SECOND)[chosen]
    return wait, completion, alone, chosen


def summary(outcome: Outcome) -> dict[str, float]:
    """The figures of a replay, without those that are undefined (no gangs, no completed job)."""
    wait, completion, alone, jobs = jobs_s(outcome)
    done = np.isfinite(completion)
    gangs = np.array([outcome.trace.jobs[j].gang_minimum > 1 for j in jobs.tolist()], np.bool_)
    tasks = waits_s(outcome)
    found = {
        "utilisation": float(outcome.utilisation[outcome.resources.index(outcome.contended)]),
        "utilisation_contested": outcome.utilisation_contested,
        "contested_share": outcome.contested_share,
        "spread": _mean(outcome.sampled["spread"]),
        "deviation": _mean(outcome.sampled["deviation"]),
        "nodes_used": _mean(outcome.sampled["nodes used"]),
        "fragmentation": _mean(outcome.sampled["fragmentation"]),
        "task_wait_s": _mean(tasks),
        "task_wait_p50_s": _at(tasks, 50),
        "task_wait_p99_s": _at(tasks, 99),
        "job_wait_s": _mean(wait),
        "job_wait_p99_s": _at(wait, 99),
        "completion_s": _mean(completion[done]),
        "completion_p50_s": _at(completion[done], 50),
        "completion_p99_s": _at(completion[done], 99),
        "slowdown": _mean(slowdown(completion[done], alone[done])),
        "slowdown_p99": _at(slowdown(completion[done], alone[done]), 99),
        "gang_wait_s": _mean(wait[gangs]),
        "gang_wait_p99_s": _at(wait[gangs], 99),
        "completed_jobs": float(done.sum()),
        "waiting_tasks": float((outcome.state == State.WAITING).sum()),
        "restarts": float(outcome.restarts),
        **_waits_by_size(outcome, wait, jobs),
    }
    found |= {name: _mean(outcome.sampled[line]) for name, line in _OVER_TIME.items() if line in outcome.sampled}
    # cumulative: the last sample is the total
    found |= {name: float(outcome.sampled[line][-1]) for name, line in _SO_FAR.items() if line in outcome.sampled}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _waits_by_size(outcome: Outcome, wait_s: F64, jobs: I64) -> dict[str, float]:
    """Mean waits of jobs (K,) with waits (K,): of those that request no more of the contended resource than the largest
    machine has, of those that request over _LARGE times as much, and of all, weighted by request and duration. The
    plain mean is lowest if large jobs are passed over."""
    trace = outcome.trace
    r = trace.resources.index(outcome.contended)
    requested = trace.requests[trace.task_shape, r].astype(np.float64)
    seconds = np.where(trace.task_duration_us == FOREVER, outcome.horizon_us, trace.task_duration_us) / SECOND
    machines = np.bincount(trace.task_job, requested, len(trace.jobs))[jobs] / max(
        trace.event_allocatable[:, r].max(initial=0), 1
    )
    use = np.bincount(trace.task_job, requested * seconds, len(trace.jobs))[jobs]
    return {
        "job_wait_small_s": _mean(wait_s[machines <= 1]),
        "job_wait_large_s": _mean(wait_s[machines > _LARGE]),
        "job_wait_by_use_s": float(np.average(wait_s, weights=use)) if use.sum() > 0 else math.nan,
    }


def slowdown(completion_s: F64, alone_s: F64) -> F64:
    """(K,) completion relative to that without waiting, of at least SHORTEST_S; at least 1."""
    return np.asarray(np.maximum(completion_s / np.maximum(alone_s, SHORTEST_S), 1.0), np.float64)


def series_of(outcome: Outcome) -> list[Series]:
    """Timelines of the cluster, and distributions of waits."""
    seconds = outcome.samples_us / SECOND
    sampled = outcome.sampled
    found = [
        timeline(
            f"utilisation of {outcome.contended}",
            seconds,
            sampled[f"utilisation {outcome.contended}"],
            "utilisation",
            "ratio",
        ),
        timeline("waiting tasks", seconds, sampled["waiting"], "tasks", "count"),
        timeline("running tasks", seconds, sampled["running"], "tasks", "count"),
        timeline("spread between nodes", seconds, sampled["spread"], "p90 - p10 of utilisation", "ratio"),
        timeline("fragmentation", seconds, sampled["fragmentation"], "unusable share of the free capacity", "ratio"),
        *(timeline(name, seconds, sampled[name], title, unit) for name, title, unit in _EFFECTS if name in sampled),
        cdf("task wait", waits_s(outcome), "wait", "s"),
    ]
    wait, completion, _, jobs = jobs_s(outcome)
    gangs = np.array([outcome.trace.jobs[j].gang_minimum > 1 for j in jobs.tolist()], np.bool_)
    found.append(cdf("job wait", wait, "wait", "s"))
    if np.isfinite(completion).any():
        found.append(cdf("job completion", completion[np.isfinite(completion)], "completion", "s"))
    if gangs.any():
        found.append(cdf("gang wait", wait[gangs], "wait", "s"))
    return found


def _mean(values: F64) -> float:
    return float(values.mean()) if len(values) else math.nan


def _at(values: F64, percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else math.nan
