"""Preemption by the rules of queues, in rounds."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import (
    Fungibility,
    Reclaim,
    ReclaimRules,
    Sharing,
    Within,
)
from firmament_py.preemption import reclaimer
from firmament_py.sharing import decision
from tests.builders import (
    NOW_US,
    SECOND_US,
    ended,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    selecting,
    tasks_like,
)
from tests.firmament_py.engine.reclaiming import OLD_US, A, B, cluster_of, cohort, running
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree


def test_a_queue_within_its_quota_reclaims_what_others_borrow():
    cluster = cluster_of(cohort(), running(range(1, 9)), make_tasks([11, 12], 1, queue=A))
    result = cluster.run()
    victims = cluster.preempted(result)
    assert len(victims) == 2
    assert set(victims) <= set(range(1, 9))
    assert set(victims.values()) <= {11, 12}
    assert cluster.nominated() == {11: "n", 12: "n"}
    cluster.tell(ended(*victims))
    assert set(cluster.round()) == {11, 12}
    assert not cluster.scheduler.due(NOW_US)


def test_what_keeps_its_nomination_whatever_comes_need_not_be_within_what_is_deserved():
    """A queue that borrows preempts its own task; the preemptor is then marked as one that does not lose its node."""
    described = tree(
        queue("top", "", quota(8)),
        queue("a", "top", quota(2), within=Within.LOWER_PRIORITY),
        queue("b", "top", quota(2)),
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    cluster = cluster_of(described, running(range(1, 9), queue=A), make_tasks([11], 2, queue=A))
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 1
    cluster.tell(make_tasks([11], 2, queue=A, nominated="n", unevictable=True))
    assert not cluster.round()
    cluster.tell(ended(*victims))
    assert set(cluster.round()) == {11}


def test_a_nominated_task_that_is_placed_counts_once():
    cluster = cluster_of(cohort(), running(range(1, 9)), make_tasks([11], 1, queue=A))
    first = cluster.preempted(cluster.run())
    cluster.tell(ended(*first), make_tasks([12], 1, queue=A))
    result = cluster.run()
    assert set(cluster.names(result)) == {11}
    assert len(cluster.preempted(result)) == 1
    assert set(cluster.nominated()) == {12}


def test_victims_leave_for_tasks_that_wait():
    """One of two tasks fits at once; the victim leaves for the other one."""
    cluster = cluster_of(cohort(), running(range(1, 8)), make_tasks([11, 12], 1, queue=A))
    result = cluster.run()
    [placed], [(_, preemptor)] = cluster.names(result), cluster.preempted(result).items()
    assert {placed, preemptor} == {11, 12}


def test_it_reclaims_no_more_than_its_quota():
    cluster = cluster_of(cohort(), running(range(1, 9)), make_tasks(range(11, 18), 1, queue=A))
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 4
    cluster.tell(ended(*victims))
    assert len(cluster.round()) == 4
    assert cluster.run().preemption.is_empty


@pytest.mark.parametrize("reclaim", [Reclaim.NEVER, Reclaim.LOWER_PRIORITY])
def test_what_the_policy_does_not_permit(reclaim):
    cluster = cluster_of(cohort(reclaim=reclaim), running(range(1, 9)), make_tasks([11], 1, queue=A))
    result = cluster.run()
    assert result.preemption.is_empty
    assert cluster.nominated() == {}
    assert not cluster.scheduler.due(NOW_US)


def test_lower_priority_is_reclaimed_if_the_policy_says_so():
    cluster = cluster_of(cohort(reclaim=Reclaim.LOWER_PRIORITY), running(range(1, 9)), make_tasks([11], 2, queue=A))
    assert len(cluster.preempted(cluster.run())) == 1


def test_quota_alone_is_short_and_victims_are_on_other_nodes():
    """Nodes have capacity; the task waits on a free node until quota has been returned."""
    cluster = cluster_of(cohort(), running(range(1, 9), on="n"), make_tasks([11], 1, queue=A), nodes=("n", "m"), cpu=8)
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 1
    [node] = cluster.nominated().values()
    assert cluster.round() == {}  # what leaves still counts
    assert list(cluster.nominated().values()) == [node]
    cluster.tell(ended(*victims))
    assert cluster.round() == {11: node}


def test_the_newest_and_least_important_leave_first():
    cluster = cluster_of(
        cohort(),
        running(range(1, 5)),
        running([5, 6], cls=2),
        make_tasks([7, 8], 1, on="n", queue=B, created_us=OLD_US + SECOND_US, started_us=OLD_US + SECOND_US),
        make_tasks([11, 12], 1, queue=A),
        nodes=("n", "m"),
    )
    assert set(cluster.preempted(cluster.run())) == {7, 8}


def test_no_task_is_evicted_for_quota_if_no_node_takes_the_preemptor():
    cluster = cluster_of(
        cohort(),
        make_class(3, cpu=4, memory=1),
        make_node("m", cpu=1, memory=1),
        running(range(1, 9)),
        make_tasks([11], 3, queue=A),
    )
    queues = tree(
        queue("top"),
        queue("a", "top", quota(4), reclaim=Reclaim.ANY, unlimited=True),
        queue("b", "top", quota(4)),
    )
    cluster.tell(QueuesObserved(queues))
    result = cluster.run()
    assert result.preemption.is_empty


def test_within_a_queue_by_priority():
    queues = tree(queue("a", "", quota(8), within=Within.LOWER_PRIORITY))
    cluster = cluster_of(
        queues, running(range(1, 9), queue=A), make_tasks([11], 2, queue=A), make_tasks([12], 1, queue=A)
    )
    result = cluster.run()
    assert len(cluster.preempted(result)) == 1
    assert set(cluster.nominated()) == {11}


def test_newer_tasks_of_equal_priority():
    queues = tree(queue("a", "", quota(8), within=Within.LOWER_OR_NEWER_EQUAL_PRIORITY))
    older = make_tasks([11], 1, queue=A, created_us=OLD_US + SECOND_US)
    cluster = cluster_of(queues, running(range(1, 8), queue=A), older)
    cluster.tell(
        make_tasks([8], 1, on="n", queue=A, created_us=OLD_US + 2 * SECOND_US, started_us=OLD_US + 2 * SECOND_US)
    )
    assert set(cluster.preempted(cluster.run())) == {8}


def test_without_a_policy_no_task_of_the_queue_leaves():
    cluster = cluster_of(tree(queue("a", "", quota(8))), running(range(1, 9), queue=A), make_tasks([11], 2, queue=A))
    assert cluster.run().preemption.is_empty


def test_a_gang_reclaims_for_all_of_its_members_or_not_at_all():
    gang = make_gang(7, 4, created_us=NOW_US)
    cluster = cluster_of(cohort(), gang, running(range(1, 9)), make_tasks(range(11, 15), 1, gang=7, queue=A))
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 4
    assert set(cluster.nominated()) == {11, 12, 13, 14}
    cluster.tell(ended(*victims))
    assert set(cluster.round()) == {11, 12, 13, 14}
    larger = make_gang(7, 5, created_us=NOW_US)
    cluster = cluster_of(cohort(), larger, running(range(1, 9)), make_tasks(range(11, 16), 1, gang=7, queue=A))
    assert cluster.run().preemption.is_empty


def world_with_a_hopeless_task():
    """Four of b's tasks may be evicted, two on each node: neither gets 4 CPUs for the first task of a."""
    return cluster_of(
        cohort(),
        make_class(3, cpu=4),
        *(running(range(at, at + 2), on=node) for at, node in ((1, "n"), (3, "m"))),
        *(running(range(at, at + 2), on=node, unevictable=True) for at, node in ((5, "n"), (7, "m"))),
        make_tasks([11], 3, queue=A, created_us=NOW_US - 1),
        make_tasks([12], 1, queue=A),
        nodes=("n", "m"),
        cpu=4,
    )


