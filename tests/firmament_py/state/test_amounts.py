"""Columns of resources: when they are added, their initial values, and their removal."""

from typing import Any

import numpy as np
import pytest

from firmament_py.explain.nearest_nodes import fitting_nodes, nearest
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.model.events import NodeRemoved
from firmament_py.model.resources import LINKS, TASK_SLOTS, TOKEN
from firmament_py.state.amounts import SPARE_COLUMNS
from firmament_py.state.class_bounds import MAX_RESOURCES, MAX_TOKENS
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks, removed


def reasons(cluster, uid):
    return reasons_of_task(cluster.state, cluster.state.task_row(uid))


def test_a_resource_that_no_node_offers_has_no_column_and_is_insufficient():
    odd: dict[str, Any] = {f"example.com/r{i}": 1 for i in range(MAX_RESOURCES - 1)}
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=4)),
        *(make_class(1, cpu=1, **odd), make_class(2, cpu=1), make_tasks([1], 1), make_tasks([2], 2)),
    )
    assert set(cluster.round()) == {2}
    assert cluster.state.resources.names == (TASK_SLOTS, "cpu")
    assert reasons(cluster, 1) == tuple(Reason(ReasonKind.INSUFFICIENT_RESOURCE, 2, name) for name in odd)
    [row] = cluster.state.task_rows(np.array([1], np.uint64)).tolist()
    assert fitting_nodes(cluster.state, row) == 0
    assert nearest(cluster.state, row)[0] == ("a", odd)


def test_a_node_fails_for_its_lacking_resources_and_for_unoffered_ones():
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=1)),
        *(make_class(1, cpu=2, gpu=1), make_tasks([1], 1)),
    )
    assert reasons(cluster, 1) == (
        Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "cpu"),
        Reason(ReasonKind.INSUFFICIENT_RESOURCE, 2, "gpu"),
    )


def test_zero_of_an_unoffered_resource_can_be_requested():
    cluster = make_cluster(make_node("a"), make_class(1, gpu=0), make_tasks([1], 1))
    assert cluster.round() == {1: "a"}


def test_a_link_of_capacity_0_limits_tasks_that_are_described_later():
    [link, _] = LINKS
    none: dict[str, Any] = {link: 0}
    one: dict[str, Any] = {link: 1}
    nodes = make_node("a", **none), make_node("b", pods=1)
    cluster = make_cluster(*nodes, make_class(1, **one), make_tasks([1, 2], 1))
    assert list(cluster.round().values()) == ["b"]


def test_a_newly_offered_resource_includes_the_usage_of_running_tasks():
    """A device plug-in that starts after the tasks that use its devices."""
    cluster = make_cluster(
        *(make_node("a", cpu=8), make_class(1, cpu=1, gpu=2), make_class(2, cpu=1, gpu=1)),
        *(make_tasks([1, 2], 1, on="a"), make_tasks([3, 4], 2)),
    )
    assert cluster.round() == {}
    cluster.tell(make_node("a", cpu=8, gpu=5))
    assert len(cluster.round()) == 1, "four of the five are in use"


def test_tokens_have_columns_only_while_classes_that_name_them_have_tasks():
    cluster = make_cluster(
        make_node("a"), *(make_class(c, tokens=[f"TCP:{c}-{i}" for i in range(MAX_TOKENS)]) for c in (1, 2))
    )
    resources = cluster.state.resources
    assert len(resources) == 1
    cluster.tell(make_tasks([1, 2], 1))
    assert len(resources) == 1 + MAX_TOKENS
    assert len(cluster.round()) == 1, "they exclude each other"
    cluster.tell(removed(1, 2), make_tasks([3, 4], 2))
    assert len(cluster.round()) == 1
    assert len(resources) == 1 + MAX_TOKENS, "those of the first class are gone"
    cluster.tell(make_tasks([5, 6], 1))
    assert len(cluster.round()) == 1, "they still exclude each other"
    cluster.tell(removed(3, 4, 5, 6))
    cluster.round()
    assert len(resources) == 1


