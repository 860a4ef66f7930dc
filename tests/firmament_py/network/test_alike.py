"""Classes that share rows of a network: the optimum is that of a network with a row for each class."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.flow.certificate import certify
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.arrays import I64
from firmament_py.network import alike
from firmament_py.network.alike import merged
from firmament_py.network.capacities import Capacities
from firmament_py.network.column_generation import ColumnGeneration, Found
from firmament_py.network.telemetry import Telemetry
from firmament_py.policy import COST_MAX, WAIT_MIN, Costs
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit
from firmament_py.snapshot.solo_capacity import SoloCapacity
from tests.firmament_py.network.test_build import ints, unreduced_cost_with_limits

NONE_APART = np.zeros(9, np.bool_)


@pytest.fixture(autouse=True, scope="module")
def shared_by_few():
    """Rows, also by two classes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "FEWEST", 2)
        yield


@st.composite
def alike_problems(draw):
    """Classes of two kinds; of each, some prefer to be spread over zones and nodes, which may hold tasks of theirs."""
    nodes, classes = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    zone = ints(draw(st.lists(st.integers(-1, 1), min_size=nodes, max_size=nodes)))
    of_class = ints(draw(st.lists(st.integers(0, 1), min_size=classes, max_size=classes)))
    suitable = ints(draw(st.lists(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes), min_size=2, max_size=2)))
    depth = ints(draw(st.lists(st.integers(1, 4), min_size=nodes, max_size=nodes)))
    alone = SoloCapacity(suitable * depth, of_class)
    waiting = ints(draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes)))
    waiting[suitable.max(axis=1)[of_class] == 0] = 0
    slots = np.minimum(alone.slots[of_class], waiting[:, None])
    own, limits = np.where(draw(st.booleans()), np.arange(nodes), -1), {}
    zones = int(zone.max(initial=-1)) + 1
    for c in range(classes):
        found = []
        if draw(st.booleans()) and zones:
            soft = ints(draw(st.lists(st.integers(0, 2), min_size=zones, max_size=zones)))
            maximum = draw(st.sampled_from([np.full(zones, UNLIMITED), soft + 1]))
            found.append(DomainLimit(zone, maximum, soft, draw(st.sampled_from([3, COST_MAX])), per_node=False))
        if draw(st.booleans()):
            soft = ints(draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes)))
            found.append(
                DomainLimit(own, np.full(nodes, UNLIMITED), soft, draw(st.sampled_from([2, 50])), per_node=True)
            )
        if found:
            limits[c] = found
    place = ints(draw(st.lists(st.lists(st.integers(0, 3), min_size=nodes, max_size=nodes), min_size=2, max_size=2)))
    slot = np.sort(ints([draw(st.lists(st.integers(0, 9), min_size=4, max_size=4)) for _ in range(nodes)]), axis=1)
    task_class = np.repeat(np.arange(classes), waiting)
    costs = Costs(place[of_class], slot, WAIT_MIN + np.arange(len(task_class))[::-1] // 2)
    offsets = ints([0, 1, 2, 3])
    whole = Capacities(slots, np.minimum(depth * (slots.max(axis=0) > 0), slots.sum(axis=0)), limits, alone=alone)
    return whole, costs, offsets, task_class


def run(whole, costs, offsets, task_class) -> tuple[Found, int]:
    """What is found, by solutions that are all proved optimal, and how many solutions that takes."""
    seen = []

    def solve(network):
        seen.append(network)
        solution = OrToolsSolver().solve(network.flow)
        assert certify(network.flow, solution) == []
        return solution

    return ColumnGeneration(solve, Telemetry()).run(whole, costs, offsets, task_class), len(seen)


def cost_of(problem: tuple[Capacities, Costs, I64, I64], found: Found) -> int:
    """The cost of what is sent, from the definition of each limit."""
    assert found.sent is not None
    whole, costs, offsets, _ = problem
    classes, nodes = whole.slots.shape
    count = np.zeros((classes, nodes), np.int64)
    count[found.sent.cls, found.sent.node] = found.sent.count
    assert (count <= whole.slots).all()
    assert (count.sum(axis=0) <= whole.depth).all()
    total = int((count * np.broadcast_to(costs.place, count.shape)).sum())
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    for n, tasks in enumerate(count.sum(axis=0).tolist()):
        total += sum(int(slot[n, np.searchsorted(offsets, k, side="right") - 1]) for k in range(tasks))
    for c, limits in whole.limits.items():
        for limit in limits:
            for d in range(len(limit.maximum)):
                inside = int(count[c, limit.domain == d].sum())
                assert inside <= limit.maximum[d]
                total += limit.soft_limit_cost * max(inside - int(limit.soft_limit[d]), 0)
    network = found.network
    waits = network.group_size - network.placed_from_groups(found.solution.flow)
    assert int(network.group_size.sum() - waits.sum()) == int(count.sum())
    placed = np.bincount(network.group_class, network.group_size - waits, minlength=classes)
    assert placed.astype(np.int64).tolist() == count.sum(axis=1).tolist()
    return total + int((waits * network.group_wait).sum())


@given(alike_problems())
def test_tasks_are_sent_where_they_cost_least_by_all_limits(problem):
    whole, costs, offsets, task_class = problem
    if not len(task_class):
        return
    found, _ = run(*problem)
    expected = unreduced_cost_with_limits(replace(whole, alone=None), costs, offsets, task_class)
    assert found.solution.cost == expected
    assert cost_of(problem, found) == expected


@pytest.mark.parametrize(("at_random", "one_by_one"), [(0, 512), (32, 0), (0, 0)])
@given(problem=alike_problems())
def test_without_exchanges_the_optimum_is_the_same(problem, at_random, one_by_one):
    whole, costs, offsets, task_class = problem
    if not len(task_class):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "RANDOM_EXCHANGES", at_random)
        patch.setattr(alike, "MOST_EXCHANGES", one_by_one)
        found, _ = run(*problem)
    expected = unreduced_cost_with_limits(replace(whole, alone=None), costs, offsets, task_class)
    assert found.solution.cost == cost_of(problem, found) == expected


