"""Curves, timelines and distributions of a case, for plots: at most 500 points each.

kind       timeline: y over time; cdf: y is the share of x's that are not larger; curve: y over a size
x, y       equally many numbers each; x is ascending
x_title, x_unit, y_title, y_unit   as metrics have them: s, ratio, count, ...
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MAX_POINTS = 500
KINDS = ("timeline", "cdf", "curve")


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot. Raises ValueError if it is invalid."""

    name: str
    kind: str
    x: list[float]
    y: list[float]
    x_title: str
    x_unit: str
    y_title: str
    y_unit: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"series {self.name!r}: kind is {self.kind!r}; give one of {', '.join(KINDS)}")
        if len(self.x) != len(self.y) or len(self.x) > MAX_POINTS:
            raise ValueError(
                f"series {self.name!r} has {len(self.x)} x and {len(self.y)} y values; give equally many, and at most "
                f"{MAX_POINTS}"
            )
        if not all(isinstance(v, int | float) and math.isfinite(v) for v in (*self.x, *self.y)):
            raise ValueError(f"series {self.name!r} has values that are not finite numbers")
        if any(b < a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ValueError(f"series {self.name!r}: x is not ascending")


def parse(raw: Any) -> Series:
    """A series from its JSON. Raises ValueError."""
    names = {field.name for field in fields(Series)}
    if not isinstance(raw, dict) or set(raw) != names:
        raise ValueError(f"a series has the fields {', '.join(sorted(names))}")
    if not isinstance(raw["x"], list) or not isinstance(raw["y"], list):
        raise ValueError("x and y of a series are lists")
    return Series(**raw)


def timeline(name: str, seconds: ArrayLike, values: ArrayLike, y_title: str, y_unit: str) -> Series:
    """Values (S,) at ascending times (S,); above the maximum number of points, means of neighbours."""
    x, y = _averaged(_floats(seconds), _floats(values))
    return Series(name, "timeline", _plain(x), _plain(y), "time", "s", y_title, y_unit)


def cdf(name: str, values: ArrayLike, x_title: str, x_unit: str) -> Series:
    """The distribution of values (K,); above the maximum number of points, quantiles at equal steps."""
    x = np.sort(_floats(values))
    y = np.arange(1, len(x) + 1) / max(len(x), 1)
    if len(x) > MAX_POINTS:
        chosen = np.unique(np.rint(np.linspace(0, len(x) - 1, MAX_POINTS)).astype(np.int64))
        x, y = x[chosen], y[chosen]
    return Series(name, "cdf", _plain(x), _plain(y), x_title, x_unit, "share", "ratio")


def curve(
    name: str, sizes: ArrayLike, values: ArrayLike, x_title: str, x_unit: str, y_title: str, y_unit: str
) -> Series:
    """Values (S,) over ascending sizes (S,)."""
    return Series(name, "curve", _plain(_floats(sizes)), _plain(_floats(values)), x_title, x_unit, y_title, y_unit)


def _floats(values: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(values, np.float64)


def _averaged(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if len(x) <= MAX_POINTS:
        return x, y
    starts = np.unique(np.linspace(0, len(x), MAX_POINTS, endpoint=False).astype(np.int64))
    counts = np.diff(np.r_[starts, len(x)])
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def _plain(values: np.ndarray[Any, Any]) -> list[float]:
    """Rounds to six significant digits, to keep files small."""
    return [float(f"{v:.6g}") for v in values.tolist()]
