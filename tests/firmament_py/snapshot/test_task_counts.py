"""Counts of tasks by kind and node, dense and sparse."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.snapshot.task_counts import SparseCounts, TaskCounts, incidence

KINDS, NODES, CLASSES = 3, 4, 3
pairs = st.lists(st.tuples(st.integers(0, KINDS - 1), st.integers(0, NODES - 1)), max_size=9)
members = st.lists(st.tuples(st.integers(0, KINDS - 1), st.integers(0, CLASSES - 1)), max_size=5, unique=True)
changes = st.lists(
    st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, NODES - 1), st.integers(-1, 3)), max_size=4),
    max_size=4,
)


def columns(rows, width: int):
    return [np.array([row[i] for row in rows], np.int64) for i in range(width)]


@given(running=pairs, of_class=members, added=changes)
def test_both_count_the_same(running, of_class, added):
    kind, node = columns(running, 2)
    dense_start = np.zeros((KINDS, NODES), np.int32)
    np.add.at(dense_start, (kind, node), 1)
    is_of = np.zeros((KINDS, CLASSES), np.bool_)
    is_of[tuple(columns(of_class, 2))] = True
    dense = TaskCounts(dense_start.copy(), is_of)
    kinds, classes = columns(of_class, 2)
    sparse = SparseCounts(kind, node, NODES, (kinds, classes), CLASSES)
    for change in added:
        dense.add(*columns(change, 3))
        sparse.add(*columns(change, 3))
        for h in range(KINDS):
            assert sparse[h].tolist() == dense[h].tolist()
    asked = np.array([2, 0])
    found = sorted(zip(*(column.tolist() for column in sparse.entries(asked)), strict=True))
    assert found == sorted(
        (i, n, int(dense[h][n])) for i, h in enumerate(asked.tolist()) for n in range(NODES) if dense[h][n]
    )


@given(
    rows=st.lists(st.lists(st.integers(0, 5), unique=True, max_size=4), max_size=4),
    values=st.lists(st.integers(0, 5), max_size=9),
)
def test_incidence(rows, values):
    kind, position = incidence([np.array(r, np.int64) for r in rows], np.array(values, np.int64), 6)
    expected = [(k, i) for k, of_kind in enumerate(rows) for i, value in enumerate(values) if value in of_kind]
    assert sorted(zip(kind.tolist(), position.tolist(), strict=True)) == expected
    assert kind.tolist() == sorted(kind.tolist())
