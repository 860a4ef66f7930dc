"""Operations on arrays of the engine: counts, runs, and sums by row."""

from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.arrays import add_rows, counts_of, distinct, distinct_rows, runs, smallest


@given(st.lists(st.integers(0, 50), max_size=40), st.sampled_from([51, 10**12]))
def test_counts_of_values(values, below):
    """A large bound is one for which all values are sorted."""
    found, count = counts_of(np.array(values, np.int64), below)
    assert dict(zip(found.tolist(), count.tolist(), strict=True)) == {v: values.count(v) for v in values}
    assert found.tolist() == sorted(set(values))


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_runs_of_equal_values(values):
    starts, number = runs(np.array(values, np.int64))
    grouped = [list(group) for _, group in groupby(values)]
    assert [values[start] for start in starts.tolist()] == [group[0] for group in grouped]
    assert number.tolist() == [i for i, group in enumerate(grouped) for _ in group]


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_distinct_values(values):
    first, number = distinct(np.array(values, np.int64))
    expected = sorted(set(values))
    assert first.tolist() == [values.index(value) for value in expected]
    assert number.tolist() == [expected.index(value) for value in values]


_LARGE = st.sampled_from([-(2**63), -(2**40), 0, 2**40, 2**63 - 1])  # three such columns do not fit into one number


@given(st.lists(st.tuples(st.integers(0, 3), _LARGE, _LARGE, _LARGE, st.integers(-2, 2)), max_size=30))
def test_distinct_rows(rows):
    first, number = distinct_rows(np.array(rows, np.int64).reshape(-1, 5))
    expected = sorted(set(rows))
    assert first.tolist() == [rows.index(row) for row in expected]
    assert number.tolist() == [expected.index(row) for row in rows]


def test_distinct_rows_of_truths_and_of_no_columns():
    """100 columns of truths do not fit into one number; rows without columns are all alike."""
    table = np.zeros((3, 100), np.bool_)
    table[0, 99] = table[2, 99] = True
    assert [found.tolist() for found in distinct_rows(table)] == [[1, 0], [1, 0, 1]]
    assert [found.tolist() for found in distinct_rows(table[:, :0])] == [[0], [0, 0, 0]]
    assert [found.tolist() for found in distinct_rows(table[:0])] == [[], []]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9), st.integers(-9, 9)), max_size=30))
def test_amounts_are_added_to_rows_that_are_named_several_times(entries):
    matrix, expected = np.arange(10).reshape(5, 2), np.arange(10).reshape(5, 2)
    for row, *amounts in entries:
        expected[row] += amounts
    given_entries = np.array(entries, np.int64).reshape(-1, 3)
    add_rows(matrix, given_entries[:, 0], given_entries[:, 1:])
    assert (matrix == expected).all()


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(0, 32))
def test_the_smallest_values_with_the_first_ones_at_a_tie(values, count):
    by_value = sorted(range(len(values)), key=lambda position: (values[position], position))
    assert smallest(np.array(values, np.int64), count).tolist() == sorted(by_value[:count])
