"""The internal form of a trace: machines that are added, updated and removed, and jobs of tasks, as columns.

Times are microseconds from the start of the trace; amounts are in the engine's units (cpu in millicores, memory in
bytes, everything else in whole units). Tasks refer to a *shape*, their specification; a trace has few different shapes.
`TraceBuilder` sorts and checks; the trace that it returns is immutable.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import I64, U8, Bools
from firmament_py.model.constraints import Requirement

FOREVER = -1
"""Duration of a task that outlives the trace."""

SECOND = 1_000_000
HOUR = 3600 * SECOND

LONGEST_US = 10**12 * SECOND
MAX_AMOUNT = 2**53
MAX_INDEX = 2**53
MIN_PRIORITY, MAX_PRIORITY = -(2**31), 2**31 - 1
"""Bounds for values in files, so that sums of times and amounts stay far below 2**63; priorities as in Kubernetes."""

NO_LABELS: Mapping[str, str] = {}

DATA_BYTES, DATA_MACHINES = "data-bytes", "data-machines"
BANDWIDTH, INTERFERENCE = "bandwidth-kbps", "interference-class"
"""Labels of jobs that metrics use: input of each task and the machines that store it (names, separated by spaces);
network traffic of each task; sheep, rabbit, devil or turtle."""

LINK = "link-kbps"
"""Label of machines: capacity of the network link in each direction."""


class TraceError(ValueError):
    """A trace is invalid or cannot be read or written; the message names the place, the error and the remedy."""


class MachineEvent(IntEnum):
    """An event of a machine; numbers as in the Google cluster-usage trace."""

    ADD = 0
    REMOVE = 1
    UPDATE = 2


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a task that affect its placement. requests: (resource, amount > 0), by name."""

    requests: tuple[tuple[str, int], ...]
    priority: int = 0
    selector: tuple[Requirement, ...] = ()

    @staticmethod
    def of(requests: Mapping[str, int], priority: int = 0, selector: Sequence[Requirement] = ()) -> Shape:
        """The shape with these requests; amounts of 0 are left out."""
        return Shape(tuple(sorted((k, v) for k, v in requests.items() if v)), priority, tuple(selector))


@dataclass(frozen=True, slots=True)
class Job:
    """gang_minimum: at least this number of its tasks start together, or none; 0 or 1: each starts on its own."""

    name: str
    gang_minimum: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """M machines with E events, J jobs, T tasks, C shapes, R resources."""

    name: str
    resources: tuple[str, ...]
    machines: tuple[Machine, ...]
    event_us: I64  # (E,) ascending, >= 0
    event_machine: I64  # (E,) number of the machine
    event_kind: U8  # (E,) MachineEvent
    event_allocatable: I64  # (E, R) from then on; 0 at a removal
    jobs: tuple[Job, ...]
    shapes: tuple[Shape, ...]
    task_us: I64  # (T,) submission, ascending, >= 0
    task_job: I64  # (T,) number of the job
    task_index: I64  # (T,) number within the job, unique there
    task_duration_us: I64  # (T,) > 0 or FOREVER
    task_shape: I64  # (T,) number of the shape

    @property
    def requests(self) -> I64:
        """(C, R) what a task of each shape requests."""
        column = {name: r for r, name in enumerate(self.resources)}
        matrix = np.zeros((len(self.shapes), len(self.resources)), np.int64)
        for c, shape in enumerate(self.shapes):
            for name, amount in shape.requests:
                matrix[c, column[name]] = amount
        return matrix

    @property
    def capacity(self) -> I64:
        """(R,) total of the machines present at the start, or of all machines ever added if there are none."""
        adds = self.event_kind == MachineEvent.ADD
        first = adds & (self.event_us == self.event_us.min(initial=0))
        chosen = self.event_allocatable[first if first.any() else adds]
        return np.asarray(chosen.sum(axis=0), np.int64)

    @property
    def span_us(self) -> int:
        """Time of the last submission, machine event, or earliest possible end of a task of finite duration."""
        ends = self.task_us + np.maximum(self.task_duration_us, 0)
        return int(max(ends.max(initial=0), self.event_us.max(initial=0)))

    def task_name(self, task: int) -> str:
        return f"{self.jobs[int(self.task_job[task])].name}/{int(self.task_index[task])}"

    def until(self, end_us: int) -> tuple[Trace, list[str]]:
        """The trace without tasks and machine events from `end_us` on, and without jobs, machines and shapes that are
        then unused; notes on gangs that are left out because too few of their tasks are submitted before `end_us`.
        """
        tasks, events = self.task_us < end_us, self.event_us < end_us
        minimum = np.array([job.gang_minimum for job in self.jobs], np.int64)
        left = np.bincount(self.task_job[tasks], minlength=len(self.jobs))
        broken = (left > 0) & (left < minimum)
        tasks &= ~broken[self.task_job]
        jobs, task_job = np.unique(self.task_job[tasks], return_inverse=True)
        shapes, task_shape = np.unique(self.task_shape[tasks], return_inverse=True)
        machines, event_machine = np.unique(self.event_machine[events], return_inverse=True)
        cut = replace(
            self,
            machines=tuple(self.machines[m] for m in machines.tolist()),
            event_us=self.event_us[events],
            event_machine=event_machine.astype(np.int64),
            event_kind=self.event_kind[events],
            event_allocatable=self.event_allocatable[events],
            jobs=tuple(self.jobs[j] for j in jobs.tolist()),
            shapes=tuple(self.shapes[c] for c in shapes.tolist()),
            task_us=self.task_us[tasks],
            task_job=task_job.astype(np.int64),
            task_index=self.task_index[tasks],
            task_duration_us=self.task_duration_us[tasks],
            task_shape=task_shape.astype(np.int64),
        )
        if not broken.any():
            return cut, []
        return cut, [
            f"left out: {int(broken.sum())} gangs with {int(left[broken].sum())} tasks, too few "
            f"of which are submitted before the end, e.g. {self.jobs[int(np.flatnonzero(broken)[0])].name}"
        ]


