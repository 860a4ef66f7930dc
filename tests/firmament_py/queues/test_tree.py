"""The arrays of a tree, and what becomes of descriptions that are wrong."""

import numpy as np
import pytest
from hypothesis import given

from firmament_py.model.queues import UNLIMITED, Flavor, QueueDefinition, QueueTree, Stop
from firmament_py.queues.tree import build
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree, trees


def names(queues):
    return [definition.name for definition in queues.definitions]


def problems(queues):
    return {(problem.queue, problem.field) for problem in queues.problems}


def test_parents_come_before_children_and_columns_are_flavors_by_resources():
    queues = build(
        tree(
            queue("leaf", "inner", quota(3, on="blue/gpu"), quota(4, 5, 6, 70, on="red/cpu", weight=2.0)),
            queue("inner", "root"),
            queue("root", "", quota(1, on="red/gpu")),
            queue("other"),
        ),
        ["memory"],
    )
    assert names(queues) == ["root", "other", "inner", "leaf"]
    assert queues.parent.tolist() == [-1, -1, 0, 2]
    assert queues.depth.tolist() == [0, 0, 1, 2]
    assert queues.paths.tolist() == [[0, -1, -1], [1, -1, -1], [2, 0, -1], [3, 2, 0]]
    assert queues.leaf.tolist() == [False, True, False, True]
    assert queues.row[queue_id("leaf")] == 3
    assert (queues.flavors, queues.resources) == (("red", "blue"), ("memory", "gpu", "cpu"))
    column = queues.column("red", "cpu")
    amounts = queues.nominal, queues.borrowing_limit, queues.lending_limit, queues.limit, queues.weights
    assert [amount[3, column] for amount in amounts] == [4, 5, 6, 70, 2.0]
    assert queues.limit[0, column] == UNLIMITED
    assert not queues.covered[0, column]
    assert queues.known[0, column]  # a quota below
    assert queues.flavor_order[3].tolist() == [[1, 0]]  # as its quotas come
    assert queues.group[3].tolist() == [-1, 0, 0]


def test_an_empty_tree_is_a_tree():
    queues = build(QueueTree())
    assert queues.count == 0
    assert queues.levels == ()


def test_a_stopped_queue_closes_those_below_it():
    queues = build(tree(queue("a", stop=Stop.HOLD), queue("b", "a"), queue("c")))
    assert dict(zip(names(queues), queues.open.tolist(), strict=True)) == {"a": False, "c": True, "b": False}


def test_queues_of_a_cycle_and_below_take_no_tasks_and_others_go_on():
    queues = build(tree(queue("a", "b"), queue("b", "c"), queue("c", "b"), queue("fine"), queue("self", "self")))
    assert problems(queues) == {("b", "parent"), ("c", "parent"), ("self", "parent")}
    assert {name for name, is_open in zip(names(queues), queues.open, strict=True) if is_open} == {"fine"}
    assert queues.parent[queues.row[queue_id("a")]] == queues.row[queue_id("b")]


