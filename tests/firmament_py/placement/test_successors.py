"""Successors of migrating tasks: where they are expected, and what their nodes reserve for them."""

import pytest

from firmament_py.model.constraints import PreferenceSet, Spread
from firmament_py.model.events import NodeRemoved
from firmament_py.placement import migration
from tests.builders import NOW_US, make_class, make_node, make_tasks, needs, removed, tasks_like
from tests.firmament_py.placement.migrations import uneven


def migrated(*events, job=7, **options):
    """Task 12 of the job is evicted from node a; node b has capacity for one task."""
    cluster = uneven(
        make_class(2, cpu=99),
        make_tasks([100], 2, on="b"),
        make_tasks([12], 1, on="a", movable=True, job=job),
        *events,
        tasks=12,
        **options,
    )
    cluster.tell(make_tasks(range(1, 12), 1, on="a"), make_tasks(range(200, 288), 1, on="a"))
    assert cluster.migrating(cluster.run()) == {12: "b"}
    return cluster


@pytest.mark.parametrize("gone", [True, False], ids=["evicted", "still terminating"])
def test_the_node_is_reserved_for_the_successor(gone):
    cluster = migrated()
    if gone:
        cluster.tell(removed(12), make_tasks([300], 1, on="a"))
    cluster.tell(make_tasks([301], 1, created_us=NOW_US - 10**9))
    assert not cluster.round(), "another task does not get its place"
    cluster.tell(make_tasks([302], 1, job=7))
    assert cluster.round() == {302: "b"}
    assert not len(cluster.state.successors)


def test_a_successor_of_another_class_is_any_task():
    cluster = migrated(make_class(3, cpu=2), make_class(4, cpu=1, expected_us=10**9))
    cluster.tell(make_tasks([302], 4, job=7))
    assert not cluster.round()
    assert len(cluster.state.successors) == 1


def test_a_successor_can_have_preferences_that_the_running_task_has_none_of():
    spread = PreferenceSet(spread=(Spread(tasks_like(needs("app", "In", "a")), "zone"),))
    cluster = migrated(make_class(3, cpu=1, preferences=spread))
    cluster.tell(make_tasks([302], 3, job=7))
    assert cluster.round() == {302: "b"}
    assert not len(cluster.state.successors)


def test_a_successor_that_does_not_arrive_is_not_expected_forever():
    cluster = migrated()
    cluster.tell(make_tasks([301], 1))
    assert not cluster.round()
    later_us = NOW_US + migration.SUCCESSOR_US
    assert not cluster.scheduler.due(later_us - 1)
    assert cluster.scheduler.due(later_us)
    assert cluster.round(later_us) == {301: "b"}


def test_nothing_is_reserved_if_the_task_stays():
    cluster = migrated()
    cluster.tell(make_tasks([301], 1))
    assert not cluster.round()
    cluster.tell(make_tasks([12], 1, on="a", job=7))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {301: "b"}


def test_nothing_is_reserved_on_a_node_that_is_gone():
    cluster = migrated()
    cluster.tell(NodeRemoved("id-b"))
    assert not len(cluster.state.successors)


def test_nothing_is_reserved_for_a_task_in_no_job():
    cluster = migrated(job=0)
    cluster.tell(make_tasks([301], 1))
    assert cluster.round() == {301: "b"}


def test_successors_that_are_expected_count_as_on_their_way():
    cluster = migrated(moves_at_once=1)
    cluster.tell(make_node("c", cpu=100), removed(12), make_tasks(range(1, 11), 1, on="a", movable=True))
    assert not cluster.migrating(cluster.run())
    cluster.tell(make_tasks([302], 1, job=7))
    result = cluster.run()
    assert cluster.names(result) == {302: "b"}
    assert list(cluster.migrating(result).values()) == ["c"]