def test_a_job_that_no_eviction_helps_does_not_hold_up_others_of_its_queue():
    cluster = world_with_a_hopeless_task()
    assert list(cluster.preempted(cluster.run()).values()) == [12]
    assert not cluster.scheduler.due(NOW_US)


def test_no_search_begins_for_more_tasks_than_quota_would_ever_suffice_for(monkeypatch):
    """Queue a may have two tasks at most, and has one that stays; b borrows."""
    searched = []
    search = reclaimer.Reclaimer._search

    def counted(self, tasks, precedence):
        searched.append(len(tasks))
        return search(self, tasks, precedence)

    monkeypatch.setattr(reclaimer.Reclaimer, "_search", counted)
    queues = tree(
        queue("top", "", quota(6)),
        queue("a", "top", quota(2, borrowing_limit=0), reclaim=Reclaim.ANY),
        queue("b", "top", quota(0)),
    )
    cluster = cluster_of(queues, running([1], queue=A), running(range(2, 9)), make_tasks(range(11, 16), 1, queue=A))
    assert len(cluster.preempted(cluster.run())) == 1
    assert set(searched) == {1}


def test_jobs_of_many_kinds_that_no_eviction_helps_do_not_hold_up_others_of_their_queue():
    """Seven of the eight running tasks cannot be evicted."""
    cluster = cluster_of(cohort(a=6, b=2), running(range(1, 8), unevictable=True), running([8]))
    for size in range(2, 7):
        cluster.tell(make_class(50 + size, cpu=size))
        cluster.tell(make_tasks([100 + size], 50 + size, queue=A, created_us=OLD_US))
    cluster.tell(make_tasks([11], 1, queue=A))
    assert cluster.run().preemption.is_empty
    assert cluster.scheduler.due(NOW_US)
    assert cluster.preempted(cluster.run()) == {8: 11}
    assert not cluster.scheduler.due(NOW_US)


