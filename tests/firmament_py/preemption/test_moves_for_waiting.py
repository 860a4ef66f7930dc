"""Movable tasks move so that waiting tasks fit: which move, for which tasks."""

from itertools import count

import pytest

from firmament_py.model.options import Migrating, Preempting
from firmament_py.network import telemetry
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
    migrating_cluster,
    needs,
    removed,
    selecting,
    tasks_like,
)
from tests.firmament_py.preemption.moving import (
    LARGE,
    SMALL,
    URGENT,
    VITAL,
    fixed,
    half_full,
    movable,
    moving_cluster,
    needed_by,
    successor,
)


def test_a_large_task_fits_once_a_small_one_has_moved():
    cluster = half_full()
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b"}
    assert needed_by(cluster, result) == {1: 10}
    assert cluster.nominated() == {10: "a"}
    assert not cluster.names(result)
    assert result.stats.migrated == 1
    cluster.tell(removed(1), successor(11, of=1))
    assert cluster.round() == {10: "a", 11: "b"}


@pytest.mark.parametrize(
    ("fate", "reserved"),
    [
        pytest.param(ended(1), 0, id="completed: no task follows it"),
        pytest.param(ended(1, failed=True), 1, id="failed: its owner may try again"),
        pytest.param(removed(1), 1, id="evicted"),
    ],
)
def test_a_task_that_completes_instead_of_moving_gets_no_reservation(fate, reserved):
    cluster = half_full()
    assert cluster.migrating(cluster.run()) == {1: "b"}
    cluster.tell(fate)
    assert len(cluster.state.successors) == reserved


def test_a_task_may_move_to_the_place_of_one_that_moves():
    """Task 1 may only be on node a or b, and task 3 only on b; task 2 may also move to c, the only one with space."""
    cluster = moving_cluster(
        make_class(7, cpu=4, demand=selecting(needs("disk"))),
        make_class(8, cpu=4, demand=selecting(needs("disk", "In", "large"))),
        make_node("a", cpu=8, labels={"disk": "small"}),
        make_node("b", cpu=8, labels={"disk": "large"}),
        make_node("c", cpu=4),
        movable(1, "a", 7),
        movable(2, "b"),
        movable(3, "b", 8),
        make_tasks([10], LARGE),
        names="",
    )
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b", 2: "c"}
    assert cluster.nominated() == {10: "a"}


def test_the_lower_bound_on_moves_is_in_the_statistics():
    stats = half_full().run().stats
    assert (stats.migrated_for_waiting, stats.least_moves) == (1, 1)


def test_nothing_moves_unless_that_is_asked_for():
    cluster = half_full(migrating=Migrating.NEVER)
    assert not cluster.migrating(cluster.run())
    assert not cluster.nominated()


def test_nothing_moves_again_while_it_is_on_its_way():
    cluster = half_full()
    assert cluster.migrating(cluster.run())
    for seconds in range(1, 4):
        result = cluster.run(NOW_US + seconds * SECOND_US)
        assert not cluster.migrating(result)
        assert cluster.nominated() == {10: "a"}


def test_the_fewest_tasks_move():
    cluster = moving_cluster(
        movable(1, "a", SMALL),
        movable(2, "a", SMALL),
        movable(3, "b"),
        fixed(4, "c"),
        make_tasks([10], LARGE),
        names="abc",
    )
    assert set(cluster.migrating(cluster.run())) == {3}
    assert cluster.nominated() == {10: "b"}


def test_several_tasks_move_to_several_nodes_if_that_is_necessary():
    cluster = moving_cluster(
        movable(1, "a", SMALL),
        movable(2, "a", SMALL),
        *(make_tasks([uid, uid + 1, uid + 2], SMALL, on=name) for uid, name in ((20, "b"), (30, "c"))),
        make_tasks([10], LARGE),
        names="abc",
    )
    targets = cluster.migrating(cluster.run())
    assert set(targets) == {1, 2}
    assert set(targets.values()) == {"b", "c"}


def test_no_task_moves_that_could_stay():
    """Four cpu are lacking on node `a`: the task that has them moves, and not the smaller one beside it."""
    cluster = moving_cluster(
        make_class(9, cpu=6), movable(1, "a", SMALL), movable(2, "a"), fixed(3, "b"), make_tasks([10], 9)
    )
    assert cluster.migrating(cluster.run()) == {2: "b"}


@pytest.mark.parametrize(
    "first",
    [
        movable(1, "a", movable=False),
        movable(1, "a", job=0),
        movable(1, "a", gang=7),
        movable(1, "a", leaving=True),
        movable(1, "a", unevictable=True),
        movable(1, "a", started_us=NOW_US - 59 * SECOND_US),
    ],
    ids=["not movable", "in no job", "in a gang", "leaving", "static", "has just started"],
)
def test_tasks_that_stay(first):
    before = {"created_us": NOW_US - 600 * SECOND_US}
    cluster = moving_cluster(
        make_gang(7, 1), fixed(2, "b"), make_tasks([10], LARGE), first, migrate_after_us=60 * SECOND_US
    )
    assert not cluster.migrating(cluster.run())
    cluster = moving_cluster(
        fixed(2, "b"), make_tasks([10], LARGE), movable(1, "a", **before), migrate_after_us=60 * SECOND_US
    )
    assert cluster.migrating(cluster.run()) == {1: "b"}


