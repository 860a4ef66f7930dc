"""Quota of trees: the cases that Kueue publishes (pkg/cache/scheduler, 0.19), and random trees against an oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import UNLIMITED, Sharing
from firmament_py.queues.quota import available, borrowed, capacity, counted_usage, fits, total_usage
from firmament_py.queues.tree import build
from tests.effort import examples
from tests.firmament_py.queues.quota_oracle import nodes
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree, trees


def usage_of(queues, usage, column="red/cpu"):
    """(Q, V) of name -> amount, or name -> {column: amount}."""
    own = np.zeros_like(queues.nominal)
    for name, amounts in usage.items():
        for on, amount in (amounts if isinstance(amounts, dict) else {column: amounts}).items():
            own[queues.row[queue_id(name)], queues.column(*on.split("/"))] = amount
    return own


def one(queues, amounts, names, on="red/cpu"):
    """name -> amount in one column."""
    return {name: int(amounts[queues.row[queue_id(name)], queues.column(*on.split("/"))]) for name in names}


LEFT_AND_RIGHT = (
    queue("left-1", "left", quota(10)),
    queue("left-2", "left", quota(10, 5)),
    queue("right-1", "right", quota(10)),
    queue("root"),
    queue("left", "root", quota(10, 5)),
    queue("right", "root", quota(10)),
)
LENDERS = (
    queue("left-1", "left", quota(10, None, 5)),
    queue("left-2", "left", quota(10)),
    queue("right-1", "right", quota(0)),
    queue("root-1", "root", quota(0)),
    queue("root"),
    queue("left", "root", quota(0, None, 5)),
    queue("right", "root", quota(0)),
)


@pytest.mark.parametrize(
    ("described", "usage", "expected", "potential"),
    [
        pytest.param(
            [queue("c", "", quota(10)), queue("a", "c", quota(10)), queue("b", "c", quota(10, None, 9))],
            {"a": 1, "b": 0.5},
            {"a": 28, "b": 28.5},
            {"a": 29, "b": 30},
            id="queues with a cohort that has quota of its own",
        ),
        pytest.param(
            [queue("c", "", quota(10)), queue("a", "c", quota(10))],
            {"a": 11},
            {"a": 9},
            {"a": 20},
            id="a queue that borrows from its cohort",
        ),
        pytest.param(
            [queue("c", "", quota(10)), queue("a", "c", quota(10)), queue("b", "c", quota(10, 0, 0))],
            {"a": 31},
            {"a": -11, "b": -1},
            {"a": 20, "b": 10},
            id="what a queue uses above all of its cohort is missing for others",
        ),
        pytest.param(
            [
                queue("c", "", quota(10)),
                queue("1", "c", quota(10)),
                queue("2", "c", quota(10, 2)),
                queue("3", "c", quota(10, None, 5)),
            ],
            {"1": 20, "2": 10, "3": 6},
            {"1": 4, "2": 2, "3": 4},
            {"1": 35, "2": 12, "3": 40},
            id="limits of lending and borrowing",
        ),
        pytest.param(
            [
                queue("a", "left", quota(10)),
                queue("b", "right", quota(10, None, 0)),
                queue("root"),
                queue("left", "root", quota(10)),
                queue("right", "root", quota(10)),
            ],
            {"a": 10, "b": 5},
            {"a": 20, "b": 25},
            {"a": 30, "b": 40},
            id="cohorts of cohorts",
        ),
        pytest.param(
            LEFT_AND_RIGHT,
            {},
            {"left-1": 35, "left-2": 15, "right-1": 50},
            {"left-1": 35, "left-2": 15, "right-1": 50},
            id="the limit of what a cohort borrows",
        ),
        pytest.param(
            LENDERS,
            {},
            {"left-1": 20, "left-2": 15, "right-1": 5, "root-1": 5},
            {"left-1": 20, "left-2": 15, "right-1": 5, "root-1": 5},
            id="the limit of what a cohort lends",
        ),
    ],
)
def test_kueue_available(described, usage, expected, potential):
    """Amounts are in thousands. Where Kueue reports 0, because an amount is negative, the table has the amount."""
    thousands = [
        queue(
            q.name,
            next((p.name for p in described if p.id == q.parent), ""),
            *(
                quota(*(None if x is None else 1000 * x for x in (a.nominal, a.borrowing_limit, a.lending_limit)))
                for a in q.quotas
            ),
        )
        for q in described
    ]
    queues = build(tree(*thousands))
    of = capacity(queues)
    none = np.zeros_like(queues.nominal)
    in_thousands = {name: int(1000 * amount) for name, amount in potential.items()}
    assert one(queues, of.potential, potential) == in_thousands
    assert one(queues, available(queues, of, none), potential) == in_thousands  # before anything is used
    own = usage_of(queues, {name: int(1000 * amount) for name, amount in usage.items()})
    assert one(queues, available(queues, of, own), expected) == {name: 1000 * x for name, x in expected.items()}


def test_kueue_available_without_a_cohort():
    queues = build(tree(queue("a", "", quota(0)), queue("b", "", quota(5), quota(10, on="blue/cpu"))))
    own = usage_of(queues, {"a": 1, "b": {"red/cpu": 2, "blue/cpu": 1}})
    free = available(queues, capacity(queues), own)
    assert one(queues, free, "ab") == {"a": -1, "b": 3}
    assert one(queues, free, "b", "blue/cpu") == {"b": 9}


@pytest.mark.parametrize(
    ("usage", "in_cohort"),
    [
        pytest.param({"a": 16, "b": 4}, 10, id="all tasks"),
        pytest.param({}, 0, id="none"),
        pytest.param({"a": 7, "b": 4}, 1, id="still above what it keeps"),
        pytest.param({"a": 6, "b": 4}, 0, id="as much as it keeps"),
        pytest.param({"a": 1, "b": 4}, 0, id="less than it keeps"),
    ],
)
def test_kueue_usage_above_what_a_queue_keeps_counts_in_its_cohort(usage, in_cohort):
    """a keeps 10 - 4 = 6, b keeps 10 - 6 = 4."""
    queues = build(tree(queue("c"), queue("a", "c", quota(10, None, 4)), queue("b", "c", quota(10, None, 6))))
    of = capacity(queues)
    assert one(queues, of.subtree, "c") == {"c": 10}
    assert one(queues, counted_usage(queues, of, usage_of(queues, usage)), "c") == {"c": in_cohort}


def test_kueue_lendable_capacity_of_a_cohort():
    queues = build(
        tree(
            queue("c"),
            queue("a", "c", quota(8, None, 8), quota(3, None, 3, on="red/gpu")),
            queue("b", "c", quota(2, None, 2)),
        )
    )
    assert capacity(queues).potential[queues.row[queue_id("c")]].tolist()[:2] == [10, 3]


def test_absolute_limits_bound_all_that_is_below():
    queues = build(
        tree(queue("root", "", quota(50)), queue("a", "root", quota(5, limit=12)), queue("b", "a"), queue("c", "a"))
    )
    of = capacity(queues)
    own = usage_of(queues, {"b": 4, "c": 5})
    assert one(queues, of.potential, "abc") == dict.fromkeys("abc", 12)
    assert one(queues, available(queues, of, own), "abc") == dict.fromkeys("abc", 3)
    assert one(queues, total_usage(queues, own), ["root", "a"]) == {"root": 9, "a": 9}


def test_sums_of_amounts_without_a_limit_do_not_wrap_around():
    many = [queue(f"q{i}", "root", quota(UNLIMITED)) for i in range(40)]
    queues = build(tree(queue("root"), *many))
    of = capacity(queues)
    assert of.subtree[0, 0] == UNLIMITED
    assert of.potential.max() == UNLIMITED
    free = available(queues, of, usage_of(queues, {"q3": 7}))
    assert free[queues.row[queue_id("q4")], 0] == UNLIMITED - 7


def test_requests_fit_only_in_quota_that_is_stated():
    queues = build(
        tree(
            queue("c", "", quota(9), quota(9, on="red/gpu")),
            queue("a", "c", quota(1), quota(0, on="red/gpu")),
            queue("b", "c", quota(2)),
        )
    )
    free = available(queues, capacity(queues), np.zeros_like(queues.nominal))
    a, b = (queues.row[queue_id(name)] for name in "ab")
    requests = np.zeros((4, free.shape[1]), np.int64)
    requests[:, :2] = [12, 9], [13, 0], [0, 1], [3, 0]
    assert fits(queues, free, np.array([a, a, b, b]), requests).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [(Sharing.CLASSICAL, [0, 0, 3]), (Sharing.FAIR, [0, 0, 3]), (Sharing.PROPORTIONAL, [3, 3, 3])],
)
def test_a_root_borrows_only_where_roots_share_the_cluster(sharing, expected):
    """A ClusterQueue without a cohort whose quota was lowered below its use borrows nothing (Kueue, cache.go,
    getUsage); in a cohort it does."""
    queues = build(tree(queue("a", "", quota(2)), queue("c"), queue("b", "c", quota(2)), sharing=sharing))
    own = np.zeros_like(queues.nominal)
    own[[queues.row[queue_id(name)] for name in "ab"], 0] = 5
    found = borrowed(queues, capacity(queues), own)
    assert [int(found[queues.row[queue_id(name)], 0]) for name in "acb"] == expected


@pytest.mark.slow
@examples(60)
@given(trees(limit=True), st.data())
def test_quota_is_what_recursion_says(described, data):
    queues = build(described)
    of = capacity(queues)
    own = np.array(
        data.draw(st.lists(st.integers(0, 40), min_size=queues.nominal.size, max_size=queues.nominal.size)), np.int64
    ).reshape(queues.nominal.shape)
    results = {
        "subtree": of.subtree,
        "local": of.local,
        "potential": of.potential,
        "usage": counted_usage(queues, of, own),
        "total": total_usage(queues, own),
        "available": available(queues, of, own),
        "borrowed": borrowed(queues, of, own),
    }
    for flavor in queues.flavors:
        for resource in queues.resources:
            column = queues.column(flavor, resource)
            oracle = nodes(
                described, flavor, resource, {q.id: int(own[row, column]) for row, q in enumerate(queues.definitions)}
            )
            for row, definition in enumerate(queues.definitions):
                node = oracle[definition.id]
                expected = {name: getattr(node, name) for name in results}
                assert {name: int(result[row, column]) for name, result in results.items()} == expected