def test_more_claims_than_a_round_considers_are_considered_one_after_the_other(monkeypatch):
    """Tasks of a, of which no victims serve any, come before that of c."""
    monkeypatch.setattr(decision, "_CLAIMS", 2)
    queues = tree(
        queue("top"),
        *(queue(name, "top", quota(4), reclaim=Reclaim.ANY) for name in "ac"),
        queue("b", "top", quota(0)),
    )
    cluster = cluster_of(queues, running(range(1, 8), unevictable=True), running([8]))
    cluster.tell(make_class(50, cpu=3), make_class(51, cpu=4))
    cluster.tell(make_tasks([11], 50, queue=A), make_tasks([12], 51, queue=A), make_tasks([13], 1, queue=queue_id("c")))
    found: dict[int, int] = {}
    for _ in range(3):
        found |= cluster.preempted(cluster.run())
    assert set(found.values()) == {13}
    assert not cluster.scheduler.due(NOW_US)


def test_a_round_of_too_many_searches_is_followed_by_one_that_begins_with_the_other_jobs(monkeypatch):
    monkeypatch.setattr(reclaimer, "_SEARCHES", 1)
    cluster = world_with_a_hopeless_task()
    assert cluster.run().preemption.is_empty
    assert cluster.scheduler.due(NOW_US)
    assert list(cluster.preempted(cluster.run()).values()) == [12]


def test_gangs_leave_as_a_whole():
    gang = make_gang(7, 3, created_us=OLD_US)
    cluster = cluster_of(
        cohort(),
        gang,
        running(range(1, 6)),
        running([6, 7, 8], gang=7),
        make_tasks([11], 1, queue=A, created_us=NOW_US),
    )
    victims = set(cluster.preempted(cluster.run()))
    assert victims == {6, 7, 8} or (len(victims) == 1 and victims <= set(range(1, 6)))


@pytest.mark.parametrize("can_leave", [1, 2])
def test_a_gang_reclaims_in_the_domain_that_it_requires(can_leave):
    """Of 3 members 2 fit in zone x, and 1 in y: together all, but a required topology needs both places of b in y."""
    cluster = cluster_of(
        *(cohort(8, 0), make_gang(7, 3, topology="zone", required=True, created_us=OLD_US)),
        *(make_node("x", cpu=4, labels={"zone": "x"}), make_node("y", cpu=3, labels={"zone": "y"})),
        *(running([1, 2], on="x", unevictable=True), running([3], on="y")),
        *(running([4], on="y", unevictable=can_leave == 1), make_tasks([11, 12, 13], 1, gang=7, queue=A)),
        nodes=(),
    )
    result = cluster.run()
    assert not cluster.names(result)
    assert set(cluster.preempted(result)) == ({3, 4} if can_leave == 2 else set())
    assert cluster.nominated() == (dict.fromkeys([11, 12, 13], "y") if can_leave == 2 else {})


