"""Columns of resources, and the arrays' helpers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.arrays import group_starts, mix, run_positions
from firmament_py.model.resources import (
    LIMIT,
    LINKS,
    TASK_SLOTS,
    TOKEN,
    TOKEN_PIECES,
    UNLIMITED_LINK,
    Resources,
    resized,
)


def test_task_slots_come_first():
    assert Resources().names == (TASK_SLOTS,)


def test_columns_are_in_the_order_of_first_use():
    resources = Resources()
    assert [resources.column(n) for n in ("cpu", "memory", "cpu", TASK_SLOTS)] == [1, 2, 1, 0]
    assert resources.names == (TASK_SLOTS, "cpu", "memory")
    assert len(resources) == 3


def test_kept_columns_become_contiguous():
    resources = Resources()
    for name in ("cpu", "gpu", "memory"):
        resources.column(name)
    resources.keep(np.array([0, 1, 3]))
    assert resources.names == (TASK_SLOTS, "cpu", "memory")
    assert "gpu" not in resources
    assert [resources.column(name) for name in ("memory", "gpu")] == [2, 3]


def test_a_vector_leaves_out_resources_without_a_column():
    resources = Resources()
    resources.column("cpu")
    assert resources.vector({"gpu": 2, TASK_SLOTS: 7}, LIMIT).tolist() == [7, 0]


@pytest.mark.parametrize(
    ("amount", "ceiling", "counted"),
    [
        pytest.param(LIMIT - 1, LIMIT, LIMIT - 1, id="below"),
        pytest.param(2**63 - 1, LIMIT, LIMIT, id="request"),
        pytest.param(2**64, LIMIT - 1, LIMIT - 1, id="more-than-64-bits"),
        pytest.param(0, LIMIT, 0, id="nothing"),
    ],
)
def test_amounts_are_limited_to_the_ceiling(amount, ceiling, counted):
    assert Resources().vector({TASK_SLOTS: amount}, ceiling).tolist() == [counted]


def test_a_double_holds_every_amount_exactly():
    assert all(int(float(v)) == v for v in (LIMIT - 1, LIMIT))


def test_resizing_adds_zeros():
    matrix = np.array([[1, 2]])
    assert resized(matrix, 1, 4).tolist() == [[1, 2, 0, 0]]
    assert resized(matrix, 2, 3).tolist() == [[1, 2, 0], [0, 0, 0]]
    assert resized(matrix, 1, 2) is matrix


def test_every_node_has_pieces_of_every_token():
    resources = Resources()
    resources.column("cpu")
    resources.column(TOKEN + "TCP:80")
    assert resources.given().tolist() == [0, 0, TOKEN_PIECES]


def test_an_unstated_link_has_no_limit():
    resources = Resources()
    resources.column("cpu")
    assert resources.offered({"cpu": 4}).tolist() == [0, 4]
    for link in LINKS:
        resources.column(link)
    assert resources.given().tolist() == [0, 0, UNLIMITED_LINK, UNLIMITED_LINK]
    stated = resources.offered({"cpu": 4, LINKS[1]: 7})
    assert stated.tolist() == [0, 4, UNLIMITED_LINK, 7]
    assert resources.offered({LINKS[0]: 0}).tolist() == [0, 0, 0, UNLIMITED_LINK]


COUNTS = st.lists(st.integers(0, 6), max_size=8).map(lambda c: np.array(c, np.int64))


@given(COUNTS.filter(len))
def test_group_starts(counts):
    assert group_starts(counts).tolist() == [sum(counts[:i].tolist()) for i in range(len(counts))]


@given(COUNTS.filter(len))
def test_run_positions(counts):
    assert run_positions(counts).tolist() == [i for c in counts.tolist() for i in range(c)]


def test_only_equal_columns_have_equal_hashes():
    matrix = np.array([[1, 1, 2, 0, 0], [5, 5, 5, 0, 1]])
    hashes = mix(matrix, seed=1).tolist()
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4
    assert mix(matrix, seed=1).tolist() == hashes
    assert mix(matrix, seed=2).tolist() != hashes
