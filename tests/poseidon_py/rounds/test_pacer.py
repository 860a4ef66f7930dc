"""Rounds start at once after a change, later while changes keep arriving, and run at most half of the time."""

import pytest

from poseidon_py.rounds.pacer import Pacer

WINDOW = 1 / 128
"""Seconds; a power of two, so that sums are exact. The limit is 32 windows."""
NOW = 100.0


def windows(pacer=None, *, arriving=False):
    """Windows from a change until the round begins, in virtual time."""
    pacer = pacer or Pacer(WINDOW, 32 * WINDOW)
    now = NOW
    while delay := pacer.delay(NOW, now, arriving=arriving):
        now += delay
    return (now - NOW) / WINDOW


def after_a_round_of(lasted, ago=1000.0):
    """`lasted`, `ago` (since its end): windows."""
    pacer = Pacer(WINDOW, 32 * WINDOW)
    ended = NOW - ago * WINDOW
    pacer.round_ended(ended - lasted * WINDOW, ended)
    return pacer


def test_a_single_change_does_not_wait():
    assert windows() == 0


def test_while_changes_arrive_a_cheap_round_waits_for_some_windows():
    assert windows(arriving=True) == 2


@pytest.mark.parametrize(("lasted", "waits"), [(6, 12), (400, 32)])
def test_while_changes_arrive_a_costly_round_waits_twice_as_long_as_it_takes_up_to_the_limit(lasted, waits):
    assert windows(after_a_round_of(lasted), arriving=True) == waits


def test_a_round_leaves_as_much_time_as_the_last_one_took_less_a_window():
    assert windows(after_a_round_of(10, ago=4)) == 5
    assert windows(after_a_round_of(1, ago=0)) == 0


def test_the_pause_after_a_round_has_a_limit():
    assert windows(after_a_round_of(4000, ago=0)) == 32


def test_without_a_window_collection_still_proceeds_and_ends():
    pacer = Pacer(0.0, 0.01)
    pacer.round_ended(NOW - 1.0, NOW)
    assert windows(pacer, arriving=True) * WINDOW == pytest.approx(0.01)


@pytest.mark.parametrize(("wake_in", "waits"), [(None, 10.0), (3.0, 3.0), (60.0, 10.0), (-5.0, 0.01)])
def test_without_a_change_rounds_start_on_request_of_the_engine_and_periodically(wake_in, waits):
    pacer = Pacer(WINDOW, 32 * WINDOW)
    if wake_in is not None:
        pacer.wake_at(NOW + wake_in)
    assert pacer.idle_seconds(NOW) == waits


def test_a_round_runs_with_the_changes_if_the_engine_has_been_idle_for_as_long_as_the_last_round():
    pacer = Pacer(0.005, 0.25)
    assert pacer.at_once(10.0, 10.0, arriving=False)
    assert not pacer.at_once(10.0, 10.0, arriving=True)
    pacer.round_ended(10.0, 10.004)
    assert not pacer.at_once(10.006, 10.006, arriving=False)  # a round that the loop requests would start
    assert pacer.delay(10.006, 10.006, arriving=False) == 0
    assert pacer.at_once(10.0085, 10.0085, arriving=False)