def test_a_gang_reclaims_in_the_domain_that_it_prefers_or_elsewhere():
    cluster = cluster_of(
        *(cohort(8, 0), make_gang(7, 3, topology="zone", created_us=OLD_US)),
        *(make_node("x", cpu=4, labels={"zone": "x"}), make_node("y", cpu=2, labels={"zone": "y"})),
        *(running([1, 2], on="x"), running([3, 4], on="y"), make_tasks([11, 12, 13], 1, gang=7, queue=A)),
        nodes=(),
    )
    result = cluster.run()
    assert len(cluster.preempted(result)) == 1
    assert cluster.nominated() == dict.fromkeys([11, 12, 13], "x")


def test_what_a_queue_has_placed_makes_way_for_tasks_without_a_queue_only_where_it_fits_without_victims():
    """11 of the queue is placed on x, the only node that suits 12. Both would fit if 11 evicted 1, which has no queue
    either: the rules of its queue do not permit that."""
    picky = make_class(3, cpu=1, priority=5, demand=selecting(needs("disk")))
    cluster = cluster_of(
        *(cohort(), picky, make_node("x", cpu=1, labels={"disk": ""}), make_node("y", cpu=1)),
        *(make_tasks([1], 1, on="y"), make_tasks([11], 2, queue=A), make_tasks([12], 3)),
        nodes=(),
    )
    result = cluster.run()
    assert cluster.names(result) == {11: "x"}
    assert result.preemption.is_empty


def test_a_gang_is_placed_although_a_member_that_it_does_not_need_waits_for_quota():
    """a may use 4 of 4, b nothing: of 5 members the gang needs 4."""
    gang = make_gang(7, 4, created_us=OLD_US), make_tasks(range(11, 16), 1, gang=7, queue=A)
    cluster = cluster_of(cohort(4, 0), *gang)
    assert set(cluster.round()) == {11, 12, 13, 14}


def test_members_of_a_gang_are_not_placed_as_single_tasks_while_one_waits_for_quota():
    """Of 3 members that the gang needs 2 fit; the fourth one lacks quota. An overdue task, 20, fits beside them."""
    cluster = cluster_of(
        *(cohort(3, 0), make_gang(7, 3, created_us=NOW_US), make_tasks(range(11, 15), 1, gang=7, queue=A)),
        make_tasks([20], 1, created_us=OLD_US),
        cpu=3,
    )
    assert set(cluster.round()) == {20}


def test_a_gang_of_which_a_member_leaves_is_placed_only_once_that_is_created_again():
    """Of two members one leaves, and the other one has been created again."""
    cluster = cluster_of(
        cohort(),
        make_gang(7, 2, created_us=OLD_US),
        running(range(1, 7)),
        make_node("m", cpu=1),
        make_tasks([11], 1, on="n", queue=A, gang=7, leaving=True),
        make_tasks([12], 1, queue=A, gang=7),
    )
    result = cluster.run()
    assert not cluster.names(result)
    assert not cluster.preempted(result)
    cluster.tell(ended(11), make_tasks([13], 1, queue=A, gang=7))
    assert set(cluster.round()) == {12, 13}


