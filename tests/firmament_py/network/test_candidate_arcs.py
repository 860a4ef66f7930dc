"""The part of the capacities that is likely to matter: small, with the nodes of least cost, and deterministic."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmament_py.network import candidate_arcs
from firmament_py.network.candidate_arcs import candidate_part as part_of_some_nodes
from firmament_py.network.capacities import Capacities
from firmament_py.policy import WAIT_MIN, Costs
from firmament_py.policy.locality import DataCosts
from firmament_py.snapshot.domain_limits import DomainLimit


@pytest.fixture(autouse=True)
def small_networks_too(monkeypatch):
    monkeypatch.setattr(candidate_arcs, "_SMALL", 0)


def candidate_part(whole, costs, offsets, waiting):
    """The part for waiting (C,) tasks, with all nodes."""
    task_class = np.repeat(np.arange(len(waiting)), waiting)
    return on_all_nodes(part_of_some_nodes(whole, costs, offsets, task_class).capacities, whole)


def on_all_nodes(part, whole):
    """The part with rows for the nodes that it does not have, too."""
    if part.nodes is None:
        return part
    slots, depth = np.zeros_like(whole.slots), np.zeros_like(whole.depth)
    slots[:, part.nodes], depth[part.nodes] = part.slots, part.depth
    for c, limits in whole.limits.items():
        for of_part, limit in zip(part.limits[c], limits, strict=True):
            assert of_part.domain.tolist() == limit.domain[part.nodes].tolist()
    return Capacities(slots, depth, whole.limits)


def ints(values) -> np.ndarray:
    return np.array(values, np.int64)


@st.composite
def problems(draw):
    """Capacities for more tasks than wait, on nodes of different costs, with limits for some classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes, classes, tasks = draw(st.integers(4, 16)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    task_class = np.sort(rng.integers(0, classes, tasks))
    waiting = np.bincount(task_class, minlength=classes)
    maximum = draw(st.integers(1, 3))
    slots = np.minimum(rng.integers(0, maximum + 1, (classes, nodes)), waiting[:, None])
    slots[np.arange(classes), rng.integers(0, nodes, classes)] = np.minimum(1, waiting)  # each has one somewhere
    depth = np.minimum(slots.max(axis=0), slots.sum(axis=0))
    offsets = ints([0, 1, 2][: draw(st.integers(1, 3))])
    dear = draw(st.sampled_from([1, 3, 10]))
    place = rng.integers(0, dear + 1, (draw(st.sampled_from([1, classes])), draw(st.sampled_from([1, nodes]))))
    slot = rng.integers(0, 10, (draw(st.sampled_from([1, nodes])), 1)) + np.cumsum(
        rng.integers(0, 3, (1, len(offsets))), axis=1
    )
    limits: dict[int, list[DomainLimit]] = {}
    for c in range(classes):
        kinds = draw(st.lists(st.sampled_from(["node", "zone"]), max_size=2, unique=True))
        for kind in kinds:
            domain = np.arange(nodes) if kind == "node" else rng.integers(-1, 3, nodes)
            upto = rng.integers(1, 4, nodes if kind == "node" else 3)
            expected = np.minimum(upto, rng.integers(0, 3, len(upto)))
            limits.setdefault(c, []).append(DomainLimit(domain, upto, expected, int(rng.integers(0, 6))))
            if kind == "node":
                slots[c] = np.minimum(slots[c], upto)
    wait = WAIT_MIN + rng.integers(0, 3, tasks)
    costs = Costs(place.astype(np.int64), slot.astype(np.int64), wait)
    return Capacities(slots, np.minimum(depth, slots.sum(axis=0)), limits), costs, offsets, task_class


def hopeful(problem):
    """The problem without tasks that have no slots."""
    capacities, costs, offsets, task_class = problem
    some = (capacities.slots.max(axis=1) > 0)[task_class]
    return capacities, Costs(costs.place, costs.slot, costs.wait[some]), offsets, task_class[some]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems())
def test_a_part_has_whole_pairs_and_the_slots_of_least_cost(problem):
    capacities, costs, offsets, task_class = hopeful(problem)
    part = candidate_part(capacities, costs, offsets, np.bincount(task_class, minlength=len(capacities.slots)))
    assert ((part.slots == 0) | (part.slots == capacities.slots)).all()
    assert (part.depth <= np.minimum(capacities.depth, part.slots.sum(axis=0))).all()
    assert ((part.depth > 0) == (part.slots > 0).any(axis=0)).all()


def flat(tasks):
    """Costs that differ by node only: each node costs its number."""

    def costs(nodes):
        return Costs(np.zeros((1, 1), np.int64), np.arange(nodes)[:, None], np.full(tasks, WAIT_MIN))

    return costs


@pytest.mark.parametrize("nodes", [1000, 4000, 16_000])
def test_the_part_for_few_tasks_does_not_grow_with_the_nodes(nodes):
    slots = np.full((2, nodes), 2)
    slots[1, ::2] = 0
    part = candidate_part(Capacities(slots, slots.max(axis=0), {}), flat(40)(nodes), ints([0]), ints([10, 30]))
    remaining = [np.flatnonzero(row) for row in part.slots]
    assert 10 <= len(remaining[0]) <= 300
    assert 30 <= len(remaining[1]) <= 300
    assert remaining[0][:5].tolist() == [0, 1, 2, 3, 4], "the cheapest"
    assert remaining[1][:5].tolist() == [1, 3, 5, 7, 9]
    assert set(np.flatnonzero(part.depth)) == {*remaining[0], *remaining[1]}


