"""Moves for waiting tasks while they are carried out: reservations, nominations, failures."""

import numpy as np

from firmament_py.audit.preemptions import preemption_problems
from firmament_py.model.options import Preempting
from firmament_py.placement.migration import SUCCESSOR_US
from tests.builders import NOW_US, SECOND_US, make_class, make_tasks, removed
from tests.firmament_py.preemption.moving import (
    LARGE,
    MIDDLE,
    SMALL,
    VITAL,
    fixed,
    half_full,
    movable,
    moving_cluster,
    successor,
)


def test_others_take_neither_the_place_of_the_successor_nor_that_of_the_waiting_task():
    cluster = half_full()
    cluster.run()
    cluster.tell(make_tasks([30], SMALL, created_us=NOW_US - SECOND_US), make_tasks([31], MIDDLE))
    assert not cluster.round(NOW_US + 1)
    cluster.tell(removed(1), make_tasks([32], MIDDLE, job=32))
    assert cluster.round(NOW_US + 2) == {10: "a"}
    cluster.tell(successor(11, of=1))
    assert cluster.round(NOW_US + 3) == {11: "b"}
    assert cluster.waiting() == {30, 31, 32}


def test_the_successor_may_come_before_the_task_has_left():
    cluster = half_full()
    cluster.run()
    cluster.tell(successor(11, of=1))
    assert cluster.round(NOW_US + 1) == {11: "b"}
    assert cluster.nominated() == {10: "a"}
    cluster.tell(removed(1))
    assert cluster.round(NOW_US + 2) == {10: "a"}


def test_what_is_reserved_for_a_successor_that_does_not_come_is_free_later():
    cluster = half_full()
    cluster.run()
    cluster.tell(removed(1), make_tasks([30], MIDDLE))
    assert cluster.round(NOW_US + 1) == {10: "a"}
    later_us = NOW_US + SUCCESSOR_US
    assert cluster.scheduler.due(later_us)
    assert cluster.round(later_us) == {30: "b"}


def test_a_move_that_is_not_carried_out_ends_the_nomination():
    """Its eviction was refused, and it may not move any more."""
    cluster = half_full()
    cluster.run()
    cluster.tell(fixed(1, "a", job=1))
    assert cluster.scheduler.due(NOW_US + SECOND_US)
    result = cluster.run(NOW_US + SECOND_US)
    assert not cluster.nominated()
    assert cluster.state.tasks.uid[result.preemption.unnominated].tolist() == [10]
    assert not len(cluster.state.successors)
    cluster.tell(make_tasks([30], MIDDLE))
    assert cluster.round(NOW_US + 2 * SECOND_US)[30] in ("a", "b")


def test_a_move_that_is_not_carried_out_is_decided_on_anew():
    cluster = half_full()
    cluster.run()
    cluster.tell(movable(1, "a"))
    result = cluster.run(NOW_US + SECOND_US)
    assert cluster.migrating(result) == {1: "b"}
    assert cluster.nominated() == {10: "a"}


def test_one_of_two_moves_that_is_not_carried_out_ends_the_nomination():
    cluster = moving_cluster(movable(1, "a", SMALL), movable(2, "a", SMALL), fixed(3, "b"), make_tasks([10], LARGE))
    assert len(cluster.migrating(cluster.run())) == 2
    cluster.tell(removed(1), fixed(2, "a", SMALL))
    cluster.run(NOW_US + SECOND_US)
    assert not cluster.nominated()
    assert len(cluster.state.successors) == 1
    cluster.tell(successor(11, of=1, cls=SMALL))
    assert cluster.round(NOW_US + 2 * SECOND_US) == {11: "b"}


def test_moves_are_considered_once_per_second():
    """A round in between leaves them out, and sets when the next one is due."""
    cluster = moving_cluster(movable(1, "a"), fixed(2, "b"), fixed(3, "b", SMALL), make_tasks([10], LARGE))
    assert not cluster.migrating(cluster.run())  # it considers moves, and none helps
    cluster.tell(removed(3))
    between_us = NOW_US + SECOND_US // 2
    assert cluster.scheduler.due(between_us)
    assert not cluster.migrating(cluster.run(between_us))
    assert not cluster.scheduler.due(between_us)
    assert cluster.scheduler.wake_us(between_us) == NOW_US + SECOND_US
    assert cluster.scheduler.due(NOW_US + SECOND_US)
    assert cluster.migrating(cluster.run(NOW_US + SECOND_US)) == {1: "b"}


