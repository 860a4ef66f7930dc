"""Victims that leave for quota alone, on nodes that the preemptor does not need: few, as units, within budgets."""

import pytest

from firmament_py.model.queues import Within
from firmament_py.preemption import reclaimer
from tests.builders import NOW_US, make_budget, make_class, make_gang, make_label_set, make_tasks, needs, tasks_like
from tests.firmament_py.engine.reclaiming import A, cluster_of, cohort, running

DATABASE = make_label_set(3, app="db")


def budget(allowed, number=9):
    return make_budget(number, tasks_like(needs("app", "In", "db")), allowed)


def short_of_quota(*events, a=4, b=4, **fields):
    """b runs on n; m is free."""
    return cluster_of(cohort(a, b, **fields), *events, nodes=("n", "m"), cpu=16)


def victims(cluster):
    return set(cluster.preempted(cluster.run()))


def test_what_another_victim_makes_needless_stays():
    """The least important victim, of 1 cpu, does not suffice for 2; the next one, of 2, does so alone."""
    cluster = short_of_quota(make_class(3, cpu=2, priority=3), make_class(4, cpu=2), running([1]), b=5)
    cluster.tell(running([2, 3, 4, 5], 3), make_tasks([11], 4, queue=A))
    [victim] = victims(cluster)
    assert victim in {2, 3, 4, 5}


def test_budgets_hold_for_victims_on_other_nodes():
    for allowed in range(3):
        cluster = short_of_quota(DATABASE, budget(allowed), running(range(1, 9), label_set=3))
        cluster.tell(make_class(3, cpu=2), make_tasks([11], 3, queue=A))
        assert len(victims(cluster)) == (2 if allowed == 2 else 0)


def test_budgets_are_of_all_victims_of_a_round():
    """Of two claims, one for each class, the second one finds the budget used up by the first."""
    cluster = short_of_quota(DATABASE, budget(1), running(range(1, 9), label_set=3))
    cluster.tell(make_tasks([11], 1, queue=A), make_tasks([12], 2, queue=A))
    assert len(victims(cluster)) == 1
    assert set(cluster.nominated()) == {12}


def test_victims_that_no_budget_is_of_leave_instead():
    cluster = short_of_quota(DATABASE, budget(0), running(range(1, 5), label_set=3), running(range(5, 9), 2))
    cluster.tell(make_class(3, cpu=4), make_tasks([11], 3, queue=A))
    assert victims(cluster) == {5, 6, 7, 8}


def test_a_task_leaves_for_one_preemptor_alone():
    """Two claims of a; both victims of b have to leave."""
    cluster = short_of_quota(running(range(1, 9)), make_tasks([11], 1, queue=A), make_tasks([12], 2, queue=A))
    found = cluster.preempted(cluster.run())
    assert len(found) == 2
    assert set(found.values()) == {11, 12}
    assert set(cluster.nominated()) == {11, 12}


def test_gangs_leave_as_a_whole_for_quota():
    """Of the least important a gang, and then single tasks: with the gang there is more than enough."""
    cluster = short_of_quota(make_gang(7, 3), running([1, 2, 3], gang=7), running(range(4, 9), 2))
    cluster.tell(make_tasks([11], 1, queue=A))
    assert victims(cluster) == {1, 2, 3}


@pytest.mark.parametrize(
    ("minimum", "cpus", "count"),
    [
        pytest.param(2, 1, 1, id="one of its six"),
        pytest.param(2, 3, 3, id="three of its six"),
        pytest.param(6, 2, 2, id="all above its minimum"),
        pytest.param(6, 3, 8, id="the whole gang, as the two above do not suffice"),
        pytest.param(8, 1, 8, id="none is above its minimum"),
    ],
)
def test_an_elastic_gang_gives_back_members_above_its_minimum_before_it_leaves(minimum, cpus, count):
    """b uses 8 of its 4 with one gang. Of a gang that loses members, those above its minimum are single victims."""
    cluster = short_of_quota(make_gang(7, minimum), running(range(1, 9), gang=7), make_class(3, cpu=cpus))
    cluster.tell(make_tasks([11], 3, queue=A))
    assert len(victims(cluster)) == count


def test_members_above_the_minimum_leave_with_the_others_although_they_would_be_more_than_enough():
    """Of a gang of 8 with a minimum of 6, two singles of 1 do not give back 3, so the gang leaves: 6 would do, but its
    two further members do not run without it."""
    cluster = short_of_quota(make_gang(7, 6), running(range(1, 9), gang=7), make_class(3, cpu=3))
    cluster.tell(make_tasks([11], 3, queue=A))
    assert victims(cluster) == set(range(1, 9))


@pytest.mark.parametrize("minimum", [1, 2, 3, 4])
def test_a_gang_that_gave_members_for_a_node_leaves_as_a_whole_if_quota_needs_that(minimum):
    """The node needs one of its four tasks to leave, the quota of 4 all of them."""
    cluster = cluster_of(cohort(4, 0), make_gang(7, minimum), running(range(1, 5), gang=7), make_class(3, cpu=4), cpu=7)
    cluster.tell(make_tasks([11], 3, queue=A))
    assert victims(cluster) == {1, 2, 3, 4}


