"""Capacity that tasks can use beside reservations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.arrays import NO_ROWS
from firmament_py.placement.reserved_capacity import ReservedCapacity
from firmament_py.snapshot.expected_releases import FOREVER

CAPACITY = np.array([[10, 20], [30, 40]])
amounts = st.lists(st.integers(0, 9), min_size=4, max_size=4).map(lambda values: np.array(values).reshape(2, 2))
remaining = st.lists(st.tuples(st.integers(0, 3), amounts), min_size=1, max_size=4)


def left(keep, without=-1, tasks=NO_ROWS, above=None):
    """Capacity that `tasks` can use by their end, after all reservations, of which the i-th one has priority i and is
    for tasks 2 i and 2 i + 1, and the release of one; -1: none."""
    capacities = ReservedCapacity()
    numbers = [
        capacities.reserve(starts_us, CAPACITY, np.zeros_like(CAPACITY), demanded, np.array([2 * i, 2 * i + 1]), i)
        for i, (starts_us, demanded) in enumerate(keep)
    ]
    if without >= 0:
        capacities.release(numbers[without])
    ends = (*range(5), FOREVER)
    return [capacities.left_of(CAPACITY, end, tasks, above).tolist() for end in ends], capacities.subtracted_from(
        CAPACITY
    ).tolist()


@given(keep=remaining, data=st.data())
def test_a_released_reservation_has_no_effect(keep, data):
    gone = data.draw(st.integers(0, len(keep) - 1))
    assert left(keep, gone) == left([one for i, one in enumerate(keep) if i != gone])


@given(keep=remaining, data=st.data())
def test_a_reservation_does_not_bind_the_tasks_that_it_is_for(keep, data):
    own = data.draw(st.integers(0, len(keep) - 1))
    assert left(keep, tasks=np.array([2 * own, 2 * own + 1]))[0] == left(keep, own)[0]
    assert left(keep, tasks=np.array([2 * own]))[0] == left(keep)[0]  # it is for two


@given(keep=remaining, data=st.data())
def test_above_a_priority_the_reservations_of_higher_ones_have_an_effect(keep, data):
    above = data.draw(st.integers(-1, len(keep)))
    higher = [(starts_us, demanded * (i > above)) for i, (starts_us, demanded) in enumerate(keep)]
    assert left(keep, above=above)[0] == left(higher)[0]


def test_tasks_that_end_after_the_start_leave_reserved_capacity():
    (_, at_1, at_2, *_, forever), _ = left([(1, np.array([[4, 0], [0, 8]]))])
    assert at_1 == CAPACITY.tolist()
    assert at_2 == forever == [[6, 20], [30, 32]]


def test_what_a_reservation_counts_on_does_not_leave_a_second_time_for_those_that_evict():
    """Of 12 on a node, 2 leave by the start, when 11 are demanded."""
    capacities = ReservedCapacity()
    released, demanded = np.array([[2, 0], [0, 0]]), np.array([[11, 0], [0, 0]])
    capacities.reserve(1, CAPACITY, released, demanded, np.array([0]), 0)
    assert capacities.left_of(CAPACITY, FOREVER)[0, 0] == 1
    assert capacities.left_of(CAPACITY, FOREVER, evicting=True)[0, 0] + released[0, 0] == 1
