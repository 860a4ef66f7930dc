"""Networks with preference arcs: their optimum is that of the full network, and every task can be followed."""

from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from firmament_py.flow.network import Status
from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver
from firmament_py.network import candidate_arcs, column_generation, preference_arcs
from firmament_py.network.build import build
from firmament_py.network.capacities import Capacities
from firmament_py.network.column_generation import ColumnGeneration
from firmament_py.network.decode import Assignment, NodeCounts, assign, spread_over_members
from firmament_py.network.supply_groups import supply_order
from firmament_py.network.telemetry import Telemetry
from firmament_py.policy import COST_MAX, WAIT_MIN, Costs
from firmament_py.policy.locality import DataCosts
from tests.effort import examples

pytestmark = pytest.mark.slow


def ints(values) -> np.ndarray:
    return np.array(values, np.int64)


@st.composite
def problems(draw, nodes=6, classes=3, tasks=9, sets=4):
    """Capacities, costs with data, offsets and classes of tasks; nodes are often equal, arcs often useless."""
    n, c = draw(st.integers(1, nodes)), draw(st.integers(1, classes))
    slots = ints([draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(c)])
    if draw(st.booleans()):
        slots[:] = slots[:, :1]  # all nodes alike
    of_class = sorted(draw(st.lists(st.integers(0, c - 1), max_size=tasks)))
    task_class = ints([t for t in of_class if slots[t].any()])
    slots = np.minimum(slots, np.bincount(task_class, minlength=c)[:, None])
    depth = slots.max(axis=0, initial=0)
    offsets = sorted({0, *draw(st.sets(st.integers(0, max(int(depth.max(initial=0)) - 1, 0))))})
    few = st.sampled_from([0, 1, 2, 5, 9, COST_MAX])

    def column(values, size):
        return ints(draw(st.lists(values, min_size=size, max_size=size)))

    def matrix(rows, columns):
        rows, columns = draw(st.sampled_from([1, rows])), draw(st.sampled_from([1, columns]))
        return column(few, rows * columns).reshape(rows, columns)

    s = draw(st.integers(1, sets))
    rack = column(st.integers(-1, min(1, n - 1)), n)
    near, racks = draw(st.integers(0, 8)), draw(st.integers(0, 4)) if rack.max() >= 0 else 0
    data = DataCosts(
        of_task=column(st.integers(-1, s - 1), len(task_class)),
        anywhere=column(few, s),
        near_set=column(st.integers(0, s - 1), near),
        near_node=column(st.integers(0, n - 1), near),
        near_cost=column(few, near),
        rack=rack,
        rack_set=column(st.integers(0, s - 1), racks),
        rack_id=column(st.integers(0, max(int(rack.max()), 0)), racks),
        rack_cost=column(few, racks),
    )
    wait = WAIT_MIN + column(st.integers(0, 2), len(task_class))
    costs = Costs(matrix(c, n), np.sort(matrix(n, len(offsets)), axis=1), wait, data=data)
    return Capacities(slots, depth, {}), costs, ints(offsets), task_class


def data_cost(data: DataCosts, task: int, node: int) -> int:
    """By the definition of DataCosts, one arc at a time."""
    s = int(data.of_task[task])
    if s < 0:
        return 0
    ways = [int(data.anywhere[s])]
    ways += [
        int(cost)
        for of, at, cost in zip(data.near_set, data.near_node, data.near_cost, strict=True)
        if of == s and at == node
    ]
    ways += [
        int(cost)
        for of, at, cost in zip(data.rack_set, data.rack_id, data.rack_cost, strict=True)
        if of == s and at == data.rack[node]
    ]
    return min(ways)


def slot_cost(capacities, costs, offsets, node: int, k: int) -> int:
    """The cost of the (k + 1)-th task on a node."""
    run = max(i for i, offset in enumerate(offsets.tolist()) if offset <= k)
    return int(np.broadcast_to(costs.slot, (len(capacities.depth), len(offsets)))[node, run])


