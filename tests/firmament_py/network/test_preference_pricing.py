"""Omitted preference arcs: the proof is sound, and adding what has a negative reduced cost ends with it."""

from dataclasses import replace

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver
from firmament_py.network.arc_pricing import negative_reduced_costs
from firmament_py.network.build import build
from firmament_py.network.capacities import BY_CLASS, BY_RACK, Capacities, selected
from firmament_py.network.part import Part, extended
from firmament_py.network.preference_arcs import likely_arcs, preferred_pairs
from firmament_py.policy import WAIT_MIN, Costs
from firmament_py.policy.locality import DataCosts
from firmament_py.snapshot.domain_limits import DomainLimit
from tests.effort import examples
from tests.firmament_py.network.test_preference_arcs import clusters_with_racks, ints


def with_limits(whole, rng):
    """The same with a limit per node or zone for some classes."""
    classes, nodes = whole.slots.shape
    slots, limits = whole.slots.copy(), {}
    for c in range(classes):
        for domain in ([], [np.arange(nodes)], [rng.integers(-1, 3, nodes)])[rng.integers(0, 3)]:
            maximum = rng.integers(1, 4, max(int(domain.max()), 2) + 1)
            soft_limit = np.minimum(maximum, rng.integers(0, 3, len(maximum)))
            limits[c] = [DomainLimit(domain, maximum, soft_limit, int(rng.integers(0, 6)))]
            if limits[c][0].is_per_node:
                np.minimum(slots[c], maximum[domain], out=slots[c])
    return Capacities(slots, np.minimum(slots.sum(axis=0), whole.depth), limits)


@st.composite
def parts(draw):
    """A cluster with racks, and any part that has the pairs its preference arcs need."""
    whole, costs, offsets, task_class = draw(clusters_with_racks())
    rng, share = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.sampled_from([0.0, 0.3, 0.8]))
    if draw(st.booleans()):
        whole = with_limits(whole, rng)
    near, racks = (rng.random(len(arcs)) < share for arcs in (costs.data.near_set, costs.data.rack_set))
    needed = preferred_pairs(costs.data.only(near, racks), task_class, whole.slots, costs.place + costs.slot[:, 0])
    pairs = rng.random(whole.slots.shape) < share
    entries = (pairs * rng.integers(0, 4, whole.slots.shape)).astype(np.uint8)
    entries |= (needed[1] * BY_RACK).astype(np.uint8)
    slots = whole.slots * (pairs | needed[0] | needed[1])
    chosen = np.flatnonzero(slots.any(axis=0))
    capacities = replace(selected(whole, chosen), slots=slots[:, chosen], entries=entries[:, chosen])
    return whole, Part(capacities, near, racks), costs, offsets, task_class


def size_of(part):
    """Numbers of preference arcs, slots of pairs, their entries, and slots of nodes."""
    capacities = part.capacities
    assert capacities.entries is not None
    columns = part.near, part.racks, capacities.slots, capacities.entries, capacities.depth
    return [int(column.sum()) for column in columns]


def solved(part, costs, offsets, task_class):
    network = build(part.capacities, part.costs(costs), offsets, task_class)
    return network, OrToolsSolver().solve(network.flow)


@examples(250)
@given(parts())
def test_adding_omitted_arcs_ends_with_a_proved_optimum(problem):
    whole, part, costs, offsets, task_class = problem
    best = NetworkxSolver().solve(build(whole, costs, offsets, task_class).flow).cost
    rounds = 0
    while True:
        network, found = solved(part, costs, offsets, task_class)
        omitted = negative_reduced_costs(whole, part, network, found.flow, costs, offsets)
        assert not (omitted.near & part.near).any()
        assert not (omitted.racks & part.racks).any()
        if not omitted:
            break
        grown = extended(part, whole, omitted, costs, task_class)
        size, before = size_of(grown), size_of(part)
        assert all(a >= b for a, b in zip(size, before, strict=True))
        assert size != before, "each round adds something"
        part, rounds = grown, rounds + 1
    event(f"rounds: {min(rounds, 4)}")
    event(f"arcs omitted in the end: {not (part.near.all() and part.racks.all())}")
    assert found.cost == best


def one_task(**arcs):
    """A task that reads set 0, on four nodes in two racks; the second node of each is taken but for a slot at 7."""
    columns = ("near_set", "near_node", "near_cost", "rack_set", "rack_id", "rack_cost")
    data = DataCosts(
        of_task=ints([0]),
        anywhere=ints([50]),
        rack=ints([0, 0, 1, 1]),
        **{name: ints(arcs.get(name, [])) for name in columns},
    )
    costs = Costs(np.zeros((1, 1), np.int64), ints([[1], [7], [1], [7]]), np.full(1, WAIT_MIN), data=data)
    return Capacities(np.ones((1, 4), np.int64), np.ones(4, np.int64), {}), costs


