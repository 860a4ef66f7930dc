"""Incremental networks: long histories against two other solvers, and refused changes."""

import logging

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from benchmarks.loads.quincy import QuincyLoad
from firmament_py.flow.incremental import augment_all, certificate
from firmament_py.flow.incremental.layout import HEAD, HEAD_BITS, START, UNKNOWN, USED
from firmament_py.flow.incremental.network import (
    CAPACITY_MAX,
    COST_MAX,
    DEGREE_MAX,
    FIXED_ARCS_MAX,
    TASKS_MAX,
    VERTICES_MAX,
    RangeError,
    TaskNetwork,
)
from firmament_py.flow.incremental.reoptimize import Reoptimizer
from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import OrToolsSolver
from tests.effort import examples
from tests.firmament_py.flow.incremental_networks import (
    BOUNDED,
    CLUSTER,
    DEGREE,
    FIRST_JOB,
    FIXED,
    NODES,
    SINK,
    UNSCHEDULED,
    VERTICES,
    assert_index,
    assert_optimal,
    routed_network,
    small_network,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("numba")]  # the first test compiles


class History(RuleBasedStateMachine):
    """Any history of changes; from time to time the network is reoptimized and checked."""

    rows: np.ndarray

    @initialize(few=st.booleans(), seed=st.integers(0, 10**6))
    def begin(self, few, seed):
        self.rng = np.random.default_rng(seed)
        self.maximum = 3 if few else 1000  # few different costs: ties everywhere
        self.network = small_network(tasks=2)
        self.reoptimizer = Reoptimizer(self.network, OrToolsSolver(), repair_share=100.0)
        self.rows = np.zeros(0, np.int64)
        self.runs = 0

    def costs(self, count):
        return self.rng.integers(-self.maximum, self.maximum + 1, (count, DEGREE))

    @rule(count=st.integers(1, 6))
    def add(self, count):
        if len(self.rows) > 30:
            return
        heads = self.rng.integers(0, CLUSTER + 1, (count, DEGREE))
        heads[self.rng.random(heads.shape) < 0.2] = VERTICES  # no arc
        heads[:, -1] = self.rng.integers(FIRST_JOB, UNSCHEDULED, count)
        rows = self.network.add_tasks(heads, self.costs(count))
        assert len(np.intersect1d(rows, self.rows)) == 0
        self.rows = np.append(self.rows, rows)

    @precondition(lambda self: len(self.rows) > 0)
    @rule(count=st.integers(1, 5))
    def remove(self, count):
        gone = self.rng.choice(self.rows, min(count, len(self.rows)), replace=False)
        self.network.remove_tasks(gone)
        self.rows = np.setdiff1d(self.rows, gone)

    @precondition(lambda self: len(self.rows) > 0)
    @rule(count=st.integers(1, 5))
    def change_task_costs(self, count):
        rows = self.rng.choice(self.rows, min(count, len(self.rows)), replace=False)
        self.network.set_task_costs(rows, self.costs(len(rows)))

    @rule(count=st.integers(1, 3), maximum=st.integers(0, 4))
    def change_capacities(self, count, maximum):
        arcs = self.rng.choice(BOUNDED, count, replace=False)
        self.network.set_capacity(arcs, self.rng.integers(0, maximum + 1, count))

    @rule(count=st.integers(1, 3))
    def change_fixed_costs(self, count):
        arcs = self.rng.choice(BOUNDED, count, replace=False)
        self.network.set_unit_cost(arcs, self.rng.integers(0, self.maximum + 1, count))

    @rule()
    def reoptimize(self):
        result = self.reoptimizer.run()
        assert_optimal(self.network, result)
        assert result.from_scratch == (self.runs == 0), "a repair gave up"
        assert self.reoptimizer.rejected == 0
        assert self.network.size == len(self.rows)
        self.runs += 1

    @invariant()
    def what_searches_rely_on_holds(self):
        assert_index(self.network)

    def teardown(self):
        self.reoptimize()


