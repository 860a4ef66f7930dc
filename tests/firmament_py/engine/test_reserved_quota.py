"""Quota that is reserved: for nominated tasks, waiting gangs, and successors of tasks that move."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    ended,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    migrating_cluster,
    needs,
    removed,
    selecting,
)
from tests.firmament_py.engine.queued import A, B, cluster_of, one_flavor
from tests.firmament_py.gang_builders import OVERDUE_US
from tests.firmament_py.queues.trees import queue, quota, tree


def test_what_waits_for_its_victims_keeps_the_quota_of_others():
    """Of 2 cpus one is leaving and the other one free; both are for the task that is nominated."""
    queues = tree(queue("top"), queue("a", "top", quota(2)), queue("b", "top", quota(0)))
    cluster = cluster_of(
        queues,
        make_class(2, cpu=2),
        make_tasks([1], 1, on="n", queue=B, leaving=True),
        make_tasks([2], 2, queue=A, nominated="n"),
        make_tasks([3], 1, queue=B),
    )
    assert cluster.round() == {}
    cluster.tell(ended(1))
    assert cluster.round() == {2: "n"}


def test_nominated_tasks_that_are_admitted_take_from_each_resource():
    """Of two resources of two flavors; the quota of the nominated one leaves no gpu for the other."""
    flavors = tuple(Flavor(name, {"kind": name}) for name in ("red", "blue"))
    amounts = [quota(4, on=f"{f.name}/cpu") for f in flavors] + [quota(1, on=f"{f.name}/gpu") for f in flavors]
    queues = QueueTree((queue("top"), queue("a", "top", *amounts), queue("b", "top", quota(0))), flavors)
    needs_blue = selecting(needs("kind", "In", "blue"))
    cluster = make_cluster(
        *(make_node(flavor.name, cpu=9, gpu=9, labels=flavor.node_labels) for flavor in flavors),
        make_class(1, cpu=1, gpu=1, demand=needs_blue),
        QueuesObserved(queues),
        make_tasks([1], 1, queue=A, nominated="blue"),
        make_tasks([2], 1, queue=A, created_us=NOW_US - 9),
    )
    assert cluster.round() == {1: "blue"}


def test_the_end_of_a_task_releases_its_quota():
    cluster = cluster_of(tree(queue("a", "", quota(1))), make_tasks([1, 2], 1, queue=A))
    assert set(cluster.round()) == {1}
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(make_tasks([1], 1, on="n", queue=A, leaving=True))
    assert cluster.round() == {}  # what leaves still counts
    cluster.tell(ended(1))
    assert set(cluster.round()) == {2}


def test_nominated_tasks_hold_their_quota():
    cluster = cluster_of(
        tree(queue("a", "", quota(2))),
        make_tasks([1], 1, nominated="n", queue=A, created_us=NOW_US + 5),
        make_tasks([2, 3], 1, queue=A),
    )
    assert set(cluster.round()) == {1, 2}


@pytest.mark.parametrize(("flavors", "moves"), [(1, 1), (2, 0)])
def test_tasks_whose_quota_is_of_some_nodes_do_not_migrate(flavors, moves):
    names = ["on-demand", "spot"][:flavors]
    queues = (queue("a", "", *(quota(9, on=f"{name}/cpu") for name in names)),)
    labels = {name: {"kind": name} if flavors > 1 else {} for name in names}
    cluster = migrating_cluster(
        make_node("n-demand", cpu=9, labels={"kind": "on-demand"}),
        make_node("n-spot", cpu=9, labels={"kind": "spot"}),
        make_class(1, cpu=1),
        QueuesObserved(QueueTree(queues, tuple(Flavor(name, labels[name]) for name in names))),
        make_tasks(range(1, 9), 1, on="n-demand", queue=A, movable=True, job=1, started_us=NOW_US - 10**10),
        policy=LoadSpreading(move_cost=100),
    )
    assert len(cluster.migrating(cluster.run())) == moves


def test_gangs_of_different_entitlements_have_one_reservation_together():
    """Both wait for all of a node; what is left for tasks without a gang is the other one."""
    cluster = make_cluster(
        *(make_node(name, cpu=2) for name in "mn"),
        make_class(1, cpu=1),
        make_class(2, cpu=2),
        QueuesObserved(tree(queue("top"), queue("a", "top", quota(4)), queue("b", "top", quota(1)))),
        *(make_tasks([uid], 1, on=name) for uid, name in enumerate("mn", 1)),
        *(make_gang(gang, 1, created_us=OVERDUE_US) for gang in (7, 8)),
        *(make_tasks([10 + q], 2, gang=7 + i, queue=q) for i, q in enumerate((A, B))),
        make_tasks([21], 1),
    )
    assert set(cluster.round()) == {21}
    assert len(cluster.scheduler.gang_starts_us) == 1


@pytest.mark.parametrize("limit", [8, 9])
def test_the_quota_of_a_task_that_moves_is_that_of_its_successor(limit):
    """One of eight tasks moves; another one waits, which fits besides only if the limit is 9."""
    cluster = migrating_cluster(
        make_node("full", cpu=9),
        make_node("empty", cpu=9),
        make_class(1, cpu=1),
        QueuesObserved(one_flavor(queue("a", "", quota(limit)))),
        make_tasks(range(1, 9), 1, on="full", queue=A, movable=True, job=1, started_us=NOW_US - 10**10),
        policy=LoadSpreading(move_cost=100),
    )
    ((moving, target), *_) = cluster.migrating(cluster.run()).items()
    assert target == "empty"
    cluster.tell(make_tasks([31], 1, queue=A, job=2, created_us=NOW_US - 10**9))
    other = {31} if limit == 9 else set[int]()
    assert set(cluster.round()) == other, "before it is gone"
    cluster.tell(removed(moving))
    assert not cluster.round(), "its successor has not been created"
    cluster.tell(make_tasks([21], 1, queue=A, movable=True, job=1))
    assert cluster.round() == {21: "empty"}
    assert not cluster.round()


def test_quota_is_no_longer_for_a_successor_that_does_not_come():
    cluster = migrating_cluster(
        make_node("full", cpu=9),
        make_node("empty", cpu=9),
        make_class(1, cpu=1),
        QueuesObserved(one_flavor(queue("a", "", quota(8)))),
        make_tasks(range(1, 9), 1, on="full", queue=A, movable=True, job=1, started_us=NOW_US - 10**10),
        policy=LoadSpreading(move_cost=100),
    )
    (moving,) = cluster.migrating(cluster.run())
    cluster.tell(removed(moving), make_tasks([31], 1, queue=A, job=2))
    assert not cluster.round()
    later_us = cluster.state.successors.next_end_us
    assert cluster.scheduler.due(later_us)
    assert set(cluster.names(cluster.run(later_us))) == {31}
