"""Two results of the same suite, case by case: the ratio, how sure it is, and a verdict.

The ratio is the Hodges-Lehmann estimate: the median of all ratios b / a between a sample of B and one of A. Its
95 % interval is the one that inverts the Mann-Whitney test (Hollander and Wolfe, Nonparametric Statistical Methods,
section 4.3): exact, free of assumptions on how times are distributed, and wide when there are few samples. With
fewer than four samples on each side no interval of 95 % exists, and the verdict says so. Where a sample is 0 there
is no ratio; then differences b - a are judged in the same way, as parts of the larger median.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from benchmarks.results import CaseResult, SuiteResult

CONFIDENCE = 0.95
NEGLIGIBLE = 0.03
"""Ratios within 3 % of 1 are called the same even if they are certain: machines drift by more than that."""
CHECKS = "checks"
"""Stands for a metric where checks of a case failed: so many did."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # certain to be small
    NOISE = "within noise"  # 1 is in the interval, or the difference is small and might not be
    UNSURE = "too few samples"
    BROKEN = "failed checks"  # of B: its figures mean nothing


FAILS = (Verdict.WORSE, Verdict.BROKEN)
"""Verdicts that --enforce does not let pass."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one case. low and high bound the ratio b / a; None if there are too few samples. Without a ratio,
    where samples are 0, all three are None."""

    case: str
    metric: str
    unit: str
    a: float
    b: float
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict


def compare(a: SuiteResult, b: SuiteResult, metrics: Sequence[str] = ()) -> list[Comparison]:
    """Every case and metric that both have, in A's order; only some metrics if any are named. Then what failed in B."""
    found = []
    for case, other in _shared(a, b):
        for name, about in a.metrics.items():
            old, new = case.samples.get(name), other.samples.get(name)
            if old and new and (not metrics or name in metrics):
                ratio, low, high, verdict = _judged(old, new, about["better"])
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
                        Verdict.BROKEN if other.failed else verdict,
                    )
                )
    failed_in_a = {case.name: len(case.failed) for case in a.cases}
    for case in b.cases:
        if case.failed:
            counts = failed_in_a.get(case.name, 0), len(case.failed)
            found.append(Comparison(case.name, CHECKS, "count", *counts, None, None, None, Verdict.BROKEN))
    return found


def differences(a: SuiteResult, b: SuiteResult) -> list[str]:
    """Why the two are not quite comparable, or not at all: machines, versions, options, sizes, failed checks."""
    found = []
    for name in ("cpu", "cores", "python", "libraries"):
        one, other = a.environment.get(name), b.environment.get(name)
        if one != other:
            found.append(f"{name} differs: {one} and {other}")
    for name in sorted(set(a.options) | set(b.options)):
        if a.options.get(name) != b.options.get(name) and name != "repeat":
            found.append(f"option {name} differs: {a.options.get(name)} and {b.options.get(name)}")
    if not _same_scale(a, b):
        found.append("no case is compared: at another --scale all sizes are others; measure both at the same")
    missing = {case.name for case in a.cases} ^ {case.name for case in b.cases}
    if missing:
        found.append(f"only one of them has: {', '.join(sorted(missing))}")
    of_b = {case.name: case for case in b.cases}
    for case in a.cases:
        other = of_b.get(case.name)
        if other is not None:
            found += _differences_of(case, other, set(a.metrics))
        if case.failed:
            found.append(f"checks of {case.name} failed in A, too: {case.failed[0].name}; its figures mean little")
    return found


def _differences_of(a: CaseResult, b: CaseResult, metrics: set[str]) -> list[str]:
    """Of one case, whose name both have."""
    sizes = [
        f"{name} {a.sizes.get(name)} and {b.sizes.get(name)}"
        for name in sorted(set(a.sizes) | set(b.sizes))
        if a.sizes.get(name) != b.sizes.get(name)
    ]
    if sizes:
        return [f"{a.name} is not compared, its sizes differ: {', '.join(sizes)}"]
    alone = (set(a.samples) ^ set(b.samples)) & metrics
    return [f"only one of them has, of {a.name}: {', '.join(sorted(alone))}"] if alone else []


def _shared(a: SuiteResult, b: SuiteResult) -> list[tuple[CaseResult, CaseResult]]:
    """Cases of one name and of one size."""
    if not _same_scale(a, b):
        return []
    of_b = {case.name: case for case in b.cases}
    pairs = [(case, of_b[case.name]) for case in a.cases if case.name in of_b]
    return [(case, other) for case, other in pairs if case.sizes == other.sizes]


def _same_scale(a: SuiteResult, b: SuiteResult) -> bool:
    return bool(a.options.get("scale", 1.0) == b.options.get("scale", 1.0))


def _judged(
    a: Sequence[float], b: Sequence[float], better: str
) -> tuple[float | None, float | None, float | None, Verdict]:
    """Ratio, interval and verdict of the samples of one metric."""
    if min(*a, *b) > 0:
        ratio, low, high = ratio_interval(a, b)
        return ratio, low, high, judge(ratio, low, high, better)
    if len({*a, *b}) == 1:  # one and the same number
        return None, None, None, Verdict.SAME
    of = max(abs(statistics.median(a)), abs(statistics.median(b))) or max(map(abs, (*a, *b)))
    shift, least, most = _interval(a, b, lambda x, y: (y - x) / of)
    low, high = (None, None) if least is None or most is None else (1 + least, 1 + most)
    return None, None, None, judge(1 + shift, low, high, better)


def ratio_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Estimate and interval of the ratio b / a, from samples > 0."""
    ratio, low, high = _interval(a, b, lambda x, y: math.log(y / x))
    if low is None or high is None:
        return math.exp(ratio), None, None
    return math.exp(ratio), math.exp(low), math.exp(high)


def judge(ratio: float, low: float | None, high: float | None, better: str) -> Verdict:
    """What a ratio and its interval say, for a metric of which lower or higher values are better."""
    if low is None or high is None:
        return Verdict.UNSURE
    small = abs(ratio - 1.0) <= NEGLIGIBLE
    if small and low >= 1 - 2 * NEGLIGIBLE and high <= 1 + 2 * NEGLIGIBLE:
        return Verdict.SAME
    if small or low <= 1.0 <= high:
        return Verdict.NOISE
    return Verdict.BETTER if (ratio < 1.0) == (better == "lower") else Verdict.WORSE


def _interval(
    a: Sequence[float], b: Sequence[float], apart: Callable[[float, float], float]
) -> tuple[float, float | None, float | None]:
    """Estimate and interval of how far B is from A, where `apart` says it of one sample of each."""
    steps = sorted(apart(x, y) for x in a for y in b)
    k = _critical(len(a), len(b))
    if k == 0:
        return statistics.median(steps), None, None
    return statistics.median(steps), steps[k - 1], steps[-k]


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
