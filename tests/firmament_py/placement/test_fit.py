"""The accepted part of a solution: never over capacity, and the most valuable tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.network.decode import NodeCounts
from firmament_py.placement.fit import accept


def expected(*rows: tuple[int, int, int]) -> NodeCounts:
    """(class, node, count) rows, sorted by class."""
    return NodeCounts(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def remaining(counts: NodeCounts) -> dict[tuple[int, int], int]:
    rows = zip(counts.cls.tolist(), counts.node.tolist(), counts.count.tolist(), strict=True)
    return {(c, n): k for c, n, k in rows}


def run(rows, requests, free, value=None):
    classes = len(requests)
    left = np.array(free, np.int64)
    result = accept(
        expected(*rows),
        np.array(requests, np.int64),
        left,
        np.array(value or [1.0] * classes, np.float64),
    )
    return remaining(result), left.tolist()


@pytest.mark.parametrize(
    ("rows", "requests", "free", "value", "taken", "left"),
    [
        pytest.param([(0, 0, 2)], [[1, 5]], [[3, 10]], None, {(0, 0): 2}, [[1, 0]], id="all-fit-exactly"),
        # 11 // 5 = 2 of the 3; 3 - 2 = 1 pod and 11 - 10 = 1 cpu are left
        pytest.param([(0, 0, 3)], [[1, 5]], [[3, 11]], None, {(0, 0): 2}, [[1, 1]], id="as-many-as-fit"),
        # share of the machine 6/10 against 4/10, equal value: the smaller one goes first and leaves 6 for the other
        pytest.param(
            [(0, 0, 1), (1, 0, 2)], [[1, 6], [1, 4]], [[9, 10]], None, {(1, 0): 2}, [[7, 2]], id="smaller-first"
        ),
        # value 3 / 0.6 = 5 against 1 / 0.4 = 2.5: the larger one goes first, one of the smaller fits beside it
        pytest.param(
            [(0, 0, 1), (1, 0, 2)],
            [[1, 6], [1, 4]],
            [[9, 10]],
            [3.0, 1.0],
            {(0, 0): 1, (1, 0): 1},
            [[7, 0]],
            id="value-per-share",
        ),
        # class 1 is smaller, hence first; class 0 gets 1 of 2
        pytest.param(
            [(0, 0, 2), (1, 0, 1), (1, 1, 1)],
            [[1, 6], [1, 1]],
            [[9, 10], [9, 10]],
            None,
            {(0, 0): 1, (1, 0): 1, (1, 1): 1},
            [[7, 3], [8, 9]],
            id="others-go-on",
        ),
        # a node that is over-committed in cpu takes only what requests none
        pytest.param(
            [(0, 0, 1), (1, 0, 1)], [[1, 1], [1, 0]], [[9, -3]], None, {(1, 0): 1}, [[8, -3]], id="over-committed"
        ),
    ],
)
def test_accept(rows, requests, free, value, taken, left):
    assert run(rows, requests, free, value) == (taken, left)


def test_classes_that_are_alone_are_committed_one_at_a_time():
    """Class 1 comes first, being the smallest, then 2, 3 and 0."""
    committed: list[list[int]] = []

    def commit(cls, node, count):
        committed.append(cls.tolist())
        return count

    sent = expected((0, 0, 1), (1, 0, 1), (1, 1, 1), (2, 0, 1), (3, 1, 1))
    requests = np.array([[4], [1], [2], [3]])
    accept(sent, requests, np.full((2, 1), 99), np.ones(4), np.array([False, True, False, False]), commit)
    assert committed == [[1, 1], [2, 3, 0]]
    committed.clear()
    accept(sent, requests, np.full((2, 1), 99), np.ones(4), None, commit)
    assert committed == [[1, 1, 2, 3, 0]]


@st.composite
def allotments(draw):
    classes, nodes, resources = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    amounts = st.lists(st.integers(0, 6), min_size=resources, max_size=resources)
    requests = [[1, *draw(amounts)] for _ in range(classes)]
    free = [
        [draw(st.integers(0, 8)), *draw(st.lists(st.integers(-3, 15), min_size=resources, max_size=resources))]
        for _ in range(nodes)
    ]
    pairs = draw(st.sets(st.tuples(st.integers(0, classes - 1), st.integers(0, nodes - 1)), min_size=1))
    rows = [(c, n, draw(st.integers(1, 5))) for c, n in sorted(pairs)]
    value = draw(st.lists(st.integers(1, 9).map(float), min_size=classes, max_size=classes))
    return rows, requests, free, value


@given(allotments())
def test_accepted_counts_are_within_capacity_and_request_and_make_progress(problem):
    rows, requests, free, _ = problem
    taken, left = run(*problem)
    asked = {(c, n): k for c, n, k in rows}
    assert all(0 < k <= asked[pair] for pair, k in taken.items())
    for n, before in enumerate(free):
        used = [sum(k * requests[c][r] for (c, at), k in taken.items() if at == n) for r in range(len(before))]
        assert left[n] == [have - amount for have, amount in zip(before, used, strict=True)]
        assert all(amount <= max(have, 0) for have, amount in zip(before, used, strict=True))
    for c, n in [(c, n) for c, n, k in rows if taken.get((c, n), 0) < k]:  # a reduced count has no capacity for more
        assert any(have < amount for have, amount in zip(left[n], requests[c], strict=True) if amount)
    assert taken or not any(fits(requests[c], free[n]) for c, n, _ in rows)


def fits(request, free):
    return all(have >= amount for have, amount in zip(free, request, strict=True) if amount)
