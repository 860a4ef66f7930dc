"""Rounds in which queues see the priorities of each other's tasks with offsets and fences (YuniKorn)."""

import pytest

from firmament_py.model.queues import ReclaimRules, Sharing
from tests.builders import make_class, make_tasks
from tests.firmament_py.engine.reclaiming import OLD_US, cluster_of
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

A, B = queue_id("a"), queue_id("b")
RULES = {"sharing": Sharing.PROPORTIONAL, "reclaim_rules": ReclaimRules.GUARANTEE, "priority_first": True}
IMPORTANT = make_class(3, cpu=1, priority=500)


def below_root(*queues):
    return tree(queue("root", "", quota(0), unlimited=True), *queues, flavors=["red"], **RULES)


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"),
    [
        pytest.param({}, {}, {11}, id="own-priorities"),
        pytest.param({"priority_offset": 501}, {}, {1}, id="offset"),
        pytest.param({"priority_offset": 499}, {}, {11}, id="too-small-an-offset"),
        pytest.param({}, {"priority_fence": True, "priority_offset": -1}, {1}, id="fence"),
        pytest.param({"priority_fence": True, "priority_offset": 501}, {}, {1}, id="a-fence-with-a-high-offset"),
    ],
)
def test_nodes_go_to_what_is_seen_as_most_important(of_a, of_b, expected):
    """Quotas admit both tasks, and the node has space for one. That of queue a is older, and of priority 0."""
    queues = below_root(queue("a", "root", quota(9), **of_a), queue("b", "root", quota(9), **of_b))
    waiting = make_tasks([1], 1, queue=A, created_us=OLD_US), make_tasks([11], 3, queue=B)
    assert set(cluster_of(queues, IMPORTANT, *waiting, cpu=1).round()) == expected


def test_tasks_of_one_class_are_seen_by_their_queues():
    queues = below_root(queue("a", "root", quota(9)), queue("b", "root", quota(9), priority_offset=1))
    waiting = make_tasks([1, 2], 1, queue=A, created_us=OLD_US), make_tasks([11, 12], 1, queue=B)
    assert set(cluster_of(queues, *waiting, cpu=2).round()) == {11, 12}


def test_below_a_fence_own_priorities_count():
    queues = below_root(queue("a", "root", quota(9), priority_fence=True))
    waiting = make_tasks([1], 1, queue=A, created_us=OLD_US), make_tasks([2], 3, queue=A)
    assert set(cluster_of(queues, IMPORTANT, *waiting, cpu=1).round()) == {2}


@pytest.mark.parametrize(
    ("of_a", "of_b", "victims"),
    [
        pytest.param({}, {}, 0, id="no-higher-priority"),
        pytest.param({"priority_offset": 500}, {}, 1, id="equal-by-its-offset"),
        pytest.param({}, {"priority_fence": True}, 1, id="a-fence-hides-priorities"),
        pytest.param({"priority_offset": 400}, {"priority_fence": True, "priority_offset": 401}, 0, id="high-fence"),
    ],
)
def test_queues_reclaim_by_what_they_see(of_a, of_b, victims):
    """Queue a is below its guarantee; the tasks of b run above theirs, and are of priority 500."""
    queues = below_root(queue("a", "root", quota(1), **of_a), queue("b", "root", quota(1), **of_b))
    running = make_tasks([21, 22], 3, on="n", queue=B, created_us=OLD_US, started_us=OLD_US)
    cluster = cluster_of(queues, IMPORTANT, running, make_tasks([1], 1, queue=A), cpu=2)
    assert len(cluster.preempted(cluster.run())) == victims


def test_within_a_fence_the_less_important_task_is_evicted():
    """Seen from outside all are alike; the preemptor is inside, and sees that one of b's tasks is less important."""
    queues = below_root(
        queue("f", "root", quota(0), priority_fence=True, unlimited=True),
        queue("a", "f", quota(1), priority_offset=500),
        queue("b", "f", quota(1)),
    )
    important = make_tasks([21], 3, on="n", queue=B, created_us=OLD_US, started_us=OLD_US + 1)
    cluster = cluster_of(queues, IMPORTANT, important, make_tasks([1], 1, queue=A), cpu=2)
    cluster.tell(make_tasks([22], 1, on="n", queue=B, created_us=OLD_US, started_us=OLD_US))
    assert set(cluster.preempted(cluster.run())) == {22}


@pytest.mark.parametrize(("of_b", "of_c", "victim"), [(0, 0, 22), (501, 0, 21), (0, -501, 21)])
def test_what_is_seen_as_least_important_is_evicted_first(of_b, of_c, victim):
    """Of queue b a task of priority 0 runs, of queue c one of 500 that began later."""
    queues = below_root(
        queue("a", "root", quota(1), priority_offset=1000),
        queue("b", "root", quota(0), priority_offset=of_b),
        queue("c", "root", quota(0), priority_offset=of_c),
    )
    of_c_runs = make_tasks([21], 3, on="n", queue=queue_id("c"), created_us=OLD_US, started_us=OLD_US + 1)
    cluster = cluster_of(queues, IMPORTANT, of_c_runs, make_tasks([1], 1, queue=A), cpu=2)
    cluster.tell(make_tasks([22], 1, on="n", queue=B, created_us=OLD_US, started_us=OLD_US))
    assert set(cluster.preempted(cluster.run())) == {victim}


@pytest.mark.parametrize("cls_of_b", [1, 3])
def test_what_exceeds_the_capacity_is_tried_in_the_same_order(cls_of_b):
    """Task 31 would use all that there is, but fits on no node: others do, which come after it in the order."""
    queues = below_root(
        queue("a", "root", quota(9), priority_offset=501),
        queue("b", "root", quota(9)),
        queue("c", "root", quota(9), priority_offset=9000),
    )
    large = make_class(4, cpu=2), make_tasks([31], 4, queue=queue_id("c"))
    waiting = make_tasks([1, 2], 1, queue=A), make_tasks([11, 12], cls_of_b, queue=B, created_us=OLD_US)
    cluster = cluster_of(queues, IMPORTANT, *large, *waiting, nodes=("n", "m"), cpu=1)
    assert set(cluster.round()) == {1, 2}
