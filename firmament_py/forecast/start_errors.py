"""How earlier forecasts have turned out, and the interval that follows for new ones.

A forecast that a task starts in `w` has the error e = (what it waited)/w. Of ten new forecasts of about the same wait,
eight should lie between w times the tenth and w times the ninetieth percentile of the errors of the last ones, and as
many earlier as later than w times their median. So the interval includes whatever the forecast leaves out: arrivals,
unknown durations, nodes that fail. Until there are enough errors, the interval is PRIOR.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, U64

SHARE = 0.8
"""Of the starts, those that lie in the interval."""

BOUNDS_S = (60, 600, 3_600, 21_600)
"""Forecast waits are compared with those in the same one of the ranges that these seconds divide."""

ERRORS, LEAST_ERRORS = 256, 20
"""Errors of a range that count, the last ones; and from how many on they do, else those of all ranges."""

PRIOR = 0.2, 1.0, 3.0
"""The percentiles until LEAST_ERRORS are known."""

LARGEST = 64.0
"""Errors are at most this, and at least its inverse."""

PENDING = 2_000
"""Forecasts that wait for their start at most; of further ones nothing is learned."""


@dataclass(frozen=True, slots=True)
class _Forecast:
    made_us: int
    wait_us: int


class StartErrors:
    """Of one cluster. A unit is a gang, or a task of none; its number is the id or the uid."""

    def __init__(self) -> None:
        self._pending: dict[int, list[_Forecast]] = {}
        self._errors = [deque[float](maxlen=ERRORS) for _ in range(len(BOUNDS_S) + 1)]

    @property
    def known(self) -> int:
        """How many errors count."""
        return sum(map(len, self._errors))

    @property
    def awaits_starts(self) -> bool:
        """Whether a start of any unit would teach anything."""
        return bool(self._pending)

    def note_forecast(self, made_us: int, units: U64, starts_us: I64) -> None:
        """A forecast for units (K,), with their starts (K,), 0: none. Of each the first one counts, and a further one
        when half of the last one's wait is over: so long waits count little more than short ones."""
        order = np.argsort(starts_us, kind="stable")  # a gang starts with the first of its members
        for unit, start in zip(units[order].tolist(), starts_us[order].tolist(), strict=True):
            if start <= made_us or (unit not in self._pending and len(self._pending) >= PENDING):
                continue
            made = self._pending.setdefault(unit, [])
            if not made or made_us - made[-1].made_us >= made[-1].wait_us / 2:
                made.append(_Forecast(made_us, start - made_us))

    def note_starts(self, units: list[int], at_us: int) -> None:
        """Units have started."""
        for unit in units:
            for forecast in self._pending.pop(unit, ()):
                self._errors[_range(forecast.wait_us)].append(_error(forecast, at_us))

    def forget(self, waiting: frozenset[int]) -> None:
        """Units that do not wait any more, and have not started, are forgotten."""
        for unit in [unit for unit in self._pending if unit not in waiting]:
            del self._pending[unit]

    def intervals(self, made_us: int, starts_us: I64) -> tuple[I64, I64, I64]:
        """(K,) each, microseconds since the epoch, for a forecast of starts (K,), 0: none, which stay 0. A start is
        between the first and the last with probability SHARE, and as likely before as after the second."""
        wait = np.maximum(starts_us - made_us, 0)
        factors = np.array(self._percentiles(made_us))[np.searchsorted(BOUNDS_S, wait / 1e6, side="right")]
        found = np.where(starts_us[:, None] > 0, made_us + np.rint(wait[:, None] * factors).astype(np.int64), 0)
        earliest, likely, latest = found.T
        return earliest, likely, latest

    def compared(self, now_us: int) -> int:
        """From how many earlier forecasts the intervals follow; 0: these are PRIOR."""
        number = sum(map(len, self._of_ranges(now_us)))
        return number if number >= LEAST_ERRORS else 0

    def _of_ranges(self, now_us: int) -> list[list[float]]:
        """The errors of each range. Units that wait beyond their forecast start have an error that is at least what it
        is now."""
        of_range = [list(errors) for errors in self._errors]
        for made in self._pending.values():
            for each in made:
                if (error := _error(each, now_us)) > 1:
                    of_range[_range(each.wait_us)].append(error)
        return of_range

    def _percentiles(self, now_us: int) -> list[tuple[float, float, float]]:
        """Of the errors of each range."""
        of_range = self._of_ranges(now_us)
        every = [error for errors in of_range for error in errors]
        found = []
        for errors in of_range:
            chosen = sorted(errors if len(errors) >= LEAST_ERRORS else every)
            shares = (1 - SHARE) / 2, 0.5, (1 + SHARE) / 2
            low, middle, high = (
                (_percentile(chosen, share) for share in shares) if len(chosen) >= LEAST_ERRORS else PRIOR
            )
            found.append((low, middle, high))
        return found


def _range(wait_us: int) -> int:
    return bisect_right(BOUNDS_S, wait_us / 1e6)


def _error(forecast: _Forecast, at_us: int) -> float:
    return min(max((at_us - forecast.made_us) / forecast.wait_us, 1 / LARGEST), LARGEST)


def _percentile(ascending: list[float], share: float) -> float:
    """Interpolated between logarithms: errors are ratios. Of n + 1 gaps between n known values, a new one is in each
    with equal probability: so the share of new ones is below it, however many are known."""
    at = min(max(share * (len(ascending) + 1) - 1, 0), len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return math.exp(math.log(ascending[low]) + (at - low) * (math.log(ascending[high]) - math.log(ascending[low])))
