"""Two results of the same suite, case by case: the ratio, its confidence interval, and a verdict.

The ratio is the Hodges-Lehmann estimate: the median of all ratios b / a between a sample of B and one of A. Its
95 % interval is the one that inverts the Mann-Whitney test (Hollander and Wolfe, Nonparametric Statistical Methods,
section 4.3): exact, free of assumptions on how times are distributed, and wide when there are few samples. With
fewer than four samples on each side no interval of 95 % exists, and the verdict is "too few samples". If a sample is 0
there is no ratio; then differences b - a, relative to the larger median, are tested in the same way.

Figures of virtual time follow from the seed: repeated samples of one seed count once, and samples of the same seed in A
and B, which use the same trace, are pairs. For pairs the ratio is the median of the Walsh averages (of logarithms): the
means of every two of them, including each with itself. The interval inverts Wilcoxon's signed-rank test (section 3.3
there): exact if the ratios are distributed symmetrically around their median, and defined for six pairs or more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from benchmarks.harness.results import CaseResult, SuiteResult

CONFIDENCE = 0.95
NEGLIGIBLE = 0.03
"""Ratios within 3 % of 1 count as equal even if they are significant: the speed of machines varies by more."""
CHECKS = "checks"
"""In place of a metric: the number of failed checks of a case."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # the whole interval is close to 1
    NOISE = "within noise"  # 1 is in the interval, or the ratio is close to 1 and the interval is wide
    UNSURE = "too few samples"  # or seeds
    BROKEN = "failed checks"  # of B: its figures are not valid


FAILS = (Verdict.WORSE, Verdict.BROKEN)
"""Verdicts with which --enforce exits with 1."""


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
    """Every case and metric that both have, in A's order, or only the named metrics; then the failed checks of B."""
    found = []
    for case, other in _shared(a, b):
        for name, about in a.metrics.items():
            if name in case.samples and name in other.samples and (not metrics or name in metrics):
                old, new, paired = case.samples[name], other.samples[name], False
                if a.virtual and b.virtual:
                    old, new, paired = _by_seed(case, other, name)
                ratio, low, high, verdict = _judged(old, new, about["better"], paired)
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
    """What limits the comparison: differences in machines, versions, options and sizes, and failed checks."""
    found = []
    for name in ("cpu", "cores", "python", "libraries"):
        one, other = a.environment.get(name), b.environment.get(name)
        if one != other:
            found.append(f"{name} differs: {one} and {other}")
    for name in sorted(set(a.options) | set(b.options)):
        if a.options.get(name) != b.options.get(name) and name != "repeat":
            found.append(f"option {name} differs: {a.options.get(name)} and {b.options.get(name)}")
    found += [f"{name} is incomplete: {r.stopped}" for name, r in (("A", a), ("B", b)) if r.stopped]
    if not _same_scale(a, b):
        found.append("nothing is compared: the results differ in --scale; measure both at the same scale")
    if a.virtual and b.virtual:
        one, other = ({seed for case in r.cases for of in case.seeds.values() for seed in of} for r in (a, b))
        if not one & other:
            found.append(
                "the results share no seed, so samples are compared unpaired; measure both with the same --seed"
            )
        elif one ^ other:
            found.append(f"only one result has seeds {', '.join(map(str, sorted(one ^ other)))}: not compared")
    missing = {case.name for case in a.cases} ^ {case.name for case in b.cases}
    if missing:
        found.append(f"only one result has the cases {', '.join(sorted(missing))}: not compared")
    of_b = {case.name: case for case in b.cases}
    for case in a.cases:
        other = of_b.get(case.name)
        if other is not None:
            found += _differences_of(case, other, set(a.metrics))
        if case.failed:
            found.append(f"checks of {case.name} failed in A: {case.failed[0].name}; its figures are not valid")
    return found


def _differences_of(a: CaseResult, b: CaseResult, metrics: set[str]) -> list[str]:
    """The differences of one case that both results have."""
    sizes = [
        f"{name} {a.sizes.get(name)} and {b.sizes.get(name)}"
        for name in sorted(set(a.sizes) | set(b.sizes))
        if a.sizes.get(name) != b.sizes.get(name)
    ]
    if sizes:
        return [f"{a.name} is not compared: its sizes differ: {', '.join(sizes)}"]
    alone = (set(a.samples) ^ set(b.samples)) & metrics
    return [f"only one result has the metrics {', '.join(sorted(alone))} of {a.name}: not compared"] if alone else []


def _shared(a: SuiteResult, b: SuiteResult) -> list[tuple[CaseResult, CaseResult]]:
    """Pairs of cases with equal names and sizes."""
    if not _same_scale(a, b):
        return []
    of_b = {case.name: case for case in b.cases}
    pairs = [(case, of_b[case.name]) for case in a.cases if case.name in of_b]
    return [(case, other) for case, other in pairs if case.sizes == other.sizes]


