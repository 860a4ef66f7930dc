"""The plots of a result as data: curves, axes and scales. Nothing is drawn here.

spread     a metric of every case: the median, the range of the samples, and the target
growth     a metric over the number of nodes, one curve for cases that differ in sizes only
timeline, cdf, curve     the suite's series, one curve per case
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.harness.results import CaseResult, SuiteResult
from benchmarks.harness.series import Series

_GROWS = ("nodes", "pods", "running", "tasks", "gangs", "classes")
"""Sizes that may vary along a growth curve."""
_MIN_POINTS = 3
_WIDE = 8.0
"""An axis is logarithmic if the ratio of its largest to its smallest value is at least this."""
_MAX_LINES = 16


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: points (x, y), and the range of the samples around y if known. All of one length."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Marker:
    """One row of a spread: a case's samples, and the target it has for this metric."""

    label: str
    median: float
    low: float
    high: float
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot. A spread has `markers`, every other kind `lines`."""

    kind: str
    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...] = ()
    markers: tuple[Marker, ...] = ()
    log_x: bool = False
    log_y: bool = False
    left_out: int = 0
    """Number of lines that are not shown, for lack of space."""

    @property
    def file_name(self) -> str:
        """A name of letters, digits and dashes only."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.kind} {self.title}".lower()).strip("-")


@dataclass(slots=True)
class _Group:
    """Points of one growth curve."""

    label: str
    points: list[tuple[float, CaseResult]] = field(default_factory=list)


def figures(result: SuiteResult) -> list[Figure]:
    """All plots of a result: metrics in the suite's order, then its series."""
    found = []
    for name, about in result.metrics.items():
        measured = [case for case in result.cases if case.samples.get(name)]
        title = axis(about["title"], about["unit"])
        if len(measured) > 1:
            found.append(_spread(name, about["title"], title, measured))
        growth = _growth(name, about["title"], title, measured)
        if growth is not None:
            found.append(growth)
    return found + _recorded(result.cases)


def axis(title: str, unit: str) -> str:
    """The label of an axis."""
    return title if unit in ("", "ratio", "count") else f"{title} [{unit}]"


def _spread(name: str, title: str, axis_title: str, cases: Iterable[CaseResult]) -> Figure:
    markers = []
    for case in cases:
        values = case.samples[name]
        markers.append(
            Marker(case.name, statistics.median(values), min(values), max(values), _bound(case.target, name))
        )
    everything = [value for marker in markers for value in (marker.low, marker.high)]
    return Figure("spread", title, axis_title, "", markers=tuple(markers), log_x=_wide(everything))


def _bound(targets: str, metric: str) -> float | None:
    """The number in `metric <= number`, one of several bounds separated by commas."""
    found = re.search(rf"(?:^|, ){re.escape(metric)} [<>]= ([^\s,]+)", targets)
    try:
        return float(found[1]) if found else None
    except ValueError:
        return None


def _growth(name: str, title: str, axis_title: str, cases: Iterable[CaseResult]) -> Figure | None:
    groups: dict[object, _Group] = {}
    for case in cases:
        nodes = case.sizes.get("nodes")
        if isinstance(nodes, int | float):
            others = {key: str(value) for key, value in case.sizes.items() if key not in _GROWS}
            label = re.sub(r"\d[\d,]*-(?:nodes|pods|classes|gangs|tasks|running)/?", "", case.name).strip("/ ")
            groups.setdefault((label, tuple(sorted(others.items()))), _Group(label)).points.append((nodes, case))
    lines = []
    for group in groups.values():
        points = sorted(group.points, key=lambda point: point[0])
        x = [point[0] for point in points]
        if len(set(x)) < _MIN_POINTS or len(set(x)) < len(x):
            continue
        samples = [case.samples[name] for _, case in points]
        middle = [statistics.median(values) for values in samples]
        lines.append(Line(group.label, x, middle, [min(v) for v in samples], [max(v) for v in samples]))
    if not lines:
        return None
    log = _wide([x for line in lines for x in line.x])
    log_y = log and all(y > 0 for line in lines for y in line.y)
    return Figure("growth", title, "nodes", axis_title, lines=tuple(lines), log_x=log, log_y=log_y)


def _recorded(cases: Sequence[CaseResult]) -> list[Figure]:
    together: dict[tuple[str, ...], list[tuple[str, Series]]] = {}
    for case in cases:
        for series in case.series:
            key = (
                series.name,
                series.kind,
                axis(series.x_title, series.x_unit),
                axis(series.y_title, series.y_unit),
            )
            together.setdefault(key, []).append((case.name, series))
    found = []
    for (name, kind, x_title, y_title), of_cases in together.items():
        shown = of_cases[:_MAX_LINES]
        labels = _short([label for label, _ in shown])
        lines = tuple(Line(label, series.x, series.y) for label, (_, series) in zip(labels, shown, strict=True))
        x = [value for line in lines for value in line.x]
        y = [value for line in lines for value in line.y]
        found.append(
            Figure(
                kind,
                name,
                x_title,
                y_title,
                lines=lines,
                log_x=kind != "timeline" and _wide(x),
                log_y=kind == "curve" and _wide(y),
                left_out=max(0, len(of_cases) - _MAX_LINES),
            )
        )
    return found


def _short(names: Sequence[str]) -> list[str]:
    """Names without their common prefix, up to a slash."""
    parts = [name.split("/") for name in names]
    same = 0
    while len(names) > 1 and all(len(of) > same + 1 and of[same] == parts[0][same] for of in parts):
        same += 1
    return ["/".join(of[same:]) for of in parts]


def _wide(values: Sequence[float]) -> bool:
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    return len(positive) == len(values) > 0 and max(positive) / min(positive) >= _WIDE