def in_full(capacities, costs, offsets, task_class) -> int:
    """The optimum with an arc from every task to every node, through a vertex that keeps its class in its slots."""
    classes, nodes = capacities.slots.shape
    place = np.broadcast_to(costs.place, (classes, nodes))
    graph = networkx.MultiDiGraph()
    graph.add_node("sink", demand=len(task_class))
    for t, c in enumerate(task_class.tolist()):
        graph.add_node(("task", t), demand=-1)
        graph.add_edge(("task", t), "sink", capacity=1, weight=int(costs.wait[t]))
        for n in range(nodes):
            graph.add_edge(("task", t), ("pair", c, n), capacity=1, weight=data_cost(costs.data, t, n))
    for c in range(classes):
        for n in range(nodes):
            graph.add_edge(("pair", c, n), ("node", n), capacity=int(capacities.slots[c, n]), weight=int(place[c, n]))
    for n in range(nodes):
        for k in range(int(capacities.depth[n])):
            graph.add_edge(("node", n), "sink", capacity=1, weight=slot_cost(capacities, costs, offsets, n, k))
    return int(networkx.network_simplex(graph)[0])


def solved(capacities, costs, offsets, task_class, solver=None):
    """Network and flow that keep all classes in their slots, as a round finds them."""
    over_capacity = None
    while True:
        network = build(capacities, costs, offsets, task_class, over_capacity)
        solution = (solver or OrToolsSolver()).solve(network.flow)
        assert solution.status is Status.OPTIMAL
        excess = network.of_members(network.excess(solution.flow) > 0, capacities.slots.shape)
        if not excess.any():
            return network, solution
        assert over_capacity is None or not (excess & over_capacity).any(), "a bound that was asked for does not hold"
        over_capacity = excess if over_capacity is None else excess | over_capacity


@given(problems())
def test_the_optimum_is_that_of_the_full_network(problem):
    network, solution = solved(*problem)
    assert solution.cost == in_full(*problem)
    assert solution.cost == NetworkxSolver().solve(network.flow).cost


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of small networks, too, and so small that more is often needed."""
    monkeypatch.setattr(candidate_arcs, "_SMALL", 0)
    monkeypatch.setattr(candidate_arcs, "_WORTHWHILE", 0)
    monkeypatch.setattr(candidate_arcs, "_OWN", 0.5)
    monkeypatch.setattr(candidate_arcs, "_KNOWN", 0.5)
    monkeypatch.setattr(candidate_arcs, "_PLENTY", (0.3, 0.6))
    monkeypatch.setattr(candidate_arcs, "_FEW_PREFERENCES", 0)
    monkeypatch.setattr(preference_arcs, "_OF_RACK", 1)
    monkeypatch.setattr(preference_arcs, "_FURTHER", 0)
    monkeypatch.setattr(column_generation, "REBUILD_LIMIT", 100)


@st.composite
def clusters_with_racks(draw):
    """As `problems`, with tasks that wait, more nodes and several racks, so that much can be omitted."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, c, t, s = (int(rng.integers(*ends)) for ends in ((6, 21), (1, 4), (2, 13), (1, 6)))
    task_class = np.sort(rng.integers(0, c, t))
    slots = np.minimum(rng.integers(0, 3, (c, n)), np.bincount(task_class, minlength=c)[:, None])
    slots[np.arange(c), rng.integers(0, n, c)] = np.minimum(np.bincount(task_class, minlength=c), 1)
    offsets = ints([0, 1][: rng.integers(1, 3)])
    high = int(rng.choice([1, 4, 20]))
    rack = rng.integers(-1, rng.integers(1, 5), n)
    near, racks = rng.integers(0, 2 * s + 1), rng.integers(0, 2 * s + 1) if rack.max() >= 0 else 0
    data = DataCosts(
        of_task=rng.integers(-1, s, t),
        anywhere=rng.integers(high, 3 * high, s),
        near_set=rng.integers(0, s, near),
        near_node=rng.integers(0, n, near),
        near_cost=rng.integers(0, high, near),
        rack=rack,
        rack_set=rng.integers(0, s, racks),
        rack_id=rng.integers(0, max(int(rack.max()), 0) + 1, racks),
        rack_cost=rng.integers(0, 2 * high, racks),
    )
    place = rng.integers(0, high, (rng.choice([1, c]), rng.choice([1, n])))
    slot = np.sort(rng.integers(0, high, (rng.choice([1, n]), len(offsets))), axis=1)
    costs = Costs(place, slot, WAIT_MIN + rng.integers(0, 3, t), data=data)
    return Capacities(slots, np.minimum(slots.sum(axis=0), 2), {}), costs, offsets, task_class


