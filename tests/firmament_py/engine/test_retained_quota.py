"""Quota that a gang keeps between its tasks once it has started."""

import pytest

from firmament_py.model.events import GangRemoved, QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree, Reclaim, Stop, Within
from firmament_py.sharing.report import queue_report
from tests.builders import NOW_US, SECOND_US, ended, make_class, make_gang, make_node, make_tasks, preempting_cluster
from tests.firmament_py.engine.queued import A, B, cluster_of, one_flavor, reasons
from tests.firmament_py.queues.trees import queue, quota, tree

KEEPS = make_gang(7, 2, keeps={"cpu": 2}, queue=A, keeps_on="n")
LATER_US = NOW_US + SECOND_US


def members(*uids, on=None, **fields):
    return make_tasks(uids, 1, gang=7, queue=A, on=on, created_us=LATER_US, **fields)


def young(*uids, queue=A):
    """Single tasks, which are older than all replacements."""
    return make_tasks(uids, 1, queue=queue)


def with_quota(amount, *events, **fields):
    return cluster_of(tree(queue("a", "", quota(amount), **fields)), *events)


def test_a_task_that_has_ended_leaves_its_quota_to_the_one_that_follows_it():
    cluster = with_quota(2, KEEPS, members(1, 2, on="n"), young(20))
    assert cluster.round() == {}
    cluster.tell(ended(1))
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result) == {}, "nothing has changed for it"
    cluster.tell(members(3))
    assert cluster.round() == {3: "n"}
    cluster.tell(ended(2, 3))
    assert cluster.round() == {}
    cluster.tell(members(4))
    assert cluster.round() == {}, "the gang needs two"
    cluster.tell(members(5))
    assert cluster.round() == {4: "n", 5: "n"}


def test_the_quota_is_free_once_the_gang_keeps_none():
    cluster = with_quota(2, KEEPS, members(1, 2, on="n"), young(20, 21))
    cluster.tell(ended(1, 2))
    assert cluster.round() == {}
    cluster.tell(make_gang(7, 1, keeps={"cpu": 1}, queue=A, keeps_on="n"))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {20: "n"}
    cluster.tell(GangRemoved(7))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {21: "n"}


def test_what_is_kept_beside_what_is_used_is_used():
    cluster = with_quota(4, KEEPS, members(1, on="n"), young(20, 21, 22))
    assert len(cluster.round()) == 2
    assert queue_report(cluster.state).used[0].max() == 4
    cluster.tell(members(2))
    assert cluster.round() == {2: "n"}
    assert queue_report(cluster.state).used[0].max() == 4


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("stop", [Stop.HOLD, Stop.HOLD_AND_DRAIN])
def test_a_queue_on_hold_takes_those_alone_whose_gang_has_started(stop, above):
    stops = {"stop": stop}
    queues = [queue("top", **(stops if above else {})), queue("a", "top", quota(9), **({} if above else stops))]
    cluster = cluster_of(tree(*queues), KEEPS, members(1, on="n"), members(2), young(20))
    assert cluster.round() == ({2: "n"} if stop is Stop.HOLD else {})


def test_a_queue_that_is_wrong_takes_none():
    cluster = with_quota(9, KEEPS, members(1, on="n"), members(2))
    cluster.state.apply(QueuesObserved(tree(queue("a", "missing", quota(9)))))
    assert cluster.round() == {}


def test_a_gang_that_begins_to_keep_quota_ends_the_wait_in_a_queue_on_hold():
    cluster = with_quota(9, make_gang(7, 2), members(1, on="n"), members(2), stop=Stop.HOLD)
    assert cluster.round() == {}
    cluster.tell(KEEPS)
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {2: "n"}


def test_a_gang_keeps_its_quota_although_the_queue_has_less_by_now():
    cluster = with_quota(2, KEEPS, members(1, 2, on="n"), young(20))
    cluster.tell(QueuesObserved(tree(queue("a", "", quota(1)))), ended(1), members(3))
    assert cluster.round() == {3: "n"}
    cluster.tell(members(4))
    assert cluster.round() == {}, "beyond what it keeps it needs quota"


def test_a_task_that_requests_what_no_queue_has_a_quota_of_waits():
    cluster = with_quota(2, KEEPS, members(1, on="n"), make_node("m", cpu=1, gpu=1), make_class(2, cpu=1, gpu=1))
    cluster.tell(make_tasks([2], 2, gang=7, queue=A))
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result) == {2: [("OVER_QUOTA", "a", "gpu: 1")]}


