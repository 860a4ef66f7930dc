"""Tasks of a trace that do not fit on any empty machine."""

from __future__ import annotations

import numpy as np

from benchmarks.traces.form import MachineEvent, Trace
from benchmarks.traces.texts import amount_text
from firmament_py.model.arrays import I64
from firmament_py.model.constraints import Requirement
from firmament_py.model.resources import TASK_SLOTS


def homeless(trace: Trace) -> I64:
    """Tasks that no empty machine of the trace can run: at all times each lacks a requested amount, or the selector
    excludes it. Machines that are removed before the task is submitted count, too.
    """
    # a task takes one slot, and every machine has at least one
    counted = [r for r, name in enumerate(trace.resources) if name != TASK_SLOTS]
    there = trace.event_kind != MachineEvent.REMOVE
    offers = np.unique(np.c_[trace.event_machine[there], trace.event_allocatable[there][:, counted]], axis=0)
    machines, offers = offers[:, 0], offers[:, 1:]
    kinds = np.unique(offers, axis=0)
    found: dict[tuple[bytes, tuple[Requirement, ...]], bool] = {}
    lost = np.zeros(len(trace.shapes), np.bool_)
    for c, requests in enumerate(trace.requests[:, counted]):
        selector = trace.shapes[c].selector
        key = (requests.tobytes(), selector)
        if key not in found:
            fits = (kinds >= requests).all(axis=1).any()
            if fits and selector:
                suits = machines[(offers >= requests).all(axis=1)]
                fits = any(all(r.matches(trace.machines[m].labels) for r in selector) for m in suits.tolist())
            found[key] = bool(fits)
        lost[c] = not found[key]
    return np.flatnonzero(lost[trace.task_shape])


def notes(trace: Trace) -> list[str]:
    """A note on the tasks that no empty machine can run."""
    tasks = homeless(trace)
    if not len(tasks):
        return []
    shape = trace.shapes[int(trace.task_shape[tasks[0]])]
    asked = [f"{name} {amount_text(name, amount)}" for name, amount in shape.requests]
    asked += [f"{r.key} {r.operator} {'|'.join(r.values)}".rstrip() for r in shape.selector]
    return [
        f"{len(tasks)} tasks do not fit on any empty machine of the trace and wait forever, "
        f"e.g. {trace.task_name(int(tasks[0]))} ({', '.join(asked)})"
    ]
