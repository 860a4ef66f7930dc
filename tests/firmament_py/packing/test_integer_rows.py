"""Integer programs whose amounts are bytes, compared with trying everything in Python's integers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.packing.integer_rows import IntegerRows
from firmament_py.packing.linear_program import IntegerSolution, LinearProgram
from tests.effort import examples

LARGE = 2**38
"""256 GiB in bytes: SCIP takes rows for kept that are exceeded by 100 KiB."""

pieces = st.builds(lambda part, extra: LARGE // part + extra, st.integers(1, 5), st.integers(-(2**14), 2**14))
amounts = st.one_of(st.just(0), pieces, pieces.map(int.__neg__))


@st.composite
def programs(draw):
    """Objective, upper bounds, and rows, each with its limit, of few variables."""
    width = draw(st.integers(1, 4))
    of_each = st.lists(amounts, min_size=width, max_size=width)
    limit = st.builds(lambda times, extra: times * LARGE // 5 + extra, st.integers(0, 15), st.integers(-(2**14), 2**14))
    rows = draw(st.lists(st.tuples(of_each, limit), min_size=1, max_size=3))
    upper = draw(st.lists(st.integers(0, 3), min_size=width, max_size=width))
    return draw(st.lists(st.integers(-3, 3), min_size=width, max_size=width)), upper, rows


def rows_of(rows) -> IntegerRows:
    found = IntegerRows()
    matrix = np.array([row for row, _ in rows], np.int64)
    row, column = np.nonzero(matrix)
    found.add(np.array([limit for _, limit in rows], np.int64), row, column, matrix[row, column])
    return found


def satisfies(rows, x) -> bool:
    return all(sum(a * b for a, b in zip(row, x, strict=True)) <= limit for row, limit in rows)


def best_of(objective, upper, rows) -> int | None:
    """The greatest value of all that keep the rows; None: none do."""
    every = product(*(range(bound + 1) for bound in upper))
    return max(
        (sum(a * b for a, b in zip(objective, x, strict=True)) for x in every if satisfies(rows, x)), default=None
    )


def value_of(objective, rows, x) -> int | None:
    if x is None:
        return None
    assert satisfies(rows, x.tolist())
    return int(np.array(objective) @ x)


@pytest.mark.slow
@examples(60)
@given(programs())
def test_the_best_of_rows_in_bytes_is_found_and_its_bound_holds(program):
    objective, upper, rows = program
    best = best_of(*program)
    found = rows_of(rows).solve(np.array(objective, np.float64), np.array(upper), 0.5, 1000, 10.0)
    assert value_of(objective, rows, found and found.x) == best
    if best is not None:
        assert found is not None
        assert best - 1e-6 <= found.bound < best + 1


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2**13], ids=["", "by digits"])
@examples(50)
@given(program=programs())
def test_the_best_of_rows_in_bytes_is_proved_by_cp_sat(program, times):
    """Through its interface for floats, which rounds what adds up to more than 2**53: such rows are given by digits."""
    objective, upper, rows = program
    scaled = [([times * amount + (amount > 0) for amount in row], times * limit) for row, limit in rows]
    best = best_of(objective, upper, scaled)
    if satisfies(scaled, [0] * len(upper)):
        start = np.zeros(len(upper), np.int64)
        found = rows_of(scaled).solve_from(np.array(objective), np.array(upper), start, 10.0)
        assert value_of(objective, scaled, found) == best


def test_a_row_that_an_answer_breaks_is_given_by_digits(monkeypatch):
    """Two tasks of 64 GiB and 1 byte, and one of 64 GiB and 3 bytes, on 4 bytes more than 192 GiB: by its tolerance
    SCIP would have all of them. 64 GiB are 2**36, which has three digits."""
    task, solved, solve = LARGE // 4, [], LinearProgram.solve_integers

    def counting(program, *limits):
        solved.append(len(program.limit))
        return solve(program, *limits)

    monkeypatch.setattr(LinearProgram, "solve_integers", counting)
    rows = [([task + 1, task + 3], 3 * task + 4), ([1, 0], 2)]
    found = rows_of(rows).solve(np.ones(2), np.array([2, 1]), 0.5, 100, 10.0)
    assert found is not None
    assert (found.x.sum(), round(found.bound, 6)) == (2, 2.0)
    assert solved == [2, 4]


def test_cp_sat_drops_no_row_that_is_exceeded_by_a_byte():
    """Without a start its interface has a step in floats, which takes the first row for one that always holds."""
    task, upper = LARGE // 4, np.array([2, 1])
    rows = rows_of([([task + 1, task + 3], 3 * task + 4), ([1, 0], 2)])
    found = rows.solve_from(np.ones(2, np.int64), upper, np.zeros(2, np.int64), 1.0)
    assert found is not None
    assert found.sum() == 2


def test_sums_beyond_64_bits_are_exact():
    """4 * (2**61 + 1) is 2**63 + 4, which wraps around to a negative number."""
    rows = IntegerRows()
    rows.add(np.array([2**62, 2**62]), np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2**52 - 1, 1, -1]))
    assert rows.broken(np.array([2**11, 0])).tolist() == [True, False]
    assert rows.broken(np.array([2**10, 0])).tolist() == [False, False]


def test_an_answer_that_breaks_a_row_is_no_answer(monkeypatch):
    broken = np.array([1])
    monkeypatch.setattr(LinearProgram, "solve_from", lambda *_: broken)
    assert rows_of([([2], 1)]).solve_from(np.ones(1, np.int64), broken, np.zeros(1, np.int64), 1.0) is None
    found = IntegerSolution(broken, 1.0)
    monkeypatch.setattr(LinearProgram, "solve_integers", lambda *_: found)
    assert rows_of([([2], 1)]).solve(np.ones(1), broken, 0.5, 100, 10.0) is None
