"""Number of tasks that fit on a node, against adding them one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.resources import LIMIT
from firmament_py.snapshot.solo_capacity import task_slots


def counted_in(free: list[int], request: list[int], at_most: int) -> int:
    """Tasks are put on the node one after the other until one does not fit."""
    taken = 0
    while taken < at_most and all(
        amount == 0 or (taken + 1) * amount <= have for amount, have in zip(request, free, strict=True)
    ):
        taken += 1
    return taken


@st.composite
def problems(draw):
    c, n, r = draw(st.integers(0, 3)), draw(st.integers(0, 4)), draw(st.integers(1, 3))

    def matrix(rows, columns, values):
        cells = draw(st.lists(values, min_size=rows * columns, max_size=rows * columns))
        return np.array(cells, np.int64).reshape(rows, columns)

    free = matrix(n, r, st.one_of(st.integers(-5, 20), st.sampled_from([LIMIT - 1, -LIMIT, 1 - LIMIT])))
    requests = matrix(c, r, st.one_of(st.integers(0, 7), st.just(LIMIT)))
    return free, requests, matrix(c, n, st.integers(0, 1)).astype(bool), matrix(1, c, st.integers(0, 6))[0]


@given(problems())
def test_slots_equal_incremental_counts(problem):
    free, requests, suitable, waiting = problem
    slots = task_slots(free, requests, suitable, waiting)
    assert slots.shape == suitable.shape
    for c in range(len(requests)):
        for n in range(len(free)):
            expected = counted_in(free[n].tolist(), requests[c].tolist(), int(waiting[c])) if suitable[c, n] else 0
            assert slots[c, n] == expected


def test_resources_that_a_class_does_not_request_do_not_limit_it():
    # cpu is 5 over-committed; a task without a cpu request still finds 3 of 4 pods free, 3 waiting
    free, request = np.array([[3, -5]]), np.array([[1, 0], [1, 1]])
    assert task_slots(free, request, np.ones((2, 1), bool), np.array([9, 9])).tolist() == [[3], [0]]


def test_an_exact_fit_counts():
    # 1250 / 250 = 5
    assert task_slots(np.array([[1250]]), np.array([[250]]), np.ones((1, 1), bool), np.array([9])).tolist() == [[5]]