def _same_scale(a: SuiteResult, b: SuiteResult) -> bool:
    return bool(a.options.get("scale", 1.0) == b.options.get("scale", 1.0))


def under(result: SuiteResult, policy: str) -> SuiteResult:
    """The cases of one policy, without its name in theirs, so that two policies can be compared."""
    cases = [
        replace(
            case,
            name="/".join(part for part in case.name.split("/") if part != policy),
            sizes={name: size for name, size in case.sizes.items() if name != "policy"},
        )
        for case in result.cases
        if case.sizes.get("policy") == policy
    ]
    return replace(result, cases=cases)


def _by_seed(a: CaseResult, b: CaseResult, metric: str) -> tuple[list[float], list[float], bool]:
    """Samples of a metric, each seed once, and whether they are pairs of equal seeds."""
    old, new = ({*zip(case.seeds.get(metric, ()), case.samples[metric], strict=False)} for case in (a, b))
    of_a, of_b = dict(old), dict(new)
    if not of_a or not of_b or len(of_a) < len(old) or len(of_b) < len(new):  # unknown or ambiguous
        return a.samples[metric], b.samples[metric], False
    both = sorted(set(of_a) & set(of_b))
    if not both:
        return list(of_a.values()), list(of_b.values()), False
    return [of_a[seed] for seed in both], [of_b[seed] for seed in both], True


def _judged(
    a: Sequence[float], b: Sequence[float], better: str, paired: bool
) -> tuple[float | None, float | None, float | None, Verdict]:
    """Ratio, interval and verdict of the samples of one metric."""
    unchanged = list(a) == list(b) if paired else len({*a, *b}) == 1
    if min(*a, *b) > 0:
        ratio, low, high = ratio_interval(a, b, paired)
        return ratio, low, high, Verdict.SAME if unchanged else verdict_of(ratio, low, high, better)
    if unchanged:
        return None, None, None, Verdict.SAME
    of = max(abs(statistics.median(a)), abs(statistics.median(b))) or max(map(abs, (*a, *b)))
    shift, lowest, highest = _interval(a, b, lambda x, y: (y - x) / of, paired)
    low, high = (None, None) if lowest is None or highest is None else (1 + lowest, 1 + highest)
    return None, None, None, verdict_of(1 + shift, low, high, better)


def ratio_interval(
    a: Sequence[float], b: Sequence[float], paired: bool = False
) -> tuple[float, float | None, float | None]:
    """Estimate and interval of the ratio b / a, from samples > 0, or from pairs of them."""
    ratio, low, high = _interval(a, b, lambda x, y: math.log(y / x), paired)
    if low is None or high is None:
        return math.exp(ratio), None, None
    return math.exp(ratio), math.exp(low), math.exp(high)


def verdict_of(ratio: float, low: float | None, high: float | None, better: str) -> Verdict:
    """The verdict for a ratio and its interval, of a metric whose lower or higher values are better."""
    if low is None or high is None:
        return Verdict.UNSURE
    small = abs(ratio - 1.0) <= NEGLIGIBLE
    if small and low >= 1 - 2 * NEGLIGIBLE and high <= 1 + 2 * NEGLIGIBLE:
        return Verdict.SAME
    if small or low <= 1.0 <= high:
        return Verdict.NOISE
    return Verdict.BETTER if (ratio < 1.0) == (better == "lower") else Verdict.WORSE


def _interval(
    a: Sequence[float], b: Sequence[float], apart: Callable[[float, float], float], paired: bool
) -> tuple[float, float | None, float | None]:
    """Estimate and interval of the shift from A to B; `apart` is the shift between two samples."""
    if paired:
        each = [apart(x, y) for x, y in zip(a, b, strict=True)]
        steps = sorted((x + y) / 2 for i, x in enumerate(each) for y in each[i:])
        k = _critical_pairs(len(each))
    else:
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


def _critical_pairs(n: int) -> int:
    """The same for the n * (n + 1) / 2 Walsh averages of n differences."""
    if n > 50:
        return math.floor(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    sums = [1]  # by sum: the number of subsets of the ranks 1 to n with that sum
    for rank in range(1, n + 1):
        longer = [*sums, *[0] * rank]
        sums = [ways + (sums[s - rank] if s >= rank else 0) for s, ways in enumerate(longer)]
    tail, k = 0, 0
    while k < len(sums):
        tail += sums[k]
        if tail / 2**n > (1 - CONFIDENCE) / 2:
            break
        k += 1
    return k


@cache
def _ways(m: int, n: int, u: int) -> int:
    """The number of orders of m and n samples in which exactly u pairs are inverted."""
    if u < 0 or u > m * n:
        return 0
    if m == 0 or n == 0:
        return 1 if u == 0 else 0
    return _ways(m - 1, n, u - n) + _ways(m, n - 1, u)