class TightHistory(History):
    """No task can stay unscheduled: networks are exactly full, infeasible, or have parts without a path to the sink;
    and some tasks have an arc to the sink itself."""

    @initialize(few=st.booleans(), seed=st.integers(0, 10**6))
    def begin(self, few, seed):
        super().begin(few, seed)
        self.feasible = False

    @rule(count=st.integers(1, 4))
    def add(self, count):
        if len(self.rows) > 10:
            return
        heads = self.rng.integers(0, CLUSTER + 1, (count, DEGREE))
        heads[self.rng.random(heads.shape) < 0.3] = VERTICES  # no arc
        heads[:, -1] = np.where(self.rng.random(count) < 0.1, SINK, self.rng.integers(0, CLUSTER + 1, count))
        self.rows = np.append(self.rows, self.network.add_tasks(heads, self.costs(count)))

    @rule(count=st.integers(1, 3))
    def change_fixed_costs(self, count):
        arcs = self.rng.choice(BOUNDED, count, replace=False)
        self.network.set_unit_cost(arcs, self.rng.integers(-self.maximum, self.maximum + 1, count))

    @rule()
    def reoptimize(self):
        result = self.reoptimizer.run()
        expected = OrToolsSolver().solve(self.network.flow_network()[0]).status
        assert result.status is expected
        if expected is Status.OPTIMAL:
            assert_optimal(self.network, result)
            assert not (self.feasible and result.from_scratch), "a repair gave up"
        assert self.reoptimizer.rejected == 0
        self.feasible = expected is Status.OPTIMAL


@pytest.mark.parametrize("history", [History, TightHistory])
def test_any_history_of_changes_is_repaired_to_the_optimum(history):
    run_state_machine_as_test(history, settings=examples(60, steps=30))


def test_potentials_that_have_risen_too_far_are_computed_again(caplog):
    network, _, reoptimizer = routed_network()
    network.graph.potential[:] += 2**60 + 1
    result = reoptimizer.run()
    assert_optimal(network, result)
    assert (result.from_scratch, reoptimizer.rejected, caplog.text) == (True, 0, "")
    assert not reoptimizer.run().from_scratch


def test_the_cost_of_flows_far_larger_than_the_tasks_is_exact():
    """Cycles of negative cost that are as large as can be."""
    pairs = 10
    tail, head = np.array([0, 1] * pairs + [0]), np.array([1, 0] * pairs + [2])
    capacity, cost = np.full(len(tail), CAPACITY_MAX), np.full(len(tail), -COST_MAX)
    network = TaskNetwork(3, 2, tail, head, capacity, cost, degree=1)
    network.add_tasks(np.array([[0]]), np.array([[7]]))
    network.graph.flow[:] = np.where(network.graph.head == 2, 1, CAPACITY_MAX)
    network.graph.now[0] = network.graph.arc[0]
    assert network.cost() == 7 - COST_MAX - 2 * pairs * CAPACITY_MAX * COST_MAX


@pytest.mark.parametrize("shape", ["running", "zipf", "oversubscribed"])
def test_what_searches_rely_on_holds_after_rounds_of_churn(shape):
    load = QuincyLoad(shape, 20, 240, seed=1)
    network, rng = load.network, np.random.default_rng(2)
    reoptimizer = Reoptimizer(network, OrToolsSolver(), repair_share=100.0)
    bounds = 0
    for step in range(40):
        result = reoptimizer.solve_from_scratch() if step == 20 else reoptimizer.run()
        assert result.status is Status.OPTIMAL
        assert_index(network)
        g = network.graph
        bounds += sum((g.in_least[s : s + n] > UNKNOWN).sum() for s, n in g.vertex[:-1, [START, USED]])
        gone, heads, costs = load.churn(12)
        network.remove_tasks(gone)
        assert_index(network)
        network.add_tasks(heads, costs)
        changed = rng.choice(np.flatnonzero(network.live), 5, replace=False)
        _, costs = network.task_arcs(changed)
        network.set_task_costs(changed, np.maximum(costs - rng.integers(0, 30, costs.shape), 0))
        assert_index(network)
    assert_optimal(network, reoptimizer.run())
    assert (reoptimizer.full_solves, reoptimizer.rejected) == (2, 0)
    assert bounds > 1000, "hardly any bound was noted"


def test_an_unchanged_network_needs_no_search():
    network, _, reoptimizer = routed_network()
    again = reoptimizer.run()
    assert (again.from_scratch, again.searches) == (False, 0)
    assert_optimal(network, again)


def test_rows_of_removed_tasks_are_reused():
    network, rows, _ = routed_network(tasks=6)
    network.remove_tasks(rows[2:4])
    extra = network.add_tasks(np.full((2, 1), FIRST_JOB), np.zeros((2, 1), np.int64))
    assert sorted(extra.tolist()) == sorted(rows[2:4].tolist())
    assert network.size == 6


