"""Distributions that generators draw from, with their means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from firmament_py.model.arrays import F64

_NORMAL = NormalDist()


class Distribution(Protocol):
    """A distribution of non-negative numbers."""

    def at(self, share: F64) -> F64:
        """Quantiles (K,) at uniform numbers (K,) from 0 to 1."""
        ...

    def mean(self) -> float: ...


def draw(distribution: Distribution, rng: np.random.Generator, count: int) -> F64:
    """(count,) independent draws, by inversion: one uniform number per draw for every distribution."""
    return distribution.at(rng.random(count))


@dataclass(frozen=True, slots=True)
class Fixed:
    value: float

    def at(self, share: F64) -> F64:
        return np.full(len(share), self.value)

    def mean(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Lognormal, cut off (conditioned, not clipped) at low and high. sigma: of the logarithm."""

    median: float
    sigma: float
    low: float
    high: float

    def at(self, share: F64) -> F64:
        below, above = self._bounds()
        inner = _NORMAL.inv_cdf
        shares = np.clip(below + share * (above - below), 1e-300, 1 - 1e-16)
        z = np.array([inner(s) for s in shares.tolist()])
        return np.clip(self.median * np.exp(self.sigma * z), self.low, self.high)

    def mean(self) -> float:
        below, above = self._bounds()
        lower, upper = (math.log(x / self.median) / self.sigma - self.sigma for x in (self.low, self.high))
        whole = self.median * math.exp(self.sigma**2 / 2)
        return whole * (_NORMAL.cdf(upper) - _NORMAL.cdf(lower)) / (above - below)

    def _bounds(self) -> tuple[float, float]:
        low, high = (_NORMAL.cdf(math.log(x / self.median) / self.sigma) for x in (self.low, self.high))
        return low, high


@dataclass(frozen=True, slots=True)
class Pareto:
    """Bounded Pareto: P(X > x) falls as x**-alpha between low and high."""

    alpha: float
    low: float
    high: float

    def at(self, share: F64) -> F64:
        tail = (self.low / self.high) ** self.alpha
        values: F64 = self.low * (1 - share * (1 - tail)) ** (-1 / self.alpha)
        return np.clip(values, self.low, self.high)

    def mean(self) -> float:
        a, low, high = self.alpha, self.low, self.high
        scale = a * math.pow(low, a) / (1 - math.pow(low / high, a))
        integral = math.log(high / low) if a == 1 else (math.pow(high, 1 - a) - math.pow(low, 1 - a)) / (1 - a)
        return scale * integral


@dataclass(frozen=True, slots=True)
class Mixture:
    """One of several distributions: (weight, distribution) each; the weights add up to 1."""

    parts: tuple[tuple[float, Distribution], ...]

    def at(self, share: F64) -> F64:
        ends = np.cumsum([weight for weight, _ in self.parts])
        which = np.minimum(np.searchsorted(ends, share, side="right"), len(self.parts) - 1)
        values = np.empty(len(share))
        for i, (weight, part) in enumerate(self.parts):
            mine = which == i
            values[mine] = part.at(np.clip((share[mine] - (ends[i] - weight)) / weight, 0, 1))
        return values

    def mean(self) -> float:
        return sum(weight * part.mean() for weight, part in self.parts)


def choices(weights: dict[float, float]) -> Mixture:
    """Value -> weight."""
    return Mixture(tuple((weight, Fixed(value)) for value, weight in weights.items()))