@pytest.mark.parametrize(
    ("described", "queue_and_field", "check"),
    [
        pytest.param(
            tree(queue("a", "missing")), ("a", "parent"), lambda q: not q.open[0], id="a parent that does not exist"
        ),
        pytest.param(
            tree(queue("a", "", quota(1)), queue("a", "", quota(2))),
            ("a", "id"),
            lambda q: q.nominal[:, 0].tolist() == [1],
            id="an id twice",
        ),
        pytest.param(
            tree(queue("a").__class__(0, "z"), queue("b")), ("z", "id"), lambda q: names(q) == ["b"], id="the id 0"
        ),
        pytest.param(
            tree(queue("a", "", quota(-3))),
            ("a", "quotas[red/cpu].nominal"),
            lambda q: q.nominal.max() == 0,
            id="a negative amount",
        ),
        pytest.param(
            tree(queue("a", "", quota(3, -1))),
            ("a", "quotas[red/cpu].borrowing_limit"),
            lambda q: q.borrowing_limit[0, 0] == 0,
            id="a negative limit",
        ),
        pytest.param(
            tree(queue("a", "", quota(8, limit=5))),
            ("a", "quotas[red/cpu].limit"),
            lambda q: (q.nominal[0, 0], q.limit[0, 0]) == (5, 5),
            id="a limit below the guarantee",
        ),
        pytest.param(
            tree(queue("a", "", quota(8, on="green/cpu"), quota(1)), flavors=["red"]),
            ("a", "quotas[green/cpu]"),
            lambda q: q.nominal.tolist() == [[1]],
            id="a flavor that does not exist",
        ),
        pytest.param(
            tree(queue("a", "", quota(8), quota(9))),
            ("a", "quotas[red/cpu]"),
            lambda q: q.nominal[0, 0] == 8,
            id="a quota twice",
        ),
        pytest.param(
            tree(queue("a", "", quota(8), quota(9, on="red/gpu"), resource_groups=(("cpu",),))),
            ("a", "quotas[red/gpu]"),
            lambda q: q.resources == ("cpu",),
            id="a resource in no group",
        ),
        pytest.param(
            tree(queue("a", "", quota(8), quota(9, on="red/gpu"), resource_groups=(("cpu",), ("gpu",)))),
            ("a", "quotas[red/gpu]"),
            lambda q: q.nominal[0].tolist() == [8, 0, 0, 0],
            id="a flavor in two groups",
        ),
        pytest.param(
            tree(queue("a", "", quota(8), resource_groups=(("cpu",), ("cpu", "gpu")))),
            ("a", "resource_groups"),
            lambda q: q.group[0].tolist() == [0, -1],
            id="a resource in two groups",
        ),
        pytest.param(
            tree(queue("a", "", weight=-1.0)), ("a", "weight"), lambda q: q.weight[0] == 0, id="a negative weight"
        ),
        pytest.param(
            tree(queue("a", "", quota(1, weight=float("nan")))),
            ("a", "quotas[red/cpu].weight"),
            lambda q: q.weights[0, 0] == 0,
            id="a weight that is no number",
        ),
        pytest.param(
            tree(queue("a", "", preemption_delay_s=-1.0)),
            ("a", "preemption_delay_s"),
            lambda q: q.definitions[0].preemption_delay_s == 0,
            id="a negative time",
        ),
        pytest.param(
            tree(reclaim_ratio=0.5), ("", "reclaim_ratio"), lambda q: q.tree.reclaim_ratio == 1, id="a ratio below 1"
        ),
        pytest.param(
            tree(resource_weights={"cpu": -1.0}),
            ("", "resource_weights[cpu]"),
            lambda q: q.tree.resource_weights == {"cpu": 0.0},
            id="a negative weight of a resource",
        ),
        pytest.param(
            QueueTree(flavors=(Flavor("a", {"x": "1"}), Flavor("a"))),
            ("", "flavors"),
            lambda q: q.tree.flavors == (Flavor("a", {"x": "1"}),),
            id="a flavor twice",
        ),
    ],
)
def test_what_is_wrong_is_named_and_corrected(described, queue_and_field, check):
    queues = build(described)
    assert problems(queues) == {queue_and_field}
    assert check(queues)
    (problem,) = queues.problems
    assert ": " in problem.reason  # what was found and done: the remedy


@pytest.mark.parametrize("below", [True, False])
def test_queues_of_one_name_are_two_if_their_ids_differ(below):
    """A Cohort and a ClusterQueue of Kueue: ids are hashes of kind and name, names are for messages."""
    cohort = QueueDefinition(5, "team")
    queues = build(tree(cohort, QueueDefinition(6, "team", 5 if below else 0, (quota(2),)), queue("b", "", quota(1))))
    assert queues.problems == ()
    assert names(queues).count("team") == 2
    assert queues.open.all()
    assert queues.parent[queues.row[6]] == (queues.row[5] if below else -1)


def test_problems_name_queues_by_their_names_and_have_the_ids():
    queues = build(tree(QueueDefinition(5, "team", weight=-1.0), QueueDefinition(6, "team", 0xABCDEF)))
    assert [(each.id, each.queue, each.field) for each in queues.problems] == [
        (5, "team", "weight"),
        (6, "team", "parent"),
    ]
    assert "abcdef" not in queues.problems[1].reason


def test_unlimited_within_a_limit_is_the_limit():
    queues = build(tree(queue("a", "", quota(UNLIMITED, limit=5))))
    assert queues.problems == ()
    assert queues.nominal[0, 0] == 5


@given(trees())
def test_rows_follow_the_tree(described):
    queues = build(described)
    assert queues.problems == ()
    assert sorted(names(queues)) == sorted(definition.name for definition in described.queues)
    for row, definition in enumerate(queues.definitions):
        parent = int(queues.parent[row])
        assert parent < row
        assert (queues.definitions[parent].id if parent >= 0 else 0) == definition.parent
        assert queues.leaf[row] == (definition.id not in {other.parent for other in described.queues})
        for amounts in definition.quotas:
            assert queues.nominal[row, queues.column(amounts.flavor, amounts.resource)] == amounts.nominal
    rows = [row for level in queues.levels for row in range(level.start, level.stop)]
    assert rows == np.nonzero(queues.parent >= 0)[0].tolist()