def test_fixed_arcs_keep_their_numbers():
    order = np.random.default_rng(0).permutation(len(FIXED))
    networks = [small_network(), small_network(fixed=FIXED[order])]
    of = [np.arange(len(FIXED)), np.argsort(order)]
    for network, arcs in zip(networks, of, strict=True):
        network.add_tasks(np.tile([0, 1, CLUSTER, FIRST_JOB], (6, 1)), np.tile([5, 6, 20, 40], (6, 1)))
        network.set_capacity(arcs[[0, 1, 3]], np.array([0, 2, 0]))
        network.set_unit_cost(arcs[[2, 9]], np.array([30, 25]))
    costs = [Reoptimizer(network, OrToolsSolver()).run().cost for network in networks]
    assert costs[0] == costs[1]
    for network, arcs in zip(networks, of, strict=True):
        network.set_capacity(arcs[[0, 3]], np.array([1, 1]))
        result = Reoptimizer(network, OrToolsSolver()).run()
        assert_optimal(network, result)
        assert result.cost < costs[0]


def test_a_freed_slot_goes_to_the_task_that_saves_most():
    # one slot at node 0, three tasks that pay 1, 5 and 3 less there than at their job's unscheduled
    fixed = FIXED.copy()
    fixed[: 2 * NODES, 2] = 0
    fixed[0, 2] = 1
    network = small_network(fixed=fixed)
    heads, costs = np.tile([0, FIRST_JOB], (3, 1)), np.array([[9, 10], [5, 10], [7, 10]])
    rows = network.add_tasks(heads, costs)
    reoptimizer = Reoptimizer(network, OrToolsSolver(), repair_share=100.0)
    assert reoptimizer.run().cost == 10 + 5 + 10
    assert network.task_heads(rows).tolist() == [FIRST_JOB, 0, FIRST_JOB]
    network.remove_tasks(rows[1:2])
    result = reoptimizer.run()
    assert (result.from_scratch, result.cost) == (False, 10 + 7)
    assert network.task_heads(rows[[0, 2]]).tolist() == [FIRST_JOB, 0]


def test_tasks_of_a_drained_node_move():
    network, rows, reoptimizer = routed_network()
    node = int(np.bincount(network.task_heads(rows), minlength=VERTICES)[:NODES].argmax())
    slots = np.flatnonzero((FIXED[:, 0] == node) & (FIXED[:, 1] == SINK))
    network.set_capacity(slots, np.zeros(len(slots), np.int64))
    result = reoptimizer.run()
    assert not result.from_scratch
    assert_optimal(network, result)
    assert (network.task_heads(rows) != node).all()


def test_a_network_is_infeasible_while_a_task_cannot_be_routed():
    network, _, reoptimizer = routed_network()
    row = network.add_tasks(np.array([[0]]), np.array([[1]]))
    slots = np.arange(2)  # of node 0
    network.set_capacity(slots, np.zeros(2, np.int64))
    assert reoptimizer.run().status is Status.INFEASIBLE
    network.set_capacity(slots, np.ones(2, np.int64))
    assert_optimal(network, reoptimizer.run())
    assert network.task_heads(row).tolist() == [0]


def test_a_large_change_is_solved_from_scratch():
    network, rows, reoptimizer = routed_network(tasks=60)
    few = Reoptimizer(network, OrToolsSolver(), repair_share=0.1)
    few.run()
    network.remove_tasks(rows[:40])
    result = few.run()
    assert result.from_scratch
    assert_optimal(network, result)
    del reoptimizer


def test_an_unbounded_arc_whose_cost_falls_is_solved_from_scratch():
    network, _, _ = routed_network()
    reoptimizer = Reoptimizer(network, OrToolsSolver())
    reoptimizer.run()
    network.set_capacity(np.array([0]), np.array([CAPACITY_MAX]))
    network.set_unit_cost(np.array([0]), np.array([-COST_MAX]))
    result = reoptimizer.run()
    assert result.from_scratch
    assert_optimal(network, result)


class Wrong:
    """Returns a flow that is not optimal."""

    name = "wrong"

    def solve(self, network):
        dearer = network.unit_cost.copy()
        dearer[network.tail >= VERTICES] *= -1
        found = OrToolsSolver().solve(
            type(network)(network.tail, network.head, network.capacity, dearer, network.supply)
        )
        return Solution(Status.OPTIMAL, found.flow, int(found.flow @ network.unit_cost))


