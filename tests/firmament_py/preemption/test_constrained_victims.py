"""Which victims tasks with constraints on other tasks find: as kube-scheduler does, but the cheapest for the round."""

import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread, Taint
from firmament_py.model.options import Preempting
from tests.builders import (
    NOW_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)

HOST, ZONE = "kubernetes.io/hostname", "zone"
LOW, MID, HIGH, PLAIN_MID, PLAIN_HIGH, SHY = 1, 2, 3, 4, 5, 6
NOISY, GUARDED, DB, WEB = 1, 2, 3, 4


def like(app):
    return tasks_like(needs("app", "In", app))


NOT_NOISY = PeerDemand(anti_affinity=(PeerTerm(like("noisy"), HOST),))
NOT_NEAR_ITSELF = PeerDemand(anti_affinity=(PeerTerm(like("web"), HOST),))


def host(name, *, cpu, zone="z", taints=()):
    return make_node(name, cpu=cpu, labels={HOST: name, ZONE: zone}, taints=taints)


def cluster_of(*events, peers=NOT_NOISY, cpu=1, preempting=Preempting.WITHIN_BUDGETS):
    """Classes of 1 cpu, or `cpu` of those that preempt; MID and HIGH have constraints."""
    return preempting_cluster(
        *(make_label_set(number, app=app) for number, app in enumerate(("noisy", "guarded", "db", "web"), 1)),
        make_class(LOW, cpu=1),
        make_class(MID, cpu=cpu, priority=5, peers=peers),
        make_class(HIGH, cpu=cpu, priority=9, peers=peers),
        make_class(PLAIN_MID, cpu=cpu, priority=5),
        make_class(PLAIN_HIGH, cpu=cpu, priority=9),
        make_class(SHY, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(like("absent"), HOST),))),
        *events,
        preempting=preempting,
    )


def victims(cluster):
    return set(cluster.preempted(cluster.run()))


def test_two_preemptors_share_one_budget_and_others_are_served():
    cluster = cluster_of(
        *(host(name, cpu=1) for name in "abc"),
        make_budget(7, like("guarded"), 1),
        make_tasks([1], LOW, on="a", label_set=GUARDED),
        make_tasks([2], LOW, on="b", label_set=GUARDED),
        make_tasks([3], LOW, on="c"),
        make_tasks([11, 12], HIGH, label_set=WEB),
        make_tasks([13], PLAIN_HIGH),
    )
    found = victims(cluster)
    assert len(found & {1, 2}) == 1
    assert 3 in found


def test_only_those_in_the_way_are_evicted_however_many_have_constraints_of_their_own():
    """190 tasks that repel what is not there, and one that the preemptor must not be near."""
    cluster = cluster_of(
        make_node("a", pods=300, cpu=300, labels={HOST: "a"}),
        make_tasks(range(100, 290), SHY, on="a"),
        make_tasks([1], LOW, on="a", label_set=NOISY),
        make_tasks([11], HIGH),
    )
    assert victims(cluster) == {1}


def test_many_that_nothing_helps_leave_time_for_others():
    cluster = cluster_of(
        *(host(name, cpu=9) for name in "ab"),
        make_class(7, cpu=1, priority=9, peers=NOT_NEAR_ITSELF),
        make_tasks([1], 7, on="a", label_set=WEB),
        make_tasks([2], 7, on="b", label_set=WEB),
        make_tasks([3, 4], LOW, on="a", label_set=NOISY),
        make_tasks([5, 6, 7], LOW, on="b", label_set=NOISY),
        make_tasks(range(100, 400), 7, label_set=WEB),
        make_tasks([11], MID),
    )
    assert victims(cluster) == {3, 4}


def test_cheap_nodes_that_do_not_help_do_not_hide_the_one_that_does():
    apart = PeerDemand(anti_affinity=(PeerTerm(like("noisy"), ZONE),))
    cluster = cluster_of(
        *(host(f"x{number}", cpu=1, zone="x") for number in range(170)),
        host("y", cpu=1, zone="y"),
        *(make_tasks([100 + number], LOW, on=f"x{number}", label_set=NOISY) for number in range(170)),
        make_tasks([1], PLAIN_MID, on="y", label_set=NOISY),
        make_tasks([11], HIGH),
        peers=apart,
    )
    assert victims(cluster) == {1}


