"""Plans for each goal but packing: examples."""

from unittest.mock import patch

import numpy as np
import pytest

from firmament_py.model.plan import BudgetUse
from firmament_py.rebalance.moves import steps_of
from firmament_py.rebalance.place import _wins
from firmament_py.rebalance.planner import Goal, Wish, planned
from firmament_py.rebalance.what_if import PlanError, WhatIf
from policies.load_spreading import LoadSpreading
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
    selecting,
    tasks_like,
)
from tests.firmament_py.rebalance.plans import (
    CLASSES,
    LARGE,
    MIDDLE,
    SMALL,
    carried_out,
    cluster_of,
    movable,
    moves_of,
    plan_of,
    resting_cluster,
    scattered,
)

SPREADING = LoadSpreading(by="requested")


# -- place ----------------------------------------------------------------------------------------------------------


def half_full(*events, **options):
    """On each of two nodes a task of 2 cpu takes half; the one on `a` may move."""
    return cluster_of(*movable([1], MIDDLE, "a"), make_tasks([2], MIDDLE, on="b"), *events, names="ab", **options)


def test_a_waiting_task_fits_if_another_moves():
    cluster = half_full(make_tasks([10], LARGE))
    plan = plan_of(cluster, Goal.PLACE)
    assert moves_of(plan) == {1: ("a", "b")}
    assert (plan.before, plan.after) == (1, 0)
    [step], [win] = plan.steps, plan.wins
    assert (step.nominated, step.win) == (((10, "id-a"),), 0)
    assert (win.node_id, win.count, win.uids) == ("id-a", 1, (10,))
    carried_out(cluster, plan)


def test_the_tasks_of_a_gang_are_one_step():
    gang = make_gang(1, 2)
    nodes = [*movable([1], MIDDLE, "a"), *movable([2], MIDDLE, "b")]
    cluster = cluster_of(gang, *nodes, make_tasks([10, 11], LARGE, gang=1), names="abc", cpu=4)
    plan = plan_of(cluster, Goal.PLACE)
    assert len(plan.steps) == 1
    assert len(plan.steps[0].nominated) == 2
    assert len(plan.wins) == 1
    assert set(plan.wins[0].uids) == {10, 11}
    assert not plan.wins[0].node_id
    carried_out(cluster, plan)


def test_nothing_is_evicted_for_a_waiting_task_that_must_wait():
    urgent = make_class(9, cpu=4, priority=100)
    cluster = half_full(urgent, make_tasks([10], 9), make_tasks([3], MIDDLE, on="b"))
    plan = plan_of(cluster, Goal.PLACE)
    assert not plan.steps
    assert (plan.before, plan.after) == (1, 1)


def test_tasks_that_are_nominated_already_are_no_win():
    """Task 20 waits for `c`, which task 3 leaves."""
    earlier = (
        make_node("c", cpu=4),
        make_tasks([3], LARGE, on="c", leaving=True),
        make_tasks([20], LARGE, nominated="c"),
    )
    plan = plan_of(half_full(make_tasks([10], LARGE), *earlier), Goal.PLACE)
    assert [win.uids for win in plan.wins] == [(10,)]
    assert (plan.before - plan.after, moves_of(plan)) == (1, {1: ("a", "b")})


def test_moves_that_are_under_way_do_not_count_as_moves_of_the_plan():
    cluster = half_full(
        make_tasks([10], LARGE), make_node("c", cpu=1), *movable([3], SMALL, "c"), make_node("d", cpu=1)
    )
    state = cluster.state
    moving = np.array([state.task_row(3)])
    state.preempt(moving)
    state.successors.expect(moving, np.array([state.node_row("id-d")]), NOW_US + 60 * SECOND_US)
    assert moves_of(plan_of(cluster, Goal.PLACE, moves=1)) == {1: ("a", "b")}


def test_tasks_that_fit_on_one_node_are_one_win():
    """Two tasks that need disks fit on `a` once its task is on `b`."""
    picky = make_class(7, cpu=2, demand=selecting(needs("disk")))
    nodes = make_node("a", cpu=4, labels={"disk": ""}), make_node("b", cpu=4)
    cluster = cluster_of(picky, *nodes, *movable([1], LARGE, "a"), make_tasks([10, 11], 7), names="")
    plan = plan_of(cluster, Goal.PLACE)
    [step], [win] = plan.steps, plan.wins
    assert (win.node_id, win.count, set(win.uids)) == ("id-a", 2, {10, 11})
    assert set(step.nominated) == {(10, "id-a"), (11, "id-a")}
    carried_out(cluster, plan)


def test_wins_that_share_a_gang_or_a_node_are_one():
    """10 and 11 share a node, 11 and 12 a gang, 13 is alone."""
    cluster = cluster_of(make_gang(1, 2), make_tasks([11, 12], SMALL, gang=1), make_tasks([10, 13], SMALL), names="abc")
    state = cluster.state
    tasks, nodes = ([state.task_row(uid) for uid in range(10, 14)], [state.node_row(f"id-{name}") for name in "aabc"])
    win, wins = _wins(WhatIf.of(cluster.scheduler, NOW_US), np.array(tasks), np.array(nodes))
    assert win.tolist() == [0, 0, 0, 1]
    assert [(each.node_id, each.count, each.uids) for each in wins] == [("", 3, (10, 11, 12)), ("id-c", 1, (13,))]


