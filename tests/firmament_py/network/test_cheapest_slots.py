"""A few tasks of one class go where the optimal flow of a network would send them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from firmament_py.network import cheapest_slots as module
from firmament_py.network.capacities import Capacities
from firmament_py.network.cheapest_slots import cheapest_slots
from firmament_py.network.column_generation import ColumnGeneration
from firmament_py.network.telemetry import Telemetry
from firmament_py.policy import WAIT_MIN, Costs
from firmament_py.snapshot.domain_limits import DomainLimit
from tests.effort import examples
from tests.firmament_py.network.test_build import ints, limited_problems, unreduced_cost_with_limits


def refuse(network):
    raise AssertionError("a network was built")


@examples(200)
@given(limited_problems(), st.booleans(), st.booleans(), st.booleans())
def test_they_cost_as_much_as_the_flow(problem, alone, limited, fill):
    whole, costs, offsets, task_class = problem
    if not len(task_class):
        return
    cls = int(task_class[0])
    mine = np.flatnonzero(task_class == cls)[: 1 if alone else None]
    wait = costs.wait[mine] - np.arange(len(mine)) % 2 * (WAIT_MIN - 7)  # some would rather wait
    costs = replace(costs, wait=wait, fill=fill)
    slots = np.minimum(whole.slots, len(mine))
    limits = whole.limits if limited else {}
    capacities = replace(whole, slots=slots, depth=slots.max(axis=0, initial=0), limits=limits)
    columns = ColumnGeneration(refuse, Telemetry())
    found = columns.without_network(capacities, costs, offsets, task_class[mine])
    event(f"tasks: {min(len(mine), 4)}, without a network: {found is not None}")
    assert (found is None) == (len(mine) > 1 and bool(capacities.limits.get(cls)))
    if found is None:
        return
    assert columns.first is not None
    assert columns.first.cost == found.cost
    assert found.cost == unreduced_cost_with_limits(capacities, costs, offsets, task_class[mine])
    assert found.placed == found.sent.count.sum()
    assert (found.sent.cls == cls).all()
    assert len(set(found.sent.node.tolist())) == len(found.sent.node)
    assert (found.sent.count <= slots[cls, found.sent.node]).all()


def on_equal_nodes(tasks: int, *, nodes=4, depth=2, fill=False):
    """Tasks of one class on equal nodes, whose first two slots cost the same."""
    slots = np.full((1, nodes), depth)
    costs = Costs(np.zeros((1, 1), np.int64), ints([[3, 3, 5]]), np.full(tasks, WAIT_MIN), fill=fill)
    found = cheapest_slots(Capacities(slots, slots[0], {}), costs, ints([0, 1, 2]), 0)
    assert found is not None
    return dict(zip(found.sent.node.tolist(), found.sent.count.tolist(), strict=True)), found.cost


def test_equal_slots_are_used_on_several_nodes_or_on_few():
    assert on_equal_nodes(3) == ({0: 1, 1: 1, 2: 1}, 9)
    assert on_equal_nodes(6) == ({0: 2, 1: 2, 2: 1, 3: 1}, 18)
    assert on_equal_nodes(3, fill=True) == ({0: 2, 1: 1}, 9)
    assert on_equal_nodes(9) == ({0: 2, 1: 2, 2: 2, 3: 2}, 24 + WAIT_MIN), "there are eight slots"
    assert on_equal_nodes(9, depth=3) == ({0: 3, 1: 2, 2: 2, 3: 2}, 24 + 5)


def test_many_tasks_are_left_to_a_network(monkeypatch):
    monkeypatch.setattr(module, "FEW", 3)
    assert on_equal_nodes(3)
    slots = np.full((1, 4), 2)
    costs = Costs(np.zeros((1, 1), np.int64), ints([[3]]), np.full(4, WAIT_MIN))
    assert cheapest_slots(Capacities(slots, slots[0], {}), costs, ints([0]), 0) is None


def test_tasks_of_several_classes_are_left_to_a_network():
    slots = np.full((2, 4), 2)
    costs = Costs(np.zeros((1, 1), np.int64), ints([[3]]), np.full(2, WAIT_MIN))
    columns = ColumnGeneration(refuse, Telemetry())
    assert columns.without_network(Capacities(slots, slots[0], {}), costs, ints([0]), ints([0, 1])) is None


def one_task(limit: DomainLimit, *, slots=(1, 1, 1)) -> tuple[Capacities, Costs]:
    capacities = Capacities(ints([slots]), ints(slots), {0: [limit]})
    return capacities, Costs(ints([[5, 0, 0]]), ints([[1], [2], [2]]), ints([WAIT_MIN]))


def node_and_cost(capacities: Capacities, costs: Costs) -> tuple[int, int]:
    found = cheapest_slots(capacities, costs, ints([0]), 0)
    assert found is not None
    return int(found.sent.node[0]), found.cost


def test_the_first_of_several_equal_nodes():
    """5 + 1, 0 + 2, 0 + 2."""
    assert node_and_cost(*one_task(DomainLimit(ints([-1, -1, -1]), ints([]), ints([]), 9))) == (1, 2)


@pytest.mark.parametrize(("wait", "placed"), [(2, 1), (1, 0)])
def test_a_task_waits_only_if_that_costs_less(wait, placed):
    capacities, costs = one_task(DomainLimit(ints([-1, -1, -1]), ints([]), ints([]), 9))
    found = cheapest_slots(capacities, replace(costs, wait=ints([wait])), ints([0]), 0)
    assert found is not None
    assert (found.placed, found.sent.count.sum(), found.cost) == (placed, placed, wait)


def test_full_and_closed_domains():
    """Zone 0, of nodes 0 and 1, is at its limit; node 2 has no slot: then node 1 costs 2 + 9."""
    at_limit = DomainLimit(ints([0, 0, 1]), ints([4, 4]), ints([0, 1]), 9)
    assert node_and_cost(*one_task(at_limit)) == (2, 2)
    assert node_and_cost(*one_task(at_limit, slots=(1, 1, 0))) == (1, 11)
    closed = DomainLimit(ints([0, 0, 1]), ints([0, 4]), ints([0, 0]), 9)
    assert node_and_cost(*one_task(closed)) == (2, 11)


def test_a_task_waits_if_no_node_has_a_slot():
    nowhere = DomainLimit(ints([0, 0, 0]), ints([0]), ints([0]), 9)
    capacities, costs = one_task(nowhere)
    found = cheapest_slots(capacities, costs, ints([0]), 0)
    assert found is not None
    assert (len(found.sent.cls), found.placed, found.cost) == (0, 0, WAIT_MIN)
