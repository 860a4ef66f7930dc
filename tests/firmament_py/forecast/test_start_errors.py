"""Intervals follow from how earlier forecasts have turned out."""

import numpy as np
import pytest

from firmament_py.forecast.start_errors import BOUNDS_S, ERRORS, LEAST_ERRORS, PENDING, PRIOR, StartErrors
from tests.builders import NOW_US, SECOND_US
from tests.effort import seeds

S = SECOND_US


def interval(errors, wait_s, now_us=NOW_US):
    """Seconds from now."""
    found = errors.intervals(now_us, np.array([now_us + round(wait_s * S)]))
    return tuple((float(each[0]) - now_us) / S for each in found)


def learn(errors, wait_s, waited_s, made_us=NOW_US, unit=1):
    errors.note_forecast(made_us, np.array([unit], np.uint64), np.array([made_us + round(wait_s * S)]))
    errors.note_starts([unit], made_us + round(waited_s * S))


def test_a_guess_until_enough_is_known():
    errors = StartErrors()
    assert interval(errors, 100) == tuple(100 * share for share in PRIOR)
    for _ in range(LEAST_ERRORS - 1):
        learn(errors, 100, 100)
    assert interval(errors, 100) == tuple(100 * share for share in PRIOR)
    assert (errors.known, errors.compared(NOW_US)) == (LEAST_ERRORS - 1, 0), "too few to follow from"
    learn(errors, 100, 100)
    assert errors.known == errors.compared(NOW_US) == LEAST_ERRORS
    assert interval(errors, 100) == pytest.approx((100, 100, 100))


def test_the_percentiles_of_the_last_errors_count():
    """Errors 2 and 1/2, each half of them: the tenth and the ninetieth percentile."""
    errors = StartErrors()
    for _ in range(ERRORS):
        learn(errors, 100, 900)
    for _ in range(ERRORS // 2):
        learn(errors, 100, 200)
        learn(errors, 100, 50)
    assert interval(errors, 80) == pytest.approx((40, 80, 160), rel=0.01), "in between: the geometric mean"


def test_a_range_of_waits_has_errors_of_its_own_once_there_are_enough():
    errors = StartErrors()
    for _ in range(LEAST_ERRORS):
        learn(errors, 30, 60)
    assert interval(errors, BOUNDS_S[1] + 1)[1] == pytest.approx(2 * (BOUNDS_S[1] + 1)), "those of all"
    for _ in range(LEAST_ERRORS):
        learn(errors, 1000, 3000)
    assert interval(errors, 1000)[1] == pytest.approx(3000)
    assert interval(errors, 30)[1] == pytest.approx(60)


def test_what_waits_beyond_its_forecast_counts_as_late():
    errors = StartErrors()
    for _ in range(LEAST_ERRORS):
        learn(errors, 10, 10)
    units = np.arange(100, 200, dtype=np.uint64)
    errors.note_forecast(NOW_US, units, np.full(100, NOW_US + 10 * S))
    assert interval(errors, 10, NOW_US + 5 * S)[1] == pytest.approx(10), "none is late yet"
    assert interval(errors, 10, NOW_US + 40 * S)[1] == pytest.approx(40), "most wait for four times as long at least"
    assert errors.compared(NOW_US + 40 * S) == LEAST_ERRORS + 100
    errors.forget(frozenset())
    assert interval(errors, 10, NOW_US + 40 * S)[1] == pytest.approx(10), "they were withdrawn"


def test_a_further_forecast_of_a_unit_counts_when_half_of_the_wait_is_over():
    errors, unit = StartErrors(), np.array([7], np.uint64)
    for after_s, wait_s in ((0, 100), (49, 100), (50, 30), (64, 30), (65, 30)):
        made = NOW_US + after_s * S
        errors.note_forecast(made, unit, np.array([made + wait_s * S]))
    errors.note_starts([7], NOW_US + 100 * S)
    assert errors.known == 3, "made after 0, 50 and 65 s"


def test_a_gang_starts_with_the_first_of_its_members():
    errors, gang = StartErrors(), np.array([7, 7, 7], np.uint64)
    errors.note_forecast(NOW_US, gang, NOW_US + np.array([300, 0, 100]) * S - np.array([0, NOW_US, 0]))
    errors.note_starts([7], NOW_US + 100 * S)
    assert list(errors._errors[1]) == [pytest.approx(1)]


def test_without_a_forecast_start_nothing_is_learned():
    errors = StartErrors()
    errors.note_forecast(NOW_US, np.array([1, 2], np.uint64), np.array([0, NOW_US]))
    errors.note_starts([1, 2, 3], NOW_US + S)
    assert errors.known == 0
    assert [each.tolist() for each in errors.intervals(NOW_US, np.array([0, NOW_US]))] == [[0, NOW_US]] * 3


def test_what_waits_for_its_start_is_bounded():
    errors = StartErrors()
    units = np.arange(1, PENDING + 10, dtype=np.uint64)
    errors.note_forecast(NOW_US, units, np.full(len(units), NOW_US + S))
    errors.note_starts(units.tolist(), NOW_US + S)
    assert errors.known == ERRORS


@seeds(4)
def test_eight_of_ten_starts_are_in_the_interval(seed):
    """Whatever the distribution of errors is, here a wide one whose median is 1.6."""
    rng, errors, inside, above, trials = np.random.default_rng(seed), StartErrors(), 0, 0, 2_000
    for i in range(trials + 60):
        wait = float(rng.uniform(61, 599))
        waited = wait * float(np.exp(rng.normal(0.5, 1.2)))
        low, middle, high = interval(errors, wait)
        if i >= 60:
            inside += low <= waited <= high
            above += waited > middle
        learn(errors, wait, waited)
    assert 0.76 < inside / trials < 0.84, "0.8, and four standard deviations of 0.009"
    assert 0.45 < above / trials < 0.55
