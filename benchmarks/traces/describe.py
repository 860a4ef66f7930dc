"""A summary of a trace in figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.traces.form import (
    BANDWIDTH,
    DATA_BYTES,
    FOREVER,
    INTERFERENCE,
    SECOND,
    MachineEvent,
    Trace,
    sizes_of_jobs,
)
from benchmarks.traces.generate import offered_load
from firmament_py.model.arrays import F64, I64


def describe(trace: Trace) -> dict[str, Any]:
    """Figures of a trace: JSON values only. Times in seconds; quantiles by percentage."""
    sizes = sizes_of_jobs(trace)
    sizes = sizes[sizes > 0]
    finite = trace.task_duration_us != FOREVER
    first = np.unique(trace.task_job, return_index=True)[1]
    arrivals = np.sort(trace.task_us[first])
    arrivals = arrivals[arrivals > 0]
    events = np.bincount(trace.event_kind, minlength=3).tolist()
    labels = [key for key in (DATA_BYTES, BANDWIDTH, INTERFERENCE) if any(key in job.labels for job in trace.jobs)]
    constrained = np.array([bool(shape.selector) for shape in trace.shapes], np.bool_)
    priorities = np.array([shape.priority for shape in trace.shapes], np.int64)[trace.task_shape]
    last = max(int(trace.task_us.max(initial=0)), int(trace.event_us.max(initial=0)))
    return {
        "name": trace.name,
        "hours": round(last / SECOND / 3600, 3),
        "machines": len(trace.machines),
        "machine_events": {kind.name.lower(): events[kind] for kind in MachineEvent},
        "capacity": _by_name(trace, trace.capacity),
        "jobs": len(sizes),
        "tasks": len(trace.task_us),
        "tasks_that_stay": int((~finite).sum()),
        "shapes": len(trace.shapes),
        "tasks_a_job": {"mean": round(float(sizes.mean()), 2), **_quantiles(sizes)},
        "duration_s": _quantiles(trace.task_duration_us[finite] / SECOND),
        "seconds_between_jobs": {
            "mean": round(float(np.diff(arrivals).mean()) / SECOND, 3) if len(arrivals) > 1 else None
        },
        "request": {
            name: {"mean": round(float(column.mean()), 3), **_quantiles(column)}
            for name, column in zip(trace.resources, trace.requests[trace.task_shape].T, strict=True)
        },
        "load": {name: round(offered_load(trace, name), 4) for name in trace.resources},
        "gangs": sum(job.gang_minimum > 1 for job in trace.jobs),
        "constrained_tasks": round(float(constrained[trace.task_shape].mean()), 4),
        "tasks_by_priority": dict(zip(*(x.tolist() for x in np.unique(priorities, return_counts=True)), strict=True)),
        "labels": labels,
    }


def lines(figures: dict[str, Any]) -> list[str]:
    """The figures as lines of text."""
    return [f"{name.replace('_', ' '):<22} {_text(value)}" for name, value in figures.items()]


def _quantiles(values: I64 | F64) -> dict[str, float]:
    if not len(values):
        return {}
    return {f"p{q}": round(float(np.percentile(values, q)), 3) for q in (50, 90, 99, 100)}


def _by_name(trace: Trace, amounts: I64) -> dict[str, int]:
    return dict(zip(trace.resources, amounts.tolist(), strict=True))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "  ".join(
            f"{k} {_text(v)}" if not isinstance(v, dict) else f"{k} ({_text(v)})" for k, v in value.items()
        )
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
