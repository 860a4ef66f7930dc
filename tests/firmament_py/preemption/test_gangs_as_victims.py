"""Gangs are evicted all or nothing, apart from members above the minimum: examples."""

import pytest

from firmament_py.model.options import Preempting
from tests.builders import (
    NOW_US,
    SECOND_US,
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
from tests.firmament_py.preemption.priorities import HIGH, LOW, MID, WITH_LARGE, nodes_with, on_each, staying


def test_a_member_above_the_minimum_is_evicted_before_a_whole_gang():
    cluster = nodes_with(
        make_gang(5, 2),
        make_gang(6, 2),
        *on_each([1, 2], "ab", gang=5),
        *on_each([3, 4, 5], "cde", gang=6),
        make_tasks([11], HIGH),
        names="abcde",
    )
    [victim] = cluster.preempted(cluster.run())
    assert victim in (3, 4, 5)


def test_no_more_members_are_evicted_one_by_one_than_are_above_the_minimum():
    cluster = nodes_with(make_gang(5, 2), *on_each([1, 2, 3], "abc", gang=5), make_tasks([11], HIGH))
    assert len(cluster.preempted(cluster.run())) == 1
    assert staying(cluster, "gang-5") == 2
    cluster.tell(make_tasks([12], HIGH))
    assert len(cluster.preempted(cluster.run())) == 2, "the other members are evicted together"
    assert staying(cluster, "gang-5") == 0


def test_a_single_task_is_evicted_before_a_whole_gang_of_its_priority():
    cluster = nodes_with(
        make_gang(5, 2), *on_each([1, 2], "ab", gang=5), make_tasks([3], LOW, on="c"), make_tasks([11], HIGH)
    )
    assert set(cluster.preempted(cluster.run())) == {3}


def test_a_whole_gang_is_evicted_if_its_members_are_needed():
    cluster = nodes_with(make_gang(5, 3), *on_each([1, 2, 3], "abc", gang=5), make_tasks([11], HIGH))
    result = cluster.run()
    assert cluster.preempted(result) == {1: 11, 2: 11, 3: 11}
    assert len(cluster.nominated()) == 1


def test_members_above_the_minimum_are_evicted_with_a_whole_gang():
    cluster = nodes_with(
        make_gang(5, 2), *on_each([1, 2, 3], "abc", gang=5), make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7)
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}


def test_a_gang_that_is_disrupted_as_a_whole_loses_no_single_member():
    cluster = nodes_with(make_gang(5, 1, whole=True), *on_each([1, 2, 3], "abc", gang=5), make_tasks([11], HIGH))
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}


def test_a_member_of_another_gang_is_evicted_before_one_that_is_disrupted_as_a_whole():
    cluster = nodes_with(
        make_gang(5, 1, whole=True),
        make_gang(6, 1),
        *on_each([1, 2], "ab", gang=5),
        *on_each([3, 4], "cd", gang=6),
        make_tasks([11], HIGH),
        names="abcd",
    )
    assert set(cluster.preempted(cluster.run())) < {3, 4}


def test_a_member_of_a_role_at_its_minimum_stays():
    """One worker of the gang may be evicted, and no launcher."""
    cluster = nodes_with(
        make_gang(5, 2, roles={"launcher": 1, "worker": 1}),
        make_tasks([1], LOW, on="a", gang=5, role=0),
        make_tasks([2], LOW, on="b", gang=5, role=1),
        make_tasks([3], LOW, on="c", gang=5, role=1),
        make_tasks([11], HIGH),
    )
    assert set(cluster.preempted(cluster.run())) < {2, 3}


HOUR_US = 3600 * SECOND_US


@pytest.mark.parametrize("first", [(1, 2), (3, 4)])
@pytest.mark.parametrize(
    ("evicted", "spared"),
    [
        pytest.param({"cls": LOW}, {"cls": MID}, id="priority"),
        pytest.param({"started_us": NOW_US - HOUR_US}, {"started_us": NOW_US - 5 * HOUR_US}, id="start"),
    ],
)
def test_the_gang_of_lower_priority_or_later_start_is_evicted(first, evicted, spared):
    """Tasks `first` are its members; 3 and 4, or 1 and 2, those of the other gang."""
    cluster = nodes_with(
        make_gang(5, 2),
        make_gang(6, 2),
        *(
            event
            for uid, name in enumerate("abcd", 1)
            for event in on_each([uid], name, **(evicted if uid in first else spared), gang=5 if uid in first else 6)
        ),
        make_tasks([11, 12], HIGH),
        names="abcd",
    )
    assert set(cluster.preempted(cluster.run())) == set(first)