@pytest.mark.usefixtures("small_parts")
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(clusters_with_racks())
def test_column_generation_finds_the_optimum_of_the_full_network(problem):
    capacities, costs, offsets, task_class = problem
    telemetry = Telemetry()
    columns = ColumnGeneration(lambda network: OrToolsSolver().solve(network.flow), telemetry)
    found = columns.run(capacities, costs, offsets, task_class)
    event(f"pricing rounds: {telemetry.pricing_rounds}")
    event(f"some pairs omitted: {len(found.network.pair_class) < np.count_nonzero(capacities.slots)}")
    assert found.solution.cost == in_full(*problem)


@given(problems(), st.booleans())
def test_the_costs_of_single_tasks_on_nodes_are_those_of_their_cheapest_arcs(problem, in_order):
    _, costs, _, _ = problem
    data = costs.data
    if in_order:  # each arc once, ascending, as policies give them that keep the order of inputs
        near = np.unique(data.near_set * len(data.rack) + data.near_node, return_index=True)[1]
        rack = np.unique(data.rack_set * len(data.rack) + data.rack_id, return_index=True)[1]
        data = replace(
            data,
            **{name: getattr(data, name)[near] for name in ("near_set", "near_node", "near_cost")},
            **{name: getattr(data, name)[rack] for name in ("rack_set", "rack_id", "rack_cost")},
        )
    task, node = (grid.ravel() for grid in np.indices((len(data.of_task), len(data.rack))))
    expected = [data_cost(data, t, n) for t, n in zip(task.tolist(), node.tolist(), strict=True)]
    assert data.at(data.of_task[task], node).tolist() == expected


@given(problems())
def test_every_task_can_be_followed_at_the_cost_of_the_flow(problem):
    capacities, costs, offsets, task_class = problem
    network, solution = solved(*problem)
    dealt = spread_over_members(network, solution.flow)
    routing = assign(network, solution.flow, supply_order(task_class, costs), dealt)
    assert len(set(routing.task.tolist())) == len(routing.task)
    assert (routing.cls == task_class[routing.task]).all()
    rows = list(zip(routing.task.tolist(), routing.cls.tolist(), routing.node.tolist(), strict=True))
    counted: dict[tuple[int, int], int] = {}
    for _, c, n in rows:
        counted[c, n] = counted.get((c, n), 0) + 1
    reported = zip(dealt.cls.tolist(), dealt.node.tolist(), dealt.count.tolist(), strict=True)
    assert counted == {(c, n): k for c, n, k in reported}
    assert all(k <= capacities.slots[c, n] for (c, n), k in counted.items())
    place = np.broadcast_to(costs.place, capacities.slots.shape)
    cost = sum(int(place[c, n]) + data_cost(costs.data, t, n) for t, c, n in rows)
    for n, total in enumerate(np.bincount(routing.node, minlength=len(capacities.depth)).tolist()):
        cost += sum(slot_cost(capacities, costs, offsets, n, k) for k in range(total))
    waits = np.ones(len(task_class), np.bool_)
    waits[routing.task] = False
    assert cost + int(costs.wait[waits].sum()) == solution.cost
    for t, _, n, saving in zip(
        *(a.tolist() for a in (routing.task, routing.cls, routing.node, routing.saving)), strict=True
    ):
        s = costs.data.of_task[t]
        assert saving == (costs.data.anywhere[s] if s >= 0 else 0) - data_cost(costs.data, t, n)


