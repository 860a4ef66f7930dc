"""Two results of the same suite, case by case: the ratio, how sure it is, and a verdict.

The ratio is the Hodges-Lehmann estimate: the median of all ratios b / a between a sample of B and one of A. Its
95 % interval is the one that inverts the Mann-Whitney test (Hollander and Wolfe, Nonparametric Statistical Methods,
section 4.3): exact, free of assumptions on how times are distributed, and wide when there are few samples. With
fewer than four samples on each side no interval of 95 % exists, and the verdict says so.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from benchmarks.results import SuiteResult

CONFIDENCE = 0.95
NEGLIGIBLE = 0.03
"""Ratios within 3 % of 1 are called the same even if they are certain: machines drift by more than that."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # certain to be within the negligible range, or the difference is that small
    NOISE = "within noise"  # 1 is in the interval
    UNSURE = "too few samples"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one case. low and high bound the ratio b / a; None if there are too few samples."""

    case: str
    metric: str
    unit: str
    a: float
    b: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict


def compare(a: SuiteResult, b: SuiteResult, metrics: Sequence[str] = ()) -> list[Comparison]:
    """Every case and metric that both have, in A's order; only some metrics if any are named."""
    of_b = {case.name: case for case in b.cases if case.sizes}
    found = []
    for case in a.cases:
        other = of_b.get(case.name)
        if other is None or other.sizes != case.sizes:
            continue
        for name, about in a.metrics.items():
            old, new = case.samples.get(name), other.samples.get(name)
            if not old or not new or (metrics and name not in metrics) or min(*old, *new) <= 0:
                continue
            ratio, low, high = ratio_interval(old, new)
            found.append(
                Comparison(
                    case.name,
                    name,
                    about["unit"],
                    statistics.median(old),
                    statistics.median(new),
                    ratio,
                    low,
                    high,
                    judge(ratio, low, high, about["better"]),
                )
            )
    return found


def differences(a: SuiteResult, b: SuiteResult) -> list[str]:
    """Why the two are not quite comparable: machines, versions, options."""
    found = []
    for name in ("cpu", "cores", "python", "libraries"):
        one, other = a.environment.get(name), b.environment.get(name)
        if one != other:
            found.append(f"{name} differs: {one} and {other}")
    for name in sorted(set(a.options) | set(b.options)):
        if a.options.get(name) != b.options.get(name) and name != "repeat":
            found.append(f"option {name} differs: {a.options.get(name)} and {b.options.get(name)}")
    missing = {case.name for case in a.cases} ^ {case.name for case in b.cases}
    if missing:
        found.append(f"only one of them has: {', '.join(sorted(missing))}")
    return found


def ratio_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Estimate and interval of the ratio b / a, from samples > 0."""
    logs = sorted(math.log(y / x) for x in a for y in b)
    ratio = math.exp(statistics.median(logs))
    k = _critical(len(a), len(b))
    if k == 0:
        return ratio, None, None
    return ratio, math.exp(logs[k - 1]), math.exp(logs[-k])


def judge(ratio: float, low: float | None, high: float | None, better: str) -> Verdict:
    """What a ratio and its interval say, for a metric of which lower or higher values are better."""
    if low is None or high is None:
        return Verdict.UNSURE
    if abs(ratio - 1.0) <= NEGLIGIBLE and low >= 1 - 2 * NEGLIGIBLE and high <= 1 + 2 * NEGLIGIBLE:
        return Verdict.SAME
    if low <= 1.0 <= high:
        return Verdict.NOISE
    if abs(ratio - 1.0) <= NEGLIGIBLE:
        return Verdict.SAME
    return Verdict.BETTER if (ratio < 1.0) == (better == "lower") else Verdict.WORSE


def _critical(m: int, n: int) -> int:
    """The largest k such that the k-th smallest and largest of the m * n differences bound the shift with at least
    95 % confidence; 0 if there is none. P(U <= k - 1) <= 2.5 % under the null hypothesis."""
    if m > 30 or n > 30:  # the exact count grows with (m n)**2; the normal approximation is good there
        spread = math.sqrt(m * n * (m + n + 1) / 12)
        return max(0, math.floor(m * n / 2 - 1.96 * spread))
    total, tail, k = math.comb(m + n, m), 0, 0
    while k < m * n:
        tail += _ways(m, n, k)
        if tail / total > (1 - CONFIDENCE) / 2:
            break
        k += 1
    return k


@cache
def _ways(m: int, n: int, u: int) -> int:
    """In how many orders of m and n samples exactly u pairs are inverted."""
    if u < 0 or u > m * n:
        return 0
    if m == 0 or n == 0:
        return 1 if u == 0 else 0
    return _ways(m - 1, n, u - n) + _ways(m, n - 1, u)
