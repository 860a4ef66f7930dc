"""Work takes at most its share of the time, and what takes long after quiet time delays nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.util.duty_cycle import DutyCycle

DURATIONS = st.lists(st.integers(1, 400), min_size=1, max_size=30)


def test_work_may_start_at_once():
    assert DutyCycle(0.5, 10.0).free_at <= 0.0


@given(DURATIONS, st.sampled_from([0.5, 0.25]), st.integers(0, 200))
def test_of_continuous_work_no_more_than_the_share_and_the_memory_is_done(durations, share, memory):
    duty, now = DutyCycle(share, memory), 0.0
    for lasts in durations:
        now = max(now, duty.free_at)
        duty.ended(now, now + lasts)
        now += lasts
    assert sum(durations) <= share * (max(now, duty.free_at) + memory)


@given(DURATIONS, DURATIONS, st.integers(0, 200))
def test_the_pause_is_never_longer_than_without_a_memory(durations, gaps, memory):
    """Whatever comes before, and also if work starts too early."""
    duty, now = DutyCycle(0.25, memory), 0.0
    for lasts, gap in zip(durations, gaps, strict=False):
        now += gap
        duty.ended(now, now + lasts)
        now += lasts
        assert duty.free_at <= now + 3 * lasts


@pytest.mark.parametrize(("idle", "pause"), [(0, 20), (12, 8), (30, 0), (1000, 0)])
def test_idle_time_before_the_work_shortens_the_pause(idle, pause):
    duty = DutyCycle(1 / 3, 30.0)
    duty.ended(0.0, 1000.0)
    start = duty.free_at + idle
    duty.ended(start, start + 10.0)
    assert max(duty.free_at - (start + 10.0), 0.0) == pytest.approx(pause)
