"""Gangs preempt all or nothing: examples."""

import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm
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
    selecting,
    tasks_like,
)
from tests.firmament_py.preemption.priorities import (
    HIGH,
    LARGE,
    LOW,
    MID,
    WITH_LARGE,
    nodes_with,
    on_each,
)


def test_a_gang_evicts_as_many_tasks_as_it_needs():
    cluster = nodes_with(*on_each([1, 2, 3], "abc"), make_gang(7, 3), make_tasks([11, 12, 13], HIGH, gang=7))
    result = cluster.run()
    assert not cluster.names(result)
    assert set(cluster.preempted(result)) == {1, 2, 3}
    assert set(cluster.preempted(result).values()) == {11, 12, 13}
    assert set(cluster.nominated()) == {11, 12, 13}
    assert set(cluster.nominated().values()) == {"a", "b", "c"}


@pytest.mark.parametrize("reason", ["two nodes", "one priority is not lower", "one is static", "one is in a budget"])
def test_a_gang_that_gets_two_places_of_three_evicts_no_task(reason):
    third = {
        "two nodes": [],
        "one priority is not lower": [make_tasks([3], HIGH, on="c")],
        "one is static": [make_tasks([3], LOW, on="c", unevictable=True)],
        "one is in a budget": [make_tasks([3], LOW, on="c", label_set=1)],
    }[reason]
    cluster = nodes_with(
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 0),
        *on_each([1, 2], "ab"),
        *third,
        make_gang(7, 3),
        make_tasks([11, 12, 13], HIGH, gang=7),
        names="abc" if third else "ab",
    )
    result = cluster.run()
    assert not cluster.preempted(result)
    assert not cluster.nominated()
    assert not cluster.names(result)


def test_a_gang_takes_what_is_free_and_evicts_for_the_others():
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 3), make_tasks([11, 12, 13], HIGH, gang=7))
    result = cluster.run()
    assert set(cluster.preempted(result)) == {1, 2}
    assert not cluster.names(result), "half a gang is placed"
    assert set(cluster.nominated().values()) == {"a", "b", "c"}


def test_members_above_the_minimum_do_not_keep_a_gang_from_preempting():
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 2), make_tasks([11, 12, 13], HIGH, gang=7), names="ab")
    assert set(cluster.preempted(cluster.run())) == {1, 2}
    assert len(cluster.nominated()) == 2
    cluster.tell(removed(1, 2))
    assert set(cluster.round().values()) == {"a", "b"}
    assert len(cluster.waiting()) == 1


def test_members_above_the_minimum_preempt_as_soon_as_the_minimum_is_placed():
    """No other change follows: a gang whose members are placed one by one evicts for as many as it can."""
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 1), make_tasks([11, 12, 13], MID, gang=7), names="ab")
    ((first, _),) = cluster.preempted(cluster.run()).items()
    while cluster.scheduler.due(NOW_US):
        assert not cluster.preempted(cluster.run())
    cluster.tell(removed(first))
    assert len(cluster.round()) == 1
    victims: set[int] = set()
    while cluster.scheduler.due(NOW_US):
        victims |= set(cluster.preempted(cluster.run()))
    assert victims == {1, 2} - {first}


def test_a_gang_of_equal_or_lower_priority_waits():
    cluster = nodes_with(*on_each([1, 2, 3], "abc", MID), make_gang(7, 3), make_tasks([11, 12, 13], MID, gang=7))
    assert not cluster.preempted(cluster.run())
    cluster = nodes_with(*on_each([1, 2, 3], "abc", MID), make_gang(7, 3), make_tasks([11, 12, 13], LOW, gang=7))
    assert not cluster.preempted(cluster.run())


def test_a_gang_that_lacks_members_evicts_no_task():
    cluster = nodes_with(*on_each([1, 2, 3], "abc"), make_gang(7, 3), make_tasks([11, 12], HIGH, gang=7))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([13], HIGH, gang=7))
    assert len(cluster.preempted(cluster.run())) == 3


def test_a_gang_is_placed_in_one_round_once_all_its_victims_are_gone():
    cluster = nodes_with(*on_each([1, 2, 3], "abc"), make_gang(7, 3), make_tasks([11, 12, 13], HIGH, gang=7))
    cluster.run()
    for victim in (2, 1):
        cluster.tell(removed(victim), make_tasks([20 + victim], LOW))
        result = cluster.run()
        assert not cluster.names(result), "half a gang is placed, or another task has taken what is kept for it"
        assert not cluster.preempted(result)
        assert set(cluster.nominated()) == {11, 12, 13}
    cluster.tell(removed(3))
    assert set(cluster.round()) == {11, 12, 13}
    assert not cluster.nominated()


def test_after_a_failover_a_nominated_gang_waits_for_the_tasks_that_leave():
    cluster = nodes_with(
        *on_each([1, 2], "ab", leaving=True),
        make_gang(7, 3),
        *(make_tasks([uid], HIGH, gang=7, nominated=name) for uid, name in ((11, "a"), (12, "b"), (13, "c"))),
    )
    result = cluster.run()
    assert not cluster.preempted(result)
    assert not cluster.names(result)
    assert set(cluster.nominated()) == {11, 12, 13}
    cluster.tell(removed(1, 2))
    assert cluster.round() == {11: "a", 12: "b", 13: "c"}


