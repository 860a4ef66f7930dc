"""Outlines of networks: prices by another solver, and what merging keeps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.drawing.outline import KINDS, outlined, shape_of
from firmament_py.flow.certificate import UNREACHED
from firmament_py.flow.network import Status
from firmament_py.flow.solver import NetworkxSolver
from firmament_py.model.arrays import NO_ROWS
from firmament_py.network.build import build
from firmament_py.network.cheapest_slots import cheapest_slots
from firmament_py.network.placement_network import VertexKind
from firmament_py.network.telemetry import SolvedNetwork
from firmament_py.policy import WAIT_MIN, Costs
from tests.effort import examples
from tests.firmament_py.network.test_build import ints, problems, room_of

SINK, TASKS = KINDS.index(VertexKind.SINK), KINDS.index(VertexKind.TASKS)
ENDS = SINK, KINDS.index(VertexKind.UNSCHEDULED)


def solved_network(slots, costs, offsets, task_class) -> SolvedNetwork:
    network = build(room_of(slots), costs, offsets, task_class)
    solution = NetworkxSolver().solve(network.flow)
    assert solution.status is Status.OPTIMAL
    classes, nodes = slots.shape
    rows = np.arange(classes), np.arange(nodes), np.arange(len(task_class)).astype(np.uint64)
    return SolvedNetwork(network, solution, solution.cost, None, NO_ROWS, *rows, task_class, costs.wait)


@examples(25)
@given(problems())
def test_a_price_is_what_one_more_task_costs(problem):
    solved = solved_network(*problem)
    shape = shape_of(solved)
    [sink] = np.flatnonzero(shape.kind == SINK)
    for vertex, price in enumerate(shape.price.tolist()):
        supply = shape.arcs.supply.copy()
        supply[vertex] += 1
        supply[sink] -= 1
        with_one = NetworkxSolver().solve(replace(shape.arcs, supply=supply))
        if price == UNREACHED:
            assert with_one.status is Status.INFEASIBLE
        else:
            assert with_one.cost - solved.cost == price


@examples(25)
@given(problems(nodes=6, classes=4, tasks=9), st.integers(1, 3))
def test_merging_keeps_flow_capacity_and_supply(problem, limit):
    solved = solved_network(*problem)
    shape = shape_of(solved)
    outline = outlined(shape, limit)
    assert outline.merged.sum() == len(shape.kind)
    drawn_kind = shape.kind[outline.vertex]
    for kind in range(len(KINDS)):
        number = int((shape.kind == kind).sum())
        assert (drawn_kind == kind).sum() == (number if kind in ENDS else min(number, limit + 1))
    inner = outline.tail != outline.head  # those within a merged vertex lead nowhere
    assert inner.all(), "arcs lead from one kind of vertex to another here"
    for of, whole in ((outline.flow, shape.flow), (outline.capacity, shape.arcs.capacity)):
        assert of.sum() == whole.sum()
    into_sink = outline.flow[drawn_kind[outline.head] == SINK].sum()
    assert into_sink == shape.arcs.supply[shape.kind == TASKS].sum()
    assert (outline.flow <= outline.capacity).all()
    low, high = outline.least_cost, outline.most_cost
    assert low @ outline.flow <= solved.cost <= high @ outline.flow
    assert outline.arcs.sum() == len(shape.arcs.tail)


SMALL = (
    ints([[2, 2, 0], [1, 0, 1]]),  # class 0 fits on nodes 0 and 1, class 1 on 0 and 2
    Costs(ints([[5, 1, 0], [2, 0, 9]]), ints([[0]]), WAIT_MIN + ints([0, 0, 7, 0])),
    ints([0]),
    ints([0, 0, 0, 1]),
)


def test_what_concerns_a_class():
    shape = shape_of(solved_network(*SMALL))
    outline = outlined(shape, 40, classes=ints([1]))
    assert {KINDS[k].value for k in shape.kind[outline.vertex]} == {"tasks", "class", "nodes", "unscheduled", "sink"}
    groups = shape.node_group[outline.vertex]
    starts = shape.member_start[groups[groups >= 0]]
    assert set(shape.members[starts].tolist()) == {0, 2}, "not node 1, where it does not fit"
    assert set(shape.group_class[shape.group[outline.vertex][shape.group[outline.vertex] >= 0]].tolist()) == {1}


def test_the_way_to_a_node():
    shape = shape_of(solved_network(*SMALL))
    outline = outlined(shape, 40, node=2)
    of_class = shape.group_class[shape.group[outline.vertex][shape.group[outline.vertex] >= 0]]
    assert of_class.tolist() == [1], "class 0 does not fit there"
    assert (shape.kind[outline.vertex] == SINK).sum() == 1


def test_tasks_that_need_no_network_are_drawn_as_one():
    """Three tasks on slots of cost 1, 1 and 5: all are placed. The last of four waits."""
    slots, wait = ints([[1, 2]]), WAIT_MIN + ints([3, 0, 0, 9])
    costs = Costs(ints([[5, 1]]), ints([[0]]), wait)
    found = cheapest_slots(room_of(slots), costs, ints([0]), 0)
    assert found is not None
    rows = ints([0]), ints([0, 1]), np.arange(4).astype(np.uint64)
    solved = SolvedNetwork(None, None, found.cost, found.sent, ints([5, 1]), *rows, ints([0] * 4), wait)
    shape = shape_of(solved)
    assert int(shape.flow @ shape.arcs.unit_cost) == found.cost == 1 + 1 + 5 + WAIT_MIN
    left = shape.arcs.supply.copy()
    np.subtract.at(left, shape.arcs.tail, shape.flow)
    np.add.at(left, shape.arcs.head, shape.flow)
    assert not left.any(), "it is a flow"
    assert outlined(shape, 40).merged.sum() == len(shape.kind)


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.FAILED])
def test_a_network_without_a_flow_has_no_prices(status):
    solved = solved_network(*SMALL)
    assert solved.solution is not None
    shape = shape_of(replace(solved, solution=replace(solved.solution, status=status)))
    assert not shape.flow.any()
    assert (shape.price == UNREACHED).all()
