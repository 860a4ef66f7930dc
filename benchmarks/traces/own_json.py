"""Our JSON format of traces (docs/benchmarks.md), for traces that are written or converted by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

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
from benchmarks.traces.rows import read_text, write_text
from firmament_py.model.constraints import Requirement

FORMAT, VERSION = "poseidon-trace", 1

_MAX_COUNT = 10_000_000
"""Maximum number of machines or tasks of one object, so that a typo does not exhaust the memory."""


def read(path: Path) -> Trace:
    """The trace in a file. Raises TraceError, which names file and field."""
    text = read_text(path)
    try:
        raw = json.loads(text, object_pairs_hook=_object)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is not JSON: {error}") from error
    top = _Node(path, "", raw)
    top.known("format", "version", "name", "machines", "jobs")
    if top.text("format") != FORMAT:
        raise top.error("format", f"is {top.text('format')!r}; it must be {FORMAT!r}")
    if top.integer("version") != VERSION:
        raise top.error("version", f"is {top.integer('version')}; this reads version {VERSION}")
    builder = TraceBuilder(top.text("name", path.name.partition(".")[0]))
    for machine in top.items("machines"):
        _read_machine(builder, machine)
    for job in top.items("jobs"):
        _read_job(builder, job)
    try:
        return builder.build()
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def write(trace: Trace, path: Path) -> None:
    """Writes a trace, compressed if the name ends in .gz."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": trace.name,
        "machines": list(_machines(trace)),
        "jobs": list(_jobs(trace)),
    }
    write_text(path, json.dumps(document, separators=(",", ":")) + "\n")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For json's object_pairs_hook, which by default silently keeps the last of duplicate fields."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise TraceError(f"field {next(n for n in names if names.count(n) > 1)!r} appears twice in one object")
    return found