class TraceBuilder:
    """Builds a trace from events and tasks in any order. Raises TraceError for invalid ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._machines: list[Machine] = []
        self._machine_row: dict[str, int] = {}
        self._events: list[tuple[int, int, int, Mapping[str, int]]] = []
        self._jobs: list[Job] = []
        self._job_row: dict[str, int] = {}
        self._shape_row: dict[Shape, int] = {}
        self._tasks = {name: array("q") for name in ("us", "job", "index", "duration", "shape")}
        self._next_index: dict[int, int] = {}

    def machine(self, name: str, labels: Mapping[str, str] | None = None) -> int:
        """The number of machine `name`. A new one gets these labels (None: no labels); for an existing one they must be
        equal to its labels (None: not compared)."""
        row = self._machine_row.setdefault(name, len(self._machines))
        if row == len(self._machines):
            self._machines.append(Machine(name, dict(labels or NO_LABELS)))
        elif labels is not None and labels != self._machines[row].labels:
            raise _contradiction("labels", f"machine {name}", labels, self._machines[row].labels)
        return row

    def has_machine(self, name: str) -> bool:
        return name in self._machine_row

    def label(self, machine: int, key: str, value: str | None) -> None:
        """Sets a label of a machine; None removes it."""
        known = self._machines[machine]
        labels = {k: v for k, v in known.labels.items() if k != key}
        self._machines[machine] = Machine(known.name, labels if value is None else {**labels, key: value})

    def event(self, us: int, machine: int, kind: MachineEvent, allocatable: Mapping[str, int] = NO_LABELS) -> None:  # type: ignore[assignment]
        """Adds an event of a machine."""
        if us < 0:
            raise TraceError(f"machine {self._machines[machine].name}: an event at {us} us; times start at 0")
        for resource, amount in allocatable.items():
            if amount < 0:
                raise TraceError(
                    f"machine {self._machines[machine].name}: {resource} is {amount}; it must be 0 or more"
                )
        self._events.append((us, machine, int(kind), dict(allocatable)))

    def job(self, name: str, gang_minimum: int | None = None, labels: Mapping[str, str] | None = None) -> int:
        """The number of job `name`. A new one gets this minimum (None: 0) and these labels (None: no labels); for an
        existing one both must be equal to its own (None: not compared)."""
        if gang_minimum is not None and gang_minimum < 0:
            raise TraceError(f"gang_minimum of job {name} is {gang_minimum}; it must be 0 or more")
        row = self._job_row.setdefault(name, len(self._jobs))
        if row == len(self._jobs):
            self._jobs.append(Job(name, gang_minimum or 0, dict(labels or NO_LABELS)))
            return row
        known = self._jobs[row]
        if gang_minimum is not None and gang_minimum != known.gang_minimum:
            raise _contradiction("gang_minimum", f"job {name}", gang_minimum, known.gang_minimum)
        if labels is not None and labels != known.labels:
            raise _contradiction("labels", f"job {name}", labels, known.labels)
        return row

    def has_job(self, name: str) -> bool:
        return name in self._job_row

    def shape(self, shape: Shape) -> int:
        """The number of a shape; equal shapes have the same number."""
        return self._shape_row.setdefault(shape, len(self._shape_row))

    def task(self, us: int, job: int, duration_us: int, shape: int, index: int | None = None) -> None:
        """Adds a task; index None: the next index in its job."""
        if index is None:
            index = self._next_index.get(job, 0)
        self._next_index[job] = max(self._next_index.get(job, 0), index + 1)
        for name, value in zip(self._tasks, (us, job, index, duration_us, shape), strict=True):
            self._tasks[name].append(value)

    def tasks(self, us: I64, job: I64, duration_us: I64, shape: I64) -> None:
        """Adds tasks, (K,) each; those of one job are consecutive and numbered from 0."""
        starts = np.flatnonzero(np.r_[True, np.diff(job) != 0]) if len(job) else np.zeros(0, np.int64)
        sizes = np.diff(np.r_[starts, len(job)])
        index = np.arange(len(job)) - np.repeat(starts, sizes)
        for name, column in zip(self._tasks, (us, job, index, duration_us, shape), strict=True):
            self._tasks[name].frombytes(np.ascontiguousarray(column, np.int64).tobytes())

    def build(self) -> Trace:
        """The trace, sorted by time. Raises TraceError if events or tasks contradict each other."""
        us, job, index, duration, shape = (np.array(column, np.int64) for column in self._tasks.values())
        order = np.lexsort((index, job, us))
        resources = _resources([*(e[3] for e in self._events), *(dict(s.requests) for s in self._shape_row)])
        events = [self._events[i] for i in np.argsort([e[0] for e in self._events], kind="stable").tolist()]
        column = {name: r for r, name in enumerate(resources)}
        allocatable = np.zeros((len(events), len(resources)), np.int64)
        for i, (_, _, kind, offer) in enumerate(events):
            if kind != MachineEvent.REMOVE:
                for name, amount in offer.items():
                    allocatable[i, column[name]] = amount
        trace = Trace(
            name=self.name,
            resources=resources,
            machines=tuple(self._machines),
            event_us=np.array([e[0] for e in events], np.int64),
            event_machine=np.array([e[1] for e in events], np.int64),
            event_kind=np.array([e[2] for e in events], np.uint8),
            event_allocatable=allocatable,
            jobs=tuple(self._jobs),
            shapes=tuple(self._shape_row),
            task_us=us[order],
            task_job=job[order],
            task_index=index[order],
            task_duration_us=duration[order],
            task_shape=shape[order],
        )
        _check_events(trace)
        _check_tasks(trace)
        return trace


def sizes_of_jobs(trace: Trace) -> I64:
    """(J,) number of tasks of each job."""
    return np.bincount(trace.task_job, minlength=len(trace.jobs)).astype(np.int64)


def _contradiction(field: str, of: str, now: object, before: object) -> TraceError:
    return TraceError(f"{field} of {of} is {now} here but {before} earlier; give it once, or the same value each time")


def _resources(amounts: Iterable[Mapping[str, int]]) -> tuple[str, ...]:
    """cpu and memory first, then the others by name."""
    names = {"cpu", "memory"}.union(*amounts)
    return ("cpu", "memory", *sorted(names - {"cpu", "memory"}))


def _check_events(trace: Trace) -> None:
    present = np.zeros(len(trace.machines), np.bool_)
    for us, machine, kind in zip(
        trace.event_us.tolist(), trace.event_machine.tolist(), trace.event_kind.tolist(), strict=True
    ):
        is_there = bool(present[machine])
        if kind == MachineEvent.ADD and is_there:
            _complain(trace, machine, us, "is added while it is present; remove it first")
        if kind != MachineEvent.ADD and not is_there:
            _complain(trace, machine, us, "is removed or updated while it is not present; add it first")
        present[machine] = kind != MachineEvent.REMOVE


def _complain(trace: Trace, machine: int, us: int, what: str) -> None:
    raise TraceError(f"machine {trace.machines[machine].name} {what} (at {us / SECOND:g} s)")


def _check_tasks(trace: Trace) -> None:
    bad = np.flatnonzero(trace.task_us < 0)
    if len(bad):
        raise TraceError(f"task {trace.task_name(int(bad[0]))} is submitted before 0; times start at 0")
    wrong: Bools = (trace.task_duration_us <= 0) & (trace.task_duration_us != FOREVER)
    bad = np.flatnonzero(wrong)
    if len(bad):
        raise TraceError(
            f"task {trace.task_name(int(bad[0]))} has a duration of 0 or less; omit it for a task that never ends"
        )
    sizes = sizes_of_jobs(trace)
    for j, job in enumerate(trace.jobs):
        if job.gang_minimum > sizes[j]:
            raise TraceError(
                f"job {job.name} has a gang_minimum of {job.gang_minimum} but {sizes[j]} tasks; lower its gang_minimum"
            )
    order = np.lexsort((trace.task_index, trace.task_job))
    same = (np.diff(trace.task_job[order]) == 0) & (np.diff(trace.task_index[order]) == 0)
    if same.any():
        raise TraceError(f"task {trace.task_name(int(order[int(np.flatnonzero(same)[0])]))} appears twice")
