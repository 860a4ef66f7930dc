"""Rounds start at once after a change, later while changes keep arriving, and run at most half of the time where there
is always a change."""

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


def after_a_round_of(lasted, ago=0, *, busy=True):
    """`lasted`, `ago` (since its end): windows. `busy`: rounds have run all the time before."""
    pacer = Pacer(WINDOW, 32 * WINDOW)
    ended = NOW - ago * WINDOW
    started = ended - lasted * WINDOW
    if busy:
        pacer.round_ended(started - 1000, started)
    pacer.round_ended(started, ended)
    return pacer


def test_a_single_change_does_not_wait():
    assert windows() == 0


def test_while_changes_arrive_a_cheap_round_waits_for_some_windows():
    assert windows(arriving=True) == 2


@pytest.mark.parametrize(("lasted", "waits"), [(6, 12), (400, 32)])
def test_while_changes_arrive_a_costly_round_waits_twice_as_long_as_it_takes_up_to_the_limit(lasted, waits):
    assert windows(after_a_round_of(lasted), arriving=True) == waits


@pytest.mark.parametrize("arriving", [False, True])
def test_a_slow_round_after_quiet_time_delays_nothing(arriving):
    assert windows(after_a_round_of(8, busy=False), arriving=arriving) == (2 if arriving else 0)
    assert after_a_round_of(8, busy=False).at_once(NOW, NOW, arriving=False)


def test_quiet_time_counts_up_to_the_limit():
    assert windows(after_a_round_of(40, busy=False)) == 2 * 40 - 32 - 40 - 1


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
    pacer.round_ended(9.0, 10.0)
    pacer.round_ended(10.0, 10.004)
    assert not pacer.at_once(10.006, 10.006, arriving=False)  # a round that the loop requests would start
    assert pacer.delay(10.006, 10.006, arriving=False) == 0
    assert pacer.at_once(10.0085, 10.0085, arriving=False)


def test_rounds_are_short_if_they_take_no_longer_than_changes_are_collected():
    assert Pacer(WINDOW).rounds_are_short
    assert after_a_round_of(2).rounds_are_short
    assert not after_a_round_of(3).rounds_are_short
