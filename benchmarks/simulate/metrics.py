"""Figures of merit of placements and of whole replays. All functions take arrays, so they suit any scheduler.

The three of network, data and interference count only tasks whose trace carries the labels.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.series import Series, cdf, timeline
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.telling import link_kbps
from benchmarks.simulate.world import State
from benchmarks.traces.form import BANDWIDTH, DATA_BYTES, DATA_MACHINES, FOREVER, INTERFERENCE, SECOND, Trace
from firmament_py.arrays import F64, I64
from policies import colocation

SHORTEST_S = 10.0
"""Run times below this count as this in slowdowns, lest a second's wait of a short task outweighs all (the bounded
slowdown of Feitelson and Rudolph)."""

INTERFERENCE_CLASSES = colocation.KINDS
_PENALTY = colocation.penalties("")
"""What a task (row) suffers from one beside it: the table by which the policies price, too."""


# -- of placements --------------------------------------------------------------------------------------------


def link_use(machine: I64, kbps: I64, link_kbps: I64) -> dict[str, float]:
    """Tasks (K,) on machines (K,) cause traffic (K,); links (M,) carry so much. Mean and greatest use of a link, and
    the share of the links that are asked for more than they carry."""
    use = np.bincount(machine, kbps, minlength=len(link_kbps)) / np.maximum(link_kbps, 1)
    return {
        "link_use": float(use.mean()),
        "link_use_max": float(use.max(initial=0.0)),
        "links_over": float((use > 1).mean()),
    }


def bytes_moved(machine: I64, size: I64, task: I64, holder: I64, rack: I64) -> dict[str, float]:
    """Tasks (K,) on machines (K,) read sizes (K,) of input; pair p says that holder[p] (P,) has that of task[p] (P,);
    rack (M,). The share of all bytes that come from another machine, and from another rack."""
    on_machine, on_rack = np.zeros(len(machine), np.bool_), np.zeros(len(machine), np.bool_)
    np.logical_or.at(on_machine, task, holder == machine[task])
    np.logical_or.at(on_rack, task, rack[holder] == rack[machine[task]])
    total = max(float(size.sum()), 1.0)
    return {
        "bytes_moved": float(size[~on_machine].sum()) / total,
        "bytes_across_racks": float(size[~on_machine & ~on_rack].sum()) / total,
    }


def interference(machine: I64, kind: I64, machines: int) -> float:
    """Tasks (K,) of classes (K,), numbers in INTERFERENCE_CLASSES, on machines (K,): the mean of what they suffer."""
    if not len(machine):
        return 0.0
    beside = np.zeros((machines, len(_PENALTY)))
    np.add.at(beside, (machine, kind), 1)
    suffered = (beside @ _PENALTY.T)[machine, kind] - _PENALTY[kind, kind]  # not from itself
    return float(suffered.mean())


def from_labels(trace: Trace, tasks: I64, machine: I64) -> dict[str, float]:
    """The figures above for tasks (K,) on machines (K,), as far as the jobs' labels allow."""
    labels = [trace.jobs[j].labels for j in trace.task_job[tasks].tolist()]
    found: dict[str, float] = {}
    with_traffic = np.array([BANDWIDTH in of for of in labels], np.bool_)
    if with_traffic.any():
        kbps = np.array([int(of[BANDWIDTH]) for of in labels if BANDWIDTH in of])
        links = np.array([link_kbps(m) for m in trace.machines])
        found |= link_use(machine[with_traffic], kbps, links)
    with_data = [k for k, of in enumerate(labels) if DATA_BYTES in of and DATA_MACHINES in of]
    if with_data:
        row = {m.name: i for i, m in enumerate(trace.machines)}
        racks = np.unique(
            [m.labels.get("topology.kubernetes.io/rack", m.name) for m in trace.machines], return_inverse=True
        )[1]
        pairs = [
            (i, row[name]) for i, k in enumerate(with_data) for name in labels[k][DATA_MACHINES].split() if name in row
        ]
        task, holder = np.array(pairs, np.int64).reshape(-1, 2).T
        sizes = np.array([int(labels[k][DATA_BYTES]) for k in with_data])
        found |= bytes_moved(machine[with_data], sizes, task, holder, racks)
    with_class = np.array([of.get(INTERFERENCE) in INTERFERENCE_CLASSES for of in labels], np.bool_)
    if with_class.any():
        kinds = [
            INTERFERENCE_CLASSES.index(of[INTERFERENCE])
            for of in labels
            if of.get(INTERFERENCE) in INTERFERENCE_CLASSES
        ]
        found["interference"] = interference(machine[with_class], np.array(kinds), len(trace.machines))
    return found