def test_what_is_needed_on_another_node_stays_there():
    peers = PeerDemand(affinity=(PeerTerm(like("db"), ZONE),), anti_affinity=(PeerTerm(like("noisy"), HOST),))
    cluster = cluster_of(
        host("a", cpu=1),
        host("b", cpu=1),
        make_tasks([1], LOW, on="a", label_set=NOISY),
        make_tasks([2], LOW, on="b", label_set=DB),
        make_tasks([11], HIGH),
        peers=peers,
    )
    assert victims(cluster) == {1}


def test_spread_counts_what_stays_on_nodes_that_the_task_cannot_use():
    even = PeerDemand(spread=(Spread(like("web"), ZONE, 1),))
    cluster = cluster_of(
        host("x", cpu=2, zone="x"),
        host("y", cpu=9, zone="y", taints=[Taint("keep", "", "NoSchedule")]),
        make_tasks([1], PLAIN_HIGH, on="x", label_set=WEB),
        make_tasks([2], LOW, on="x", label_set=WEB),
        make_tasks([3], LOW, on="y", label_set=WEB),
        make_tasks([11], HIGH, label_set=WEB),
        peers=even,
    )
    assert victims(cluster) == {2}


@pytest.mark.parametrize("plain", [True, False])
def test_of_the_guarded_only_as_many_leave_as_the_budget_permits(plain):
    cluster = cluster_of(
        host("a", cpu=3),
        make_class(8, cpu=1, priority=4),
        make_budget(7, like("guarded"), 1),
        make_tasks([1], 8, on="a"),
        make_tasks([2, 3], LOW, on="a", label_set=GUARDED),
        make_tasks([11], PLAIN_HIGH if plain else HIGH),
        cpu=2,
    )
    found = victims(cluster)
    assert len(found) == 2
    assert 1 in found


@pytest.mark.parametrize("plain", [True, False])
def test_beyond_budgets_the_fewest_violations_come_first(plain):
    cluster = cluster_of(
        host("a", cpu=3),
        make_budget(7, like("guarded"), 0),
        make_tasks([1], LOW, on="a"),
        make_tasks([2, 3], LOW, on="a", label_set=GUARDED),
        make_tasks([11], PLAIN_HIGH if plain else HIGH),
        cpu=2,
        preempting=Preempting.BEYOND_BUDGETS,
    )
    found = victims(cluster)
    assert len(found) == 2
    assert 1 in found


def test_beyond_budgets_a_node_with_fewer_violations_comes_before_one_that_costs_less():
    cluster = cluster_of(
        host("a", cpu=2),
        host("b", cpu=2),
        make_class(8, cpu=2, priority=4),
        make_budget(7, like("guarded"), 0),
        make_tasks([1, 2], LOW, on="a", label_set=GUARDED),
        make_tasks([3], 8, on="b", label_set=GUARDED),
        make_tasks([11], HIGH),
        cpu=2,
        preempting=Preempting.BEYOND_BUDGETS,
    )
    assert victims(cluster) == {3}


@pytest.mark.parametrize(("minimum", "expected"), [(1, 1), (2, 0)])
def test_members_of_a_gang_above_its_minimum_are_victims(minimum, expected):
    cluster = cluster_of(
        host("a", cpu=2),
        make_gang(3, minimum),
        make_tasks([1, 2], LOW, on="a", gang=3),
        make_tasks([11], HIGH),
    )
    assert len(victims(cluster)) == expected


