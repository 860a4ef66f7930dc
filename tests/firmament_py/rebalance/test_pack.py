"""Plans to pack: examples, and comparison with trying all moves."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from firmament_py.model.constraints import Taint
from firmament_py.model.plan import BudgetUse
from firmament_py.rebalance.moves import Moves, steps_of
from firmament_py.rebalance.planner import Goal
from firmament_py.rebalance.what_if import PlanError
from firmament_py.snapshot.unreserved import unreserved
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
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
from tests.effort import examples, seeds
from tests.firmament_py.rebalance.plans import (
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
    won,
)


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
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.movable, set(moves_of(plan))) == (1, {2})


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


def test_all_moves_together_are_limited():
    plan = plan_of(scattered("abcd"), Goal.PACK, moves=1)  # a further one would go to another node
    assert (plan.after, plan.bound, len(moves_of(plan))) == (1, 1, 1)


def test_nodes_that_are_empty_already_earn_no_moves():
    tasks = [*movable([1, 2], SMALL, "a"), *movable([3, 4, 5], SMALL, "b")]
    plan = plan_of(cluster_of(*tasks, cpu=8), Goal.PACK, per_win=1)  # `c` is empty
    assert (plan.before, plan.after, plan.bound, plan.steps) == (1, 1, 1, ())


def test_a_step_waits_for_the_one_that_makes_capacity_for_it():
    """The task of 2 cpu on `a` fits on `b` once that of 1 cpu has gone to `c`."""
    fixed = make_tasks([8], MIDDLE, on="b"), make_tasks([9], SMALL, on="c"), make_tasks([10], MIDDLE, on="c")
    cluster = cluster_of(*movable([1], MIDDLE, "a"), *movable([2], SMALL, "b"), *fixed)
    plan = plan_of(cluster, Goal.PACK)
    assert [(step.moves[0].uid, step.after, step.win) for step in plan.steps] == [(2, (), -1), (1, (0,), 0)]
    carried_out(cluster, plan)


def test_moves_that_are_one_step_win_what_any_of_them_wins():
    exchange = [*movable([1], LARGE, "a"), *movable([2], LARGE, "b")]
    state = cluster_of(*exchange, names="ab").state
    a, b = state.node_row("id-a"), state.node_row("id-b")
    rows, nodes = np.array([state.task_row(1), state.task_row(2)]), np.array([a, b])
    moves = Moves(rows, nodes, nodes[::-1], saves=np.zeros(2, np.int64), win=np.array([0, -1]))
    [step] = steps_of(state, moves, unreserved(state))
    assert (len(step.moves), step.win) == (2, 0)


def test_a_task_that_is_about_to_run_is_on_its_node():
    cluster = cluster_of(*movable([1], SMALL, "a"), make_tasks([9], SMALL), names="ab")
    assert cluster.round() == {9: "b"}
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.before, plan.after, moves_of(plan)) == (0, 1, {1: ("a", "b")})


def test_a_task_that_suits_no_other_node_stays():
    picky = make_class(7, cpu=1, demand=selecting(needs("disk", "In", "ssd")))
    ssd = make_node("d", cpu=4, labels={"disk": "ssd"})
    cluster = cluster_of(picky, ssd, *movable([1], 7, "d"), make_tasks([2], SMALL, on="a"), names="a")
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.movable, plan.bound, plan.steps) == (1, 0, ())


def test_classes_that_differ_in_name_only_are_one_kind():
    twin = make_class(9, cpu=1)
    plan = plan_of(cluster_of(twin, *movable([1], 9, "a"), *movable([2], SMALL, "b"), names="ab"), Goal.PACK)
    assert (plan.before, plan.after, len(moves_of(plan))) == (0, 1, 1)


def test_nodes_with_the_fewest_tasks_are_emptied_first():
    tasks = [*movable([1, 2], SMALL, "a"), *movable([3], SMALL, "b"), make_tasks([9], SMALL, on="c")]
    plan = plan_of(cluster_of(*tasks, cpu=8), Goal.PACK)
    assert plan.after == 2
    uids = [move.uid for step in plan.steps for move in step.moves]
    assert (uids[0], sorted(uids[1:])) == (3, [1, 2])


def test_of_equal_tasks_those_that_cost_less_to_evict_move():
    """One of the two on `a` goes to `b`, so that 2 cpu are free on `a`; less work of the younger one is lost."""
    hour_us = 3600 * SECOND_US
    older = movable([1], SMALL, "a", started_us=NOW_US - 9 * hour_us, created_us=NOW_US - 9 * hour_us)
    younger = movable([2], SMALL, "a", started_us=NOW_US - hour_us, created_us=NOW_US - hour_us)
    fixed = make_tasks([7], SMALL, on="a"), make_tasks([8], SMALL, on="b"), make_tasks([9], MIDDLE, on="b")
    for tasks in ((*older, *younger), (*younger, *older)):
        plan = plan_of(cluster_of(*tasks, *fixed, names="ab"), Goal.PACK, shape={"cpu": 2})
        assert moves_of(plan) == {2: ("a", "b")}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_node("t", cpu=4, taints=[Taint("a", "b", "NoSchedule")]), id="taint"),
        pytest.param(make_node("t", cpu=4, pods=0), id="task slots"),
    ],
)
def test_a_shape_fits_only_where_a_task_could_run(other):
    plan = plan_of(cluster_of(other, *movable([1], SMALL, "a"), names="a"), Goal.PACK, shape={"cpu": 4})
    assert (plan.before, plan.after, plan.bound) == (0, 0, 0)


def test_tasks_with_a_budget_that_permits_nothing_stay():
    label_set, budget = make_label_set(1, app="web"), make_budget(1, tasks_like(needs("app", "In", "web")), 0)
    fixed = make_tasks([9], SMALL, on="b")
    cluster = cluster_of(label_set, budget, *movable([1], SMALL, "a", label_set=1), fixed, names="ab")
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.movable, plan.guarded, plan.steps) == (0, 1, ())


def test_on_large_clusters_the_nodes_that_promise_the_greatest_gain_are_considered(monkeypatch):
    """One that is emptied by a move, and the one with room for its task: `c`, of which no other task moves. `d` is
    empty before and after."""
    monkeypatch.setattr("firmament_py.rebalance.pack._VARIABLES", 2)
    monkeypatch.setattr("firmament_py.rebalance.pack._LEAST_NODES", 2)
    three = make_class(8, cpu=3)
    tasks = [*movable([1], 8, "a"), *movable([2], 8, "b"), make_tasks([3], SMALL, on="c")]
    cluster = cluster_of(three, *tasks, names="abcd")
    plan = plan_of(cluster, Goal.PACK)
    assert (plan.before, plan.after, plan.bound) == (1, 2, None)
    [(_, target)] = moves_of(plan).values()
    assert target == "c"
    carried_out(cluster, plan)


def memory_only(*nodes: int, tasks: list[tuple[int, int]]) -> Cluster:
    """Nodes with so much memory, and tasks that may move: memory and number of the node of each."""
    classes = {memory: number for number, memory in enumerate({memory for memory, _ in tasks}, 1)}
    return resting_cluster(
        *(make_class(number, memory=memory) for memory, number in classes.items()),
        *(make_node(str(n), memory=memory) for n, memory in enumerate(nodes)),
        *(event for u, (memory, n) in enumerate(tasks, 1) for event in movable([u], classes[memory], str(n))),
    )


@pytest.mark.parametrize(
    ("nodes", "tasks", "asked", "fits"),
    [
        pytest.param([268435452, 268435456], [(2**26, 0), (2**26, 1)], 2**27, 2, id="a task evicted for nothing"),
        pytest.param([263856164, 263856148], [(131928080, 0), (131928080, 1)], 263856160, 0, id="moves without order"),
        pytest.param([268435452], [(2**26, 0)], 2**26, 2, id="a bound that is too high"),
    ],
)
def test_kibibytes_count_on_nodes_of_256_gib(nodes, tasks, asked, fits):
    """Amounts in KiB. SCIP takes 100 KiB for nothing beside 256 GiB."""
    cluster = memory_only(*(2**10 * node for node in nodes), tasks=[(2**10 * memory, n) for memory, n in tasks])
    plan = plan_of(cluster, Goal.PACK, shape={"memory": 2**10 * asked})
    assert (plan.before, plan.after, plan.bound, plan.steps) == (fits, fits, fits, ())


def most_emptied(nodes: list[int], tasks: list[tuple[int, int]], moves: int) -> int:
    """Of nodes with so much memory, and tasks of (memory, node): by CP-SAT, whose numbers are integers."""
    model = cp_model.CpModel()
    sizes = sorted({memory for memory, _ in tasks})
    there = {(k, n): tasks.count((size, n)) for k, size in enumerate(sizes) for n in range(len(nodes))}
    then = {place: model.new_int_var(0, len(tasks), "") for place in there}
    gone = {place: model.new_int_var(0, number, "") for place, number in there.items()}
    for (k, n), number in there.items():
        model.add(gone[k, n] >= number - then[k, n])
    model.add(sum(gone.values()) <= moves)
    for k in range(len(sizes)):
        model.add(sum(then[k, n] - there[k, n] for n in range(len(nodes))) == 0)
    empty = [model.new_bool_var("") for _ in nodes]
    for n, memory in enumerate(nodes):
        model.add(sum(size * then[k, n] for k, size in enumerate(sizes)) <= memory)
        for k in range(len(sizes)):
            model.add(then[k, n] == 0).only_enforce_if(empty[n])
    model.maximize(sum(empty))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@seeds(12)
def test_plans_for_amounts_in_single_bytes_are_best(seed):
    """With rows of bytes that have no common divisor, SCIP lost most of the solutions, and proved that there were none:
    as a rule half as many nodes could be emptied."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2**31, 2**34, 4).tolist()
    nodes, tasks = rng.integers(2**35, 2**36, 10).tolist(), []
    for n, memory in enumerate(nodes):
        left = int(memory * rng.uniform(0.1, 0.9))
        while (size := int(rng.choice(sizes))) <= left:
            left -= size
            tasks.append((size, n))
    plan = plan_of(memory_only(*nodes, tasks=tasks), Goal.PACK, moves=12)
    assert plan.after == plan.bound == most_emptied(nodes, tasks, moves=12)


