"""Our CSV format of traces: a folder with machines.csv and tasks.csv (docs/benchmarks.md).

The first line names the columns, in any order. A column that is not a field is a resource: cpu, memory,
ephemeral-storage, pods, or a name with a slash. Fields of a machine or job, unlike those of an event or task, are
required in its first line only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.traces import texts
from benchmarks.traces.form import (
    FOREVER,
    MAX_INDEX,
    MAX_PRIORITY,
    MIN_PRIORITY,
    MachineEvent,
    Shape,
    Trace,
    TraceBuilder,
    TraceError,
)
from benchmarks.traces.rows import Row, csv_text, headed_rows, write_text
from firmament_py.model.constraints import Requirement
from poseidon_py.kube.quantity import schedulable

_MACHINE_FIELDS = ("machine", "time_s", "event", "labels")
_TASK_FIELDS = (
    "job",
    "task",
    "submit_s",
    "duration_s",
    "priority",
    "gang_minimum",
    "selector",
    "labels",
)


def looks_like(path: Path) -> bool:
    """Whether a folder has this format."""
    return any((path / f"tasks.csv{suffix}").is_file() for suffix in ("", ".gz"))


def read(path: Path) -> Trace:
    """The trace in a folder. Raises TraceError, which names file, line and field."""
    builder = TraceBuilder(path.name)
    for line in _lines(path, "machines.csv", _MACHINE_FIELDS, ("machine",)):
        kind = line.text("event") or "add"
        if kind not in texts.EVENTS:
            raise line.error("event", f"is {kind!r}; it is one of {', '.join(texts.EVENTS)}")
        name, labels = line.needed("machine"), line.labels()
        with line.place():
            row = builder.machine(name, labels)
        offer = {} if kind == "remove" else line.amounts()
        builder.event(line.time("time_s", 0), row, MachineEvent(texts.EVENTS.index(kind)), offer)
    for line in _lines(path, "tasks.csv", _TASK_FIELDS, ("job", "submit_s")):
        gang = line.integer("gang_minimum") if line.text("gang_minimum") else None
        name, labels = line.needed("job"), line.labels()
        with line.place():
            job = builder.job(name, gang, labels)
        priority = line.integer("priority", 0, minimum=MIN_PRIORITY, maximum=MAX_PRIORITY)
        shape = builder.shape(Shape.of(line.amounts(), priority, line.selector()))
        index = line.integer("task", minimum=0, maximum=MAX_INDEX) if line.text("task") else None
        duration = line.time("duration_s", FOREVER)
        if duration == 0:
            raise line.error("duration_s", "is 0; give more, or omit it for a task that never ends")
        builder.task(line.time("submit_s"), job, duration, shape, index)
    try:
        return builder.build()
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def write(trace: Trace, path: Path) -> None:
    """Writes both files to a folder."""
    write_text(path / "machines.csv", csv_text(_machine_lines(trace)))
    write_text(path / "tasks.csv", csv_text(_task_lines(trace)))


class _Line:
    """A line whose columns the header names."""

    def __init__(self, row: Row, column: dict[str, int], resources: dict[str, int]) -> None:
        self._row, self._column, self._resources = row, column, resources

    def error(self, name: str, what: str) -> TraceError:
        return TraceError(f"{self._row.path}, line {self._row.line}: {name} {what}")

    @contextmanager
    def place(self) -> Iterator[None]:
        """Adds file and line to the builder's errors."""
        try:
            yield
        except TraceError as error:
            raise TraceError(f"{self._row.path}, line {self._row.line}: {error}") from None

    def text(self, name: str) -> str:
        return self._row.text(self._column[name]) if name in self._column else ""

    def needed(self, name: str) -> str:
        text = self.text(name)
        if not text:
            raise self.error(name, "is missing; it is required")
        return text

    def integer(
        self, name: str, default: int | None = None, *, minimum: int = -(2**63), maximum: int = 2**63 - 1
    ) -> int:
        if not self.text(name) and default is not None:
            return default
        return self._row.integer(self._column[name], minimum=minimum, maximum=maximum)

    def time(self, name: str, default: int | None = None) -> int:
        """The time in microseconds, given in seconds."""
        text = self.text(name)
        if not text and default is not None:
            return default
        try:
            return texts.microseconds(float(text))
        except ValueError:
            raise self.error(name, f"is {text!r}; give seconds from the start of the trace") from None

    def labels(self) -> dict[str, str] | None:
        """None if the field is empty."""
        text = self.text("labels")
        try:
            return texts.labels(text) if text else None
        except ValueError as error:
            raise self.error("labels", f": {error}") from None

    def selector(self) -> tuple[Requirement, ...]:
        try:
            return texts.selector(self.text("selector"))
        except ValueError as error:
            raise self.error("selector", f": {error}") from None

    def amounts(self) -> dict[str, int]:
        found = {}
        for name, column in self._resources.items():
            text = self._row.text(column)
            try:
                found[name] = texts.amount(name, text) if text else 0
            except ValueError as error:
                raise self.error(name, f": {error}") from None
        return found


def _lines(path: Path, name: str, fields: Sequence[str], needed: Sequence[str]) -> Iterator[_Line]:
    files = [f for f in (path / name, path / f"{name}.gz") if f.is_file()]
    if not files:
        raise TraceError(f"{path} has no {name}")
    header, rows = headed_rows(files[0])
    for required in needed:
        if required not in header:
            raise TraceError(f"{files[0]}, line 1: the required column {required} is missing")
    column = {field: header.index(field) for field in fields if field in header}
    resources = {name: i for i, name in enumerate(header) if name not in fields}
    for resource in resources:
        if not schedulable(resource):
            raise TraceError(
                f"{files[0]}, line 1: column {resource!r} is neither a field ({', '.join(fields)}) nor a resource"
            )
    return (_Line(row, column, resources) for row in rows)


def _machine_lines(trace: Trace) -> Iterator[Sequence[object]]:
    yield [*_MACHINE_FIELDS, *trace.resources]
    for i, machine in enumerate(trace.event_machine.tolist()):
        about = trace.machines[machine]
        kind, offer = int(trace.event_kind[i]), trace.event_allocatable[i].tolist()
        texts_of = ["" if kind == MachineEvent.REMOVE else a for a in _amounts(trace, offer)]
        us = int(trace.event_us[i])
        yield [about.name, texts.seconds(us), texts.EVENTS[kind], texts.labels_text(about.labels), *texts_of]


def _task_lines(trace: Trace) -> Iterator[Sequence[object]]:
    yield [*_TASK_FIELDS, *trace.resources]
    requests = [_amounts(trace, row) for row in trace.requests.tolist()]
    selectors = [texts.selector_text(shape.selector) for shape in trace.shapes]
    columns = (trace.task_us, trace.task_job, trace.task_index, trace.task_duration_us, trace.task_shape)
    for us, job, index, duration, shape in zip(*(c.tolist() for c in columns), strict=True):
        about = trace.jobs[job]
        yield [
            about.name,
            index,
            texts.seconds(us),
            "" if duration == FOREVER else texts.seconds(duration),
            trace.shapes[shape].priority,
            about.gang_minimum,
            selectors[shape],
            texts.labels_text(about.labels),
            *requests[shape],
        ]


def _amounts(trace: Trace, row: Sequence[int]) -> list[str]:
    return [texts.amount_text(name, value) for name, value in zip(trace.resources, row, strict=True)]