@pytest.mark.parametrize("others_gone", [True, False])
def test_if_one_victim_stays_the_nominations_of_all_members_end(others_gone):
    """What stays is in a budget now: no other victims would do."""
    web = make_label_set(1, app="web")
    cluster = nodes_with(
        web,
        make_budget(1, tasks_like(needs("app")), 0),
        *on_each([1, 2, 3], "abc"),
        make_gang(7, 3),
        make_tasks([11, 12, 13], HIGH, gang=7),
    )
    cluster.run()
    if others_gone:
        cluster.tell(removed(1, 2))
    cluster.tell(make_tasks([3], LOW, on="c", label_set=1))
    result = cluster.run()
    assert not cluster.nominated()
    assert not cluster.names(result)
    assert not cluster.preempted(result)
    assert set(cluster.state.tasks.uid[result.preemption.unnominated].tolist()) == {11, 12, 13}


def test_if_one_victim_stays_the_gang_preempts_anew():
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7), names="ab")
    cluster.run()
    cluster.tell(removed(1), make_tasks([2], LOW, on="b"))
    result = cluster.run()
    assert set(cluster.preempted(result)) == {2}
    assert set(cluster.nominated()) == {11, 12}
    cluster.tell(removed(2))
    assert set(cluster.round()) == {11, 12}


def test_the_nominations_of_a_gang_end_when_it_lacks_a_member():
    """Though its victims have not left yet."""
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7), names="ab")
    cluster.run()
    cluster.tell(removed(12), make_tasks([20], LOW))
    cluster.run()
    assert not cluster.nominated()
    cluster.tell(removed(1))
    assert cluster.round() == {20: "a"}


def test_what_is_kept_for_a_gang_is_free_for_others_when_the_gang_is_gone():
    cluster = nodes_with(*on_each([1, 2], "ab"), make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7), names="ab")
    cluster.run()
    cluster.tell(removed(1, 2, 11, 12), make_tasks([20, 21], LOW))
    assert set(cluster.round()) == {20, 21}


def test_a_begun_gang_preempts_for_the_members_that_it_lacks():
    cluster = nodes_with(
        make_gang(7, 3),
        make_tasks([11], HIGH, gang=7, on="a"),
        *on_each([1, 2], "bc"),
        make_tasks([12, 13], HIGH, gang=7),
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2}
    assert set(cluster.nominated()) == {12, 13}


def test_with_capacity_for_one_of_two_gangs_the_older_one_is_served():
    for older, younger in ((7, 8), (8, 7)):
        cluster = nodes_with(
            *on_each([1, 2, 3], "abc"),
            make_gang(older, 2, created_us=NOW_US - SECOND_US),
            make_gang(younger, 2),
            make_tasks([10 * younger, 10 * younger + 1], HIGH, gang=younger),
            make_tasks([10 * older, 10 * older + 1], HIGH, gang=older),
        )
        result = cluster.run()
        assert len(cluster.preempted(result)) == 2
        assert set(cluster.nominated()) == {10 * older, 10 * older + 1}


def test_with_capacity_for_one_of_two_gangs_the_more_important_one_is_served():
    cluster = nodes_with(
        *on_each([1, 2, 3], "abc"),
        make_gang(7, 2, created_us=NOW_US - SECOND_US),
        make_gang(8, 2),
        make_tasks([71, 72], MID, gang=7),
        make_tasks([81, 82], HIGH, gang=8),
    )
    result = cluster.run()
    assert len(cluster.preempted(result)) == 2
    assert set(cluster.nominated()) == {81, 82}


def test_a_gang_that_cannot_be_served_does_not_keep_another_from_it():
    cluster = nodes_with(
        *on_each([1, 2, 3], "abc"),
        make_gang(7, 4, created_us=NOW_US - SECOND_US),
        make_gang(8, 3),
        make_tasks(range(71, 75), HIGH, gang=7),
        make_tasks(range(81, 84), HIGH, gang=8),
    )
    result = cluster.run()
    assert set(cluster.preempted(result)) == {1, 2, 3}
    assert set(cluster.nominated()) == {81, 82, 83}


def test_of_two_gangs_that_take_parts_of_each_other_the_older_one_is_served():
    """On each of two nodes one of them has the larger member, which is inserted first."""
    sizes = {("e", 5): 4, ("f", 5): 3, ("e", 6): 3, ("f", 6): 4}
    cluster = preempting_cluster(
        make_class(LOW, cpu=4),
        *(make_node(name, cpu=4, labels={"name": name}) for name in "ef"),
        *on_each([1, 2], "ef"),
        make_gang(5, 2, created_us=NOW_US - SECOND_US),
        make_gang(6, 2, created_us=NOW_US),
        *(
            event
            for number, ((name, gang), cpu) in enumerate(sizes.items(), 10)
            for event in (
                make_class(number, cpu=cpu, priority=100, demand=selecting(needs("name", "In", name))),
                make_tasks([number], number, gang=gang),
            )
        ),
    )
    result = cluster.run()
    assert set(cluster.preempted(result)) == {1, 2}
    assert cluster.nominated() == {10: "e", 11: "f"}


