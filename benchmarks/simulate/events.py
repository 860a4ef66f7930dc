"""The machines and tasks of a replay as the engine's events."""

from __future__ import annotations

import numpy as np

from benchmarks.simulate.labels import TraceLabels
from benchmarks.simulate.world import State, World
from benchmarks.traces.form import INTERFERENCE, SECOND
from firmament_py.model.arrays import I64, U64
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.events import (
    Block,
    ClassDefined,
    Event,
    GangObserved,
    InputsDefined,
    NodeObserved,
    TasksObserved,
)
from firmament_py.model.resources import LINKS

BEGIN_US = 1_700_000_000 * SECOND
"""The scheduler's time at the start of the trace."""

_BITS = 1000  # a kilobit
_POWERS = 10 ** np.arange(18, dtype=np.int64)

_ATTEMPT = 40
"""First bit of the attempt in a task's uid; the lower bits are its number plus 1. A task that starts again is a new
task to the scheduler, as a pod is."""


class EventSource:
    """links: whether bandwidth is a resource. expected_us (T,): expected durations of tasks, None: unknown.

    gangs: the jobs for which a GangObserved was made."""

    def __init__(self, world: World, *, links: bool = False, expected_us: I64 | None = None) -> None:
        self._world, self._trace, self._links, self._expected_us = world, world.trace, links, expected_us
        self._labels = TraceLabels(world.trace)
        self.gangs: set[int] = set()
        self._class_of, self._definitions = self._classes()

    def uids(self, tasks: I64) -> U64:
        """(K,) the uids of the current attempts of tasks (K,)."""
        return ((tasks + 1) + (self._world.attempt[tasks] << _ATTEMPT)).astype(np.uint64)

    def parse(self, uids: U64) -> tuple[I64, I64]:
        """Tasks and attempts that uids (K,) stand for, (K,) each."""
        plain = uids.astype(np.int64)
        return (plain & ((1 << _ATTEMPT) - 1)) - 1, plain >> _ATTEMPT

    def machine(self, machine: int) -> NodeObserved:
        """A machine as it is now."""
        about = self._trace.machines[machine]
        offer = dict(zip(self._world.resources, self._world.allocatable[machine].tolist(), strict=True))
        if self._links:
            offer |= dict.fromkeys(LINKS, int(self._labels.link_kbps[machine]) * _BITS)
        return NodeObserved(about.name, about.name, offer, about.labels)

    def submitted(self, tasks: I64) -> list[Event]:
        """Pending tasks, after their classes, inputs and gangs."""
        trace = self._trace
        events: list[Event] = [self._definitions[c] for c in np.unique(self._class_of[tasks]).tolist()]
        for job in np.unique(trace.task_job[tasks]).tolist():
            if self._labels.bytes[job] >= 0:
                events.append(self._inputs(job))
            if trace.jobs[job].gang_minimum > 1:
                events.append(self.gang(job))
                self.gangs.add(job)
        return [*events, self._observed(tasks, np.zeros(len(tasks), np.int64), (), 0)]

    def bound(self, tasks: I64, now: int) -> TasksObserved:
        """Tasks that run on their machines from now on."""
        machines, node = np.unique(self._world.machine[tasks], return_inverse=True)
        names = tuple(self._trace.machines[m].name for m in machines.tolist())
        return self._observed(tasks, node.astype(np.int64) + 1, names, BEGIN_US + now)

    def gang(self, job: int) -> GangObserved:
        """A gang as it is now: members that have ended no longer count towards its minimum."""
        about, members = self._trace.jobs[job], self._world.members(job)
        ended = int((self._world.state[members] == State.DONE).sum())
        created_us = BEGIN_US + int(self._trace.task_us[members].min())
        return GangObserved(job + 1, max(about.gang_minimum - ended, 1), created_us, name=about.name)

    def _observed(self, tasks: I64, node: I64, nodes: tuple[str, ...], started_us: int) -> TasksObserved:
        trace = self._trace
        jobs = trace.task_job[tasks]
        in_gang = np.array([trace.jobs[j].gang_minimum > 1 for j in jobs.tolist()], np.bool_)
        return TasksObserved(
            uid=self.uids(tasks),
            class_id=(self._class_of[tasks] + 1).astype(np.uint64),
            job_id=(jobs + 1).astype(np.uint64),
            created_us=BEGIN_US + trace.task_us[tasks],
            node=node,
            names=[trace.task_name(t) for t in tasks.tolist()],
            nodes=nodes,
            gang_id=np.where(in_gang, jobs + 1, 0).astype(np.uint64),
            inputs_id=np.where(self._labels.bytes[jobs] >= 0, jobs + 1, 0).astype(np.uint64),
            started_us=np.full(len(tasks), started_us),
        )

    def _inputs(self, job: int) -> InputsDefined:
        """The input of each task of a job: one block."""
        holders = tuple(self._trace.machines[m].name for m in self._labels.holders(job))
        return InputsDefined(job + 1, (Block(int(self._labels.bytes[job]), holders),))

    def _classes(self) -> tuple[I64, list[ClassDefined]]:
        """(T,) the class of each task, and the classes: tasks of one shape with equal labels of their jobs and equal
        expected durations."""
        trace, labels = self._trace, self._labels
        natures: dict[tuple[str, int], int] = {}
        nature_of_job = np.zeros(len(trace.jobs), np.int64)
        for j, job in enumerate(trace.jobs):
            nature = (job.labels.get(INTERFERENCE, ""), max(int(labels.kbps[j]), 0) if self._links else 0)
            nature_of_job[j] = natures.setdefault(nature, len(natures))
        declared = self._expected_us
        expected = np.zeros(len(trace.task_us), np.int64) if declared is None else rounded_s(declared)
        keys, class_of = np.unique(
            np.column_stack([trace.task_shape, nature_of_job[trace.task_job], expected]), axis=0, return_inverse=True
        )
        by_number, definitions = list(natures), []
        for c, (s, n, seconds) in enumerate(keys.tolist()):
            shape, (kind, kbps) = trace.shapes[s], by_number[n]
            requests = dict(shape.requests) | (dict.fromkeys(LINKS, kbps * _BITS) if kbps else {})
            definitions.append(
                ClassDefined(
                    c + 1,
                    requests,
                    NodeDemand(selector=shape.selector),
                    shape.priority,
                    f"shape-{s}",
                    traits={INTERFERENCE: kind} if kind else {},
                    expected_us=seconds * SECOND,
                )
            )
        return class_of.reshape(-1).astype(np.int64), definitions


def rounded_s(duration_us: I64) -> I64:
    """(K,) whole seconds, rounded up, then to two significant digits, as the bridge does; 0 for FOREVER."""
    seconds = np.maximum(-(-duration_us // SECOND), 0)
    digits = np.searchsorted(_POWERS, seconds, side="right")
    unit = _POWERS[np.maximum(digits - 2, 0)]
    return np.asarray((seconds + unit // 2) // unit * unit, np.int64)