def test_a_full_solve_without_a_certificate_is_a_failure(caplog):
    network, _, _ = routed_network()
    with caplog.at_level(logging.ERROR):
        assert Reoptimizer(network, Wrong()).run().status is Status.FAILED
    assert "wrong has no certificate" in caplog.text


def test_a_repair_without_a_certificate_is_solved_from_scratch(caplog, monkeypatch):
    network, rows, reoptimizer = routed_network()
    network.remove_tasks(rows[:1])
    monkeypatch.setattr(augment_all, "fill_deficits", lambda *_: True)  # claims to have filled the gap
    with caplog.at_level(logging.ERROR):
        result = reoptimizer.run()
    assert result.from_scratch
    assert_optimal(network, result)
    assert (reoptimizer.rejected, reoptimizer.full_solves) == (1, 2)


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        pytest.param(lambda g, row: g.flow.__setitem__(0, 1 - g.flow[0]), "not conserved", id="flow"),
        pytest.param(lambda g, row: g.flow.__setitem__(0, -1), "above its capacity", id="negative"),
        pytest.param(lambda g, row: g.flow.__setitem__(0, g.capacity[0] + 1), "above its capacity", id="capacity"),
        pytest.param(lambda g, row: g.chosen.__setitem__(row, -1), "one of its own arcs", id="unrouted"),
        pytest.param(
            lambda g, row: g.chosen.__setitem__(row, (row + 1) * DEGREE), "one of its own arcs", id="arc of another"
        ),
        pytest.param(
            lambda g, row: g.chosen.__setitem__(row, row * DEGREE + (g.chosen[row] + 1) % DEGREE),
            "not conserved",
            id="another arc",
        ),
        pytest.param(
            lambda g, row: g.arc.__setitem__(g.chosen[row], 10**6 << HEAD_BITS | g.arc[g.chosen[row]] & HEAD),
            "costs less than the one it uses",
            id="task cost",
        ),
        pytest.param(lambda g, row: g.potential.__setitem__(SINK, 10**6), "with flow", id="dear"),
        pytest.param(lambda g, row: g.potential.__setitem__(SINK, -(10**6)), "residual arc", id="cheap"),
        pytest.param(lambda g, row: g.potential.__setitem__(0, 2**62), "out of range", id="range"),
    ],
)
def test_the_certificate_rejects(tamper, complaint):
    network, rows, _ = routed_network()
    assert certificate.faults(network) == []
    tamper(network.graph, int(rows[0]))
    assert any(complaint in fault for fault in certificate.faults(network))


def test_the_certificate_rejects_a_removed_task_that_sends():
    network, rows, _ = routed_network()
    before = network.graph.chosen.copy()
    network.remove_tasks(rows[:1])
    network.graph.chosen[rows[0]] = before[rows[0]]
    assert "a removed task sends a unit" in certificate.faults(network)


def test_the_certificate_rejects_a_task_that_is_not_at_the_head_of_its_arc():
    network, rows, _ = routed_network()
    network.graph.now[rows[0]] = network.graph.now[rows[0]] ^ 1
    assert certificate.faults(network) == ["a task is not at the head of its chosen arc"]


def test_the_number_of_tasks_is_limited(monkeypatch):
    monkeypatch.setattr("firmament_py.flow.incremental.network.TASKS_MAX", 7)
    network, rows, reoptimizer = routed_network(tasks=6)
    with pytest.raises(RangeError, match="2 more tasks than 6; the limit is 7"):
        network.add_tasks(np.array([[FIRST_JOB]] * 2), np.zeros((2, 1), np.int64))
    network.add_tasks(np.array([[FIRST_JOB]]), np.zeros((1, 1), np.int64))
    assert network.size == len(rows) + 1
    assert_optimal(network, reoptimizer.run())


def test_arithmetic_with_the_largest_numbers_is_exact():
    network, rows, reoptimizer = routed_network()
    costs = np.tile([COST_MAX, -COST_MAX, COST_MAX - 1, COST_MAX], (len(rows), 1))
    network.set_task_costs(rows, costs)
    network.set_unit_cost(BOUNDED, np.where(BOUNDED % 2, COST_MAX, -COST_MAX))
    assert_optimal(network, reoptimizer.run())


