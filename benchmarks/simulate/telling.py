"""What a replay tells the scheduler: the world's machines and tasks as the engine's events."""

from __future__ import annotations

import numpy as np

from benchmarks.simulate.said import Said
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
"""What the scheduler's clock says at the trace's begin."""

_BITS = 1000  # a kilobit
_POWERS = 10 ** np.arange(18, dtype=np.int64)

_ATTEMPT = 40
"""A task's uid: its number plus 1, and from this bit on its attempt. What starts again is a new task, as a pod is."""


class Teller:
    """gangs: numbers of the jobs that were told of as gangs. links: whether traffic is told of as a resource.
    expectations: whether jobs say how long their tasks will run.
    """

    def __init__(self, world: World, *, links: bool = False, expectations: bool = False) -> None:
        self._world, self._trace, self._links, self._expectations = world, world.trace, links, expectations
        self._said = Said(world.trace)
        self.gangs: set[int] = set()
        self._class_of, self._definitions = self._classes()

    def uids(self, tasks: I64) -> U64:
        return ((tasks + 1) + (self._world.attempt[tasks] << _ATTEMPT)).astype(np.uint64)

    def parse(self, uids: U64) -> tuple[I64, I64]:
        """Tasks and attempts that uids (K,) stand for, (K,) each."""
        plain = uids.astype(np.int64)
        return (plain & ((1 << _ATTEMPT) - 1)) - 1, plain >> _ATTEMPT

    def machine(self, machine: int) -> NodeObserved:
        about = self._trace.machines[machine]
        offer = dict(zip(self._world.resources, self._world.allocatable[machine].tolist(), strict=True))
        if self._links:
            offer |= dict.fromkeys(LINKS, int(self._said.link_kbps[machine]) * _BITS)
        return NodeObserved(about.name, about.name, offer, about.labels)

    def submitted(self, tasks: I64) -> list[Event]:
        """Tasks that wait, after their classes, inputs and gangs."""
        trace = self._trace
        events: list[Event] = [self._definitions[c] for c in np.unique(self._class_of[tasks]).tolist()]
        for job in np.unique(trace.task_job[tasks]).tolist():
            if self._said.bytes[job] >= 0:
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
        """A gang as it is now: members that have ended have no part in its minimum any more."""
        about, members = self._trace.jobs[job], self._world.members(job)
        ended = int((self._world.state[members] == State.DONE).sum())
        came = BEGIN_US + int(self._trace.task_us[members].min())
        return GangObserved(job + 1, max(about.gang_minimum - ended, 1), came, name=about.name)

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
            inputs_id=np.where(self._said.bytes[jobs] >= 0, jobs + 1, 0).astype(np.uint64),
            started_us=np.full(len(tasks), started_us),
        )

    def _inputs(self, job: int) -> InputsDefined:
        """What each task of a job reads: one block."""
        holders = tuple(self._trace.machines[m].name for m in self._said.holders(job))
        return InputsDefined(job + 1, (Block(int(self._said.bytes[job]), holders),))

    def _classes(self) -> tuple[I64, list[ClassDefined]]:
        """(T,) the class of each task, and the classes: tasks of one shape whose jobs' labels say the same, and that
        expect to run equally long."""
        trace, told = self._trace, self._said
        natures: dict[tuple[str, int], int] = {}
        nature_of_job = np.zeros(len(trace.jobs), np.int64)
        for j, job in enumerate(trace.jobs):
            said = (job.labels.get(INTERFERENCE, ""), max(int(told.kbps[j]), 0) if self._links else 0)
            nature_of_job[j] = natures.setdefault(said, len(natures))
        expected = rounded_s(trace.task_duration_us) if self._expectations else np.zeros(len(trace.task_us), np.int64)
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
    """(K,) whole seconds, up, then to two significant digits, as a bridge tells of them; 0 for FOREVER."""
    seconds = np.maximum(-(-duration_us // SECOND), 0)
    digits = np.searchsorted(_POWERS, seconds, side="right")
    unit = _POWERS[np.maximum(digits - 2, 0)]
    return np.asarray((seconds + unit // 2) // unit * unit, np.int64)
