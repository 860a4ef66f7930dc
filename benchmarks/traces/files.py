"""Reads and writes traces in all supported formats."""

from __future__ import annotations

from pathlib import Path

from benchmarks.traces import google_v2, own_csv, own_json
from benchmarks.traces.form import HOUR, Trace, TraceError

FORMATS = ("json", "csv", "google-v2")


def read(path: Path, end_us: int | None = None) -> tuple[Trace, list[str]]:
    """The trace at a path, in any format, up to a time, and notes on what was left out. Raises TraceError."""
    notes: list[str] = []
    if path.is_dir():
        if google_v2.looks_like(path):
            trace, notes = google_v2.read(path, end_us)
        elif own_csv.looks_like(path):
            trace = own_csv.read(path)
        else:
            raise TraceError(f"{path} is not a trace: it holds neither tasks.csv nor task_events/")
    elif path.is_file():
        if not path.name.endswith((".json", ".json.gz")):
            raise TraceError(
                f"{path} is not a trace: give a .json or .json.gz file, or the folder that holds the tables"
            )
        trace = own_json.read(path)
    else:
        raise TraceError(f"{path} does not exist")
    if end_us is None:
        _check_holds_something(trace, str(path), "a trace needs both")
        return trace, notes
    cut, left_out = trace.until(end_us)
    _check_holds_something(cut, f"{path}, in its first {end_us / HOUR:g} hours,", "a trace needs both: give more hours")
    return cut, [*notes, *left_out]


def write(trace: Trace, path: Path, form: str, *, compress: bool = False) -> list[str]:
    """Writes a trace. Returns notes on what the format cannot represent. Raises TraceError."""
    if form not in FORMATS:
        raise TraceError(f"unknown format {form!r}; choose one of: {', '.join(FORMATS)}")
    _check_holds_something(trace, "the trace", "make it longer, or give it more machines")
    if form == "json":
        if not path.name.endswith((".json", ".json.gz")):
            raise TraceError(f"{path}: the name of a JSON trace must end in .json or .json.gz")
        own_json.write(trace, path)
        return []
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise TraceError(f"{path} exists; {form} needs a new or empty folder")
    if form == "csv":
        own_csv.write(trace, path)
        return []
    return google_v2.write(trace, path, compress=compress)


def _check_holds_something(trace: Trace, what: str, remedy: str) -> None:
    """Raises TraceError for a trace without machines or tasks, which is neither written, read nor replayed."""
    if not trace.machines or not len(trace.task_us):
        raise TraceError(f"{what} holds {len(trace.machines)} machines and {len(trace.task_us)} tasks; {remedy}")
