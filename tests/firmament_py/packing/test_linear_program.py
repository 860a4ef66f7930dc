"""Bounds of linear programs, compared with fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.packing.linear_program import LinearProgram
from tests.effort import examples

items = st.tuples(st.integers(1, 10**6), st.integers(2**18, 2**38), st.integers(1, 1000))


def knapsack(items: list[tuple[int, int, int]], limit: int) -> Fraction:
    """The value of the best fractions of items of (value, size, number) whose sizes add up to the limit."""
    left, value = Fraction(limit), Fraction(0)
    for worth, size, number in sorted(items, key=lambda item: Fraction(-item[0], item[1])):
        taken = min(Fraction(number), left / size)
        left -= taken * size
        value += taken * worth
    return value


@examples(100)
@given(st.lists(items, min_size=1, max_size=8), st.integers(0, 2**42))
def test_a_bound_is_never_below_the_optimum_by_a_rounding(items, limit):
    worth, size, number = (np.array(column, np.float64) for column in zip(*items, strict=True))
    row, unit = np.zeros(len(items), np.int64), size.max()
    program = LinearProgram(worth, number, np.array([limit / unit]), row, np.arange(len(items)), size / unit)
    found, best = program.solve(), knapsack(items, limit)
    if found is None:  # GLOP takes a limit of 1e-9 for none, and finds nothing: then there is no bound
        assert limit / unit < 1e-8
        return
    assert best <= Fraction(found.bound) <= (best + 1) * (1 + Fraction(1, 10**9))
