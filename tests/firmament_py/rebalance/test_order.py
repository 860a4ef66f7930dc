"""The order of moves, compared with carrying them out."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.bundle import Bundle
from firmament_py.rebalance.order import ordered
from tests.effort import examples


def move(origin, target, amount=1):
    one = np.array([[amount]], np.int64)
    return Bundle(np.array([origin]), one, np.array([target]), one)


def order_of(bundles, free):
    """[(positions, after)]"""
    return [
        (set(each.together), each.after) for each in ordered(bundles, np.array(free, np.int64).reshape(len(free), -1))
    ]


def test_a_move_follows_the_one_that_leaves_its_place():
    assert order_of([move(0, 1), move(1, 2)], [0, 0, 1]) == [({1}, ()), ({0}, (0,))]


def test_moves_with_capacity_wait_for_nothing():
    assert order_of([move(0, 1), move(1, 2)], [0, 1, 1]) == [({0}, ()), ({1}, ())]


def test_only_the_moves_that_are_needed_are_waited_for():
    bundles = [move(1, 2), move(1, 2), move(0, 1, 3)]
    assert order_of(bundles, [0, 2, 9]) == [({0}, ()), ({1}, ()), ({2}, (0,))]


def test_tasks_that_exchange_places_leave_together():
    assert order_of([move(0, 1), move(1, 0)], [0, 0]) == [({0, 1}, ())]


def test_only_the_circle_leaves_together():
    two_circles = [move(0, 1), move(1, 0), move(2, 3), move(3, 2), move(4, 2), move(2, 4)]
    found = order_of(two_circles, [0] * 5)
    assert sorted(map(len, (positions for positions, _ in found))) == [2, 4]


def test_a_circle_that_waits_for_another_one_is_not_joined():
    """0 and 1 fit one after the other once 2 has left node 1, which waits for the circle of 3 and 4."""
    bundles = [move(0, 1), move(1, 0), move(1, 2), move(2, 3, 2), move(3, 2)]
    found = order_of(bundles, [0, 0, 0, 1])
    assert [positions for positions, _ in found[:2]] == [{3, 4}, {2}]
    assert {frozenset(positions) for positions, _ in found[2:]} == {frozenset({0}), frozenset({1})}


def test_only_moves_whose_nodes_have_been_released_are_tried_again():
    count = 200
    chain = [move(i, i + 1) for i in range(count)]
    with patch.object(Bundle, "fits", autospec=True, side_effect=Bundle.fits) as fits:
        order = order_of(chain, [0] * count + [1])
    assert [positions for positions, _ in order] == [{i} for i in reversed(range(count))]
    assert fits.call_count < 3 * count


def test_what_a_bundle_does_not_request_is_no_obstacle():
    one = Bundle(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.array([0]), np.array([[0, 2]]))
    assert one.fits(np.array([[-1, 2]]))
    assert not one.fits(np.array([[5, 1]]))


def test_moves_that_do_not_all_fit_are_refused():
    with pytest.raises(ValueError, match="they do not all fit"):
        order_of([move(0, 1)], [0, 0])


@given(st.data())
@examples(150)
def test_each_step_fits_when_those_that_it_waits_for_are_gone(data):
    nodes = data.draw(st.integers(2, 5))
    tasks = data.draw(
        st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2, st.integers(1, 3), st.integers(0, 3)), max_size=9)
    )
    tasks = [(a, b, np.array([x, y])) for a, b, x, y in tasks if a != b]
    capacity = np.zeros((nodes, 2), np.int64)
    for side in (0, 1):  # the least with which both the beginning and the end fit
        used = np.zeros_like(capacity)
        for task in tasks:
            used[task[side]] += task[2]
        capacity = np.maximum(capacity, used)
    free = capacity.copy()
    for origin, _, amounts in tasks:
        free[origin] -= amounts
    bundles = [Bundle(np.array([a]), x[None], np.array([b]), x[None]) for a, b, x in tasks]
    order = ordered(bundles, free)
    assert sorted(i for step in order for i in step.together) == list(range(len(tasks)))
    arrived = np.zeros_like(capacity)
    for position, step in enumerate(order):
        assert all(i < position for i in step.after)
        left = free - arrived
        for i in [i for earlier in step.after for i in order[earlier].together] + list(step.together):
            left[tasks[i][0]] += tasks[i][2]
        for i in step.together:
            arrived[tasks[i][1]] += tasks[i][2]
            left[tasks[i][1]] -= tasks[i][2]
        for i in step.together:
            assert (left[tasks[i][1]] >= 0)[tasks[i][2] > 0].all()
