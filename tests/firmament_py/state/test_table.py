"""The guarantees of the growable table."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.state.table import Table


class Pets(Table):
    FIELDS: ClassVar = {"legs": (np.int64, 4), "name": (np.object_, "?")}
    legs: np.ndarray
    name: np.ndarray


def test_new_rows_are_at_their_fill_values():
    table = Pets()
    rows = table.allocate(3)
    assert table.legs[rows].tolist() == [4, 4, 4]
    assert table.name[rows].tolist() == ["?", "?", "?"]
    assert table.rows().tolist() == rows.tolist()
    assert len(table) == 3


def test_a_released_row_is_reused_at_its_fill_value():
    table = Pets()
    rows = table.allocate(2)
    table.legs[rows] = [0, 8]
    table.release(rows[:1])
    assert len(table) == 1
    assert table.allocate(1).tolist() == [rows[0]]
    assert table.legs[rows].tolist() == [4, 8]


def test_growth_keeps_values():
    table = Pets(capacity=2)
    first = table.allocate(2)
    table.legs[first] = [1, 2]
    extra = table.allocate(9)
    assert table.capacity >= 11
    assert table.legs[first].tolist() == [1, 2]
    assert table.legs[extra].tolist() == [4] * 9
    assert len(table.live) == len(table.legs) == len(table.name) == table.capacity


def test_growth_doubles_capacity():
    table = Pets(capacity=64)
    table.allocate(65)
    assert table.capacity == 128


@pytest.mark.parametrize("rows", [[0], [5], [1, 0]], ids=["released-already", "never-handed-out", "one-of-two"])
def test_releasing_a_row_that_is_not_in_use_is_refused_and_changes_nothing(rows):
    table = Pets()
    table.allocate(2)
    table.release(np.array([0]))
    with pytest.raises(ValueError, match="not in use"):
        table.release(np.array(rows))
    assert table.rows().tolist() == [1]
    assert len(table) == 1


@given(st.lists(st.integers(-8, 20), max_size=30))
def test_rows_are_distinct_and_counted(steps):
    """Against a set: n > 0 allocates n rows, n < 0 releases the oldest -n."""
    table = Pets(capacity=4)
    in_use: list[int] = []
    for step in steps:
        if step >= 0:
            rows = table.allocate(step).tolist()
            assert not set(rows) & set(in_use)
            in_use += rows
        else:
            table.release(np.array(in_use[:-step], np.int64))
            in_use = in_use[-step:]
        assert table.rows().tolist() == sorted(in_use)
        assert len(table) == len(in_use) == int(table.live.sum())
