"""The proof of optimality of any network: it holds for optima, and only for these."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.engine.engine import Engine
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.certificate import certify, faults, potentials
from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver
from firmament_py.model.options import EngineOptions
from firmament_py.service.replies import round_stats
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.engine.random_rounds import clusters


@st.composite
def networks(draw):
    """Any small network, with a costly arc from each source to the sink so that there is a flow."""
    vertices = draw(st.integers(2, 6))
    arc = st.tuples(
        st.integers(0, vertices - 1), st.integers(0, vertices - 1), st.integers(0, 4), st.integers(-3, 8)
    ).filter(lambda a: a[0] != a[1])
    arcs = draw(st.lists(arc, max_size=14))
    supply = np.array([draw(st.integers(0, 3)) for _ in range(vertices - 1)] + [0])
    supply[-1] = -supply.sum()
    arcs += [(v, vertices - 1, 3, 50) for v in range(vertices - 1)]
    tail, head, capacity, cost = np.array(arcs, np.int64).T
    return FlowNetwork(tail.astype(np.int32), head.astype(np.int32), capacity, cost, supply)


@given(network=networks(), solver=st.sampled_from([OrToolsSolver(), NetworkxSolver()]))
def test_every_optimum_has_a_proof(network, solver):
    assert certify(network, solver.solve(network)) == []


@given(network=networks(), data=st.data())
def test_no_flow_of_higher_cost_has_a_proof(network, data):
    best = OrToolsSolver().solve(network)
    # the same supply over other prices: a feasible flow that may or may not be optimal here
    prices = np.array(data.draw(st.lists(st.integers(-3, 8), min_size=len(network.tail), max_size=len(network.tail))))
    other = OrToolsSolver().solve(replace(network, unit_cost=prices))
    cost = int(other.flow @ network.unit_cost)
    wrong = certify(network, Solution(Status.OPTIMAL, other.flow, cost))
    assert (wrong == []) == (cost == best.cost)


TRIANGLE = FlowNetwork(  # 0 sends 2 units to 2, for 1 each through 1, where there is room for one, or for 5 directly
    tail=np.array([0, 1, 0], np.int32),
    head=np.array([1, 2, 2], np.int32),
    capacity=np.array([1, 1, 2]),
    unit_cost=np.array([1, 0, 5]),
    supply=np.array([2, 0, -2]),
)
FLOW, POTENTIAL = np.array([1, 1, 1]), np.array([5, 0, 0])  # the last unit costs 5


@pytest.mark.parametrize(
    ("flow", "potential", "complaint"),
    [
        ([1, 1, 1], [5, 0, 0], None),
        ([1, 1, 1], [5, 4, 0], None),  # the dual price of capacity can be at either of the two full arcs
        ([2, 2, 0], [5, 0, 0], "below 0 or above its capacity"),
        ([-1, -1, 3], [5, 0, 0], "below 0 or above its capacity"),
        ([1, 0, 1], [5, 0, 0], "not conserved"),
        ([0, 0, 2], [5, 0, 0], "residual arc"),
        ([1, 1, 1], [4, 0, 0], "with flow"),
        ([1, 1, 1], [6, 0, 0], "residual arc"),
        ([1, 1, 1], [5, 2**62, 0], "out of range"),
        ([1, 1], [5, 0, 0], "number of flows"),
    ],
)
def test_each_clause_can_fail(flow, potential, complaint):
    found = faults(TRIANGLE, np.array(flow), np.array(potential))
    assert found == [] if complaint is None else any(complaint in fault for fault in found)


def test_a_wrong_cost_or_status_is_no_optimum():
    assert certify(TRIANGLE, Solution(Status.OPTIMAL, FLOW, 6)) == []
    assert certify(TRIANGLE, Solution(Status.OPTIMAL, FLOW, 7)) == ["the flow costs 6, not 7"]
    assert certify(TRIANGLE, Solution(Status.INFEASIBLE, FLOW, 6)) == ["the network is infeasible"]


def test_a_negative_cycle_is_found_in_a_long_network():
    # a path of 500 arcs, and back from its end to its start for less than nothing
    n = 500
    network = FlowNetwork(
        tail=np.arange(n, dtype=np.int32),
        head=np.roll(np.arange(n, dtype=np.int32), -1),
        capacity=np.full(n, 1),
        unit_cost=np.array([1] * (n - 1) + [-n]),
        supply=np.zeros(n, np.int64),
    )
    assert potentials(network, np.zeros(n, np.int64)) is None
    assert potentials(network, np.ones(n, np.int64)) is not None


# -- rounds ---------------------------------------------------------------------------------------------------------


@given(events=clusters(max_nodes=4, max_tasks=10))
def test_rounds_certify_every_network(events):
    cluster = make_cluster(*events)
    cluster.scheduler = Scheduler(
        cluster.state, LoadSpreading(), OrToolsSolver(), options=EngineOptions(certified=True)
    )
    stats = cluster.run().stats
    assert stats.uncertified == 0
    assert ("certify" in stats.stage_seconds) == (stats.solves + stats.trials > 0)


class Careless:
    """Ships all supply, at the highest cost."""

    name = "careless"

    def solve(self, network):
        found = OrToolsSolver().solve(replace(network, unit_cost=-network.unit_cost))
        return Solution(Status.OPTIMAL, found.flow, int(found.flow @ network.unit_cost))


def test_a_round_counts_and_logs_solutions_without_a_proof(caplog):
    # two classes that want the one slot: placing the one that is dearer to leave waiting is the optimum
    events = make_node("a", cpu=1000), make_class(1, cpu=1000, priority=5), make_class(2, cpu=1000)
    cluster = make_cluster(*events, make_tasks([1, 2], 1), make_tasks([3, 4, 5], 2))
    cluster.scheduler = Scheduler(cluster.state, LoadSpreading(), Careless(), options=EngineOptions(certified=True))
    with caplog.at_level(logging.ERROR):
        assert cluster.run().stats.uncertified > 0
    assert "a solution of careless has no certificate" in caplog.text


@pytest.mark.parametrize("certified", [True, False])
def test_an_engine_reports_solutions_without_a_proof_if_enabled(certified):
    engine = Engine(LoadSpreading(), Careless(), options=EngineOptions(certified=certified))
    engine.apply([make_node("a", cpu=1000), make_class(1, cpu=1000), make_class(2, cpu=500)])
    engine.apply([make_tasks([1, 2], 1), make_tasks([3, 4, 5], 2)])
    result = engine.run_round(NOW_US)
    assert result is not None
    message = round_stats(result.stats)
    assert (message.uncertified > 0) == certified
    assert ("certify" in message.stage_seconds) == certified