@pytest.mark.parametrize(("before", "after"), [(MID, HIGH), (MID, PLAIN_HIGH), (PLAIN_MID, HIGH)])
def test_a_place_that_is_kept_is_taken_over_by_a_higher_priority(before, after):
    cluster = cluster_of(host("a", cpu=1), make_tasks([1], LOW, on="a"), make_tasks([11], before))
    assert victims(cluster) == {1}
    assert cluster.nominated() == {11: "a"}
    cluster.tell(make_tasks([12], after))
    assert victims(cluster) == set()
    assert cluster.nominated() == {12: "a"}
    cluster.tell(removed(1))
    assert cluster.round() == {12: "a"}


def test_of_tasks_in_one_round_the_highest_priority_gets_the_place():
    cluster = cluster_of(
        host("a", cpu=1), make_tasks([1], LOW, on="a"), make_tasks([11], PLAIN_MID), make_tasks([12], HIGH)
    )
    assert cluster.preempted(cluster.run()) == {1: 12}
    assert cluster.nominated() == {12: "a"}


def test_a_task_with_constraints_of_lower_priority_comes_after_the_others():
    cluster = cluster_of(
        host("a", cpu=1), make_tasks([1], LOW, on="a"), make_tasks([11], MID), make_tasks([12], PLAIN_HIGH)
    )
    assert cluster.preempted(cluster.run()) == {1: 12}
    assert cluster.nominated() == {12: "a"}


def test_what_another_preemptor_evicts_is_gone_once():
    """Task 1 leaves for 11. Task 12 must not be near 2 either, which is worth more than 3."""
    cluster = cluster_of(
        host("a", cpu=3),
        make_class(8, cpu=1, priority=2),
        make_class(9, cpu=1, priority=10, peers=PeerDemand(anti_affinity=(PeerTerm(like("absent"), HOST),))),
        make_tasks([1], LOW, on="a", label_set=NOISY),
        make_tasks([2], PLAIN_MID, on="a", label_set=NOISY),
        make_tasks([3], 8, on="a"),
        make_tasks([11], 9),
        make_tasks([12], HIGH),
    )
    assert cluster.preempted(cluster.run()) == {1: 11, 2: 12}


def test_of_those_that_a_spread_counts_only_as_many_stay_as_it_permits():
    even = PeerDemand(spread=(Spread(like("web"), ZONE, 1),))
    cluster = cluster_of(
        host("x", cpu=9, zone="x"),
        host("y", cpu=9, zone="y", taints=[Taint("keep", "", "NoSchedule")]),
        make_tasks([1, 2], LOW, on="x", label_set=WEB),
        make_tasks([3], LOW, on="y", label_set=WEB),
        make_tasks([11], HIGH, label_set=WEB),
        peers=even,
    )
    assert len(victims(cluster)) == 1


def test_a_spread_does_not_count_those_that_are_leaving():
    even = PeerDemand(spread=(Spread(like("web"), ZONE, 1),))
    cluster = cluster_of(
        host("x", cpu=9, zone="x"),
        host("y", cpu=9, zone="y", taints=[Taint("keep", "", "NoSchedule")]),
        make_tasks([1], LOW, on="x", label_set=WEB, leaving=True),
        make_tasks([2, 3], LOW, on="x", label_set=WEB),
        make_tasks([11], HIGH, label_set=WEB),
        peers=even,
    )
    assert victims(cluster) == {2, 3}


def test_of_a_gang_no_more_leave_than_it_has_above_its_minimum():
    cluster = cluster_of(
        *(host(name, cpu=1) for name in "abc"),
        make_gang(3, 2),
        *(make_tasks([uid], LOW, on=name, gang=3) for uid, name in enumerate("abc", 1)),
        make_tasks([11, 12], HIGH, label_set=WEB),
    )
    assert len(victims(cluster)) == 1


def test_what_another_preemptor_evicts_is_in_nobodys_way():
    apart = PeerDemand(anti_affinity=(PeerTerm(like("noisy"), ZONE),))
    cluster = cluster_of(
        *(host(name, cpu=1) for name in "ab"),
        make_tasks([1], LOW, on="a", label_set=NOISY),
        make_tasks([2], LOW, on="b"),
        make_tasks([11, 12], HIGH),
        peers=apart,
    )
    assert cluster.preempted(cluster.run()) == {1: 11, 2: 12}


