"""How many moves are left in an hour."""

from firmament_py.placement.move_rate import MoveRate
from firmament_py.snapshot.domain_limits import UNLIMITED
from tests.builders import NOW_US, SECOND_US

HOUR_US = 3600 * SECOND_US


def test_moves_count_for_an_hour():
    rate = MoveRate(5)
    rate.note(2, NOW_US)
    rate.note(3, NOW_US + 10)
    assert rate.left(NOW_US + HOUR_US - 1) == 0
    assert rate.left(NOW_US + HOUR_US) == 2
    assert rate.left(NOW_US + HOUR_US + 9) == 2
    assert rate.left(NOW_US + HOUR_US + 10) == 5


def test_a_step_with_many_moves_leaves_none():
    rate = MoveRate(2)
    rate.note(7, NOW_US)
    assert rate.left(NOW_US) == 0


def test_without_a_limit_nothing_is_counted():
    rate = MoveRate(0)
    rate.note(7, NOW_US)
    assert rate.left(NOW_US) == UNLIMITED


def test_a_copy_counts_separately():
    """`poseidon fits` asks what the next round would do: within what is left of the hour, and without using it up."""
    rate = MoveRate(5)
    rate.note(2, NOW_US)
    trial = rate.copy()
    assert trial.left(NOW_US) == 3
    trial.note(3, NOW_US)
    assert (trial.left(NOW_US), rate.left(NOW_US)) == (0, 3)