# -- of replays -----------------------------------------------------------------------------------------------


def waits_s(outcome: Outcome) -> F64:
    """(T',) seconds from the submission of each task to its first start; of those that wait still, so far."""
    came = outcome.trace.task_us <= outcome.horizon_us
    started = np.where(outcome.first_start_us >= 0, outcome.first_start_us, outcome.horizon_us)
    return np.asarray((started - outcome.trace.task_us)[came] / SECOND, np.float64)


def jobs_s(outcome: Outcome) -> tuple[F64, F64, F64, I64]:
    """Of the jobs that came within the time (J',): wait until the last of its tasks has started (so far, if one waits
    still), completion (NaN: not completed), the time that it would take if it never waited (NaN: tasks that stay), and
    the number of the job."""
    trace = outcome.trace
    jobs = len(trace.jobs)
    came, last_start, last_end, ideal = (np.zeros(jobs, np.int64) for _ in range(4))
    came[:] = np.iinfo(np.int64).max
    started = np.where(outcome.first_start_us >= 0, outcome.first_start_us, outcome.horizon_us)
    stays = np.zeros(jobs, np.bool_)
    open_ = np.zeros(jobs, np.bool_)
    np.minimum.at(came, trace.task_job, trace.task_us)
    np.maximum.at(last_start, trace.task_job, started)
    np.maximum.at(last_end, trace.task_job, outcome.end_us)
    np.maximum.at(ideal, trace.task_job, trace.task_us + np.maximum(trace.task_duration_us, 0))
    np.logical_or.at(stays, trace.task_job, trace.task_duration_us == FOREVER)
    np.logical_or.at(open_, trace.task_job, outcome.end_us < 0)
    there = np.flatnonzero(came <= outcome.horizon_us)
    wait = np.maximum(last_start - came, 0)[there] / SECOND
    completion = np.where(open_, np.nan, (last_end - came) / SECOND)[there]
    alone = np.where(stays, np.nan, (ideal - came) / SECOND)[there]
    return wait, completion, alone, there


def summary(outcome: Outcome) -> dict[str, float]:
    """The figures of a replay. What cannot be said (no gangs, nothing completed) is left out."""
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
    }
    placed = np.flatnonzero(outcome.machine >= 0)
    labelled = from_labels(outcome.trace, placed, outcome.machine[placed])
    running = np.flatnonzero(outcome.state == State.RUNNING)
    at_the_end = from_labels(outcome.trace, running, outcome.machine[running])
    # bytes are moved once a task; links and neighbours are shared by those that run at the same time
    found |= {name: value for name, value in labelled.items() if name.startswith("bytes")}
    found |= {name: value for name, value in at_the_end.items() if not name.startswith("bytes")}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def slowdown(completion_s: F64, alone_s: F64) -> F64:
    """(K,) how many times longer than alone: bounded, at least 1."""
    return np.asarray(np.maximum(completion_s / np.maximum(alone_s, SHORTEST_S), 1.0), np.float64)


def series_of(outcome: Outcome) -> list[Series]:
    """Timelines of how the cluster was, and distributions of waits."""
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
        timeline("fragmentation", seconds, sampled["fragmentation"], "unusable part of what is free", "ratio"),
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
