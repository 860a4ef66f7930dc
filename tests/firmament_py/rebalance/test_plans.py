"""Plans for each goal: examples, and packing compared with trying all moves."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.plan import BudgetUse
from firmament_py.rebalance.planner import Goal, Wish, planned
from firmament_py.rebalance.what_if import PlanError, WhatIf
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
from tests.effort import examples
from tests.firmament_py.rebalance.plans import carried_out, movable, moves_of, plan_of, resting_cluster, won

pytestmark = pytest.mark.xdist_group("numba")  # compiles once, not in every worker

SMALL, MIDDLE, LARGE = 1, 2, 3
"""Classes of 1, 2 and 4 cpu."""

CLASSES = (make_class(SMALL, cpu=1), make_class(MIDDLE, cpu=2), make_class(LARGE, cpu=4))


def cluster_of(*events, names="abc", cpu=4, **options):
    nodes = (make_node(name, cpu=cpu) for name in names)
    return resting_cluster(*CLASSES, *nodes, *events, **options)


def scattered(**options):
    """Each of three nodes of 4 cpu runs a task of 1 cpu."""
    tasks = (movable([uid], SMALL, name)[0] for uid, name in enumerate("abc", 1))
    return cluster_of(*tasks, **options)


# -- pack -----------------------------------------------------------------------------------------------------------


def test_nodes_are_emptied_with_the_fewest_moves():
    cluster = scattered()
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.before, plan.after, plan.bound) == (0, 2, 2)
    assert len(moves_of(plan)) == 2
    assert set(won(plan).values()) == {1}
    assert len(plan.wins) == 2
    assert set(carried_out(cluster, plan).values()) == {*"abc"} - {*won(plan)}
    assert all(plan.wins[step.win].node_id == move.from_id for step in plan.steps for move in step.moves)


def test_a_plan_has_no_more_moves_than_asked_for():
    plan = plan_of(scattered(), Goal.PACK, moves=1)
    assert (plan.after, plan.bound, len(plan.steps)) == (1, 1, 1)


def test_a_plan_changes_nothing():
    cluster = scattered()
    before = cluster.state.tasks.node.copy(), cluster.state.nodes.used.copy(), cluster.state.opportunities
    for goal in Goal:
        plan_of(cluster, goal)
    after = cluster.state.tasks.node, cluster.state.nodes.used, cluster.state.opportunities
    assert all((a == b).all() for a, b in zip(before[:2], after[:2], strict=True))
    assert before[2] == after[2]
    assert not cluster.state.tasks.leaving.any()
    assert not len(cluster.state.successors)
    cluster.state.validate()


def test_moves_per_win_are_limited():
    tasks = [*movable([1, 2], SMALL, "a"), *movable([3, 4, 5], SMALL, "b")]
    plan = plan_of(cluster_of(*tasks, names="ab", cpu=8), Goal.PACK, per_win=1)
    assert not plan.steps
    assert plan.bound == 0
    assert len(moves_of(plan_of(cluster_of(*tasks, names="ab", cpu=8), Goal.PACK, per_win=2))) == 2


def test_a_shape_fits_more_often():
    tasks = [*movable([1], SMALL, "a"), *movable([2], SMALL, "b"), *movable([3, 4], MIDDLE, "c")]
    cluster = cluster_of(*tasks)
    plan = plan_of(cluster, Goal.PACK, shape={"cpu": 4})
    assert (plan.before, plan.after, plan.bound) == (0, 1, 1)
    [(_, (origin, target))] = moves_of(plan).items()
    assert {origin, target} == {"a", "b"}
    assert won(plan) == {origin: 1}


def test_a_shape_that_fits_on_no_node_is_told():
    with pytest.raises(PlanError, match=r"no node has nvidia\.com/gpu; correct --for"):
        plan_of(scattered(), Goal.PACK, shape={"nvidia.com/gpu": 1})


def test_what_cannot_move_keeps_its_node():
    daemon, fixed = make_tasks([9], SMALL, on="a", daemon=True), make_tasks([8], SMALL, on="b", lasting=True)
    cluster = cluster_of(daemon, fixed, *movable([1], SMALL, "a"), *movable([2], SMALL, "c"))
    plan = plan_of(cluster, Goal.PACK)
    assert set(moves_of(plan)) == {1, 2}, "a daemon does not count, the node of a task that may not move stays in use"
    assert {target for _, target in moves_of(plan).values()} == {"b"}
    assert (plan.running, plan.movable) == (4, 2)


def test_tasks_go_only_where_they_may():
    picky = make_class(7, cpu=1, demand=selecting(needs("disk", "In", "ssd")))
    nodes = [make_node("d", cpu=4, labels={"disk": "ssd"}), make_node("e", cpu=4, labels={"disk": "ssd"})]
    cluster = cluster_of(picky, *nodes, *movable([1], 7, "d"), *movable([2], 7, "e"), names="ab")
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.before, plan.after) == (2, 3)
    assert {*next(iter(moves_of(plan).values()))} == {"d", "e"}


def test_members_of_gangs_and_tasks_without_owners_do_not_move():
    gang = make_gang(1, 1)
    cluster = cluster_of(gang, *movable([1], SMALL, "a", gang=1), *movable([2], SMALL, "b", job=0))
    assert plan_of(cluster, Goal.PACK).movable == 0


def test_tasks_that_have_just_started_do_not_move():
    recent = movable([1], SMALL, "a", started_us=NOW_US - 5 * SECOND_US)
    cluster = cluster_of(*recent, *movable([2], SMALL, "b", created_us=0), migrate_after_us=60 * SECOND_US)
    assert set(moves_of(plan_of(cluster, Goal.PACK))) == {2}


def test_budgets_that_permit_nothing_are_respected_and_others_counted():
    guarded, counted = make_label_set(1, app="guarded"), make_label_set(2, app="counted")
    budgets = [
        make_budget(1, tasks_like(needs("app", "In", "guarded")), 0),
        make_budget(2, tasks_like(needs("app", "In", "counted")), 1),
    ]
    tasks = [
        *movable([1], SMALL, "a", label_set=1),
        *movable([2], SMALL, "b", label_set=2),
        *movable([3], SMALL, "c", label_set=2),
    ]
    cluster = cluster_of(guarded, counted, *budgets, *tasks)
    plan = plan_of(cluster, Goal.PACK)
    assert set(moves_of(plan)) == {2, 3}, "one after the other, as the budget permits"
    assert (plan.movable, plan.guarded) == (2, 1)
    assert plan.budgets == (BudgetUse("budget-2", 2, 1),)


def test_capacity_that_is_reserved_is_not_used():
    waiting = make_tasks([20], MIDDLE, nominated="b")
    cluster = cluster_of(waiting, *movable([1], MIDDLE, "a"), make_tasks([2], MIDDLE, on="b"), names="ab")
    assert not plan_of(cluster, Goal.PACK).steps


amounts = st.integers(1, 4)


@st.composite
def small_clusters(draw):
    """(tasks: cpu, memory, node), nodes: cpu, memory"""
    nodes = draw(st.lists(st.tuples(st.integers(2, 6), st.integers(2, 6)), min_size=2, max_size=3))
    left, tasks = [list(node) for node in nodes], []
    for cpu, memory, node in draw(st.lists(st.tuples(amounts, amounts, st.integers(0, 2)), max_size=5)):
        node %= len(nodes)
        if left[node][0] >= cpu and left[node][1] >= memory:
            left[node][0] -= cpu
            left[node][1] -= memory
            tasks.append((cpu, memory, node))
    return nodes, tasks


@given(small_clusters(), st.integers(1, 3), st.one_of(st.none(), st.tuples(amounts, amounts)))
@examples(60)
def test_packing_is_as_good_as_the_best_of_all_moves(small, moves, shape):
    nodes, tasks = small

    def pieces(places):
        free = [list(node) for node in nodes]
        for (cpu, memory, _), place in zip(tasks, places, strict=True):
            free[place][0] -= cpu
            free[place][1] -= memory
        if any(amount < 0 for node in free for amount in node):
            return -1
        if shape is None:
            return sum(place not in places for place in range(len(nodes)))
        return sum(min(node[0] // shape[0], node[1] // shape[1]) for node in free)

    def moved(places):
        return sum(place != node for place, (_, _, node) in zip(places, tasks, strict=True))

    everywhere = product(range(len(nodes)), repeat=len(tasks))
    best = max(pieces(places) for places in everywhere if moved(places) <= moves)
    classes = {(cpu, memory): i + 1 for i, (cpu, memory) in enumerate({(c, m) for c, m, _ in tasks})}
    cluster = resting_cluster(
        *(make_class(i, cpu=cpu, memory=memory) for (cpu, memory), i in classes.items()),
        *(make_node(str(n), cpu=cpu, memory=memory) for n, (cpu, memory) in enumerate(nodes)),
        *(event for u, (c, m, n) in enumerate(tasks, 1) for event in movable([u], classes[c, m], str(n))),
    )
    asked = {} if shape is None else {"cpu": shape[0], "memory": shape[1]}
    plan = plan_of(cluster, Goal.PACK, moves=moves, shape=asked)
    if not tasks:
        assert not plan.steps
        return
    assert plan.after == plan.bound == best
    everywhere = product(range(len(nodes)), repeat=len(tasks))
    assert len(moves_of(plan)) == min(moved(places) for places in everywhere if pieces(places) == best) <= moves
    assert plan.before == pieces([node for _, _, node in tasks])
    places = carried_out(cluster, plan)
    assert pieces([int(places[uid]) for uid in range(1, len(tasks) + 1)]) == best


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
    assert step.nominated == ((10, "id-a"),)
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


def test_searches_that_are_not_compiled_are_told():
    cluster = half_full(make_tasks([10], LARGE), searchable=lambda: False)
    with pytest.raises(PlanError, match="still being compiled"):
        plan_of(cluster, Goal.PLACE)
    assert plan_of(cluster, Goal.PACK).steps, "only this goal takes them"


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