amounts = st.integers(1, 4)


few, plenty = st.integers(2, 6), st.just(99)


@st.composite
def small_clusters(draw, memory, cpu=few):
    """(tasks: cpu, memory, node), nodes: cpu, memory; some have lost cpu since. memory: of a number of units."""
    nodes = draw(st.lists(st.tuples(cpu, st.integers(2, 6).flatmap(memory)), min_size=2, max_size=3))
    left, tasks = [list(node) for node in nodes], []
    asked = st.tuples(amounts, amounts.flatmap(memory), st.integers(0, 2))
    for cpu, bytes_, node in draw(st.lists(asked, max_size=5)):
        node %= len(nodes)
        if left[node][0] >= cpu and left[node][1] >= bytes_:
            left[node][0] -= cpu
            left[node][1] -= bytes_
            tasks.append((cpu, bytes_, node))
    return [(cpu - draw(st.sampled_from([0, 0, 0, 1, 2])), bytes_) for cpu, bytes_ in nodes], tasks


def exactly(units: int) -> st.SearchStrategy[int]:
    return st.just(units)


def nearly(units: int) -> st.SearchStrategy[int]:
    """Of 64 GiB, but for a few KiB."""
    return st.integers(-2, 2).map(lambda extra: units * 2**36 + 4096 * extra)