@given(problems(), st.data())
def test_accepted_tasks_are_ordered_by_waiting_cost_savings_and_age(problem, data):
    capacities, costs, _, task_class = problem
    network, solution = solved(*problem)
    dealt = spread_over_members(network, solution.flow)
    routing = assign(network, solution.flow, supply_order(task_class, costs), dealt)
    fewer = ints([data.draw(st.integers(0, k)) for k in dealt.count.tolist()])
    accepted = type(dealt)(dealt.cls[fewer > 0], dealt.node[fewer > 0], fewer[fewer > 0])
    remaining = routing.select(accepted, len(capacities.depth), costs.wait)
    assert len(set(remaining.tolist())) == len(remaining)
    for c, n, k in zip(accepted.cls.tolist(), accepted.node.tolist(), accepted.count.tolist(), strict=True):
        here = [i for i in range(len(routing.task)) if routing.cls[i] == c and routing.node[i] == n]
        here.sort(key=lambda i: (-costs.wait[routing.task[i]], -routing.saving[i], routing.task[i]))
        assert {i for i in remaining.tolist() if i in here} == set(here[:k])
    assert len(remaining) == accepted.count.sum()


def test_tasks_of_one_node_are_ordered_by_waiting_cost_savings_and_age():
    # all of class 0 on node 0, except the last one, which is alone on node 1
    routing = Assignment(ints([3, 0, 1, 2, 4]), ints([0] * 5), ints([0, 0, 0, 0, 1]), ints([9, 1, 5, 5, 0]))
    wait = ints([WAIT_MIN + 1, WAIT_MIN, WAIT_MIN, WAIT_MIN, WAIT_MIN])
    order = [0, 3, 1, 2]  # by the words above: 0 has waited, 3 saves 9, then 1 and 2 save 5
    for stay in range(1, 5):
        remaining = routing.select(NodeCounts(ints([0]), ints([0]), ints([stay])), 2, wait)
        assert routing.task[remaining].tolist() == order[:stay]
    both = routing.select(NodeCounts(ints([0, 0]), ints([1, 0]), ints([1, 2])), 2, wait)
    assert sorted(routing.task[both].tolist()) == [0, 3, 4]


@given(problems())
def test_data_costs_without_arcs_do_not_change_the_network(problem):
    """Equal data costs on all nodes do not change the arcs of classes and the groups of nodes."""
    capacities, costs, offsets, task_class = problem
    plain = build(capacities, Costs(costs.place, costs.slot, costs.wait), offsets, task_class)
    none = np.zeros(0, np.int64)
    same = DataCosts(
        np.full(len(task_class), -1), none, none, none, none, np.full(len(capacities.depth), -1), none, none, none
    )
    with_data = build(capacities, Costs(costs.place, costs.slot, costs.wait, data=same), offsets, task_class)
    assert len(with_data.member_depth) == len(plain.member_depth)
    assert with_data.group_size.tolist() == plain.group_size.tolist()
    solve = OrToolsSolver().solve
    assert solve(with_data.flow).cost == solve(plain.flow).cost


def test_nodes_without_arcs_are_grouped_by_rack():
    """Of 8 equal nodes in racks 0 and 1 one is named: it, the rest of rack 0, and all of rack 1, which no arc names."""
    data = DataCosts(
        of_task=ints([0, 0, -1]),
        anywhere=ints([9]),
        near_set=ints([0]),
        near_node=ints([2]),
        near_cost=ints([1]),
        rack=ints([0, 0, 0, 0, 1, 1, 1, -1]),
        rack_set=ints([0]),
        rack_id=ints([0]),
        rack_cost=ints([5]),
    )
    slots = np.full((1, 8), 3)
    flat = np.zeros((1, 1), np.int64)
    costs = Costs(flat, flat, np.full(3, WAIT_MIN), data=data)
    network = build(Capacities(slots, slots[0], {}), costs, ints([0]), ints([0, 0, 0]))
    groups = [g.tolist() for g in np.split(network.members, network.member_start[1:-1])]
    assert sorted(groups) == [[0, 1, 3], [2], [4, 5, 6, 7]]
    # two supply groups: the two tasks that read the same, and the one that reads nothing
    assert sorted(network.group_size.tolist()) == [1, 2]