def test_a_gang_that_the_round_completes_is_left_alone():
    """Members 6 and 7 of b run, 8 replaces a lost one. For the gang of a two of b's tasks leave: not 6 and 7, although
    their priority is lower."""
    gangs = make_gang(7, 3, created_us=OLD_US), make_gang(8, 3, created_us=NOW_US)
    members = make_tasks([6, 7], 1, on="n", queue=B, gang=7, created_us=OLD_US, started_us=NOW_US - SECOND_US)
    waiting = make_tasks([8], 1, queue=B, gang=7, created_us=OLD_US), make_tasks([11, 12, 13], 1, queue=A, gang=8)
    cluster = cluster_of(cohort(), *gangs, running(range(1, 5), 2), members, *waiting)
    result = cluster.run()
    assert cluster.names(result) == {8: "n"}
    victims = set(cluster.preempted(result))
    assert len(victims) == 2
    assert victims <= {1, 2, 3, 4}


def test_disruption_budgets_hold():
    labels, selector = make_label_set(3, app="x"), tasks_like(needs("app", "In", "x"))
    cluster = cluster_of(
        cohort(),
        labels,
        make_budget(9, selector, 1),
        running(range(1, 9), label_set=3),
        make_tasks([11, 12], 1, queue=A),
    )
    assert len(cluster.preempted(cluster.run())) <= 1


def test_minimum_run_time_and_delay():
    queues = tree(
        queue("top"),
        queue("a", "top", quota(4), reclaim=Reclaim.ANY, preemption_delay_s=60),
        queue("b", "top", quota(4), reclaim_min_runtime_s=7200),
    )
    cluster = cluster_of(queues, running(range(1, 9)), make_tasks([11], 1, queue=A))
    assert cluster.run().preemption.is_empty
    later_us = NOW_US + 60 * SECOND_US
    assert cluster.scheduler.wake_us(NOW_US) == later_us
    assert not cluster.scheduler.due(later_us - 1)
    assert cluster.scheduler.due(later_us)
    assert cluster.run(later_us).preemption.is_empty
    assert cluster.scheduler.wake_us(later_us) == OLD_US + 7200 * SECOND_US
    assert cluster.run(NOW_US + 3000 * SECOND_US).preemption.is_empty
    assert len(cluster.preempted(cluster.run(NOW_US + 4000 * SECOND_US))) == 1


def test_a_gang_is_as_old_as_itself_whenever_its_members_were_created():
    """Kueue: the age is that of the workload. The members were created again after the tasks that they preempt."""
    between_us = OLD_US + 60 * SECOND_US
    newer = make_tasks(range(1, 5), 1, on="n", queue=A, created_us=between_us, started_us=between_us)
    cluster = cluster_of(
        *(cohort(4, 0, within=Within.LOWER_OR_NEWER_EQUAL_PRIORITY), make_gang(7, 2, created_us=OLD_US), newer),
        make_tasks([11, 12], 1, gang=7, queue=A, created_us=NOW_US),
    )
    assert len(cluster.preempted(cluster.run())) == 2


def test_quota_of_a_task_that_no_node_takes_goes_to_one_that_looked_for_victims_in_vain():
    choice = Fungibility(try_next_to_avoid_preemption=False)  # so that even the first one of its queue yields
    queues = cohort(1, 0, within=Within.LOWER_PRIORITY, reclaim=Reclaim.NEVER, fungibility=choice)
    nowhere = make_class(3, cpu=1, priority=9, tokens=("port",))
    holds_port = make_tasks([9], 3, on="n")
    cluster = cluster_of(queues, nowhere, holds_port, make_tasks([1], 3, queue=A), make_tasks([2], 1, queue=A))
    assert cluster.round() == {}
    assert cluster.round() == {2: "n"}


def test_a_job_whose_place_within_its_second_is_yet_to_come_preempts_at_once():
    """The API server tells seconds; the bridge orders what was created in one by arrival, up to its end."""
    cluster = cluster_of(cohort(), running(range(1, 9)), make_tasks([11], 1, queue=A, created_us=NOW_US + SECOND_US))
    assert len(cluster.preempted(cluster.run())) == 1


def test_a_task_whose_place_within_its_second_is_yet_to_come_may_be_preempted_at_once():
    began_us = NOW_US + SECOND_US
    late = make_tasks(range(1, 9), 1, on="n", queue=B, created_us=began_us, started_us=began_us)
    cluster = cluster_of(cohort(), late, make_tasks([11], 1, queue=A))
    assert len(cluster.preempted(cluster.run())) == 1
