"""A gang that asks for all of its quota before its first task is placed, since others are created only then."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Stop, Within
from firmament_py.sharing.report import queue_report
from tests.builders import NOW_US, SECOND_US, ended, make_class, make_gang, make_node, make_tasks, preempting_cluster
from tests.firmament_py.engine.queued import A, cluster_of, one_flavor, reasons
from tests.firmament_py.queues.trees import queue, quota, tree

LATER_US = NOW_US + SECOND_US


def waiting_gang(number, keeps=3, minimum=1, **fields):
    return make_gang(number, minimum, keeps={"cpu": keeps}, queue=A, staged=True, **fields)


def started_gang(number, keeps=3):
    return make_gang(number, keeps, keeps={"cpu": keeps}, queue=A, keeps_on="n")


def members(gang, *uids, cls=1, **fields):
    return make_tasks(uids, cls, gang=gang, queue=A, created_us=LATER_US, **fields)


def young(*uids):
    return make_tasks(uids, 1, queue=A, created_us=LATER_US + SECOND_US)


def with_quota(amount, *events, **fields):
    return cluster_of(tree(queue("a", "", quota(amount), **fields)), *events)


def test_of_two_leaders_one_starts_if_the_quota_is_that_of_one_group():
    """Two replicas of 3 of a LeaderWorkerSet with the startup policy LeaderReady, quota 3: both leaders started, and
    their workers waited for ever."""
    cluster = with_quota(3, waiting_gang(7), waiting_gang(8), members(7, 1), members(8, 2))
    assert cluster.round() == {1: "n"}
    cluster.tell(started_gang(7), members(7, 3, 4))
    assert cluster.round() == {3: "n", 4: "n"}
    cluster.tell(make_gang(7, 1), ended(1, 3, 4))
    assert cluster.round() == {2: "n"}


def test_it_starts_with_all_of_its_quota_or_not_at_all():
    cluster = with_quota(2, waiting_gang(7), members(7, 1))
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result) == {1: [("OVER_QUOTA", "a", "cpu: 1")]}
    cluster.tell(young(20, 21))
    assert set(cluster.round()) == {20, 21}, "a gang that waits keeps nothing"


@pytest.mark.parametrize("amount", [2, 3])
def test_members_that_it_does_not_need_start_with_it_or_after_it(amount):
    """Leaders of two exclusive Jobs of a JobSet, of which one is needed: the other one was admitted for itself."""
    cluster = with_quota(amount, waiting_gang(7), members(7, 1, 2))
    assert len(cluster.round()) == (1 if amount == 3 else 0)
    if amount == 3:
        cluster.tell(make_gang(7, 1, keeps={"cpu": 3}, queue=A, keeps_on="n"))
        assert len(cluster.round()) == 1
        assert queue_report(cluster.state).used[0].max() == 3


def test_from_when_its_first_task_has_a_node_the_queue_uses_all_of_it():
    cluster = with_quota(4, waiting_gang(7), members(7, 1))
    assert cluster.round() == {1: "n"}
    assert queue_report(cluster.state).used[0].max() == 3
    cluster.tell(young(20, 21))
    assert len(cluster.round()) == 1, "the gang is still described as one that waits"


@pytest.mark.parametrize("minimum", [1, 2])
def test_a_task_that_is_larger_than_what_its_gang_asks_for_needs_quota_for_itself(minimum):
    gang = waiting_gang(7, keeps=1, minimum=minimum)
    cluster = with_quota(2, gang, make_class(2, cpu=2), members(7, *range(1, 1 + minimum), cls=2))
    assert len(cluster.round()) == (1 if minimum == 1 else 0)


def test_a_leader_that_preempts_makes_its_group_fit():
    """Quota 4, full of two gangs of 2 of lower priority. The leader needs 1, its group 4: both leave, and nobody takes
    the quota of the workers meanwhile."""
    queues = one_flavor(queue("a", "", quota(4), within=Within.LOWER_PRIORITY))
    events = make_node("n", cpu=9), make_class(1, cpu=1), make_class(2, cpu=1, priority=5), QueuesObserved(queues)
    lower = [
        each
        for gang, uids in ((5, (1, 2)), (6, (3, 4)))
        for each in (make_gang(gang, 2), make_tasks(uids, 1, gang=gang, queue=A, on="n", started_us=NOW_US))
    ]
    cluster = preempting_cluster(*events, *lower, waiting_gang(7, keeps=4), members(7, 11, cls=2))
    result = cluster.run(LATER_US)
    assert set(cluster.preempted(result)) == {1, 2, 3, 4}
    assert cluster.nominated() == {11: "n"}
    cluster.tell(ended(1, 2), young(20))
    assert 20 not in cluster.round(LATER_US)
    cluster.tell(ended(3, 4))
    assert cluster.round(LATER_US) == {11: "n"}
    assert queue_report(cluster.state).used[0].max() == 4


def test_nothing_starts_in_a_queue_on_hold():
    cluster = with_quota(9, waiting_gang(7), members(7, 1), stop=Stop.HOLD)
    assert cluster.round() == {}