def test_a_gang_that_is_started_again_keeps_its_quota_while_its_tasks_leave_one_by_one():
    """A JobSet that restarts: all of its pods are deleted, then made anew. A pod of another one took the quota of the
    first that had gone, and both ran beyond the quota."""
    cluster = with_quota(2, KEEPS, members(1, 2, on="n"), young(20))
    cluster.tell(members(1, 2, on="n", leaving=True), ended(1))
    assert cluster.round() == {}
    cluster.tell(ended(2), members(3, 4))
    assert cluster.round() == {3: "n", 4: "n"}


def test_a_gang_that_was_evicted_keeps_nothing():
    cluster = with_quota(2, KEEPS, members(1, 2, on="n"), young(20, 21))
    cluster.tell(ended(1))
    assert cluster.round() == {}
    cluster.tell(members(2, on="n", leaving=True), make_gang(7, 2))
    assert set(cluster.round()) <= {20, 21}
    assert len(cluster.round()) + len(cluster.state.tasks.on_nodes.nonzero()[0]) == 2, "what leaves counts"


def test_other_queues_of_a_cohort_do_not_borrow_what_is_kept():
    queues = tree(queue("top"), queue("a", "top", quota(2)), queue("b", "top", quota(1)))
    cluster = cluster_of(queues, KEEPS, members(1, 2, on="n"), young(20, 21, queue=B))
    assert len(cluster.round()) == 1
    cluster.tell(ended(1, 2))
    assert cluster.round() == {}
    cluster.tell(members(3, 4))
    assert set(cluster.round()) == {3, 4}


@pytest.mark.parametrize("running", [True, False])
def test_what_is_kept_is_of_the_flavor_on_which_the_gang_was_admitted(running):
    flavors = (Flavor("one", {"kind": "one"}), Flavor("two", {"kind": "two"}))
    both = (quota(1, on="one/cpu"), quota(2, on="two/cpu"))
    nodes = [make_node(name, cpu=9, labels={"kind": name}) for name in ("one", "two")]
    cluster = cluster_of(QueueTree((queue("a", "", *both),), flavors), *nodes, cpu=0)
    cluster.tell(make_gang(7, 2, keeps={"cpu": 2}, queue=A, keeps_on="two"), members(1, 2, on="two"))
    cluster.tell(ended(1, 2) if not running else ended(1), young(20, 21))
    assert set(cluster.round().values()) == {"one"}
    cluster.tell(members(3, 4) if not running else members(3))
    assert set(cluster.round().values()) == {"two"}


def test_a_gang_without_a_queue_keeps_nothing():
    gang = make_gang(7, 2, keeps={"cpu": 2}, keeps_on="n")
    cluster = with_quota(2, gang, make_tasks([1], 1, gang=7, on="n"), young(20, 21))
    assert set(cluster.round()) == {20, 21}


@pytest.mark.parametrize("waits", [True, False])
def test_a_gang_that_is_evicted_leaves_what_it_keeps_too(waits):
    """Quota 2: one of its tasks runs, and the other has ended. A job of 2 of higher priority needs all of it."""
    queues = one_flavor(queue("a", "", quota(2), within=Within.LOWER_PRIORITY))
    events = make_node("n", cpu=9), make_class(1, cpu=1), make_class(2, cpu=1, priority=5), QueuesObserved(queues)
    cluster = preempting_cluster(*events, KEEPS, members(1, on="n", started_us=NOW_US), make_gang(8, 2))
    cluster.tell(make_tasks([11, 12], 2, gang=8, queue=A), *([members(2)] if waits else []))
    result = cluster.run(LATER_US)
    assert set(cluster.names(result)) == ({2} if waits else set())
    if not waits:
        assert set(cluster.preempted(result)) == {1}
        cluster.tell(ended(1), make_gang(7, 2))
        assert set(cluster.round(LATER_US)) == {11, 12}


def test_a_task_that_is_placed_within_what_its_gang_keeps_is_counted_once():
    """a uses 4 of its 3 and keeps 1, of 5 in all: one task of a leaves for 31 in the round that places 2."""
    queues = one_flavor(
        *(queue("b", "top", quota(2), reclaim=Reclaim.ANY), queue("a", "top", quota(3)), queue("top")),
    )
    events = make_node("n", cpu=9), make_class(1, cpu=1), QueuesObserved(queues)
    cluster = preempting_cluster(*events, KEEPS, members(1, on="n", started_us=NOW_US), members(2))
    cluster.tell(make_tasks([21, 22, 23], 1, on="n", queue=A), young(31, queue=B))
    result = cluster.run(LATER_US)
    assert set(cluster.names(result)) == {2}
    assert len(cluster.preempted(result)) == 1
