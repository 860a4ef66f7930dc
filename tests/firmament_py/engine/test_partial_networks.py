"""Rounds with partial networks, as used for large clusters: small ones with parts that are often too small."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event
from firmament_py.network import candidate_arcs, column_generation
from firmament_py.network.arc_pricing import negative_reduced_costs
from firmament_py.network.build import build
from firmament_py.network.part import Part
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.engine.random_rounds import POLICIES, carry_out, clusters, inversions, left_over, world_of


@pytest.fixture(autouse=True, scope="module")
def parts():
    """Also of small networks, and so little of them that more is often needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_arcs, "_SMALL", 0)
        patch.setattr(candidate_arcs, "_WORTHWHILE", 0)
        patch.setattr(candidate_arcs, "_OWN", 1)
        patch.setattr(candidate_arcs, "_KNOWN", 1)
        patch.setattr(candidate_arcs, "_PLENTY", (0.5, 1.0))
        yield


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters())
def test_rounds_with_partial_networks_keep_constraints_and_leave_no_task_that_fits(policy, events):
    cluster, world = make_cluster(*events, policy=policy, reserve_after_us=None), world_of(events)
    result = cluster.run()
    carry_out(world, cluster.names(result))
    assert left_over(world) == []
    assert result.stats.dropped == 0


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters(max_nodes=8, max_tasks=10), tries=st.integers(0, 3))
def test_accepted_flows_are_optima_of_the_whole_network(policy, events, tries):
    accepted, widened = 0, 0
    real = negative_reduced_costs

    def judged(whole, part, network, flow, prices, offsets, per_task):
        nonlocal accepted, widened
        omitted = real(whole, part, network, flow, prices, offsets, per_task)
        if omitted:
            widened += 1
            return omitted
        accepted += 1
        task_class = np.repeat(network.group_class, network.group_size)
        waits = np.repeat(network.group_wait, network.group_size)
        everything = build(whole, replace(prices, wait=waits), offsets, task_class)
        assert OrToolsSolver().solve(everything.flow).cost == int(flow @ network.flow.unit_cost)
        return omitted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_generation, "negative_reduced_costs", judged)
        patch.setattr(column_generation, "PRICING_ROUNDS", tries)
        stats = make_cluster(*events, policy=policy).run().stats
    assert stats.pricing_rounds == widened
    assert stats.solves + stats.trials >= accepted + widened


@given(events=clusters())
def test_no_task_waits_for_capacity_given_to_a_lower_priority(events):
    cluster, world = make_cluster(*events, reserve_after_us=None), world_of(events)
    placed = cluster.round()
    carry_out(world, placed)
    assert inversions(world, placed) == []


def test_missing_arcs_are_added_and_counted(monkeypatch):
    """Tasks of two classes; the first part has the nodes of least cost for neither."""
    nodes = [make_node(f"n{i}", cpu=8) for i in range(6)]
    busy = [make_tasks(range(100 * i, 100 * i + i), 3, on=f"n{i}") for i in range(1, 6)]
    classes = [make_class(1, cpu=2), make_class(2, cpu=3), make_class(3)]
    events: list[Event] = [*nodes, *classes, *busy, make_tasks([1, 2], 1), make_tasks([3], 2)]
    best = make_cluster(*events).run().stats
    monkeypatch.setattr(column_generation, "candidate_part", lambda whole, *_: part_of(whole, {3, 4, 5}))
    stats = make_cluster(*events).run().stats
    assert stats.pricing_rounds >= 1
    assert stats.solves > best.solves
    assert stats.objective == best.objective
    assert "prove" in stats.stage_seconds


def part_of(capacities, nodes):
    there = np.isin(np.arange(len(capacities.depth)), list(nodes))
    return Part(
        replace(capacities, slots=np.where(there, capacities.slots, 0), depth=np.where(there, capacities.depth, 0))
    )