def test_a_task_that_fits_makes_nothing_move():
    cluster = moving_cluster(movable(1, "a"), movable(2, "b"), make_tasks([10], MIDDLE))
    result = cluster.run()
    assert set(cluster.names(result)) == {10}
    assert not cluster.migrating(result)


def test_a_place_that_a_successor_did_not_take_is_free():
    """It was placed on another node in the same round."""
    cluster = moving_cluster(movable(1, "a"), fixed(2, "b"), movable(3, "c"), names="abc")
    cluster.state.preempt(np.array([cluster.state.task_row(3)]))
    row, node = np.array([cluster.state.task_row(3)]), np.array([cluster.state.node_row("id-b")])
    cluster.state.successors.expect(row, node, NOW_US + SUCCESSOR_US)
    cluster.tell(removed(3), successor(4, of=3))
    there = cluster.state.task_row(4)
    placed = np.array([there]), np.array([cluster.state.node_row("id-c")])
    moved = np.array([cluster.state.task_row(1)]), node
    none = np.zeros(0, np.int64)
    pairs = placed, (none, none), (none, none), none, moved
    assert preemption_problems(cluster.state, *pairs, now_us=NOW_US, beyond_budgets=False) == []
    stays = (none, none), *pairs[1:]
    assert preemption_problems(cluster.state, *stays, now_us=NOW_US, beyond_budgets=False)


def expect(cluster, *moves):
    """Tasks that run are about to leave for other nodes: pairs of a uid and the name of a node."""
    rows = np.array([cluster.state.task_row(uid) for uid, _ in moves])
    nodes = np.array([cluster.state.node_row(f"id-{name}") for _, name in moves])
    cluster.state.preempt(rows)
    cluster.state.successors.expect(rows, nodes, NOW_US + SUCCESSOR_US)


OF_A_NODE, OF_HALF = 6, 7
"""Classes of 8 and 4 cpu, of the highest priority."""


def test_a_successor_that_is_nominated_elsewhere_is_not_expected_any_more():
    """Task 10 fits on a if 11 waits for task 2 to leave b. With both reserved for 11, a would be over-committed."""
    cluster = moving_cluster(
        *(make_class(OF_A_NODE, cpu=8, priority=100), movable(1, "c", VITAL), fixed(3, "c")),
        *(fixed(2, "b", leaving=True), fixed(5, "b", VITAL)),
        names="abc",
        preempting=Preempting.WITHIN_BUDGETS,
    )
    expect(cluster, (1, "a"))
    cluster.tell(removed(1), fixed(4, "c", VITAL), successor(11, of=1, cls=VITAL), make_tasks([10], OF_A_NODE))
    assert cluster.round() == {10: "a"}
    assert cluster.nominated() == {11: "b"}
    assert not len(cluster.state.successors)


def test_of_two_successors_each_has_its_own_place():
    """12 has come to b, where task 6 leaves for 10; a is still reserved for 11, and nothing more on b."""
    cluster = moving_cluster(
        *(make_class(OF_HALF, cpu=4, priority=100), movable(1, "c", VITAL, job=7), movable(2, "c", VITAL, job=7)),
        *(fixed(5, "a", VITAL), fixed(4, "a", leaving=True), fixed(6, "b")),
        names="abc",
        preempting=Preempting.WITHIN_BUDGETS,
    )
    expect(cluster, (1, "a"), (2, "b"))
    cluster.tell(removed(1, 2), make_tasks([7, 8], VITAL, on="c"))
    cluster.tell(successor(11, of=7, cls=VITAL), successor(12, of=7, cls=VITAL), make_tasks([10], OF_HALF))
    result = cluster.run()
    assert cluster.names(result) == {12: "b"}
    assert cluster.preempted(result) == {6: 10}
    cluster.tell(removed(4))
    assert cluster.round(NOW_US + 1) == {11: "a"}