def test_capacity_that_the_next_round_gives_away_is_taken():
    with patch("firmament_py.rebalance.planner.steps_of", wraps=steps_of) as steps:
        cluster = half_full(make_node("c", cpu=1), make_tasks([10], LARGE), make_tasks([11], SMALL))
        assert moves_of(plan_of(cluster, Goal.PLACE)) == {1: ("a", "b")}
    [(_, _, free)] = [call.args for call in steps.call_args_list]
    cpu = list(cluster.state.resources.names).index("cpu")
    assert sorted(free[:3, cpu].tolist()) == [0, 2, 2], "4 - 2 on `a` and `b`, and 1 - 1 on `c`"


@pytest.mark.parametrize("goal", [Goal.SPREAD, Goal.POLICY])
def test_a_round_of_migrations_ends_with_the_last_move(goal):
    """Each of two full nodes may lose a task in one round."""
    cluster = cluster_of(
        *movable([1, 2, 3, 4], SMALL, "a"), *movable([5, 6, 7, 8], SMALL, "b"), names="abcd", policy=SPREADING
    )
    assert len(moves_of(plan_of(cluster, goal, moves=1))) == 1


# -- spread and policy ----------------------------------------------------------------------------------------------


def test_tasks_are_spread():
    cluster = cluster_of(*movable([1, 2, 3, 4], SMALL, "a"), names="ab")
    plan = plan_of(cluster, Goal.SPREAD)
    assert len(moves_of(plan)) == 2
    assert all(places == ("a", "b") for places in moves_of(plan).values())
    assert all(move.saves > 0 for step in plan.steps for move in step.moves)
    carried_out(cluster, plan)


@pytest.mark.parametrize(("allowed", "moves"), [(0, 0), (1, 2)])
def test_spreading_plans_as_many_moves_as_a_budget_permits_one_after_the_other(allowed, moves):
    label_set, budget = make_label_set(1, app="web"), make_budget(1, tasks_like(needs("app", "In", "web")), allowed)
    cluster = cluster_of(label_set, budget, *movable([1, 2, 3, 4], SMALL, "a", label_set=1), names="ab")
    plan = plan_of(cluster, Goal.SPREAD)
    assert len(moves_of(plan)) == moves
    assert plan.budgets == (BudgetUse("budget-1", 2, 1),) * bool(moves)


def test_a_policy_that_moves_nothing_has_no_plan():
    cluster = cluster_of(*movable([1, 2, 3, 4], SMALL, "a"), names="ab")
    assert not plan_of(cluster, Goal.POLICY).steps


def test_spreading_ends_after_so_many_moves():
    cluster = cluster_of(*movable(range(1, 9), SMALL, "a"), names="ab", cpu=8)
    assert len(moves_of(plan_of(cluster, Goal.SPREAD, moves=3))) == 3


# -- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"goal": Goal.PACK, "moves": 0}, "moves is 0; give 1 or more"),
        ({"goal": Goal.PLACE, "moves": 1, "shape": {"cpu": 1}}, "are only for the goal pack"),
        ({"goal": Goal.SPREAD, "moves": 1, "per_win": 1}, "are only for the goal pack"),
        ({"goal": Goal.PACK, "moves": 1, "shape": {"cpu": 0}}, "cpu of the shape is 0; give more than 0"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(fields, problem):
    with pytest.raises(PlanError, match=problem):
        Wish(**fields)


class Uncopyable:
    name = "uncopyable"

    def __deepcopy__(self, memo):
        raise TypeError("holds a connection")


def test_a_policy_that_cannot_be_copied_is_named():
    cluster = scattered()
    cluster.scheduler.policy = Uncopyable()
    with pytest.raises(PlanError, match=r"the policy uncopyable cannot be copied \(holds a connection\)"):
        planned(WhatIf.of(cluster.scheduler, NOW_US), Wish(Goal.PACK, 1))


# -- the copy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", Goal)
def test_a_plan_changes_nothing(goal):
    cluster = half_full(make_tasks([10], LARGE), policy=SPREADING)
    if goal is not Goal.PLACE:
        cluster = cluster_of(
            *movable([1, 2, 3], SMALL, "a"), *movable([4], SMALL, "b"), names="abc", cpu=8, policy=SPREADING
        )
    state, opportunities = cluster.state, cluster.state.changes.number
    names = "node", "state", "nominated", "leaving", "preempted", "movable"
    before = {name: getattr(state.tasks, name).copy() for name in names}
    used = state.nodes.used.copy()
    assert plan_of(cluster, goal).steps
    assert all((getattr(state.tasks, name) == column).all() for name, column in before.items())
    assert (state.nodes.used == used).all()
    assert (len(state.successors), state.changes.number) == (0, opportunities)
    state.validate()


def test_a_cluster_without_nodes_has_no_plan():
    """Tasks are known before their nodes when the service is synchronised."""
    cluster = resting_cluster(*CLASSES, *movable([1], LARGE, "a"), make_tasks([2], LARGE))
    assert not plan_of(cluster, Goal.PLACE).steps
