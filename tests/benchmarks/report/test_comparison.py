"""The verdicts: significant differences, noise, and too few samples."""

import math
import random

import pytest

from benchmarks.harness.results import CaseResult, Check, SuiteResult
from benchmarks.report.comparison import (
    Verdict,
    _critical,
    _critical_pairs,
    compare,
    differences,
    ratio_interval,
    under,
    verdict_of,
)

METRICS = {
    "s": {"title": "time", "unit": "s", "better": "lower"},
    "rate": {"title": "rate", "unit": "1/s", "better": "higher"},
}


def result(samples, metric="s", sizes=None, **environment):
    case = CaseResult("one", sizes or {"nodes": 1}, {metric: samples})
    return SuiteResult("demo", {"cpu": "x", **environment}, {"seed": 0}, METRICS, [case])


def verdict(a, b, metric="s"):
    (only,) = compare(result(a, metric), result(b, metric))
    return only.verdict


SLOW, FAST = [2.0, 2.1, 2.2, 2.3, 2.4], [1.0, 1.1, 1.2, 1.3, 1.4]


def test_a_clear_difference_is_better_or_worse():
    assert verdict(SLOW, FAST) is Verdict.BETTER
    assert verdict(FAST, SLOW) is Verdict.WORSE
    assert verdict(SLOW, FAST, "rate") is Verdict.WORSE
    assert verdict(FAST, SLOW, "rate") is Verdict.BETTER


def test_samples_that_overlap_are_noise():
    assert verdict([1.0, 1.5, 2.0, 2.5, 3.0], [1.1, 1.4, 2.2, 2.6, 2.9]) is Verdict.NOISE


def test_three_samples_each_prove_nothing():
    # all 3 of B below all 3 of A happens by chance in 1 of 20 orders, each way: 10 % in all
    assert verdict([2.0, 2.1, 2.2], [1.0, 1.1, 1.2]) is Verdict.UNSURE
    # with 4 it is 1 of 70, each way: under 3 %
    assert verdict([2.0, 2.1, 2.2, 2.3], [1.0, 1.1, 1.2, 1.3]) is Verdict.BETTER


def test_a_significant_but_small_difference_counts_as_same():
    a = [1.0, 1.0001, 1.0002, 1.0003, 1.0004]
    assert verdict(a, [1.01 * x for x in a]) is Verdict.SAME
    assert verdict(a, a) is Verdict.SAME


def test_the_ratio_is_the_median_of_all_pairs():
    # 4/1, 4/2, 8/1, 8/2 -> 2, 4, 4, 8: the median is 4
    assert ratio_interval([1.0, 2.0], [4.0, 8.0])[0] == pytest.approx(4.0)


def test_critical_ranks_are_those_of_the_tables():
    # Mann-Whitney at 5 %, two-sided: U <= 0 for 4, 4; 2 for 5, 5; 5 for 6, 6; 23 for 10, 10; one more is the rank
    assert [_critical(n, n) for n in (3, 4, 5, 6, 10)] == [0, 1, 3, 6, 24]
    assert _critical(5, 3) == 1
    # the approximation for many samples continues where the exact count ends
    assert _critical(31, 31) == pytest.approx(_critical(30, 30) * (31 / 30) ** 2, rel=0.02)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = random.Random(0)
    covered = 0
    for _ in range(400):
        a = [rng.lognormvariate(0, 0.3) for _ in range(5)]
        b = [1.3 * rng.lognormvariate(0, 0.3) for _ in range(5)]
        _, low, high = ratio_interval(a, b)
        assert low is not None
        assert high is not None
        covered += low <= 1.3 <= high
    assert covered >= 0.95 * 400 - 3 * math.sqrt(400 * 0.95 * 0.05)


def test_only_the_same_case_at_the_same_size_is_compared():
    other = result(FAST, sizes={"nodes": 2})
    assert compare(result(SLOW), other) == []
    assert differences(result(SLOW), other) == ["one is not compared: its sizes differ: nodes 1 and 2"]
    assert compare(result(SLOW), result(FAST), metrics=["rate"]) == []


def test_results_at_different_scales_are_not_compared():
    small = result(FAST)
    small.options["scale"] = 0.1
    assert compare(result(SLOW), small) == []
    assert any(
        "nothing is compared: the results differ in --scale" in note for note in differences(result(SLOW), small)
    )


def test_a_metric_of_one_result_only_is_noted():
    assert differences(result(SLOW), result(FAST, "rate")) == [
        "only one result has the metrics rate, s of one: not compared"
    ]


@pytest.mark.parametrize(
    ("a", "b", "metric", "expected"),
    [
        pytest.param([0.0] * 5, [0.0] * 5, "s", Verdict.SAME, id="nothing is nothing"),
        pytest.param([0.0] * 5, FAST, "s", Verdict.WORSE, id="more than nothing"),
        pytest.param([0.0] * 5, FAST, "rate", Verdict.BETTER, id="more than nothing, and that is good"),
        pytest.param(FAST, [0.0] * 5, "s", Verdict.BETTER, id="nothing any more"),
        pytest.param([0.0] * 5, [0.0, 0.0, 0.0, 0.0, 1.0], "s", Verdict.NOISE, id="once"),
        pytest.param([0.0], [1.0], "s", Verdict.UNSURE, id="few"),
        pytest.param([-2.0] * 5, [-1.0] * 5, "s", Verdict.WORSE, id="less than nothing"),
    ],
)
def test_a_figure_of_0_has_no_ratio_and_a_verdict(a, b, metric, expected):
    (only,) = compare(result(a, metric), result(b, metric))
    assert (only.ratio, only.low, only.high, only.verdict) == (None, None, None, expected)