def without_preferences(whole, costs, nodes):
    """The part with arcs from the class to `nodes`."""
    capacities = replace(selected(whole, ints(nodes)), entries=np.full((1, len(nodes)), BY_CLASS, np.uint8))
    data = costs.data
    return Part(capacities, np.zeros(len(data.near_set), np.bool_), np.zeros(len(data.rack_set), np.bool_))


def flagged(whole, costs, part):
    network, found = solved(part, costs, ints([0]), ints([0]))
    return found.cost, negative_reduced_costs(whole, part, network, found.flow, costs, ints([0]))


def test_an_arc_to_a_node_is_added_only_if_it_costs_less():
    """At node 0 the task costs 50 + 1 through its class: 40 + 7 is less, 48 + 7 is not."""
    whole, costs = one_task(near_set=[0, 0], near_node=[1, 3], near_cost=[40, 48])
    cost, omitted = flagged(whole, costs, without_preferences(whole, costs, [0]))
    assert cost == 51
    assert omitted.near.tolist() == [True, False]


def test_an_arc_to_a_rack_is_added_only_if_one_of_its_nodes_costs_less():
    whole, costs = one_task(rack_set=[0, 0], rack_id=[0, 1], rack_cost=[49, 50])
    cost, omitted = flagged(whole, costs, without_preferences(whole, costs, [0]))
    assert cost == 51
    assert omitted.racks.tolist() == [True, False]  # 49 + 1, and 50 + 1


def test_arcs_to_nodes_without_slots_do_not_count():
    whole, costs = one_task(near_set=[0, 0], near_node=[1, 3], near_cost=[1, 2])
    whole.slots[0, 1] = whole.depth[1] = 0
    _, omitted = flagged(whole, costs, without_preferences(whole, costs, [0]))
    assert omitted.near.tolist() == [False, True]


def test_likely_arcs_are_those_of_least_cost_with_slots():
    """A set with an arc to each of 20 nodes: those that its tasks need, and five more; node 0 has no slots."""
    nodes = 20
    slots = np.ones((1, nodes), np.int64)
    slots[0, 0] = 0
    arcs, none = np.arange(nodes), ints([])
    data = DataCosts(ints([0]), ints([999]), 0 * arcs, arcs, 10 * arcs, np.full(nodes, -1), none, none, none)
    near, racks = likely_arcs(data, ints([0]), slots, ints([3]))
    assert np.flatnonzero(near).tolist() == [1, 2, 3, 4, 5, 6]
    assert len(racks) == 0
    near, _ = likely_arcs(replace(data, of_task=ints([0, 0, 0])), ints([0, 0, 0]), slots, ints([3]))
    assert np.flatnonzero(near).tolist() == [1, 2, 3, 4, 5, 6, 7, 8], "three of one slot each"
    near, _ = likely_arcs(data, ints([0]), slots, np.where(arcs == 1, 1000, 3))
    assert np.flatnonzero(near).tolist() == [2, 3, 4, 5, 6, 7], "the cost of the slot counts"
    many = np.zeros(5, np.int64)
    near, _ = likely_arcs(replace(data, of_task=many), many, slots, ints([3]))
    assert near[1:].all(), "all, if half of them are needed"


def test_sets_that_compete_for_nodes_have_further_arcs():
    """Three sets of two tasks each; sets 0 and 1 have their first two arcs to the same nodes, set 1 then those of 2."""
    nodes, per_set = 40, 20
    of_set = np.repeat(np.arange(3), per_set)
    node = np.concatenate([np.arange(20), [0, 1, *range(20, 38)], np.arange(20, 40)])
    cost, none = np.tile(np.arange(per_set), 3), ints([])
    data = DataCosts(ints([0, 0, 1, 1, 2, 2]), ints([99] * 3), of_set, node, cost, np.full(nodes, -1), none, none, none)
    near, _ = likely_arcs(data, np.zeros(6, np.int64), np.ones((1, nodes), np.int64), ints([0]))
    # sets 0 and 1 get half of each of the first two nodes; set 0 gets its third, set 1 its fifth, after those of set 2
    assert np.bincount(of_set[near]).tolist() == [3 + 5, 5 + 5, 2 + 5]


def test_a_rack_is_likely_by_its_slots_and_cost():
    """Racks of two nodes with a slot each, but rack 1 has none, and rack 3 ten."""
    racks = np.arange(24)
    slots = np.ones((1, 48), np.int64)
    slots[0, 2:4], slots[0, 6:8] = 0, 5
    none = ints([])
    data = DataCosts(ints([0]), ints([99]), none, none, none, np.arange(48) // 2, 0 * racks, racks, racks)
    _, likely = likely_arcs(data, ints([0]), slots, ints([0]))
    assert np.flatnonzero(likely).tolist() == [0, 2, 3, 4, 5, 6]
    tasks = np.zeros(9, np.int64)
    _, likely = likely_arcs(replace(data, of_task=tasks), tasks, slots, ints([0]))
    assert np.flatnonzero(likely).tolist() == [0, 2, 3, 4, 5, 6, 7, 8], "2 + 2 < 9 <= 2 + 2 + 10"
