"""The layout of the public Google cluster-usage traces, version 2 (clusterdata-2011-2): folders of CSV tables.

    machine_events/*.csv[.gz]       time, machine ID, event type, platform ID, CPUs, memory
    task_events/*.csv[.gz]          time, missing info, job ID, task index, machine ID, event type, user,
                                    scheduling class, priority, CPU, memory, disk request, different machines
    machine_attributes/  (optional) time, machine ID, name, value, deleted
    task_constraints/    (optional) time, job ID, task index, operator, name, value
    task_usage/          (optional) start, end, job ID, task index, machine ID, CPU rate, memory usage, ...

Times are microseconds; amounts are fractions of the largest machine's, which is presets.CPU_UNIT and MEMORY_UNIT.
A task is submitted at its first SUBMIT; its duration is the time from its last SCHEDULE to FINISH, FAIL, KILL, LOST or
EVICT. An evicted task continues; one that is submitted again after its end is a new task. Missing requests are taken
from the usage table, if there is one. A task's constraints are the last that precede its submission, or an update while
it is pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.traces.form import (
    FOREVER,
    LONGEST_US,
    MAX_AMOUNT,
    MAX_INDEX,
    MAX_PRIORITY,
    MIN_PRIORITY,
    MachineEvent,
    Shape,
    Trace,
    TraceBuilder,
    TraceError,
)
from benchmarks.traces.presets import CPU_UNIT, MEMORY_UNIT, PLATFORM
from benchmarks.traces.rows import Row, csv_text, rows, write_text
from firmament_py.model.constraints import Operator, Requirement

_SUBMIT, _SCHEDULE, _EVICT, _FAIL, _FINISH, _KILL, _LOST, _UPDATE_PENDING, _UPDATE_RUNNING = range(9)
_AFTER_THE_TRACE = 2**63 - 1
_SAME_TASK_AGAIN = 1_000_000
"""Added to the index of a task that is submitted again after its end."""

_MACHINE_EVENTS = ("time", "machine ID", "event type", "platform ID", "CPUs", "Memory")
_MACHINE_ATTRIBUTES = ("time", "machine ID", "attribute name", "attribute value", "attribute deleted")
_TASK_EVENTS = (
    "time",
    "missing info",
    "job ID",
    "task index",
    "machine ID",
    "event type",
    "user",
    "scheduling class",
    "priority",
    "CPU request",
    "memory request",
    "disk space request",
    "different machines restriction",
)
_TASK_CONSTRAINTS = ("time", "job ID", "task index", "comparison operator", "attribute name", "attribute value")
_TASK_USAGE = ("start time", "end time", "job ID", "task index", "machine ID", "CPU rate", "canonical memory usage")

_Key = tuple[str, int]


@dataclass(slots=True)
class _Life:
    """A task that has not ended. scheduled: -1 while it is pending; ran: duration of its last run, 0: never ran."""

    submitted: int
    scheduled: int
    shape: int
    index: int
    ran: int = 0

    def stop(self, us: int) -> None:
        if self.scheduled >= 0:
            self.ran, self.scheduled = max(us - self.scheduled, 1), -1


@dataclass(slots=True)
class _Reading:
    builder: TraceBuilder
    constraints: dict[_Key, dict[int, tuple[Requirement, ...]]] = field(default_factory=dict)  # by time
    usage: dict[_Key, tuple[int, int]] = field(default_factory=dict)
    alive: dict[_Key, _Life] = field(default_factory=dict)
    runs: Counter[_Key] = field(default_factory=Counter)
    odd: Counter[str] = field(default_factory=Counter)


def looks_like(path: Path) -> bool:
    """Whether a folder has this layout."""
    return (path / "task_events").is_dir()


def read(path: Path, end_us: int | None = None) -> tuple[Trace, list[str]]:
    """The trace in a folder, up to a time, and notes on what was left out. Raises TraceError."""
    if not _parts(path, "task_events") or not _parts(path, "machine_events"):
        raise TraceError(f"{path} needs the folders task_events and machine_events, with files *.csv or *.csv.gz")
    reading = _Reading(TraceBuilder(path.name))
    _read_machines(path, reading, end_us)
    _read_constraints(path, reading, end_us)
    _read_usage(path, reading, end_us)
    for row in _table(path, "task_events", _TASK_EVENTS, end_us):
        _take_task_event(row, reading)
    for (job, _), life in reading.alive.items():
        if life.scheduled < 0 and not life.ran:
            reading.odd["tasks that never ran"] += 1
        else:
            reading.builder.task(life.submitted, reading.builder.job(job), FOREVER, life.shape, life.index)
    notes = [f"left out: {count} {what}" for what, count in sorted(reading.odd.items())]
    try:
        return reading.builder.build(), notes
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def write(trace: Trace, path: Path, *, compress: bool = False) -> list[str]:
    """Writes a trace to a folder. Returns notes on what this layout cannot represent. Raises TraceError for resources
    other than cpu and memory, and for selectors that it cannot express."""
    others = [name for name in trace.resources if name not in ("cpu", "memory")]
    if others:
        raise TraceError(f"google-v2 cannot represent {', '.join(others)}; use --format json or csv")
    part = "part-00000-of-00001.csv" + (".gz" if compress else "")
    tables = {
        "machine_events": _machine_lines(trace),
        "machine_attributes": _attribute_lines(trace),
        "task_events": _task_lines(trace),
        "task_constraints": _constraint_lines(trace),
    }
    for name, lines in tables.items():
        write_text(path / name / part, csv_text(lines))
    notes = []
    if any(job.gang_minimum > 1 for job in trace.jobs):
        notes.append("not kept: gang minima of jobs")
    if any(job.labels for job in trace.jobs):
        notes.append("not kept: labels of jobs")
    return [*notes, "not kept: names of jobs and machines (numbers in this layout)"]


# -- reading --------------------------------------------------------------------------------------------------


def _parts(path: Path, table: str) -> list[Path]:
    return sorted(p for p in (path / table).glob("*") if p.name.endswith((".csv", ".csv.gz")))


def _table(path: Path, table: str, names: Sequence[str], end_us: int | None = None) -> Iterator[Row]:
    """The rows of a table up to a time. Parts are in order of time, so reading ends at the first that begins later."""
    for part in _parts(path, table):
        for position, row in enumerate(rows(part, names)):
            us = row.integer(0)
            if us < 0:
                raise row.error(0, f"is {us}; times start at 0")
            if LONGEST_US < us < _AFTER_THE_TRACE:
                raise row.error(0, f"is {us}; give at most {LONGEST_US}")
            if end_us is not None and us >= end_us:
                if position == 0:
                    return
            elif us != _AFTER_THE_TRACE:
                yield row


def _read_machines(path: Path, reading: _Reading, end_us: int | None) -> None:
    builder, offers = reading.builder, dict[int, dict[str, int]]()
    present: set[int] = set()
    for row in _table(path, "machine_events", _MACHINE_EVENTS, end_us):
        kind = row.integer(2)
        if kind not in (0, 1, 2):
            raise row.error(2, f"is {kind}; it is 0 (add), 1 (remove) or 2 (update)")
        machine = builder.machine(_needed(row, 1))
        if row.text(3):
            builder.label(machine, PLATFORM, row.text(3))
        if kind == MachineEvent.REMOVE:
            if machine not in present:
                reading.odd["removals of machines that are not present"] += 1
                continue
            present.discard(machine)
            builder.event(row.integer(0), machine, MachineEvent.REMOVE)
            continue
        offer = offers.setdefault(machine, {"cpu": 0, "memory": 0})
        for column, name, unit in ((4, "cpu", CPU_UNIT), (5, "memory", MEMORY_UNIT)):
            amount = _amount(row, column, unit)
            if amount is not None:
                offer[name] = amount
        event = MachineEvent.UPDATE if machine in present else MachineEvent.ADD
        present.add(machine)
        builder.event(row.integer(0), machine, event, dict(offer))
    for row in _table(path, "machine_attributes", _MACHINE_ATTRIBUTES, end_us):
        deleted = row.integer(4, 0)
        builder.label(builder.machine(_needed(row, 1)), _needed(row, 2), None if deleted else row.text(3))


def _read_constraints(path: Path, reading: _Reading, end_us: int | None) -> None:
    for row in _table(path, "task_constraints", _TASK_CONSTRAINTS, end_us):
        key, name, value = _key(row, 1), _needed(row, 4), row.text(5)
        match row.integer(3):
            case 0:
                found = (
                    Requirement(name, Operator.IN, (value,)) if value else Requirement(name, Operator.DOES_NOT_EXIST)
                )
            case 1:
                found = Requirement(name, Operator.NOT_IN, (value,)) if value else Requirement(name, Operator.EXISTS)
            case 2 | 3 as operator:
                row.integer(5)
                found = Requirement(name, Operator.LT if operator == 2 else Operator.GT, (value,))
            case operator:
                raise row.error(3, f"is {operator}; it is 0 (=), 1 (!=), 2 (<) or 3 (>)")
        listed = reading.constraints.setdefault(key, {})
        known = listed.get(row.integer(0), ())
        if found not in known:
            listed[row.integer(0)] = (*known, found)


def _read_usage(path: Path, reading: _Reading, end_us: int | None) -> None:
    """The highest recorded usage of each task."""
    for row in _table(path, "task_usage", _TASK_USAGE, end_us):
        key = _key(row, 2)
        cpu, memory = reading.usage.get(key, (0, 0))
        reading.usage[key] = (
            max(cpu, _amount(row, 5, CPU_UNIT) or 0),
            max(memory, _amount(row, 6, MEMORY_UNIT) or 0),
        )


def _take_task_event(row: Row, reading: _Reading) -> None:
    us, kind = row.integer(0), row.integer(5)
    key = _key(row, 2)
    life = reading.alive.get(key)
    if not _SUBMIT <= kind <= _UPDATE_RUNNING:
        raise row.error(5, f"is {kind}; it is 0 (submit) to 8 (update running)")
    if kind in (_SUBMIT, _SCHEDULE):
        if life is None:
            index = key[1] + _SAME_TASK_AGAIN * reading.runs[key]
            reading.runs[key] += 1
            life = reading.alive[key] = _Life(us, -1, _shape(row, key, reading), index)
        if kind == _SCHEDULE:
            life.scheduled = us
        return
    if life is None:
        reading.odd["events of tasks that were not submitted"] += 1
    elif kind == _EVICT:
        life.stop(us)
    elif kind == _UPDATE_PENDING:
        life.shape = _shape(row, key, reading)
    elif kind in (_FAIL, _FINISH, _KILL, _LOST):
        del reading.alive[key]
        life.stop(us)
        if not life.ran:
            reading.odd["tasks that never ran"] += 1
        else:
            reading.builder.task(life.submitted, reading.builder.job(key[0]), life.ran, life.shape, life.index)


def _shape(row: Row, key: _Key, reading: _Reading) -> int:
    used = reading.usage.get(key, (0, 0))
    cpu, memory = _amount(row, 9, CPU_UNIT), _amount(row, 10, MEMORY_UNIT)
    requests = {"cpu": used[0] if cpu is None else cpu, "memory": used[1] if memory is None else memory}
    priority = row.integer(8, 0, minimum=MIN_PRIORITY, maximum=MAX_PRIORITY)
    listed = reading.constraints.get(key, {})
    newest = max((us for us in listed if us <= row.integer(0)), default=None)
    return reading.builder.shape(Shape.of(requests, priority, () if newest is None else listed[newest]))


def _key(row: Row, column: int) -> _Key:
    """The task of a row whose columns `column` and the next hold its job and index."""
    return _needed(row, column), row.integer(column + 1, minimum=0, maximum=MAX_INDEX)


def _amount(row: Row, column: int, unit: int) -> int | None:
    """An amount, given as a fraction of the largest machine's."""
    part = row.number(column, MAX_AMOUNT / unit)
    return None if part is None else round(part * unit)