class _Node:
    """An object of the document and its path."""

    def __init__(self, path: Path, where: str, raw: object) -> None:
        self._path, self._where = path, where
        if not isinstance(raw, dict):
            raise TraceError(f"{path}: {where or 'the document'} is not an object {{...}}")
        self._raw: dict[str, Any] = raw

    def error(self, name: str, what: str) -> TraceError:
        return TraceError(f"{self._path}: {self._place(name)} {what}")

    def known(self, *names: str) -> None:
        """Rejects other fields, so that a typo does not silently change a trace."""
        unknown = sorted(set(self._raw) - set(names))
        if unknown:
            raise self.error(unknown[0], f"is not a known field here; known fields: {', '.join(names)}")

    def has(self, name: str) -> bool:
        return name in self._raw

    def text(self, name: str, default: str | None = None) -> str:
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self.error(name, f"is {value!r}, not a string")
        return value

    def integer(
        self, name: str, default: int | None = None, *, minimum: int = -(2**63), maximum: int = 2**63 - 1
    ) -> int:
        """A whole number from `minimum` to `maximum`."""
        value = self._value(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(name, f"is {value!r}, not a whole number")
        if not minimum <= value <= maximum:
            raise self.error(name, f"is {value}; give a whole number from {minimum} to {maximum}")
        return value

    def time(self, name: str, default: float | None = None) -> int:
        """The time in microseconds, given in seconds."""
        value = self._value(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(name, f"is {value!r}, not a number of seconds")
        try:
            return texts.microseconds(value)
        except ValueError as error:
            raise self.error(name, str(error)) from None

    def amounts(self, name: str) -> dict[str, int]:
        """Quantities by resource, given as strings or numbers."""
        node, found = self.child(name), {}
        for resource, value in node._raw.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise node.error(resource, f"is {value!r}, not a quantity")
            try:
                found[resource] = texts.amount(resource, str(value))
            except ValueError as error:
                raise node.error(resource, f": {error}") from None
        return found

    def labels(self, name: str) -> dict[str, str]:
        if not self.has(name):
            return {}
        node = self.child(name)
        return {key: node.text(key) for key in node._raw}

    def requirements(self, name: str) -> tuple[Requirement, ...]:
        found = []
        for node in self.items(name):
            node.known("key", "operator", "values")
            values = node._raw.get("values", [])
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise node.error("values", "is not a list of strings")
            try:
                found.append(texts.requirement(node.text("key"), node.text("operator"), tuple(values)))
            except ValueError as error:
                raise node.error("operator", f": {error}") from None
        return tuple(found)

    def child(self, name: str) -> _Node:
        return _Node(self._path, self._place(name), self._value(name, None))

    def items(self, name: str) -> Iterator[_Node]:
        value = self._raw.get(name, [])
        if not isinstance(value, list):
            raise self.error(name, "is not a list [...]")
        return (_Node(self._path, f"{self._place(name)}[{i}]", item) for i, item in enumerate(value))

    def _value(self, name: str, default: object) -> Any:
        value = self._raw.get(name, default)
        if value is None:
            raise self.error(name, "is missing; it is required")
        return value

    def _place(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name


def _read_machine(builder: TraceBuilder, node: _Node) -> None:
    node.known("name", "count", "labels", "allocatable", "added_s", "removed_s", "events")
    name, count = node.text("name"), node.integer("count", 1, minimum=1, maximum=_MAX_COUNT)
    if node.has("allocatable") is node.has("events"):
        raise node.error("allocatable", "or events is required, but not both")
    for field in ("added_s", "removed_s"):
        if node.has(field) and node.has("events"):
            raise node.error(field, "cannot be combined with events; give the time in an event")
    labels = node.labels("labels")
    for i in range(count):
        its = f"{name}-{i:05d}" if count > 1 else name
        if builder.has_machine(its):
            raise node.error("name", f"defines a second machine {its!r}; give it another name")
        row = builder.machine(its, labels)
        if node.has("allocatable"):
            builder.event(node.time("added_s", 0), row, MachineEvent.ADD, node.amounts("allocatable"))
            if node.has("removed_s"):
                builder.event(node.time("removed_s"), row, MachineEvent.REMOVE)
        for event in node.items("events"):
            event.known("time_s", "event", "allocatable")
            kind = event.text("event")
            if kind not in texts.EVENTS:
                raise event.error("event", f"is {kind!r}; it is one of {', '.join(texts.EVENTS)}")
            offer = {} if kind == "remove" else event.amounts("allocatable")
            builder.event(event.time("time_s"), row, MachineEvent(texts.EVENTS.index(kind)), offer)


def _read_job(builder: TraceBuilder, node: _Node) -> None:
    node.known("name", "submit_s", "gang_minimum", "labels", "tasks")
    name, gang = node.text("name"), node.integer("gang_minimum", 0, minimum=0)
    if builder.has_job(name):
        raise node.error("name", f"defines a second job {name!r}; rename it, or move its tasks to the first")
    job = builder.job(name, gang, node.labels("labels"))
    for task in node.items("tasks"):
        task.known("count", "first_index", "submit_s", "duration_s", "priority", "requests", "selector")
        priority = task.integer("priority", 0, minimum=MIN_PRIORITY, maximum=MAX_PRIORITY)
        shape = builder.shape(
            Shape.of(task.amounts("requests") if task.has("requests") else {}, priority, task.requirements("selector"))
        )
        duration = task.time("duration_s") if task.has("duration_s") else FOREVER
        if duration == 0:
            raise task.error("duration_s", "is 0; give more, or omit it for a task that never ends")
        us = task.time("submit_s") if task.has("submit_s") else node.time("submit_s", 0)
        first = task.integer("first_index", minimum=0, maximum=MAX_INDEX) if task.has("first_index") else None
        count = task.integer("count", 1, minimum=1, maximum=_MAX_COUNT)
        for i in range(count):
            builder.task(us, job, duration, shape, None if first is None else first + i)


def _amounts(trace: Trace, row: Mapping[str, int]) -> dict[str, str]:
    return {name: texts.amount_text(name, value) for name, value in row.items()}


def _machines(trace: Trace) -> Iterator[dict[str, object]]:
    events: list[list[dict[str, object]]] = [[] for _ in trace.machines]
    for i, machine in enumerate(trace.event_machine.tolist()):
        kind = int(trace.event_kind[i])
        offer = dict(zip(trace.resources, trace.event_allocatable[i].tolist(), strict=True))
        entry: dict[str, object] = {"time_s": texts.seconds(int(trace.event_us[i])), "event": texts.EVENTS[kind]}
        if kind != MachineEvent.REMOVE:
            entry["allocatable"] = _amounts(trace, {k: v for k, v in offer.items() if v})
        events[machine].append(entry)
    for machine, its in zip(trace.machines, events, strict=True):
        yield {"name": machine.name, "labels": dict(machine.labels), "events": its}


def _jobs(trace: Trace) -> Iterator[dict[str, object]]:
    columns = (trace.task_job, trace.task_us, trace.task_duration_us, trace.task_shape)
    order = np.lexsort((trace.task_index, trace.task_job))
    index = trace.task_index[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = np.diff(index) != 1
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(new)
    counts = np.diff(np.r_[starts, len(order)]).tolist()
    runs: list[list[dict[str, object]]] = [[] for _ in trace.jobs]
    for start, count in zip(starts.tolist(), counts, strict=True):
        job, us, duration, number = (int(column[order[start]]) for column in columns)
        shape = trace.shapes[number]
        entry: dict[str, object] = {"submit_s": texts.seconds(us), "requests": _amounts(trace, dict(shape.requests))}
        if int(index[start]) != sum(int(run.get("count", 1)) for run in runs[job]):  # type: ignore[call-overload]
            entry["first_index"] = int(index[start])
        if count > 1:
            entry["count"] = count
        if duration != FOREVER:
            entry["duration_s"] = texts.seconds(duration)
        if shape.priority:
            entry["priority"] = shape.priority
        if shape.selector:
            entry["selector"] = [
                {"key": r.key, "operator": str(r.operator), "values": list(r.values)} for r in shape.selector
            ]
        runs[job].append(entry)
    for job_of, tasks in zip(trace.jobs, runs, strict=True):
        about: dict[str, object] = {"name": job_of.name}
        if job_of.gang_minimum:
            about["gang_minimum"] = job_of.gang_minimum
        if job_of.labels:
            about["labels"] = dict(job_of.labels)
        yield {**about, "tasks": tasks}
