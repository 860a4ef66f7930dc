"""The effects of placements on links, data and neighbours, from a trace's labels: at a moment, and up to now.

The functions take arrays and are independent of the scheduler.
"""

from __future__ import annotations

import numpy as np

from benchmarks.simulate.labels import TraceLabels
from benchmarks.simulate.world import State, World
from firmament_py.model.arrays import I64, Bools, run_positions
from policies import colocation

_PENALTY = colocation.penalties("")
"""Penalty of a task of a class (row) beside one of another class (column): the table that the policies use."""


def link_use(machine: I64, kbps: I64, link_kbps: I64) -> dict[str, float]:
    """Use of links with capacities (M,) by tasks on machines (K,) with traffic (K,): mean, 99th percentile, maximum,
    and the share of over-committed links."""
    use = np.bincount(machine, kbps, minlength=len(link_kbps)) / np.maximum(link_kbps, 1)
    return {
        "link use": float(use.mean()),
        "link p99": float(np.percentile(use, 99)) if len(use) else 0.0,
        "fullest link": float(use.max(initial=0.0)),
        "links over": float((use > 1).mean()),
    }


def near_data(machine: I64, task: I64, holder: I64, rack: I64) -> tuple[Bools, Bools]:
    """(K,) whether the machine of a task stores its input, and (K,) whether a machine of its rack does. Tasks run on
    machines (K,); machine holder[p] stores the input of task[p], (P,) each; rack (M,)."""
    on_machine, in_rack = np.zeros(len(machine), np.bool_), np.zeros(len(machine), np.bool_)
    np.logical_or.at(on_machine, task, holder == machine[task])
    np.logical_or.at(in_rack, task, rack[holder] == rack[machine[task]])
    return on_machine, in_rack


def interference(machine: I64, kind: I64, machines: int) -> float:
    """The mean penalty of tasks of classes (K,), positions in colocation.KINDS, on machines (K,)."""
    if not len(machine):
        return 0.0
    neighbours = np.zeros((machines, len(_PENALTY)))
    np.add.at(neighbours, (machine, kind), 1)
    penalty = (neighbours @ _PENALTY.T)[machine, kind] - _PENALTY[kind, kind]  # without itself
    return float(penalty.mean())


class Effects:
    """The effects in a world. Call `started` whenever tasks start, `sample` at any time."""

    def __init__(self, world: World) -> None:
        self._world, self._labels = world, TraceLabels(world.trace)
        self._read = self._moved = self._across = 0.0  # bytes

    def started(self, tasks: I64) -> None:
        """Tasks (K,) start and read their input."""
        labels = self._labels
        tasks = tasks[labels.bytes[self._world.trace.task_job[tasks]] >= 0]
        jobs, machine = self._world.trace.task_job[tasks], self._world.machine[tasks]
        copies = labels.copies[jobs]
        task = np.repeat(np.arange(len(tasks)), copies)
        holder = labels.holder[labels.first[jobs][task] + run_positions(copies)]
        on_machine, in_rack = near_data(machine, task, holder, labels.rack)
        size = labels.bytes[jobs].astype(np.float64)
        self._read += float(size.sum())
        self._moved += float(size[~on_machine].sum())
        self._across += float(size[~in_rack].sum())

    def sample(self) -> dict[str, float]:
        """By name: use of links and mean interference of the running tasks; of all input read so far, the shares from
        other machines and from other racks. Effects for which no job has a label are left out."""
        world, labels = self._world, self._labels
        running = np.flatnonzero(world.state == State.RUNNING)
        jobs, machine = world.trace.task_job[running], world.machine[running]
        found: dict[str, float] = {}
        if (labels.kbps >= 0).any():
            found |= link_use(machine, np.maximum(labels.kbps[jobs], 0), labels.link_kbps)
        if (labels.bytes >= 0).any():
            read = max(self._read, 1.0)
            found |= {"bytes moved": self._moved / read, "bytes across racks": self._across / read}
        if (labels.kind >= 0).any():
            classed = labels.kind[jobs] >= 0
            found["interference"] = interference(machine[classed], labels.kind[jobs][classed], len(labels.rack))
        return found