def spread(nodes: int, busy: list[list[int]], *, tasks: int = 1, slots: int = 1) -> tuple[Capacities, Costs, I64, I64]:
    """Classes with `tasks` tasks each that cost 9 on nodes with tasks of their own, `busy`, on equal nodes."""
    classes = len(busy)
    alone = SoloCapacity(np.full((1, nodes), slots), np.zeros(classes, np.int64))
    limits = {}
    for c, there in enumerate(busy):
        soft = np.ones(nodes, np.int64)
        soft[there] = 0
        limits[c] = [DomainLimit(np.arange(nodes), np.full(nodes, UNLIMITED), soft, 9, per_node=True)]
    each = np.full((classes, nodes), min(slots, tasks))
    whole = Capacities(each, np.minimum(slots, each.sum(axis=0)), limits, alone=alone)
    costs = Costs(ints([[0]]), np.zeros((1, slots), np.int64), np.full(classes * tasks, WAIT_MIN))
    return whole, costs, np.arange(slots), np.repeat(np.arange(classes), tasks)


@pytest.mark.parametrize(("at_random", "one_by_one"), [(0, 512), (32, 0)])
def test_tasks_that_meet_others_of_their_class_change_places(at_random, one_by_one, monkeypatch):
    """In order, tasks of classes 0 and 1 would go to nodes 0 and 1, where others of the class run."""
    monkeypatch.setattr(alike, "RANDOM_EXCHANGES", at_random)
    monkeypatch.setattr(alike, "MOST_EXCHANGES", one_by_one)
    problem = spread(3, [[0], [1], []])
    found, solutions = run(*problem)
    assert solutions == 1
    assert cost_of(problem, found) == 0
    assert found.sent is not None
    assert len(set(found.sent.node.tolist())) == 3


def test_a_class_whose_tasks_cannot_change_places_gets_a_row_of_its_own():
    """Node 0 is taken by class 0 or 1, of which both run there, in every placement: one task costs 9."""
    problem = spread(2, [[0], [0]])
    found, solutions = run(*problem)
    assert solutions > 1
    assert found.solution.cost == cost_of(problem, found) == 9


def test_several_tasks_of_a_class_go_to_different_nodes():
    """Two slots on each of three nodes, two classes of three tasks: one of each class on each node."""
    problem = spread(3, [[], []], tasks=3, slots=2)
    found, solutions = run(*problem)
    assert solutions == 1
    assert found.sent is not None
    assert found.sent.count.tolist() == [1] * 6


def test_rows_and_arcs_do_not_grow_with_classes():
    small, large = spread(4, [[]] * 2), spread(4, [[]] * 20)
    for whole, costs, _, task_class in (small, large):
        rows, _ = merged(whole, costs, np.bincount(task_class), np.zeros(len(whole.slots), np.bool_))
        assert rows.slots.shape == (1, 4)
        assert rows.slots[0].tolist() == [1, 1, 1, 1]


def test_classes_apart_keep_rows_and_limits_of_their_own():
    whole, costs, _, task_class = spread(4, [[], [2], []])
    rows, _ = merged(whole, costs, np.bincount(task_class), np.array([False, True, False]))
    assert rows.row_of is not None
    assert rows.row_of[0] == rows.row_of[2] != rows.row_of[1]
    assert rows.limits == {int(rows.row_of[1]): whole.limits[1]}


def test_classes_with_other_costs_do_not_share_a_row():
    whole, costs, _, task_class = spread(4, [[], [], []])
    place = ints([[0, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    rows, of_rows = merged(whole, replace(costs, place=place), np.bincount(task_class), NONE_APART[:3])
    assert rows.row_of is not None
    assert rows.row_of.tolist() == [0, 0, 1]
    assert of_rows.place.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_few_classes_keep_rows_of_their_own(monkeypatch):
    whole, costs, _, task_class = spread(4, [[], [], []])
    monkeypatch.setattr(alike, "FEWEST", 4)
    assert merged(whole, costs, np.bincount(task_class), NONE_APART[:3]) == (whole, costs)


def test_nothing_is_merged_if_it_is_not_known_which_classes_are_alike():
    whole, costs, _, task_class = spread(4, [[], []])
    unknown = replace(whole, alone=None)
    assert merged(unknown, costs, np.bincount(task_class), NONE_APART[:2]) == (unknown, costs)
