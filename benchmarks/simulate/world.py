"""The state of the cluster in a replay, and the checks of all placements.

It uses the trace and the placements only, not the engine: a defect there cannot hide itself. Violations are counted
and reported; they do not stop the replay.

    NOT_YET -> WAITING -> ASSUMED -> RUNNING -> DONE
                  ^          |          |
                  +----------+----------+   bind failed, machine lost (then it is a new attempt)
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

import numpy as np

from benchmarks.traces.form import MachineEvent, Trace
from firmament_py.model.arrays import I64, U8, Bools
from firmament_py.model.resources import TASK_SLOTS

DEFAULT_TASK_SLOTS = 250
"""Default number of tasks that a machine can run."""


class State(IntEnum):
    """The state of a task."""

    NOT_YET = 0
    WAITING = 1
    ASSUMED = 2
    RUNNING = 3
    DONE = 4


class World:
    """M machines, T tasks, C shapes, R resources: those of the trace, and task slots."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        slots = TASK_SLOTS in trace.resources
        self.resources = trace.resources if slots else (*trace.resources, TASK_SLOTS)
        requests = trace.requests if slots else np.c_[trace.requests, np.zeros(len(trace.shapes), np.int64)]
        self.requests: I64 = requests.copy()  # (C, R)
        self.requests[:, self.resources.index(TASK_SLOTS)] = 1
        machines, tasks, width = len(trace.machines), len(trace.task_us), len(self.resources)
        self.present: Bools = np.zeros(machines, np.bool_)
        self.allocatable: I64 = np.zeros((machines, width), np.int64)
        self.used: I64 = np.zeros((machines, width), np.int64)
        self.tasks_on: I64 = np.zeros(machines, np.int64)
        self.state: U8 = np.zeros(tasks, np.uint8)
        self.machine: I64 = np.full(tasks, -1, np.int64)
        self.attempt: I64 = np.zeros(tasks, np.int64)
        self.waiting_of: I64 = np.zeros(len(trace.shapes), np.int64)  # pending tasks of each shape
        self.used_total: I64 = np.zeros(width, np.int64)  # of present machines
        self.allocatable_total: I64 = np.zeros(width, np.int64)
        self.waiting_total: I64 = np.zeros(width, np.int64)  # requests of the pending tasks
        self.violations: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.minimum: I64 = np.array([job.gang_minimum for job in trace.jobs], np.int64)
        self._of_job: list[I64] | None = None
        self._matching: dict[int, Bools | None] = {}

    # -- queries ----------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """The number of pending tasks."""
        return int(self.waiting_of.sum())

    def count(self, state: State) -> int:
        """The number of tasks in a state."""
        return int((self.state == state).sum())

    def members(self, job: int) -> I64:
        """The tasks of a job."""
        if self._of_job is None:
            order = np.argsort(self.trace.task_job, kind="stable")
            ends = np.cumsum(np.bincount(self.trace.task_job, minlength=len(self.trace.jobs)))
            self._of_job = np.split(order, ends[:-1])
        return self._of_job[job]

    def matching(self, shape: int) -> Bools | None:
        """(M,) machines that the shape's selector matches; None: all."""
        if shape not in self._matching:
            selector = self.trace.shapes[shape].selector
            self._matching[shape] = (
                np.array([all(r.matches(m.labels) for r in selector) for m in self.trace.machines], np.bool_)
                if selector
                else None
            )
        return self._matching[shape]

    def fits(self, shape: int) -> Bools:
        """(M,) machines on which one more task of the shape fits now."""
        fitting: Bools = self.present & (self.allocatable - self.used >= self.requests[shape]).all(axis=1)
        matching = self.matching(shape)
        return fitting if matching is None else fitting & matching

    # -- events -----------------------------------------------------------------------------------------------

    def submit(self, tasks: I64) -> None:
        """Tasks are submitted."""
        self._move(tasks, State.NOT_YET, State.WAITING)
        self._count_waiting(tasks, +1)

    def machine_event(self, machine: int, kind: MachineEvent, allocatable: I64) -> None:
        """A machine is added, updated or removed. `lose` handles the tasks of a removed one."""
        offered = np.zeros(len(self.resources), np.int64)
        if kind != MachineEvent.REMOVE:
            offered[: len(allocatable)] = allocatable
            slots = self.resources.index(TASK_SLOTS)
            offered[slots] = offered[slots] or DEFAULT_TASK_SLOTS
        before, after = bool(self.present[machine]), kind != MachineEvent.REMOVE
        self.used_total += self.used[machine] * (int(after) - int(before))
        self.allocatable_total += offered - self.allocatable[machine]
        self.allocatable[machine], self.present[machine] = offered, after

    def assume(self, tasks: I64, machines: I64) -> None:
        """A round places tasks (K,) on machines (K,): checks the placements and allocates their requests."""
        bad = (self.state[tasks] != State.WAITING) | (self.attempt[tasks] < 0)
        if bad.any() or len(np.unique(tasks)) < len(tasks):
            self._record("only pending tasks are placed, each once", self._names(tasks[bad]))
            tasks, machines = tasks[~bad], machines[~bad]
            tasks, first = np.unique(tasks, return_index=True)
            machines = machines[first]
        absent = (machines < 0) | ~self.present[machines]
        if absent.any():
            self._record("no task is placed on a removed machine", self._names(tasks[absent]))
            machines, tasks = machines[~absent], tasks[~absent]
        shapes = self.trace.task_shape[tasks]
        for shape in np.unique(shapes).tolist():
            matching = self.matching(shape)
            if matching is not None and not matching[machines[shapes == shape]].all():
                self._record("every placement matches the selector of its task", f"shape {shape}")
        self._move(tasks, State.WAITING, State.ASSUMED)
        self._count_waiting(tasks, -1)
        self.machine[tasks] = machines
        self._allocate(tasks, +1)
        added = np.zeros_like(self.used)
        np.add.at(added, machines, self.requests[shapes])
        over = (added > 0) & (self.used > self.allocatable)
        if over.any():
            machine, resource = (int(x[0]) for x in np.nonzero(over))
            self._record(
                "no machine is over-committed", f"{self.trace.machines[machine].name} in {self.resources[resource]}"
            )
        for job in np.unique(self.trace.task_job[tasks]).tolist():
            if self.minimum[job] > 1:
                self._check_gang(job)

    def bind(self, tasks: I64) -> tuple[I64, I64]:
        """ASSUMED tasks are bound: those whose machine is present, which run now, and the others, which are pending
        again."""
        present = self.present[self.machine[tasks]]
        bound, failed = tasks[present], tasks[~present]
        self._move(bound, State.ASSUMED, State.RUNNING)
        self._allocate(failed, -1)
        self._move(failed, State.ASSUMED, State.WAITING)
        self._count_waiting(failed, +1)
        return bound, failed

    def end(self, task: int) -> None:
        """A running task ends."""
        one = np.array([task])
        self._allocate(one, -1)
        self._move(one, State.RUNNING, State.DONE)

    def lose(self, tasks: I64) -> None:
        """RUNNING tasks are interrupted and become pending again, as another attempt."""
        self._allocate(tasks, -1)
        self._move(tasks, State.RUNNING, State.WAITING)
        self._count_waiting(tasks, +1)
        self.attempt[tasks] += 1

    def check_waiting(self, overdue_us: int | None) -> None:
        """After a round: no task may wait that fits on a machine. Not checked while a gang waits, or a task submitted
        at overdue_us or before (None: no such limit), because capacity may be reserved for it."""
        shapes = [c for c in np.flatnonzero(self.waiting_of).tolist() if self.fits(c).any()]
        if not shapes:
            return
        waiting = np.flatnonzero(self.state == State.WAITING)
        if (self.minimum[self.trace.task_job[waiting]] > 1).any():
            return
        if overdue_us is not None and (self.trace.task_us[waiting] <= overdue_us).any():
            return
        fitting = waiting[np.isin(self.trace.task_shape[waiting], shapes)]
        self._record("no task waits that fits on a machine", self._names(fitting))

    def check_totals(self) -> None:
        """At the end: the used amounts of every machine are those of its tasks."""
        placed = np.flatnonzero((self.state == State.ASSUMED) | (self.state == State.RUNNING))
        used = np.zeros_like(self.used)
        np.add.at(used, self.machine[placed], self.requests[self.trace.task_shape[placed]])
        if (used != self.used).any():
            self._record("the totals of every machine are those of its tasks", "used")
        if not self.present[self.machine[self.state == State.RUNNING]].all():
            self._record("no task runs on a removed machine", "")

    # -- details ----------------------------------------------------------------------------------------------

    def _check_gang(self, job: int) -> None:
        states = self.state[self.members(job)]
        placed = int((states >= State.ASSUMED).sum())
        if 0 < placed < self.minimum[job]:
            self._record(
                "no gang is placed in part", f"{self.trace.jobs[job].name}: {placed} of at least {self.minimum[job]}"
            )

    def _move(self, tasks: I64, before: State, after: State) -> None:
        if (self.state[tasks] != before).any():
            raise AssertionError(f"the replay moves a task from {before.name} to {after.name} that is in another state")
        self.state[tasks] = after

    def _count_waiting(self, tasks: I64, sign: int) -> None:
        counts = np.bincount(self.trace.task_shape[tasks], minlength=len(self.waiting_of))
        self.waiting_of += sign * counts
        self.waiting_total += sign * (counts @ self.requests)

    def _allocate(self, tasks: I64, sign: int) -> None:
        """Allocates (+1) or releases (-1) the requests of tasks on their machines."""
        machines, amounts = self.machine[tasks], self.requests[self.trace.task_shape[tasks]]
        np.add.at(self.used, machines, sign * amounts)
        np.add.at(self.tasks_on, machines, sign)
        self.used_total += sign * amounts[self.present[machines]].sum(axis=0)
        if sign < 0:
            self.machine[tasks] = -1

    def _record(self, what: str, example: str) -> None:
        self.violations[what] += 1
        self.examples.setdefault(what, example)

    def _names(self, tasks: I64) -> str:
        return ", ".join(self.trace.task_name(t) for t in tasks[:3].tolist())