def test_tasks_on_an_over_committed_node_stay():
    """Two of 4 cpu on a node that has shrunk to 6, and places for both; without them the waiting task would fit."""
    cluster = moving_cluster(
        make_class(9, cpu=5),
        make_node("a", cpu=6),
        *(movable(uid, "a") for uid in (1, 2)),
        *(fixed(uid, name) for uid, name in ((3, "b"), (4, "c"))),
        make_tasks([10], 9),
        names="bc",
    )
    assert not cluster.migrating(cluster.run())


def test_a_task_that_has_just_started_moves_later():
    cluster = half_full(first=movable(1, "a", started_us=NOW_US), migrate_after_us=60 * SECOND_US)
    assert not cluster.migrating(cluster.run())
    later_us = cluster.scheduler.wake_us(NOW_US)
    assert NOW_US + 60 * SECOND_US <= later_us <= NOW_US + 66 * SECOND_US
    assert cluster.scheduler.due(later_us)
    assert cluster.migrating(cluster.run(later_us)) == {1: "b"}


@pytest.mark.parametrize(("allowed", "moves"), [(1, 0), (2, 2)])
def test_a_budget_holds_for_moves(allowed, moves):
    cluster = moving_cluster(
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), allowed),
        movable(1, "a", SMALL, label_set=1),
        movable(2, "a", SMALL, label_set=1),
        fixed(3, "b"),
        make_tasks([10], LARGE),
    )
    assert len(cluster.migrating(cluster.run())) == moves
    assert len(cluster.nominated()) == moves // 2


def test_a_budget_holds_for_moves_even_where_evictions_may_exceed_it():
    """Tasks that wait do not evict those of their own priority."""
    web = make_label_set(1, app="web"), make_budget(1, tasks_like(needs("app")), 0)
    options = {"preempting": Preempting.BEYOND_BUDGETS}
    cluster = moving_cluster(*web, movable(1, "a", label_set=1), fixed(2, "b"), make_tasks([10], LARGE), **options)
    result = cluster.run()
    assert not cluster.migrating(result)
    assert not cluster.preempted(result)


@pytest.mark.parametrize(("at_once", "moves"), [(1, 0), (2, 2)])
def test_no_more_move_than_may_at_once(at_once, moves):
    cluster = moving_cluster(
        movable(1, "a", SMALL),
        movable(2, "a", SMALL),
        fixed(3, "b"),
        make_tasks([10], LARGE),
        moves_at_once=at_once,
    )
    assert len(cluster.migrating(cluster.run())) == moves


def test_those_that_are_on_their_way_count():
    """Two tasks would move from the nodes `a` and `b` to `c` and `d`."""
    cluster = moving_cluster(
        make_class(8, cpu=3),
        make_class(9, cpu=5),
        *(movable(uid, name, 9) for uid, name in ((1, "a"), (2, "b"))),
        *(fixed(uid, name, 8) for uid, name in ((3, "c"), (4, "d"))),
        make_tasks([10, 11], LARGE),
        names="abcd",
        moves_at_once=1,
    )
    first = cluster.migrating(cluster.run())
    assert len(first) == 1
    assert not cluster.migrating(cluster.run(NOW_US + SECOND_US))
    [(uid, node)] = first.items()
    cluster.tell(removed(uid), successor(20, of=uid, cls=9))
    result = cluster.run(NOW_US + 2 * SECOND_US)
    assert cluster.names(result)[20] == node
    second = cluster.migrating(cluster.run(NOW_US + 4 * SECOND_US))  # moves for waiting tasks pause for a second
    assert {*first, *second} == {1, 2}


