"""What a replay tells the scheduler: the world's machines and tasks as the engine's events."""

from __future__ import annotations

import numpy as np

from benchmarks.simulate.world import State, World
from benchmarks.traces.form import SECOND
from firmament_py.arrays import I64, U64
from firmament_py.constraints import NodeDemand
from firmament_py.events import ClassDefined, Event, GangObserved, NodeObserved, TasksObserved

BEGIN_US = 1_700_000_000 * SECOND
"""What the scheduler's clock says at the trace's begin."""

_ATTEMPT = 40
"""A task's uid: its number plus 1, and from this bit on its attempt. What starts again is a new task, as a pod is."""


class Teller:
    """gangs: numbers of the jobs that were told of as gangs."""

    def __init__(self, world: World) -> None:
        self._world, self._trace = world, world.trace
        self.gangs: set[int] = set()

    def uids(self, tasks: I64) -> U64:
        return ((tasks + 1) + (self._world.attempt[tasks] << _ATTEMPT)).astype(np.uint64)

    def parse(self, uids: U64) -> tuple[I64, I64]:
        """Tasks and attempts that uids (K,) stand for, (K,) each."""
        plain = uids.astype(np.int64)
        return (plain & ((1 << _ATTEMPT) - 1)) - 1, plain >> _ATTEMPT

    def machine(self, machine: int) -> NodeObserved:
        about = self._trace.machines[machine]
        offer = self._world.allocatable[machine].tolist()
        return NodeObserved(about.name, about.name, dict(zip(self._world.resources, offer, strict=True)), about.labels)

    def submitted(self, tasks: I64) -> list[Event]:
        """Tasks that wait, after their classes and gangs."""
        trace = self._trace
        events: list[Event] = [
            ClassDefined(
                shape + 1,
                dict(trace.shapes[shape].requests),
                NodeDemand(selector=trace.shapes[shape].selector),
                trace.shapes[shape].priority,
                f"shape-{shape}",
            )
            for shape in np.unique(trace.task_shape[tasks]).tolist()
        ]
        for job in np.unique(trace.task_job[tasks]).tolist():
            if trace.jobs[job].gang_minimum > 1:
                events.append(self.gang(job))
                self.gangs.add(job)
        return [*events, self._observed(tasks, np.zeros(len(tasks), np.int64), ())]

    def bound(self, tasks: I64) -> TasksObserved:
        """Tasks that run on their machines."""
        machines, node = np.unique(self._world.machine[tasks], return_inverse=True)
        names = tuple(self._trace.machines[m].name for m in machines.tolist())
        return self._observed(tasks, node.astype(np.int64) + 1, names)

    def gang(self, job: int) -> GangObserved:
        """A gang as it is now: members that have ended have no part in its minimum any more."""
        about, members = self._trace.jobs[job], self._world.members(job)
        ended = int((self._world.state[members] == State.DONE).sum())
        came = BEGIN_US + int(self._trace.task_us[members].min())
        return GangObserved(job + 1, max(about.gang_minimum - ended, 1), came, name=about.name)

    def _observed(self, tasks: I64, node: I64, nodes: tuple[str, ...]) -> TasksObserved:
        trace = self._trace
        jobs = trace.task_job[tasks]
        in_gang = np.array([trace.jobs[j].gang_minimum > 1 for j in jobs.tolist()], np.bool_)
        return TasksObserved(
            uid=self.uids(tasks),
            class_id=(trace.task_shape[tasks] + 1).astype(np.uint64),
            job_id=(jobs + 1).astype(np.uint64),
            created_us=BEGIN_US + trace.task_us[tasks],
            node=node,
            names=[trace.task_name(t) for t in tasks.tolist()],
            nodes=nodes,
            gang_id=np.where(in_gang, jobs + 1, 0).astype(np.uint64),
        )
