"""Results of a run and their JSON format (docs/benchmarks.md)."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import series
from benchmarks.harness.series import Series

FORMAT = 3
"""Incremented whenever an older reader would misread a file. 2: cases have series. 3: samples have seeds."""


_NEEDED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "environment": {
        "time": str,
        "cpu": str,
        "cores": int,
        "system": str,
        "python": str,
        "libraries": dict,
        "commit": (str, type(None)),
        "load_average": list,
    },
    "options": {"repeat": int},
    "metrics": {},
}
"""Fields of the environment that tables and reports require."""


class ResultError(ValueError):
    """A file is not a results file; the message names the file and the reason."""


@dataclass(slots=True)
class Check:
    """A condition that must hold on every machine."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(slots=True)
class Sample:
    """The result of one execution of a case: figures by metric, further facts, checks, lines for plots."""

    metrics: dict[str, float]
    facts: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)


@dataclass(slots=True)
class CaseResult:
    """All samples of a case. `facts` and `series` are those of the last, `failed` the checks that any sample failed."""

    name: str
    sizes: dict[str, Any]
    samples: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    failed: list[Check] = field(default_factory=list)
    checked: int = 0
    series: list[Series] = field(default_factory=list)
    target: str = ""
    target_met: bool | None = None
    """None: the case has no target, or did not run at full scale."""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    """By metric, the seed of each sample."""

    def add(self, sample: Sample, seed: int = 0) -> None:
        """Adds a sample, measured with this seed."""
        for name, value in sample.metrics.items():
            self.samples.setdefault(name, []).append(value)
            self.seeds.setdefault(name, []).append(seed)
        self.facts, self.series = sample.facts, sample.series
        self.checked += len(sample.checks)
        self.failed += [check for check in sample.checks if not check.ok]

    def median(self, metric: str) -> float | None:
        """The median of a metric, None if it was not measured."""
        values = self.samples.get(metric)
        return statistics.median(values) if values else None


@dataclass(slots=True)
class SuiteResult:
    """The results of one `run`."""

    suite: str
    environment: dict[str, Any]
    options: dict[str, Any]
    metrics: dict[str, dict[str, str]]
    """name -> title, unit, better"""
    cases: list[CaseResult] = field(default_factory=list)
    virtual: bool = False
    """Whether the figures follow from the seed; if so, each sample of a case has a different seed."""
    stopped: str = ""
    """Why the run is incomplete; empty if it is complete."""

    @property
    def sound(self) -> bool:
        """Whether every check of every sample passed."""
        return not any(case.failed for case in self.cases)

    def write(self, path: Path) -> None:
        """Writes JSON, atomically. Raises OSError."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"
        if path.exists() and not path.is_file():
            path.write_text(text)
            return
        beside = temporary(path)
        try:
            beside.write_text(text)
            beside.replace(path.resolve())
        finally:
            beside.unlink(missing_ok=True)


def temporary(path: Path) -> Path:
    """The name of an unfinished file, in the folder of `path` or of the file that `path` links to."""
    whole = path.resolve()
    return whole.with_name(f".{whole.name}.{os.getpid()}")


def read(path: Path) -> SuiteResult:
    """Results from a file. Raises ResultError."""
    try:
        raw = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ResultError(f"cannot read results from {path}: {error}") from error
    found = raw.pop("format", None) if isinstance(raw, dict) else None
    if isinstance(found, int) and found != FORMAT:
        age = "an older" if found < FORMAT else "a newer"
        raise ResultError(
            f"{path} is of format {found}, of {age} version; this version reads format {FORMAT}: measure again with "
            f"`run SUITE --json {path}`"
        )
    if found is None:
        raise ResultError(f"{path} is not a results file of format {FORMAT}; make one with `run SUITE --json {path}`")
    try:
        cases = [_case(case) for case in raw.pop("cases")]
        _check(raw)
        return SuiteResult(cases=cases, **raw)
    except (TypeError, KeyError, ValueError) as error:
        raise ResultError(f"{path} is not a results file of format {FORMAT}: {error}") from error


def _check(raw: dict[str, Any]) -> None:
    """Raises ValueError for the first required field that is missing or invalid."""
    for where, fields in _NEEDED.items():
        inner = raw.get(where)
        if not isinstance(inner, dict):
            raise ValueError(f"{where} is missing or not an object")
        for name, kinds in fields.items():
            if not isinstance(inner.get(name), kinds):
                raise ValueError(f"{where}.{name} is missing or has the wrong type")
    if not raw["environment"]["load_average"]:
        raise ValueError("environment.load_average is empty")
    for name, about in raw["metrics"].items():
        if not isinstance(about, dict) or not {"title", "unit", "better"} <= set(about):
            raise ValueError(f"metrics.{name} needs title, unit and better")


def _case(raw: dict[str, Any]) -> CaseResult:
    checks = [Check(**check) for check in raw["failed"]]
    return CaseResult(**{**raw, "failed": checks, "series": [series.parse(one) for one in raw["series"]]})