@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_how_long_a_search_takes_decides_nothing(monkeypatch, seconds):
    """So a recorded round can be repeated on a slower machine. The next search is due a second after one for few
    tasks."""
    clock = count(0.0, seconds)
    monkeypatch.setattr(telemetry, "perf_counter", lambda: next(clock))
    cluster = moving_cluster(
        make_class(9, cpu=5), *(movable(uid, name, 9) for uid, name in ((1, "a"), (2, "b"))), make_tasks([10], 9)
    )
    assert not cluster.migrating(cluster.run())
    cluster.tell(make_node("c", cpu=4))
    assert not cluster.migrating(cluster.run(NOW_US + SECOND_US // 2))
    assert cluster.scheduler.wake_us(NOW_US + SECOND_US // 2) == NOW_US + SECOND_US


@pytest.mark.parametrize("full", ["no other node", "not suitable", "too small"])
def test_nothing_moves_if_the_task_would_not_fit(full):
    other = {
        "no other node": [make_node("b", cpu=8), fixed(2, "b"), fixed(3, "b", SMALL)],
        "not suitable": [make_node("b", cpu=4)],
        "too small": [make_node("b", cpu=7), fixed(3, "a", SMALL)],
    }[full]
    demand = selecting(needs("disk")) if full == "not suitable" else None
    cluster = moving_cluster(
        *other,
        make_node("a", cpu=8, labels={"disk": ""}),
        make_class(9, cpu=4, demand=demand),
        movable(1, "a", 9),
        make_tasks([10], LARGE),
        names="",
    )
    result = cluster.run()
    assert not cluster.migrating(result)
    assert not cluster.nominated()


def test_a_task_moves_for_one_of_lower_priority():
    cluster = half_full(first=movable(1, "a", VITAL))
    assert cluster.migrating(cluster.run()) == {1: "b"}
    assert cluster.nominated() == {10: "a"}


def test_moves_come_before_evictions():
    options = {"preempting": Preempting.WITHIN_BUDGETS}
    cluster = moving_cluster(movable(1, "a"), fixed(2, "b"), make_tasks([10], URGENT), **options)
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b"}
    assert not cluster.preempted(result)


def test_a_task_is_evicted_where_moves_do_not_help():
    options = {"preempting": Preempting.WITHIN_BUDGETS}
    cluster = moving_cluster(movable(1, "a"), fixed(2, "b", LARGE), make_tasks([10], URGENT), **options)
    result = cluster.run()
    assert not cluster.migrating(result)
    assert set(cluster.preempted(result)) < {1, 2}


def test_no_task_is_evicted_so_that_one_of_the_same_priority_fits():
    """The more important task gets the place that a move makes, though it could evict the one on node `c`."""
    cluster = moving_cluster(
        movable(1, "a"),
        fixed(2, "b"),
        fixed(3, "c", LARGE),
        make_tasks([10], LARGE),
        make_tasks([11], URGENT),
        names="abc",
        preempting=Preempting.WITHIN_BUDGETS,
    )
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b"}
    assert needed_by(cluster, result) == {1: 11}
    assert not cluster.preempted(result)
    assert cluster.nominated() == {11: "a"}


def test_what_a_task_uses_is_freed_once_though_it_could_move_or_be_evicted():
    """Tasks 1 and 6 could change nodes, but not beside the urgent tasks that come to both."""
    cluster = migrating_cluster(
        make_class(1, cpu=2, memory=1),
        make_class(2, cpu=4, memory=2),
        make_class(3, cpu=3, memory=4, priority=10),
        make_class(4, cpu=4, memory=1, priority=10),
        make_class(5, cpu=6, memory=3, priority=100),
        make_gang(7, 2, whole=True),
        *(make_node(f"n{number}", cpu=8, memory=8) for number in range(5)),
        make_tasks([8], 3, on="n0"),
        make_tasks([9], 3, on="n0", gang=7),
        make_tasks([10], 3, on="n1", gang=7),
        fixed(3, "n1", 2),
        movable(1, "n2", 4),
        fixed(2, "n2", 4),
        movable(4, "n3", 2),
        movable(6, "n3", 1),
        make_tasks([5, 7], 3, on="n4"),
        make_tasks([11], 3),
        make_tasks([12, 13], 5),
        migrating=Migrating.FOR_WAITING,
        preempting=Preempting.WITHIN_BUDGETS,
        moves_at_once=4,
    )
    result = cluster.run()
    assert set(cluster.nominated()) == {11, 12, 13}
    assert not cluster.preempted(result).keys() & cluster.migrating(result).keys()


# -- gangs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "moves"), [("e", 2), ("f", 0)])
def test_a_gang_is_served_by_moves_all_or_nothing(last, moves):
    """Two tasks must move for two members; only with the node `e` there are places for both."""
    cluster = moving_cluster(
        movable(1, "a"),
        movable(2, "b"),
        fixed(3, "c"),
        make_node(last, cpu=4 if last == "e" else 3),
        make_gang(7, 2),
        make_tasks([11, 12], LARGE, gang=7),
        names="abc",
    )
    result = cluster.run()
    targets = cluster.migrating(result)
    assert len(targets) == moves
    assert len(cluster.nominated()) == moves
    if moves:
        assert cluster.nominated() == {11: "a", 12: "b"} or cluster.nominated() == {11: "b", 12: "a"}
        cluster.tell(removed(1), successor(21, of=1))
        assert cluster.round(NOW_US + SECOND_US) == {21: targets[1]}, "half a gang is placed"
        cluster.tell(removed(2), successor(22, of=2))
        assert set(cluster.round(NOW_US + 2 * SECOND_US)) == {11, 12, 22}


def test_a_gang_is_served_by_moves_and_evictions():
    """Node `b` has place for the movable task; the other is evicted."""
    cluster = moving_cluster(
        movable(1, "a"),
        fixed(2, "b", VITAL),
        fixed(3, "c", LARGE),
        make_gang(7, 2),
        make_tasks([11, 12], URGENT, gang=7),
        names="abc",
        preempting=Preempting.WITHIN_BUDGETS,
    )
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b"}
    assert set(cluster.preempted(result)) == {3}
    assert set(cluster.nominated()) == {11, 12}
    cluster.tell(removed(3))
    assert not cluster.round(NOW_US + SECOND_US)
    cluster.tell(removed(1))
    assert set(cluster.round(NOW_US + 2 * SECOND_US)) == {11, 12}