def assert_packed_as_well_as_possible(small, moves, asked):
    """Compares the plan for a shape (cpu, memory), None: empty nodes, with all ways to place all tasks."""
    nodes, tasks = small

    def free_with(places):
        free = [list(node) for node in nodes]
        for (cpu, memory, _), place in zip(tasks, places, strict=True):
            free[place][0] -= cpu
            free[place][1] -= memory
        return free

    at_first = [node for _, _, node in tasks]
    overused = {n for n, free in enumerate(free_with(at_first)) if min(free) < 0}  # their tasks stay

    def pieces(places):
        free = free_with(places)
        changed = [pair for pair in zip(at_first, places, strict=True) if pair[0] != pair[1]]
        if any(node in overused or min(free[place]) < 0 for node, place in changed):
            return -1
        if asked is None:
            return sum(place not in places for place in range(len(nodes)))
        return sum(max(min(node[0] // asked[0], node[1] // asked[1]), 0) for node in free)

    def moved(places):
        return sum(place != node for place, node in zip(places, at_first, strict=True))

    everywhere = [places for places in product(range(len(nodes)), repeat=len(tasks)) if moved(places) <= moves]
    best = max(map(pieces, everywhere))
    classes = {(cpu, memory): i + 1 for i, (cpu, memory) in enumerate({(c, m) for c, m, _ in tasks})}
    cluster = resting_cluster(
        *(make_class(i, cpu=cpu, memory=memory) for (cpu, memory), i in classes.items()),
        *(make_node(str(n), cpu=cpu, memory=memory) for n, (cpu, memory) in enumerate(nodes)),
        *(event for u, (c, m, n) in enumerate(tasks, 1) for event in movable([u], classes[c, m], str(n))),
    )
    shape = {} if asked is None else {"cpu": asked[0], "memory": asked[1]}
    plan = plan_of(cluster, Goal.PACK, moves=moves, shape=shape)
    if overused.issuperset(at_first):
        assert not plan.steps
        return
    assert plan.after == plan.bound == best
    assert len(moves_of(plan)) == min(moved(places) for places in everywhere if pieces(places) == best) <= moves
    assert plan.before == pieces(at_first)
    places = carried_out(cluster, plan)
    assert pieces([int(places[uid]) for uid in range(1, len(tasks) + 1)]) == best


@given(small_clusters(exactly), st.integers(1, 3), st.one_of(st.none(), st.tuples(amounts, amounts)))
@examples(60)
def test_packing_is_as_good_as_the_best_of_all_moves(small, moves, shape):
    assert_packed_as_well_as_possible(small, moves, shape)


@given(
    small_clusters(nearly, plenty), st.integers(1, 3), st.one_of(st.none(), st.tuples(amounts, amounts.flatmap(nearly)))
)
@examples(60)
def test_packing_by_the_byte_is_as_good_as_the_best_of_all_moves(small, moves, shape):
    """Amounts that differ by so little that a solver in floating point takes them for equal."""
    assert_packed_as_well_as_possible(small, moves, shape)