def _needed(row: Row, column: int) -> str:
    text = row.text(column)
    if not text:
        raise row.error(column, "is missing; it is required")
    return text


# -- writing --------------------------------------------------------------------------------------------------


def _machine_lines(trace: Trace) -> Iterator[Sequence[object]]:
    cpu, memory = trace.resources.index("cpu"), trace.resources.index("memory")
    for us, machine, kind, offer in zip(
        trace.event_us.tolist(),
        trace.event_machine.tolist(),
        trace.event_kind.tolist(),
        trace.event_allocatable.tolist(),
        strict=True,
    ):
        platform = trace.machines[machine].labels.get(PLATFORM, "")
        amounts = ("", "") if kind == MachineEvent.REMOVE else (offer[cpu] / CPU_UNIT, offer[memory] / MEMORY_UNIT)
        yield us, machine + 1, kind, platform, *amounts


def _attribute_lines(trace: Trace) -> Iterator[Sequence[object]]:
    for i, machine in enumerate(trace.machines, start=1):
        for name, value in sorted(machine.labels.items()):
            if name != PLATFORM:
                yield 0, i, name, value, 0


def _task_lines(trace: Trace) -> Iterator[Sequence[object]]:
    """SUBMIT and SCHEDULE at the same time, because the layout derives durations from SCHEDULE; without machines."""
    lines: list[tuple[int, int, int, int, int]] = []  # time, order at one time, task, event
    columns = (trace.task_us, trace.task_duration_us)
    for task, (us, duration) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        lines += [(us, 1, task, _SUBMIT, 0), (us, 1, task, _SCHEDULE, 1)]
        if duration != FOREVER:
            lines.append((us + duration, 0, task, _FINISH, 2))
    lines.sort(key=lambda line: (line[0], line[1], line[2], line[4]))
    requests = [dict(shape.requests) for shape in trace.shapes]
    for us, _, task, kind, _ in lines:
        shape = int(trace.task_shape[task])
        asked = requests[shape]
        yield (
            us,
            "",
            int(trace.task_job[task]) + 1,
            int(trace.task_index[task]),
            "",
            kind,
            "",
            "",
            trace.shapes[shape].priority,
            asked.get("cpu", 0) / CPU_UNIT,
            asked.get("memory", 0) / MEMORY_UNIT,
            "",
            0,
        )


def _constraint_lines(trace: Trace) -> Iterator[Sequence[object]]:
    for task in range(len(trace.task_us)):
        for requirement in trace.shapes[int(trace.task_shape[task])].selector:
            operator, value = _as_constraint(requirement)
            place = (int(trace.task_us[task]), int(trace.task_job[task]) + 1, int(trace.task_index[task]))
            yield *place, operator, requirement.key, value


def _as_constraint(requirement: Requirement) -> tuple[int, str]:
    match requirement:
        case Requirement(_, Operator.IN, (value,)) if value:
            return 0, value
        case Requirement(_, Operator.NOT_IN, (value,)) if value:
            return 1, value
        case Requirement(_, Operator.DOES_NOT_EXIST):
            return 0, ""
        case Requirement(_, Operator.EXISTS):
            return 1, ""
        case Requirement(_, Operator.LT, (value,)):
            return 2, value
        case Requirement(_, Operator.GT, (value,)):
            return 3, value
    raise TraceError(
        f"google-v2 cannot represent {requirement.key} {requirement.operator} {list(requirement.values)}: "
        "its constraints compare with one value; use --format json or csv"
    )