def test_a_whole_gang_is_put_back_with_its_members_above_the_minimum():
    """The gang comes first, and does not suffice for four; a single task of four behind it does alone."""
    cluster = short_of_quota(make_gang(7, 1), make_class(4, cpu=4, priority=3), a=8, b=0)
    cluster.tell(running([1, 2, 3], gang=7), running([4], 4), running([5], 2), make_class(5, cpu=4))
    cluster.tell(make_tasks([11], 5, queue=A))
    assert victims(cluster) == {4}


def test_roles_keep_their_minimums():
    gang = make_gang(7, 2, roles={"driver": 1, "worker": 1})
    cluster = short_of_quota(gang, running([1], gang=7, role=0), running(range(2, 9), gang=7, role=1))
    cluster.tell(make_class(3, cpu=3), make_tasks([11], 3, queue=A))
    found = victims(cluster)
    assert len(found) == 3
    assert 1 not in found


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_gang_leaves_for_quota_although_no_task_could_leave_on_its_own(size):
    """b uses 8 of its 4 with gangs that need all members, and the nodes have space for the task of a. Kueue takes a
    workload of 8 whole, although 4 of it are within the quota of b (hierarchical_preemption.go)."""
    gangs = [range(first, first + size) for first in range(1, 9, size)]
    cluster = short_of_quota(
        *(make_gang(uids[0], size) for uids in gangs), *(running(uids, gang=uids[0]) for uids in gangs)
    )
    cluster.tell(make_tasks([11], 1, queue=A))
    assert victims(cluster) in [set(uids) for uids in gangs]
    assert set(cluster.nominated()) == {11}


def test_a_gang_leaves_for_a_more_important_task_of_its_queue():
    """The queue is full, the nodes are not (Kueue, withinClusterQueue: LowerPriority)."""
    cluster = short_of_quota(make_gang(7, 4), within=Within.LOWER_PRIORITY, b=0)
    cluster.tell(running(range(1, 5), gang=7, queue=A), make_tasks([11], 2, queue=A))
    assert victims(cluster) == {1, 2, 3, 4}
    assert set(cluster.nominated()) == {11}


def test_gangs_are_put_back_as_a_whole():
    """The gang of three does not suffice for four, the tasks behind it do."""
    cluster = short_of_quota(make_gang(7, 3), make_class(4, cpu=4, priority=3), a=8, b=0)
    cluster.tell(running([1, 2, 3], gang=7), running([4], 4), running([5], 2), make_class(5, cpu=4))
    cluster.tell(make_tasks([11], 5, queue=A))
    assert victims(cluster) == {4}


def test_a_gang_with_a_member_that_may_not_leave_stays():
    gang = make_gang(7, 3)
    cluster = short_of_quota(gang, running([1, 2], gang=7), running([3], gang=7, unevictable=True))
    cluster.tell(running(range(4, 9), 2), make_tasks([11], 1, queue=A))
    [victim] = victims(cluster)
    assert victim in range(4, 9)


def test_budgets_of_all_members_of_a_gang_have_to_hold():
    cluster = short_of_quota(DATABASE, budget(2), make_gang(7, 3), running([1, 2, 3], gang=7, label_set=3))
    cluster.tell(running(range(4, 9), 2), make_tasks([11], 1, queue=A))
    [victim] = victims(cluster)
    assert victim in range(4, 9)


def test_a_gang_of_which_no_eviction_makes_room_for_all_members_evicts_none():
    """Quota suffices for all four, the nodes have room for two once b's tasks have left."""
    cluster = cluster_of(cohort(6, 0), make_gang(7, 4), running([1, 2], on="n"), nodes=("n", "m"), cpu=2)
    cluster.tell(make_tasks([3], 2, on="m", unevictable=True), make_tasks([4], 2, on="m", unevictable=True))
    cluster.tell(make_tasks([11, 12, 13, 14], 1, queue=A, gang=7))
    assert victims(cluster) == set()
    assert cluster.nominated() == {}


def test_a_gang_with_a_member_that_never_preempts_evicts_none():
    cluster = short_of_quota(make_class(3, cpu=1, never_preempts=True), make_gang(7, 2), running(range(1, 9)))
    cluster.tell(make_tasks([11], 1, queue=A, gang=7), make_tasks([12], 3, queue=A, gang=7))
    assert victims(cluster) == set()


def test_jobs_alike_that_nothing_helps_are_searched_for_once(monkeypatch):
    """No node gets 4 cpus: of three gangs one is tried, and the second search of the round is for another job."""
    monkeypatch.setattr(reclaimer, "_SEARCHES", 2)
    gangs = range(20, 23)
    cluster = cluster_of(
        cohort(),
        make_class(3, cpu=4),
        *(make_gang(gang, 1, created_us=NOW_US - 9) for gang in gangs),
        *(running(range(at, at + 2), on=node) for at, node in ((1, "n"), (3, "m"))),
        *(running(range(at, at + 2), on=node, unevictable=True) for at, node in ((5, "n"), (7, "m"))),
        *(make_tasks([gang], 3, queue=A, gang=gang) for gang in gangs),
        make_tasks([12], 1, queue=A),
        nodes=("n", "m"),
        cpu=4,
    )
    assert list(cluster.preempted(cluster.run()).values()) == [12]