@pytest.mark.parametrize("priority", [MID, HIGH])
def test_gangs_of_equal_or_higher_priority_are_spared(priority):
    cluster = nodes_with(make_gang(5, 2), *on_each([1, 2, 3], "abc", priority, gang=5), make_tasks([11], MID))
    assert not cluster.preempted(cluster.run())


def test_a_gang_is_as_important_as_its_most_important_member():
    cluster = nodes_with(
        make_gang(5, 2),
        make_tasks([1], LOW, on="a", gang=5),
        make_tasks([2], HIGH, on="b", gang=5),
        make_tasks([11], MID),
        names="ab",
    )
    assert not cluster.preempted(cluster.run())


def test_a_static_member_protects_its_gang():
    cluster = nodes_with(
        make_gang(5, 2),
        make_tasks([1], LOW, on="a", gang=5),
        make_tasks([2], LOW, on="b", gang=5, unevictable=True),
        make_tasks([11], HIGH),
        names="ab",
    )
    assert not cluster.preempted(cluster.run())


@pytest.mark.parametrize(("allowed", "evicted"), [(1, 0), (2, 2)])
def test_a_budget_holds_for_a_whole_gang(allowed, evicted):
    """Only one member is on the node of the preemptor."""
    cluster = nodes_with(
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), allowed),
        make_gang(5, 2),
        *on_each([1, 2], "ab", gang=5, label_set=1),
        make_tasks([11], HIGH),
        names="ab",
    )
    assert len(cluster.preempted(cluster.run())) == evicted


def test_a_whole_gang_may_exceed_a_budget_as_a_last_resort():
    cluster = nodes_with(
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 1),
        make_gang(5, 2),
        *on_each([1, 2], "ab", gang=5, label_set=1),
        make_tasks([11], HIGH),
        names="ab",
        preempting=Preempting.BEYOND_BUDGETS,
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2}


def test_two_gangs_in_one_budget_do_not_exceed_it_together():
    cluster = nodes_with(
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 3),
        make_gang(5, 2),
        make_gang(6, 2),
        *on_each([1, 2], "ab", gang=5, label_set=1),
        *on_each([3, 4], "cd", gang=6, label_set=1),
        make_tasks(range(11, 15), HIGH),
        names="abcd",
    )
    assert set(cluster.preempted(cluster.run())) in ({1, 2}, {3, 4})
    assert len(cluster.nominated()) == 2


def test_single_tasks_and_a_whole_gang_do_not_exceed_a_budget_together():
    cluster = nodes_with(
        make_gang(5, 2),
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 2),
        *on_each([1, 2], "ab", label_set=1, gang=5),
        *on_each([3], "c", label_set=1),
        make_tasks([11, 12, 13], HIGH),
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2}