def twelve_gangs(size, single, classes=range(10, 22)):
    """Gangs, each of one of the classes, that need `size` members; eleven nodes with a task of low priority each; and
    single tasks that wait."""
    return nodes_with(
        *(make_class(number, cpu=4, priority=50, expected_us=number) for number in set(classes)),
        *on_each(range(1, 12), "abcdefghijk"),
        *(make_gang(number, size, created_us=NOW_US + number) for number in range(10, 22)),
        *(
            make_tasks(range(100 * number, 100 * number + size), cls, gang=number)
            for number, cls in zip(range(10, 22), classes, strict=True)
        ),
        single,
        names="abcdefghijk",
    )


def test_of_many_gangs_as_many_are_served_as_possible():
    cluster = twelve_gangs(2, make_tasks([99], HIGH))
    assert len(cluster.preempted(cluster.run())) == 11
    assert {uid // 100 for uid in cluster.nominated()} == {0, *range(10, 15)}


@pytest.mark.parametrize("classes", [range(10, 22), [10] * 12], ids=["a class each", "one class"])
def test_gangs_that_cannot_be_served_do_not_keep_single_tasks_from_it(classes):
    cluster = twelve_gangs(12, make_tasks([98, 99], [MID, HIGH]), classes)
    assert len(cluster.preempted(cluster.run())) == 2
    assert set(cluster.nominated()) == {98, 99}


def test_a_gang_of_several_classes():
    cluster = preempting_cluster(
        *WITH_LARGE,
        make_node("a", cpu=8),
        make_node("b", cpu=4),
        make_tasks([1, 2], LOW, on="a"),
        make_tasks([3], LOW, on="b"),
        make_gang(7, 2),
        make_tasks([11, 12], [LARGE, HIGH], gang=7),
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}
    assert cluster.nominated() == {11: "a", 12: "b"}
    cluster.tell(removed(1, 3))
    assert not cluster.round()
    cluster.tell(removed(2))
    assert cluster.round() == {11: "a", 12: "b"}


def test_each_role_gets_its_minimum():
    """The workers alone would reach the minimum of the gang; the launcher needs a whole node."""
    launcher, worker = 0, 1
    roles = {"launcher": 1, "worker": 1}
    cluster = preempting_cluster(
        *WITH_LARGE,
        make_node("a", cpu=8),
        make_node("b", cpu=4),
        make_tasks([1, 2], LOW, on="a"),
        make_tasks([3], LOW, on="b"),
        make_gang(7, 2, roles=roles),
        make_tasks([11, 12], HIGH, gang=7, role=worker),
        make_tasks([13], LARGE, gang=7, role=launcher),
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}
    assert cluster.nominated()[13] == "a"
    assert len(cluster.nominated()) == 2


def test_a_gang_evicts_no_task_if_a_role_cannot_get_its_minimum():
    cluster = nodes_with(
        *on_each([1, 2, 3], "abc"),
        make_gang(7, 3, roles={"launcher": 1, "worker": 2}),
        make_tasks([11], LARGE, gang=7, role=0),
        make_tasks([12, 13, 14], HIGH, gang=7, role=1),
    )
    assert not cluster.preempted(cluster.run())


@pytest.mark.parametrize("left", ["bound", "leaves", "gone"])
def test_nominated_members_with_constraints_are_placed_with_their_gang_or_not_at_all(left):
    """Nominated by others: such gangs do not preempt."""
    apart = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app")), "host"),))
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(LOW, cpu=4),
        make_class(9, cpu=4, peers=apart),
        *(make_node(name, cpu=4, labels={"host": name}) for name in "ab"),
        *([] if left == "gone" else [make_tasks([1], LOW, on="b", leaving=left == "leaves")]),
        make_gang(5, 2),
        *(make_tasks([uid], 9, gang=5, label_set=1, nominated=name) for uid, name in ((11, "a"), (12, "b"))),
    )
    if left == "gone":
        assert cluster.round() == {11: "a", 12: "b"}
        return
    assert not cluster.round()
    assert cluster.nominated() == ({} if left == "bound" else {11: "a", 12: "b"})
    cluster.tell(removed(1))
    assert cluster.round() == {11: "a", 12: "b"}
    assert not cluster.nominated()


@pytest.mark.parametrize("names", ["ac", "ab"])
def test_a_nominated_gang_is_placed_within_its_required_topology(names):
    """Nominated by others: such gangs do not preempt."""
    zones = {"a": "y", "b": "z", "c": "z"}
    cluster = preempting_cluster(
        make_class(LOW, cpu=4, priority=5),
        *(make_node(name, cpu=4, labels={"zone": zone}) for name, zone in zones.items()),
        make_gang(5, 2, topology="zone", required=True),
        *(make_tasks([uid], LOW, gang=5, nominated=name) for uid, name in zip((11, 12), names, strict=True)),
    )
    assert sorted(cluster.round().values()) == ["b", "c"]
    assert not cluster.nominated()