def test_tasks_of_the_lowest_of_many_priorities_preempt_too():
    count = 12
    cluster = cluster_of(
        *(host(f"n{number}", cpu=1) for number in range(count)),
        *(make_class(10 + number, cpu=1, priority=10 + number, peers=NOT_NOISY) for number in range(count)),
        *(make_tasks([100 + number], LOW, on=f"n{number}") for number in range(count)),
        *(make_tasks([200 + number], 10 + number) for number in range(count)),
    )
    assert len(victims(cluster)) == count


def test_cheap_nodes_that_exceed_a_budget_do_not_hide_one_that_does_not():
    """Each of the budget could leave, but on these nodes two have to."""
    cluster = cluster_of(
        *(host(f"x{number}", cpu=2) for number in range(120)),
        host("y", cpu=2),
        make_budget(7, like("guarded"), 1),
        *(make_tasks([100 + 2 * at, 101 + 2 * at], LOW, on=f"x{at}", label_set=GUARDED) for at in range(120)),
        make_tasks([1, 2], PLAIN_MID, on="y"),
        make_tasks([11], HIGH),
        cpu=2,
    )
    assert victims(cluster) == {1, 2}


def test_a_place_that_the_round_gave_to_a_lower_priority_is_taken_back():
    """11 must be near a database, which 12 is; 13 gives way."""
    cluster = cluster_of(
        host("a", cpu=2),
        host("b", cpu=1, taints=[Taint("keep", "", "NoSchedule")]),
        make_tasks([1], LOW, on="b"),
        make_tasks([11], HIGH),
        make_tasks([12], PLAIN_MID, label_set=DB),
        make_tasks([13], PLAIN_MID, label_set=WEB),
        peers=PeerDemand(affinity=(PeerTerm(like("db"), HOST),)),
    )
    assert cluster.round() == {12: "a"}
    assert cluster.nominated() == {11: "a"}
    assert cluster.round() == {11: "a"}


def test_a_budget_is_left_to_those_that_cannot_stay():
    """Task 3 has to leave, which uses up the budget: 2 stays, and so 1, which costs more, leaves."""
    cluster = cluster_of(
        host("a", cpu=3),
        make_budget(7, like("web"), 1),
        make_class(8, cpu=1, peers=NOT_NEAR_ITSELF),
        make_tasks([1], LOW, on="a", started_us=1),
        make_tasks([2], LOW, on="a", label_set=WEB, started_us=2),
        make_tasks([3], 8, on="a", label_set=WEB, started_us=3),
        make_tasks([11], HIGH, label_set=WEB),
        cpu=2,
        peers=PeerDemand(anti_affinity=(PeerTerm(like("absent"), HOST),)),
    )
    assert victims(cluster) == {1, 3}


def test_a_spread_counts_a_nominated_task_that_gives_way():
    cluster = cluster_of(
        make_tasks([1], LOW, on="x", leaving=True),
        host("x", cpu=1, zone="x"),
        host("y", cpu=9, zone="y", taints=[Taint("keep", "", "NoSchedule")]),
        make_tasks([12], PLAIN_MID, label_set=WEB, nominated="x"),
        make_tasks([11], HIGH, label_set=WEB),
        peers=PeerDemand(spread=(Spread(like("web"), ZONE, 1),)),
    )
    assert victims(cluster) == set()
    assert cluster.nominated() == {11: "x"}


@pytest.mark.parametrize(("least", "expected"), [(10, set()), (9, {1})])
def test_a_task_that_is_exempt_from_preemption_by_lower_priorities_stays(least, expected):
    """The one that waits has priority 9."""
    exempt = {"least_preemptor": least, "exempt_until_us": NOW_US + 1}
    cluster = cluster_of(host("a", cpu=1), make_tasks([1], LOW, on="a", label_set=NOISY, **exempt))
    cluster.tell(make_tasks([9], HIGH))
    assert victims(cluster) == expected