def test_a_small_difference_that_may_be_larger_is_noise():
    assert verdict_of(1.02, 0.98, 1.05, "lower") is Verdict.SAME
    assert verdict_of(1.02, 1.001, 1.3, "lower") is Verdict.NOISE
    assert verdict_of(0.99, 0.7, 0.999, "lower") is Verdict.NOISE


def test_failed_checks_are_a_verdict_for_any_figures():
    broken = result(FAST)
    broken.cases[0].failed.append(Check("sound", False, "no"))
    of_s, checks = compare(result(SLOW), broken)
    assert (of_s.metric, of_s.verdict) == ("s", Verdict.BROKEN)
    assert of_s.ratio == pytest.approx(0.55, abs=0.05)
    assert (checks.metric, checks.a, checks.b, checks.verdict) == ("checks", 0, 1, Verdict.BROKEN)
    broken.cases[0].samples.clear()  # nothing was measured, because it broke
    assert [one.verdict for one in compare(result(SLOW), broken)] == [Verdict.BROKEN]
    assert "checks of one failed in A: sound; its figures are not valid" in differences(broken, broken)


def virtual(samples, seeds=None, metric="s", case="one", **sizes):
    found = result(samples, metric, sizes)
    found.virtual = True
    found.cases[0].name = case
    found.cases[0].seeds = {metric: list(range(len(samples)) if seeds is None else seeds)}
    return found


TRACES = [1.0, 10.0, 100.0, 3.0, 30.0, 300.0]  # how much the traces of six seeds differ


def test_samples_of_one_seed_are_pairs():
    faster = [0.8 * x for x in TRACES]
    (only,) = compare(virtual(TRACES), virtual(faster))
    assert only.verdict is Verdict.BETTER
    assert [only.ratio, only.low, only.high] == pytest.approx([0.8, 0.8, 0.8])
    (only,) = compare(virtual(TRACES), virtual(faster[::-1], [5, 4, 3, 2, 1, 0]))  # in any order
    assert only.verdict is Verdict.BETTER
    # without seeds in common what the traces differ by hides it
    other = virtual(faster, range(6, 12))
    (only,) = compare(virtual(TRACES), other)
    assert only.verdict is Verdict.NOISE
    assert any("the results share no seed" in note for note in differences(virtual(TRACES), other))


def test_seeds_of_one_result_only_have_no_pair():
    one, other = virtual(TRACES, range(6)), virtual([0.8 * x for x in TRACES[1:]] + [7.0], range(1, 7))
    (only,) = compare(one, other)
    assert only.verdict is Verdict.UNSURE  # five pairs are not enough
    assert only.ratio == pytest.approx(0.8)
    assert "only one result has seeds 0, 6: not compared" in differences(one, other)


def test_a_repeated_seed_is_not_another_sample():
    (only,) = compare(virtual([1.0] * 6, [0] * 6), virtual([2.0] * 6, [0] * 6))
    assert (only.verdict, only.ratio, only.low) == (Verdict.UNSURE, 2.0, None)
    (only,) = compare(virtual([1.0] * 6, [0] * 6), virtual([1.0] * 6, [0] * 6))
    assert only.verdict is Verdict.SAME


def test_pairs_of_0_are_judged_by_their_differences():
    (only,) = compare(virtual([0.0] * 6), virtual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    assert (only.ratio, only.verdict) == (None, Verdict.WORSE)
    (only,) = compare(virtual([0.0, 0.1] * 3), virtual([0.0, 0.1] * 3))
    assert only.verdict is Verdict.SAME


def test_critical_ranks_of_pairs_are_those_of_the_tables():
    # Wilcoxon's signed ranks at 5 %, two-sided: T <= 0 for 6 pairs, 2 for 7, 8 for 10, 52 for 20; one more is the rank
    assert [_critical_pairs(n) for n in (1, 5, 6, 7, 10, 20)] == [0, 0, 1, 3, 9, 53]
    assert _critical_pairs(51) == pytest.approx(_critical_pairs(50), rel=0.06)


def test_the_interval_of_pairs_covers_the_truth_as_often_as_it_says():
    rng = random.Random(1)
    covered = 0
    for _ in range(400):
        a = [rng.lognormvariate(0, 3.0) for _ in range(8)]
        _, low, high = ratio_interval(a, [1.3 * x * rng.lognormvariate(0, 0.3) for x in a], paired=True)
        assert low is not None
        assert high is not None
        covered += low <= 1.3 <= high
    assert covered >= 0.95 * 400 - 3 * math.sqrt(400 * 0.95 * 0.05)


def test_two_policies_are_compared_on_the_same_traces():
    both = virtual(TRACES, case="over/philly/x", policy="x", nodes=1)
    both.cases += virtual([0.8 * v for v in TRACES], case="over/philly/y", policy="y", nodes=1).cases
    (only,) = compare(under(both, "x"), under(both, "y"))
    assert (only.case, only.verdict) == ("over/philly", Verdict.BETTER)
    assert under(both, "z").cases == []


def test_different_machines_are_noted():
    notes = differences(result(SLOW, cpu="x"), result(FAST, cpu="y"))
    assert notes == ["cpu differs: x and y"]
    assert differences(result(SLOW), result(FAST)) == []


def test_an_interval_without_bounds_is_unsure():
    assert verdict_of(0.5, None, None, "lower") is Verdict.UNSURE