def test_the_last_vertex_and_the_largest_costs_fit_a_word():
    sink = VERTICES_MAX - 1
    network = TaskNetwork(
        VERTICES_MAX,
        sink,
        np.array([sink - 1, sink - 2]),
        np.array([sink, sink]),
        np.array([1, 2]),
        np.array([-COST_MAX, COST_MAX]),
        degree=3,
    )
    heads, costs = np.array([[sink - 1, VERTICES_MAX, sink - 2]] * 2), np.array([[COST_MAX, 0, -COST_MAX]] * 2)
    rows = network.add_tasks(heads, costs)
    assert [part.tolist() for part in network.task_arcs(rows)] == [heads.tolist(), costs.tolist()]
    reoptimizer = Reoptimizer(network, OrToolsSolver(), repair_share=100.0)
    assert (reoptimizer.run().cost, certificate.faults(network)) == (0, [])
    network.set_unit_cost(np.array([1]), np.array([COST_MAX - 1]))
    result = reoptimizer.run()
    assert (result.from_scratch, result.cost) == (False, -2)
    assert sorted(network.task_heads(rows).tolist()) == [sink - 2, sink - 2]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda n: n.add_tasks(np.array([[0]]), np.array([[COST_MAX + 1]])), RangeError, "costs holds"),
        (lambda n: n.set_task_costs(np.array([0]), np.full((1, DEGREE), -COST_MAX - 1)), RangeError, "costs holds"),
        (lambda n: n.set_unit_cost(np.array([0]), np.array([COST_MAX + 1])), RangeError, "unit_cost holds"),
        (lambda n: n.set_capacity(np.array([0]), np.array([-1])), RangeError, "capacity holds"),
        (lambda n: n.set_capacity(np.array([0]), np.array([CAPACITY_MAX + 1])), RangeError, "capacity holds"),
        (lambda n: n.add_tasks(np.array([[VERTICES + 1]]), np.array([[0]])), ValueError, "heads must be vertices"),
        (lambda n: n.add_tasks(np.array([[VERTICES]]), np.array([[0]])), ValueError, "without an arc"),
        (lambda n: n.add_tasks(np.array([[0.0]]), np.array([[0]])), ValueError, "heads holds float64"),
        (lambda n: n.set_capacity(np.array([-1]), np.array([1])), ValueError, "arcs holds -1"),
        (lambda n: n.set_unit_cost(np.array([len(FIXED)]), np.array([1])), ValueError, "the fixed arcs are 0 to"),
        (
            lambda n: n.add_tasks(np.zeros((1, DEGREE + 1), int), np.zeros((1, DEGREE + 1), int)),
            ValueError,
            "at most 4",
        ),
        (lambda n: n.remove_tasks(np.array([10**6])), ValueError, "no task"),
        (lambda n: n.remove_tasks(np.array([0, 0])), ValueError, "twice"),
    ],
)
def test_invalid_changes_are_refused_and_change_nothing(change, error, says):
    network, rows, reoptimizer = routed_network()
    cost, size = network.cost(), network.size
    with pytest.raises(error, match=says):
        change(network)
    assert (network.cost(), network.size) == (cost, size)
    assert not reoptimizer.run().from_scratch
    assert len(rows) == size


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"vertices": VERTICES_MAX + 1}, "vertices is"),
        ({"sink": VERTICES}, "sink is"),
        ({"degree": 0}, "degree is 0"),
        ({"degree": DEGREE_MAX + 1}, "degree is 257"),
        ({"head": np.array([SINK, SINK])}, r"hold \[1, 2, 1, 1\] arcs"),
        ({"capacity": np.array([1, 1])}, r"hold \[1, 1, 2, 1\] arcs"),
        (
            dict.fromkeys(["tail", "head", "capacity", "unit_cost"], np.zeros(FIXED_ARCS_MAX + 1, int)),
            "tail holds 2097153",
        ),
        ({"tasks": TASKS_MAX + 1}, "tasks is"),
        ({"tail": np.array([VERTICES])}, "tail holds"),
        ({"tail": np.array([SINK])}, "nothing leaves the sink"),
        ({"unit_cost": np.array([2 * COST_MAX])}, "unit_cost holds"),
    ],
)
def test_invalid_networks_are_refused(arguments, says):
    good = {
        "vertices": VERTICES,
        "sink": SINK,
        "tail": np.array([0]),
        "head": np.array([SINK]),
        "capacity": np.array([1]),
        "unit_cost": np.array([1]),
        "degree": 2,
    }
    with pytest.raises(ValueError, match=says):
        TaskNetwork(**{**good, **arguments})