@pytest.mark.parametrize("kind", ["scarce", "elsewhere"])
def test_a_class_with_few_slots_keeps_all_of_them(kind):
    nodes = 1000
    slots = np.full((2, nodes), 1)
    if kind == "scarce":
        slots[1, 5:] = 0  # five slots for five tasks
    else:
        slots[1, :-5] = 0
    part = candidate_part(Capacities(slots, slots.max(axis=0), {}), flat(10)(nodes), ints([0]), ints([5, 5]))
    assert part.slots[1].tolist() == slots[1].tolist()
    assert 20 <= part.slots[0].sum() < 200


@pytest.mark.parametrize(
    ("soft_limit", "least"),
    [
        pytest.param([1] * 5, 5, id="even"),
        pytest.param([5, 0, 0, 0, 0], 5 * 5, id="all-in-one"),  # a fifth of them is in the first zone
    ],
)
def test_a_class_with_a_limit_of_zones_keeps_nodes_for_its_busiest_zone(soft_limit, least):
    nodes, zones = 1000, len(soft_limit)
    slots = np.full((2, nodes), 1)
    limit = DomainLimit(np.arange(nodes) % zones, ints([9] * zones), ints(soft_limit), 7)
    part = candidate_part(Capacities(slots, slots.max(axis=0), {1: [limit]}), flat(10)(nodes), ints([0]), ints([5, 5]))
    chosen = np.flatnonzero(part.slots[1])
    assert least <= len(chosen) < nodes // 2
    assert min(np.bincount(chosen % zones, minlength=zones)) >= max(soft_limit)


def test_a_class_keeps_some_of_the_nodes_that_all_might_use():
    """Otherwise a few classes with the same nodes of least cost would need many pricing rounds."""
    nodes, classes = 2000, 20
    capacities = Capacities(np.ones((classes, nodes), np.int64), np.ones(nodes, np.int64), {})
    part = candidate_part(capacities, flat(200)(nodes), ints([0]), np.full(classes, 10))
    used = part.slots[:, :200]  # what 200 tasks will fill
    assert (used.sum(axis=1) < 150).all(), "no class knows all"
    assert (used.sum(axis=0) >= 2).all(), "each is known to some"
    assert len(np.unique(used, axis=0)) == classes, "each class knows others"
    again = candidate_part(capacities, flat(200)(nodes), ints([0]), np.full(classes, 10))
    assert np.array_equal(again.slots, part.slots), "the same every time"


def test_nothing_is_omitted_if_much_of_the_network_is_needed():
    slots = np.full((1, 50), 2)
    capacities = Capacities(slots, slots[0], {})
    # 50 pairs and 50 runs of slots
    assert candidate_part(capacities, flat(6)(50), ints([0]), ints([6])) is capacities
    assert candidate_part(capacities, flat(5)(50), ints([0]), ints([5])).slots.sum() < 100


def test_equal_nodes_count_as_one():
    nodes = 1000
    capacities = Capacities(np.full((3, nodes), 2), np.full(nodes, 2), {})
    equal = Costs(np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.full(6, WAIT_MIN))
    assert candidate_part(capacities, equal, ints([0]), ints([2, 2, 2])) is capacities
    assert candidate_part(capacities, flat(6)(nodes), ints([0]), ints([2, 2, 2])) is not capacities


def test_a_small_network_is_not_reduced(monkeypatch):
    slots = np.full((1, 50), 2)
    capacities = Capacities(slots, slots[0], {})
    monkeypatch.setattr(candidate_arcs, "_SMALL", 101)
    assert candidate_part(capacities, flat(1)(50), ints([0]), ints([1])) is capacities
    monkeypatch.setattr(candidate_arcs, "_SMALL", 100)
    assert candidate_part(capacities, flat(1)(50), ints([0]), ints([1])) is not capacities


def test_slots_with_an_extra_cost_do_not_count():
    nodes, tasks = 1000, 10
    limit = DomainLimit(np.arange(nodes), np.full(nodes, 9), np.ones(nodes, np.int64), 1000)
    capacities = Capacities(np.full((1, nodes), 10), np.full(nodes, 10), {0: [limit]})
    one_each = candidate_part(capacities, flat(tasks)(nodes), ints([0]), ints([tasks]))
    all_there = candidate_part(
        Capacities(capacities.slots, capacities.depth, {}), flat(tasks)(nodes), ints([0]), ints([tasks])
    )
    assert (one_each.slots > 0).sum() >= 40 > (all_there.slots > 0).sum()


def test_preference_arcs_keep_their_nodes_and_three_in_their_racks():
    """Both tasks read data on node 70 and in racks 3 and 4; racks have ten nodes."""
    nodes = 100
    slots = np.ones((2, nodes), np.int64)
    slots[0, 40:50] = 0  # none for class 0 in rack 4
    data = DataCosts(
        of_task=ints([0, 0]),
        anywhere=ints([9]),
        near_set=ints([0]),
        near_node=ints([70]),
        near_cost=ints([0]),
        rack=np.arange(nodes) // 10,
        rack_set=ints([0, 0]),
        rack_id=ints([3, 4]),
        rack_cost=ints([5, 5]),
    )
    costs = replace(flat(2)(nodes), data=data)
    part = candidate_part(Capacities(slots, slots.max(axis=0), {}), costs, ints([0]), ints([1, 1]))
    chosen = [np.flatnonzero(row) for row in part.slots]
    assert set(chosen[0]) == {*range(15), 30, 31, 32, 70} & set(chosen[0])
    assert {30, 31, 32, 70} <= set(chosen[0])
    assert {30, 31, 32, 40, 41, 42, 70} <= set(chosen[1])
    assert part.depth[chosen[1]].tolist() == [1] * len(chosen[1])