def test_a_token_held_by_placed_tasks_conflicts_with_later_classes():
    cluster = make_cluster(
        make_node("a"),
        *(
            make_class(c, cpu=c - 1, tokens=["TCP:80", *(f"TCP:{c}-{i}" for i in range(MAX_TOKENS - 1))])
            for c in (1, 2)
        ),
        make_tasks([1], 1),
    )
    cluster.tell(make_node("a", cpu=1))
    assert cluster.round() == {1: "a"}
    cluster.tell(make_tasks([2], 2))
    assert cluster.round() == {}
    assert Reason(ReasonKind.TOKEN_TAKEN, 1, "TCP:80") in reasons(cluster, 2)


def test_a_node_counts_for_the_first_token_that_it_lacks():
    cluster = make_cluster(
        *(make_node(name, cpu=2) for name in "abc"),
        make_class(1, cpu=1, tokens=["TCP:80", "TCP:81"]),
        make_class(2, cpu=2, tokens=["TCP:81"]),  # its node lacks cpu, too
        make_class(3, cpu=2, tokens=["TCP:82"]),
        make_class(4, cpu=1, tokens=["TCP:80", "TCP:81", "TCP:83"]),
        *(make_tasks([number], cls, on=node) for number, cls, node in ((1, 1, "a"), (2, 2, "b"), (3, 3, "c"))),
        make_tasks([4], 4),
    )
    assert cluster.round() == {}
    assert set(reasons(cluster, 4)) == {
        Reason(ReasonKind.TOKEN_TAKEN, 1, "TCP:80"),
        Reason(ReasonKind.TOKEN_TAKEN, 1, "TCP:81"),
        Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "cpu"),
    }


@pytest.mark.parametrize("what", ["resources", "ports"])
def test_tables_do_not_grow_with_unused_names(what):
    cluster = make_cluster(make_node("a", cpu=1))
    state = cluster.state
    for step in range(40):
        names = [f"{what}-{step}-{i}" for i in range(MAX_TOKENS)]
        says: dict[str, Any] = {"tokens": names} if what == "ports" else dict.fromkeys(names, 1)
        cluster.tell(make_class(step + 1, **says), make_tasks([step + 1], step + 1))
        cluster.round()
        assert len(state.resources) <= 2 + MAX_TOKENS
        cluster.tell(removed(step + 1))
        cluster.round()
        assert len(state.resources) <= 2 + SPARE_COLUMNS
    assert state.nodes.used.shape[1] == state.classes.requests.shape[1] == len(state.resources)


def test_columns_of_unoffered_resources_are_removed_and_added_again():
    many: dict[str, Any] = {f"r{i}": 4 for i in range(2 * SPARE_COLUMNS)}
    cluster = make_cluster(
        *(make_node("a", cpu=9, **many), make_node("b", cpu=9)),
        *(make_class(1, cpu=1, r1=3), make_tasks([1], 1)),
    )
    assert cluster.round() == {1: "a"}
    cluster.tell(NodeRemoved("id-a"), make_tasks([2], 1))
    assert cluster.round() == {}
    assert cluster.state.resources.names == (TASK_SLOTS, "cpu")
    assert reasons(cluster, 2) == (Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "r1"),)
    cluster.tell(make_node("a", cpu=9, **many))
    assert cluster.round() == {}, "the first still holds three of four"
    cluster.tell(removed(1))
    assert cluster.round() == {2: "a"}


def test_the_check_refuses_a_placement_that_requests_an_unoffered_resource():
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=1, gpu=1), make_tasks([1], 1))
    tasks, nodes = cluster.state.tasks.rows(), cluster.state.present_nodes()
    result = cluster.scheduler.verification.checker.check(tasks, nodes, tasks)
    assert not result.sound.any()
    assert result.complaints == ["1 placements: the task requests a resource that no node has"]


def test_names_of_tokens_stand_for_columns():
    cluster = make_cluster(make_node("a"), make_class(1, tokens=["TCP:80/10.0.0.1"]), make_tasks([1], 1))
    assert cluster.state.resources.names == (TASK_SLOTS, TOKEN + "TCP:80", TOKEN + "TCP:80/10.0.0.1")
    assert cluster.scheduler.run(NOW_US).stats.placed == 1
