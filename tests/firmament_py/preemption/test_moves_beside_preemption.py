"""Rounds that move tasks and preempt others."""

from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.options import Migrating, Preempting
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
    tasks_like,
)


def moving_cluster(*events, moves_at_once=16):
    return make_cluster(
        *events,
        preempting=Preempting.WITHIN_BUDGETS,
        migrating=Migrating.FOR_WAITING,
        migrate_after_us=0,
        moves_at_once=moves_at_once,
    )


def test_the_place_of_a_successor_goes_to_a_higher_priority():
    """Task 1 moves from b to a, for task 2. Its successor 29 loses its place to 26, and waits like others."""
    cluster = moving_cluster(
        make_class(1, cpu=2),
        make_class(2, cpu=2, demand=selecting(needs("b"))),
        make_class(3, cpu=4, priority=5, demand=selecting(needs("a"))),
        make_class(4, cpu=1, priority=5, demand=selecting(needs("c"))),
        make_class(5, cpu=1),
        *(make_node(name, cpu=cpu, labels={name: ""}) for name, cpu in (("a", 4), ("b", 2), ("c", 1))),
        make_tasks([22], 1, on="a", started_us=1),
        make_tasks([1], 1, on="b", movable=True, job=9, started_us=1),
        make_tasks([2], 2),
        make_tasks([50], 5, on="c", started_us=1),
    )
    assert cluster.migrating(cluster.run()) == {1: "a"}
    cluster.tell(removed(1), make_tasks([29], 1, movable=True, job=9), make_tasks([26], 3), make_tasks([51], 4))
    result = cluster.run(NOW_US + 2 * SECOND_US)
    assert cluster.names(result) == {2: "b"}
    assert cluster.preempted(result) == {22: 26, 50: 51}
    assert cluster.nominated() == {26: "a", 51: "c"}
    assert len(cluster.state.successors) == 0
    cluster.tell(removed(22))
    assert cluster.round(NOW_US + 4 * SECOND_US) == {26: "a"}


def test_a_task_that_never_preempts_takes_what_is_free_and_evicts_none():
    cluster = moving_cluster(
        make_class(1),
        make_class(2, priority=5),
        make_class(7, priority=5, never_preempts=True),
        make_class(8, priority=5, cpu=1, demand=selecting(needs("z"))),
        make_class(9, cpu=1),
        make_node("a", pods=2),
        make_node("b", pods=1),
        make_node("c", cpu=1, pods=1, labels={"z": ""}),
        make_tasks([20], 1, on="a"),
        make_tasks([5], 2, on="b", movable=True, job=9),
        make_tasks([30], 9, on="c"),
        make_tasks([19], 2),
        make_tasks([21], 7, created_us=NOW_US + 1),
        make_tasks([31], 8),
    )
    result = cluster.run()
    assert cluster.names(result) == {21: "a"}
    assert cluster.preempted(result) == {20: 19, 30: 31}


def test_a_task_that_never_preempts_is_named_as_what_others_move_for():
    """Of the tasks that wait, 99 is the last."""
    cluster = moving_cluster(
        make_class(1, cpu=2),
        make_class(7, cpu=4, priority=5, never_preempts=True, demand=selecting(needs("a"))),
        make_class(9, cpu=50),
        make_node("a", cpu=4, labels={"a": ""}),
        make_node("b", cpu=2),
        make_tasks([1], 1, on="a", movable=True, job=9, started_us=1),
        make_tasks([21], 7),
        make_tasks([99], 9),
    )
    result = cluster.run()
    assert cluster.migrating(result) == {1: "b"}
    assert cluster.state.tasks.uid[result.migration.needed_by].tolist() == [21]


def test_moves_of_one_round_have_one_limit_also_if_tasks_with_constraints_come_in_between():
    """Task 11 has constraints. Before it comes 12, after it 13, and each of these needs a move, of which one may be on
    its way."""
    near = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "none")), "kubernetes.io/hostname"),))
    cluster = moving_cluster(
        make_class(1, cpu=2, demand=selecting(needs("left"))),
        make_class(6, cpu=2, demand=selecting(needs("right"))),
        make_class(2, cpu=4, priority=9, demand=selecting(needs("a"))),
        make_class(3, cpu=4, priority=1, demand=selecting(needs("b"))),
        make_class(4, cpu=1, priority=5, peers=near, demand=selecting(needs("c"))),
        make_class(5, cpu=1),
        make_node("a", cpu=4, labels={"a": "", "left": ""}),
        make_node("b", cpu=4, labels={"b": "", "right": ""}),
        make_node("c", cpu=1, labels={"c": ""}),
        make_node("d", cpu=4, labels={"left": "", "right": ""}),
        make_tasks([1], 1, on="a", movable=True, job=8, started_us=1),
        make_tasks([2], 6, on="b", movable=True, job=9, started_us=1),
        make_tasks([3], 5, on="c", started_us=1),
        make_tasks([11], 4),
        make_tasks([12], 2),
        make_tasks([13], 3),
        moves_at_once=1,
    )
    result = cluster.run()
    assert cluster.migrating(result) == {1: "d"}
    assert cluster.preempted(result)[3] == 11


def test_a_task_that_takes_what_is_free_evicts_none():
    cluster = moving_cluster(
        make_class(1, cpu=1),
        make_class(2, cpu=1, priority=5),
        make_node("a", cpu=2),
        make_tasks([1], 1, on="a", started_us=1),
        make_tasks([11, 12], 2),
    )
    result = cluster.run()
    assert cluster.names(result) == {11: "a"}
    assert cluster.preempted(result) == {1: 12}
