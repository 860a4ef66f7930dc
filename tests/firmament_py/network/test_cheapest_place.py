"""A single task goes where a flow of one unit would send it."""

from dataclasses import replace

import numpy as np
from hypothesis import given

from firmament_py.network.capacities import Capacities
from firmament_py.network.cheapest_place import cheapest
from firmament_py.network.column_generation import ColumnGeneration
from firmament_py.network.telemetry import Telemetry
from firmament_py.policy import WAIT_MIN, Costs
from firmament_py.snapshot.domain_limits import DomainLimit
from tests.firmament_py.network.test_build import ints, limited_problems, unreduced_cost_with_limits


def refuse(network):
    raise AssertionError("a network was built for a single task")


@given(limited_problems())
def test_it_costs_as_much_as_the_flow(problem):
    whole, costs, offsets, task_class = problem
    if not len(task_class):
        return
    one, wait = task_class[:1], costs.wait[:1]
    slots = np.minimum(whole.slots, 1)
    capacities = replace(whole, slots=slots, depth=slots.max(axis=0))
    columns = ColumnGeneration(refuse, Telemetry())
    sent = columns.cheapest_place(capacities, replace(costs, wait=wait), one)
    assert columns.first is not None
    assert columns.first.cost == unreduced_cost_with_limits(capacities, replace(costs, wait=wait), offsets, one)
    for cls, node, count in zip(sent.cls.tolist(), sent.node.tolist(), sent.count.tolist(), strict=True):
        assert (cls, count) == (int(one[0]), 1)
        assert slots[cls, node] == 1


def one_task(limit: DomainLimit, *, slots=(1, 1, 1)) -> tuple[Capacities, Costs]:
    capacities = Capacities(ints([slots]), ints(slots), {0: [limit]})
    return capacities, Costs(ints([[5, 0, 0]]), ints([[1], [2], [2]]), ints([WAIT_MIN]))


def test_the_first_of_several_equal_nodes():
    """5 + 1, 0 + 2, 0 + 2."""
    assert cheapest(*one_task(DomainLimit(ints([-1, -1, -1]), ints([]), ints([]), 9)), 0) == (1, 2)


def test_full_and_closed_domains():
    """Zone 0, of nodes 0 and 1, is at its limit; node 2 has no slot: then node 1 costs 2 + 9."""
    at_limit = DomainLimit(ints([0, 0, 1]), ints([4, 4]), ints([0, 1]), 9)
    assert cheapest(*one_task(at_limit), 0) == (2, 2)
    assert cheapest(*one_task(at_limit, slots=(1, 1, 0)), 0) == (1, 11)
    closed = DomainLimit(ints([0, 0, 1]), ints([0, 4]), ints([0, 0]), 9)
    assert cheapest(*one_task(closed), 0) == (2, 11)


def test_a_task_waits_if_no_node_has_a_slot():
    columns = ColumnGeneration(refuse, Telemetry())
    nowhere = DomainLimit(ints([0, 0, 0]), ints([0]), ints([0]), 9)
    capacities, costs = one_task(nowhere)
    assert not len(columns.cheapest_place(capacities, costs, ints([0])).cls)
    assert columns.first is not None
    assert columns.first.cost == WAIT_MIN
