"""What placements do to links, to data and to neighbours, as far as a trace's labels say so; at a moment, and so far.

The functions take arrays, so they suit any scheduler.
"""

from __future__ import annotations

import numpy as np

from benchmarks.simulate.said import Said
from benchmarks.simulate.world import State, World
from firmament_py.model.arrays import I64, Bools, run_positions
from policies import colocation

_PENALTY = colocation.penalties("")
"""What a task (row) suffers from one beside it: the table by which the policies price, too."""


def link_use(machine: I64, kbps: I64, link_kbps: I64) -> dict[str, float]:
    """Tasks (K,) on machines (K,) cause traffic (K,); links (M,) carry so much. Mean use of a link, the 99th
    percentile and the greatest, and the share of the links that are asked for more than they carry."""
    use = np.bincount(machine, kbps, minlength=len(link_kbps)) / np.maximum(link_kbps, 1)
    return {
        "link use": float(use.mean()),
        "link p99": float(np.percentile(use, 99)) if len(use) else 0.0,
        "fullest link": float(use.max(initial=0.0)),
        "links over": float((use > 1).mean()),
    }


def near_data(machine: I64, task: I64, holder: I64, rack: I64) -> tuple[Bools, Bools]:
    """Tasks (K,) run on machines (K,); pair p says that holder[p] (P,) has the input of task[p] (P,); rack (M,).
    (K,) whether a task's machine has its input, and whether one of its rack has."""
    on_machine, in_rack = np.zeros(len(machine), np.bool_), np.zeros(len(machine), np.bool_)
    np.logical_or.at(on_machine, task, holder == machine[task])
    np.logical_or.at(in_rack, task, rack[holder] == rack[machine[task]])
    return on_machine, in_rack


def interference(machine: I64, kind: I64, machines: int) -> float:
    """Tasks (K,) of classes (K,), numbers in colocation.KINDS, on machines (K,): the mean of what they suffer."""
    if not len(machine):
        return 0.0
    beside = np.zeros((machines, len(_PENALTY)))
    np.add.at(beside, (machine, kind), 1)
    suffered = (beside @ _PENALTY.T)[machine, kind] - _PENALTY[kind, kind]  # not from itself
    return float(suffered.mean())


class Effects:
    """Follows a world. `started` whenever tasks begin to run, `sample` at any time."""

    def __init__(self, world: World) -> None:
        self._world, self._said = world, Said(world.trace)
        self._read = self._moved = self._across = 0.0  # bytes

    def started(self, tasks: I64) -> None:
        """Tasks (K,) begin to run and read their input."""
        said = self._said
        tasks = tasks[said.bytes[self._world.trace.task_job[tasks]] >= 0]
        jobs, machine = self._world.trace.task_job[tasks], self._world.machine[tasks]
        copies = said.copies[jobs]
        task = np.repeat(np.arange(len(tasks)), copies)
        holder = said.holder[said.first[jobs][task] + run_positions(copies)]
        on_machine, in_rack = near_data(machine, task, holder, said.rack)
        size = said.bytes[jobs].astype(np.float64)
        self._read += float(size.sum())
        self._moved += float(size[~on_machine].sum())
        self._across += float(size[~in_rack].sum())

    def sample(self) -> dict[str, float]:
        """By name: of what runs now, the use of links and the mean interference; of all input that was read so far,
        the shares from other machines and from other racks. Nothing of which no job says anything."""
        world, said = self._world, self._said
        running = np.flatnonzero(world.state == State.RUNNING)
        jobs, machine = world.trace.task_job[running], world.machine[running]
        found: dict[str, float] = {}
        if (said.kbps >= 0).any():
            found |= link_use(machine, np.maximum(said.kbps[jobs], 0), said.link_kbps)
        if (said.bytes >= 0).any():
            read = max(self._read, 1.0)
            found |= {"bytes moved": self._moved / read, "bytes across racks": self._across / read}
        if (said.kind >= 0).any():
            classed = said.kind[jobs] >= 0
            found["interference"] = interference(machine[classed], said.kind[jobs][classed], len(said.rack))
        return found
