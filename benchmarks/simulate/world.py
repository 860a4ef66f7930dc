"""The cluster as it is in a replay, and the judge of everything that is placed on it.

It knows the trace and what was placed, and nothing of the engine: an error there cannot hide itself. What must not
happen is counted and told, and does not stop the replay.

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
"""Tasks that a machine takes at most if the trace does not say how many."""


class State(IntEnum):
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
        self.waiting_of: I64 = np.zeros(len(trace.shapes), np.int64)  # tasks of each shape that wait
        self.used_total: I64 = np.zeros(width, np.int64)  # of machines that are there
        self.allocatable_total: I64 = np.zeros(width, np.int64)
        self.waiting_total: I64 = np.zeros(width, np.int64)  # what those who wait request
        self.violations: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.minimum: I64 = np.array([job.gang_minimum for job in trace.jobs], np.int64)
        self._of_job: list[I64] | None = None
        self._suits: dict[int, Bools | None] = {}

    # -- questions --------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return int(self.waiting_of.sum())

    def count(self, state: State) -> int:
        return int((self.state == state).sum())

    def members(self, job: int) -> I64:
        """Tasks of a job."""
        if self._of_job is None:
            order = np.argsort(self.trace.task_job, kind="stable")
            ends = np.cumsum(np.bincount(self.trace.task_job, minlength=len(self.trace.jobs)))
            self._of_job = np.split(order, ends[:-1])
        return self._of_job[job]

    def suits(self, shape: int) -> Bools | None:
        """(M,) machines whose labels the shape's selector allows; None: all."""
        if shape not in self._suits:
            selector = self.trace.shapes[shape].selector
            self._suits[shape] = (
                np.array([all(r.matches(m.labels) for r in selector) for m in self.trace.machines], np.bool_)
                if selector
                else None
            )
        return self._suits[shape]

    def fits(self, shape: int) -> Bools:
        """(M,) machines that could take one more task of the shape now."""
        room: Bools = self.present & (self.allocatable - self.used >= self.requests[shape]).all(axis=1)
        suits = self.suits(shape)
        return room if suits is None else room & suits

    # -- what happens -----------------------------------------------------------------------------------------

    def submit(self, tasks: I64) -> None:
        self._move(tasks, State.NOT_YET, State.WAITING)
        self._wait(tasks, +1)

    def machine_event(self, machine: int, kind: MachineEvent, allocatable: I64) -> None:
        """A machine comes, changes or goes. Its tasks are dealt with by `lose`."""
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
        """A round places tasks (K,) on machines (K,): judges it, and holds their room."""
        bad = (self.state[tasks] != State.WAITING) | (self.attempt[tasks] < 0)
        if bad.any() or len(np.unique(tasks)) < len(tasks):
            self._blame("a task is placed that does not wait, or twice", self._names(tasks[bad]))
            tasks, machines = tasks[~bad], machines[~bad]
            tasks, first = np.unique(tasks, return_index=True)
            machines = machines[first]
        absent = (machines < 0) | ~self.present[machines]
        if absent.any():
            self._blame("a task is placed on a machine that is not there", self._names(tasks[absent]))
            machines, tasks = machines[~absent], tasks[~absent]
        shapes = self.trace.task_shape[tasks]
        for shape in np.unique(shapes).tolist():
            suits = self.suits(shape)
            if suits is not None and not suits[machines[shapes == shape]].all():
                self._blame("a task is placed on a machine that its selector excludes", f"shape {shape}")
        self._move(tasks, State.WAITING, State.ASSUMED)
        self._wait(tasks, -1)
        self.machine[tasks] = machines
        self._hold(tasks, +1)
        added = np.zeros_like(self.used)
        np.add.at(added, machines, self.requests[shapes])
        over = (added > 0) & (self.used > self.allocatable)
        if over.any():
            machine, resource = (int(x[0]) for x in np.nonzero(over))
            self._blame(
                "a machine is over-committed", f"{self.trace.machines[machine].name} in {self.resources[resource]}"
            )
        for job in np.unique(self.trace.task_job[tasks]).tolist():
            if self.minimum[job] > 1:
                self._judge_gang(job)

    def bind(self, tasks: I64) -> tuple[I64, I64]:
        """Those of the ASSUMED tasks whose machine is still there, which run from now on, and the others, which wait
        again."""
        there = self.present[self.machine[tasks]]
        bound, failed = tasks[there], tasks[~there]
        self._move(bound, State.ASSUMED, State.RUNNING)
        self._hold(failed, -1)
        self._move(failed, State.ASSUMED, State.WAITING)
        self._wait(failed, +1)
        return bound, failed

    def end(self, task: int) -> None:
        one = np.array([task])
        self._hold(one, -1)
        self._move(one, State.RUNNING, State.DONE)

    def lose(self, tasks: I64) -> None:
        """RUNNING tasks stop without having ended, and wait again as another attempt."""
        self._hold(tasks, -1)
        self._move(tasks, State.RUNNING, State.WAITING)
        self._wait(tasks, +1)
        self.attempt[tasks] += 1

    def judge_waste(self, overdue_us: int | None) -> None:
        """After a round: does a task wait beside room for it? Not while a gang waits, or a task that came at overdue_us
        or before (None: it does not matter), which may keep room."""
        shapes = [c for c in np.flatnonzero(self.waiting_of).tolist() if self.fits(c).any()]
        if not shapes:
            return
        waiting = np.flatnonzero(self.state == State.WAITING)
        if (self.minimum[self.trace.task_job[waiting]] > 1).any():
            return
        if overdue_us is not None and (self.trace.task_us[waiting] <= overdue_us).any():
            return
        wasted = waiting[np.isin(self.trace.task_shape[waiting], shapes)]
        self._blame("a task waits beside room for it", self._names(wasted))

    def judge_end(self) -> None:
        """At the end: the books of every machine are right."""
        holding = np.flatnonzero((self.state == State.ASSUMED) | (self.state == State.RUNNING))
        used = np.zeros_like(self.used)
        np.add.at(used, self.machine[holding], self.requests[self.trace.task_shape[holding]])
        if (used != self.used).any():
            self._blame("the replay lost count of a machine", "used")
        if not self.present[self.machine[self.state == State.RUNNING]].all():
            self._blame("a task runs on a machine that is not there", "")

    # -- details ----------------------------------------------------------------------------------------------

    def _judge_gang(self, job: int) -> None:
        states = self.state[self.members(job)]
        there = int((states >= State.ASSUMED).sum())
        if 0 < there < self.minimum[job]:
            self._blame(
                "a gang is placed in part", f"{self.trace.jobs[job].name}: {there} of at least {self.minimum[job]}"
            )

    def _move(self, tasks: I64, before: State, after: State) -> None:
        if (self.state[tasks] != before).any():
            raise AssertionError(f"the replay takes a task from {before.name} to {after.name} that is elsewhere")
        self.state[tasks] = after

    def _wait(self, tasks: I64, sign: int) -> None:
        counts = np.bincount(self.trace.task_shape[tasks], minlength=len(self.waiting_of))
        self.waiting_of += sign * counts
        self.waiting_total += sign * (counts @ self.requests)

    def _hold(self, tasks: I64, sign: int) -> None:
        """Adds (+1) or takes away (-1) what tasks hold on their machines."""
        machines, amounts = self.machine[tasks], self.requests[self.trace.task_shape[tasks]]
        np.add.at(self.used, machines, sign * amounts)
        np.add.at(self.tasks_on, machines, sign)
        self.used_total += sign * amounts[self.present[machines]].sum(axis=0)
        if sign < 0:
            self.machine[tasks] = -1

    def _blame(self, what: str, example: str) -> None:
        self.violations[what] += 1
        self.examples.setdefault(what, example)

    def _names(self, tasks: I64) -> str:
        return ", ".join(self.trace.task_name(t) for t in tasks[:3].tolist())