def test_one_of_three_gangs_is_evicted_if_that_suffices():
    """The youngest victims are in different gangs, all but one of which are put back."""
    cluster = nodes_with(
        *(make_gang(gang, 3) for gang in (5, 6, 7)),
        *(
            make_tasks([uid], LOW, on=name, gang=5 + (uid - 1) // 3, started_us=NOW_US - (1 + uid % 3) * HOUR_US)
            for uid, name in enumerate("abcdefghi", 1)
        ),
        make_gang(9, 3),
        make_tasks([11, 12, 13], HIGH, gang=9),
        names="abcdefghi",
    )
    assert set(cluster.preempted(cluster.run())) in ({1, 2, 3}, {4, 5, 6}, {7, 8, 9})


def test_a_gang_evicts_a_gang():
    cluster = nodes_with(
        make_gang(5, 3), *on_each([1, 2, 3], "abc", gang=5), make_gang(7, 3), make_tasks([11, 12, 13], HIGH, gang=7)
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}
    cluster.tell(removed(1, 2, 3))
    assert set(cluster.round()) == {11, 12, 13}


def test_no_gang_is_evicted_for_a_gang_that_would_not_be_served():
    cluster = nodes_with(
        make_gang(5, 3),
        *on_each([1, 2, 3], "abc", gang=5),
        make_tasks([4], HIGH, on="d"),
        make_gang(7, 4),
        make_tasks(range(11, 15), HIGH, gang=7),
        names="abcd",
    )
    assert not cluster.preempted(cluster.run())
    assert staying(cluster, "gang-5") == 3


def test_a_gang_is_evicted_only_where_single_tasks_do_not_suffice():
    cluster = nodes_with(
        make_gang(5, 2),
        *on_each([1, 2], "ab", gang=5),
        *on_each([3, 4], "cd"),
        make_tasks([11, 12], HIGH),
        names="abcd",
    )
    assert set(cluster.preempted(cluster.run())) == {3, 4}
    cluster.tell(make_tasks([13], HIGH))
    assert set(cluster.preempted(cluster.run())) == {1, 2}


def test_the_members_that_follow_a_needed_one_are_not_evicted_again():
    cluster = nodes_with(make_gang(5, 3), *on_each([1, 2, 3], "abc", gang=5), make_tasks([11], HIGH))
    assert len(cluster.preempted(cluster.run())) == 3
    cluster.tell(make_tasks([12, 13], HIGH, created_us=NOW_US + 1))
    result = cluster.run()
    assert not cluster.preempted(result)
    assert set(cluster.nominated()) == {11, 12, 13}
    cluster.tell(removed(1, 2, 3))
    assert set(cluster.round()) == {11, 12, 13}


def test_a_further_member_of_a_complete_gang_preempts_alone():
    cluster = preempting_cluster(
        *WITH_LARGE,
        make_gang(1, 1),
        *(make_node(name, cpu=4) for name in "ab"),
        make_tasks([1], HIGH, on="a", gang=1),
        make_tasks([2], LOW, on="b"),
        make_tasks([3], HIGH, gang=1),
    )
    assert cluster.preempted(cluster.run()) == {2: 3}


def test_a_member_above_the_maximum_of_its_gang_preempts_no_task():
    cluster = preempting_cluster(
        *WITH_LARGE,
        make_gang(1, 1, maximum=1),
        *(make_node(name, cpu=4) for name in "ab"),
        make_tasks([1], HIGH, on="a", gang=1),
        make_tasks([2], LOW, on="b"),
        make_tasks([3], HIGH, gang=1),
    )
    assert not cluster.preempted(cluster.run())


def test_a_job_that_is_disrupted_as_a_whole_counts_as_one_victim():
    """Two tasks of one job on a, three single ones on b."""
    cluster = preempting_cluster(
        *(make_node(name, cpu=8) for name in "ab"),
        make_class(1, cpu=2),
        make_class(2, cpu=4),
        make_class(8, cpu=8, priority=9),
        make_gang(5, 0, whole=True),
        make_tasks([1, 2, 3, 4], 1, on="a", gang=5),
        make_tasks([5], 2, on="b"),
        make_tasks([6, 7], 1, on="b"),
        make_tasks([11], 8),
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3, 4}


def test_of_jobs_that_are_disrupted_as_a_whole_as_few_as_possible_leave():
    """One large job serves both, and so do two smaller ones with fewer tasks."""
    cluster = preempting_cluster(
        *(make_node(name, cpu=8) for name in "abcd"),
        make_class(1, cpu=2),
        make_class(8, cpu=8),
        make_class(9, cpu=8, priority=9),
        make_gang(5, 0, whole=True),
        make_gang(6, 2),
        make_tasks([1, 2, 3, 4], 1, on="a", gang=5),
        make_tasks([5, 6, 7, 8], 1, on="b", gang=5),
        make_tasks([9], 8, on="c"),
        make_tasks([10], 8, on="d"),
        make_tasks([21, 22], 9, gang=6),
    )
    assert set(cluster.preempted(cluster.run())) == set(range(1, 9))
