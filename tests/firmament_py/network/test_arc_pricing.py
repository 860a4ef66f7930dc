"""The proof that a flow in a part of a network is an optimum of the whole: sound, and found when expected."""

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver
from firmament_py.network.arc_pricing import negative_reduced_costs
from firmament_py.network.build import build
from firmament_py.network.capacities import Capacities, selected
from firmament_py.network.part import Part, extended
from firmament_py.policy import WAIT_MIN, Costs
from tests.effort import examples
from tests.firmament_py.network.test_candidate_arcs import hopeful, ints, on_all_nodes, problems


def solved(capacities, costs, offsets, task_class):
    network = build(capacities, costs, offsets, task_class)
    return network, OrToolsSolver().solve(network.flow)


@st.composite
def parts(draw):
    """A problem, and any part of its capacities: pairs are omitted, and nodes lose their costliest slots."""
    capacities, costs, offsets, task_class = hopeful(draw(problems()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    slots = np.where(rng.random(capacities.slots.shape) < draw(st.sampled_from([0.2, 0.5, 0.9])), capacities.slots, 0)
    runs = np.append(offsets, 2**40)
    cut = runs[rng.integers(1, len(runs), len(capacities.depth))] if draw(st.booleans()) else capacities.depth
    depth = np.minimum(np.minimum(cut, capacities.depth), slots.sum(axis=0))
    part = Capacities(np.where(depth > 0, slots, 0), depth, capacities.limits)
    if draw(st.booleans()):
        part = selected(part, np.flatnonzero(depth))
    return capacities, part, costs, offsets, task_class


@examples(250)
@given(parts())
def test_a_proved_flow_is_an_optimum_of_the_whole_network(problem):
    whole, part, costs, offsets, task_class = problem
    network, found = solved(part, costs, offsets, task_class)
    best = NetworkxSolver().solve(build(whole, costs, offsets, task_class).flow)
    omitted = negative_reduced_costs(whole, Part(part), network, found.flow, costs, offsets)
    left_out = on_all_nodes(part, whole).slots == 0
    assert not (omitted.pairs & ((whole.slots == 0) | ~left_out)).any(), "only what is there and was left out"
    proved = not omitted
    event(f"proved: {proved}, optimum: {found.cost == best.cost}")
    assert found.cost >= best.cost
    assert not proved or found.cost == best.cost


@examples(100)
@given(parts())
def test_adding_negative_reduced_costs_ends_with_a_proved_optimum(problem):
    whole, part, costs, offsets, task_class = problem
    for _ in range(1 + whole.slots.size + len(whole.depth)):
        network, found = solved(part, costs, offsets, task_class)
        omitted = negative_reduced_costs(whole, Part(part), network, found.flow, costs, offsets)
        if not omitted:
            break
        grown = extended(Part(part), whole, omitted, costs, task_class).capacities
        assert grown.slots.sum() + grown.depth.sum() > part.slots.sum() + part.depth.sum(), "each turn adds something"
        part = grown
    else:
        raise AssertionError("there are always more bargains")
    assert found.cost == OrToolsSolver().solve(build(whole, costs, offsets, task_class).flow).cost


def test_the_whole_network_has_no_negative_reduced_costs():
    slots = ints([[1, 1, 1], [2, 0, 2]])
    costs = Costs(ints([[0, 4, 1], [3, 3, 3]]), ints([[0], [1], [2]]), np.full(3, WAIT_MIN))
    capacities = Capacities(slots, slots.max(axis=0), {})
    network, found = solved(capacities, costs, ints([0]), ints([0, 0, 1]))
    omitted = negative_reduced_costs(capacities, Part(capacities), network, found.flow, costs, ints([0]))
    assert not omitted


def test_an_omitted_node_of_lower_cost_has_a_negative_reduced_cost():
    slots = np.ones((2, 3), np.int64)
    costs = Costs(ints([[0, 0, 0], [0, 0, 9]]), ints([[5], [6], [1]]), np.full(2, WAIT_MIN))
    whole = Capacities(slots, ints([1, 1, 1]), {})
    part = Capacities(ints([[1, 1, 0], [1, 1, 0]]), ints([1, 1, 0]), {})
    network, found = solved(part, costs, ints([0]), ints([0, 1]))
    omitted = negative_reduced_costs(whole, Part(part), network, found.flow, costs, ints([0]))
    # node 2 costs class 0 1 instead of at most 6, and class 1 10
    assert omitted.pairs.tolist() == [[False, False, True], [False, False, False]]
    assert not omitted.deeper.any()


def test_an_omitted_slot_of_lower_cost_is_found():
    slots = np.full((1, 2), 2)
    costs = Costs(np.zeros((1, 1), np.int64), ints([[1, 2], [7, 8]]), np.full(2, WAIT_MIN))
    whole = Capacities(slots, ints([2, 2]), {})
    part = Capacities(slots, ints([1, 1]), {})
    network, found = solved(part, costs, ints([0, 1]), ints([0, 0]))
    omitted = negative_reduced_costs(whole, Part(part), network, found.flow, costs, ints([0, 1]))
    assert not omitted.pairs.any()
    assert omitted.deeper.tolist() == [True, False]  # node 0 would take both at 1 + 2, instead of 1 + 7
