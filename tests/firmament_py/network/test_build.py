"""Networks: the costs of slots, the arcs, and that the reductions do not change the optimum."""

from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.flow.network import FlowNetwork, Status
from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver
from firmament_py.network.build import build
from firmament_py.network.capacities import Capacities
from firmament_py.network.decode import spread_over_members
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.slot_runs import slot_offsets
from firmament_py.policy import COST_MAX, WAIT_MAX, WAIT_MIN, Costs
from firmament_py.snapshot.domain_limits import DomainLimit


def ints(values) -> np.ndarray:
    return np.array(values, np.int64)


def room_of(slots: np.ndarray) -> Capacities:
    """Capacities without limits, with depths of the largest slots of any class."""
    return Capacities(slots, slots.max(axis=0, initial=0), {})


@pytest.mark.parametrize(
    ("waiting", "depth", "offsets"),
    [
        # one by one as far as twice the mean need + 16: 2 * ceil(1 / 1) + 16 = 18, and no node takes more than 1
        pytest.param(1, [1], [0], id="one"),
        pytest.param(1, [0], [0], id="none-open"),
        pytest.param(3, [], [0], id="no-nodes"),
        pytest.param(9, [5, 3], [0, 1, 2, 3, 4], id="all-exact"),
        # two nodes open: 2 * ceil(2 / 2) + 16 = 18 exact ones, 0 .. 17; then 18, 20, 24, 32 in runs of 1, 2, 4, 8 ..
        pytest.param(2, [40, 40], [*range(18), 18, 20, 24, 32], id="runs-double"),
    ],
)
def test_slot_offsets(waiting, depth, offsets):
    assert slot_offsets(waiting, ints(depth)).tolist() == offsets


@given(st.integers(1, 500), st.lists(st.integers(0, 10_000), min_size=1, max_size=5))
def test_slot_offsets_are_few_and_ascend_from_zero(waiting, maximum):
    offsets = slot_offsets(waiting, ints(maximum)).tolist()
    assert offsets[0] == 0
    assert all(a < b for a, b in pairwise(offsets))
    assert offsets[-1] < max(*maximum, 1)
    open_nodes = max(sum(m > 0 for m in maximum), 1)
    # exact ones up to 2 * ceil(waiting / open) + 16, then at most log2(10000) < 14 runs
    assert len(offsets) <= 2 * -(-waiting // open_nodes) + 16 + 14


def arcs_of(network: PlacementNetwork) -> list[tuple[int, int, int, int]]:
    flow = network.flow
    columns = (flow.tail, flow.head, flow.capacity, flow.unit_cost)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def test_a_small_network_arc_by_arc():
    """Classes 0 (tasks waiting at 9, 9, 7) and 1 (one task at 8); nodes 0 and 2 alike, node 1 takes class 0 only.

    Vertices: groups 0 = class 0 at 9, 1 = class 0 at 7, 2 = class 1; classes 3, 4; two node groups 5, 6; U 7; sink 8.
    """
    wait = WAIT_MIN + ints([9, 7, 9, 8])
    costs = Costs(place=ints([[1], [2]]), slot=ints([[10, 20]]), wait=wait)
    slots = ints([[2, 1, 2], [1, 0, 1]])
    network = build(room_of(slots), costs, ints([0, 1]), ints([0, 0, 0, 1]))
    assert (network.group_class.tolist(), network.group_size.tolist()) == ([0, 0, 1], [2, 1, 1])
    assert (network.group_wait - WAIT_MIN).tolist() == [9, 7, 8]
    groups = [network.members[a:b].tolist() for a, b in pairwise(network.member_start)]
    assert sorted(groups) == [[0, 2], [1]]
    pair, single = 5 + groups.index([0, 2]), 5 + groups.index([1])
    assert network.flow.supply.tolist() == [2, 1, 1, 0, 0, 0, 0, 0, -4]
    assert sorted(arcs_of(network)) == sorted(
        [
            (0, 3, 2, 0),
            (1, 3, 1, 0),
            (2, 4, 1, 0),
            (0, 7, 2, WAIT_MIN + 9),
            (1, 7, 1, WAIT_MIN + 7),
            (2, 7, 1, WAIT_MIN + 8),
            (3, pair, 3, 1),  # 2 slots x 2 members, but only 3 wait
            (3, single, 1, 1),
            (4, pair, 1, 2),  # 1 slot x 2 members, but only 1 waits
            (pair, 8, 2, 10),  # first slot of both
            (pair, 8, 2, 20),
            (single, 8, 1, 10),
            (7, 8, 4, 0),
        ]
    )


def test_the_last_run_of_slots_is_cut_at_the_depth_of_the_node():
    # offsets 0, 1, 3: runs of 1, 2 and the rest; 5 slots = 1 + 2 + 2
    network = build(
        room_of(ints([[5]])),
        Costs(place=ints([[0]]), slot=ints([[1, 2, 3]]), wait=ints([WAIT_MIN] * 7)),
        ints([0, 1, 3]),
        ints([0] * 7),
    )
    slot_arcs = [(capacity, cost) for tail, head, capacity, cost in arcs_of(network) if (tail, head) == (2, 4)]
    assert slot_arcs == [(1, 1), (2, 2), (2, 3)]


@st.composite
def problems(draw, nodes=4, classes=3, tasks=7):
    """Slots, costs, offsets and classes of tasks, with nodes that are often equal."""
    n, c = draw(st.integers(1, nodes)), draw(st.integers(1, classes))
    kinds = draw(st.lists(st.lists(st.integers(0, 3), min_size=c, max_size=c), min_size=1, max_size=2))
    kind = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=n, max_size=n))
    slots = ints([kinds[k] for k in kind]).T
    of_class = sorted(draw(st.lists(st.integers(0, c - 1), max_size=tasks)))
    task_class = ints([t for t in of_class if slots[t].max(initial=0) > 0])
    waiting = np.bincount(task_class, minlength=c)
    slots = np.minimum(slots, waiting[:, None])
    deepest = max(int(slots.max(initial=0)), 1)
    offsets = sorted({0, *draw(st.sets(st.integers(0, deepest - 1)))})

    few = st.sampled_from([0, 1, 5, COST_MAX])

    def matrix(rows, columns):
        rows, columns = draw(st.sampled_from([1, rows])), draw(st.sampled_from([1, columns]))
        return ints(draw(st.lists(few, min_size=rows * columns, max_size=rows * columns))).reshape(rows, columns)

    slot = np.sort(matrix(n, len(offsets)), axis=1)
    wait = WAIT_MIN + ints(draw(st.lists(st.integers(0, 3), min_size=len(task_class), max_size=len(task_class))))
    return slots, Costs(matrix(c, n), slot, wait), ints(offsets), task_class


def unreduced_cost(slots, costs, offsets, task_class) -> int:
    """The optimum of the full network: a vertex per task and node, an arc per slot."""
    classes, nodes = slots.shape
    place = np.broadcast_to(costs.place, (classes, nodes)).tolist()
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets))).tolist()
    graph = networkx.MultiDiGraph()
    graph.add_node("sink", demand=len(task_class))
    for t, cls in enumerate(task_class.tolist()):
        graph.add_node(("task", t), demand=-1)
        graph.add_edge(("task", t), ("class", cls), capacity=1, weight=0)
        graph.add_edge(("task", t), "sink", capacity=1, weight=int(costs.wait[t]))
    for c in range(classes):
        for n in range(nodes):
            if slots[c, n]:
                graph.add_edge(("class", c), ("node", n), capacity=int(slots[c, n]), weight=place[c][n])
    for n in range(nodes):
        for k in range(int(slots[:, n].max(initial=0))):
            run = max(i for i, offset in enumerate(offsets.tolist()) if offset <= k)
            graph.add_edge(("node", n), "sink", capacity=1, weight=slot[n][run])
    return int(networkx.network_simplex(graph)[0])


@given(problems())
def test_the_reductions_do_not_change_the_optimum(problem):
    slots, costs, offsets, task_class = problem
    network = build(room_of(slots), costs, offsets, task_class)
    solution = OrToolsSolver().solve(network.flow)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == unreduced_cost(slots, costs, offsets, task_class)
    assert solution.cost == NetworkxSolver().solve(network.flow).cost


@given(problems())
def test_distributing_a_flow_keeps_its_cost(problem):
    """Distribution over members undoes the node groups: its cost, slot by slot and node by node, is the objective."""
    slots, costs, offsets, task_class = problem
    network = build(room_of(slots), costs, offsets, task_class)
    solution = OrToolsSolver().solve(network.flow)
    dealt = spread_over_members(network, solution.flow)
    place = np.broadcast_to(costs.place, slots.shape)
    slot = np.broadcast_to(costs.slot, (slots.shape[1], len(offsets)))
    cost = sum(
        int(place[c, n]) * k
        for c, n, k in zip(dealt.cls.tolist(), dealt.node.tolist(), dealt.count.tolist(), strict=True)
    )
    for n, total in enumerate(np.bincount(dealt.node, dealt.count, minlength=slots.shape[1]).astype(int).tolist()):
        cost += sum(int(slot[n, (offsets <= k).sum() - 1]) for k in range(total))
    stays = network.group_size - network.placed_from_groups(solution.flow)
    cost += int((stays * network.group_wait).sum())
    assert cost == solution.cost


@given(problems(nodes=6, tasks=12))
def test_distribution_is_even_within_capacity_and_complete(problem):
    slots, costs, offsets, task_class = problem
    network = build(room_of(slots), costs, offsets, task_class)
    flow = OrToolsSolver().solve(network.flow).flow
    dealt = spread_over_members(network, flow)
    rows = list(zip(dealt.cls.tolist(), dealt.node.tolist(), dealt.count.tolist(), strict=True))
    given_to = {(c, n): k for c, n, k in rows}
    assert len(given_to) == len(rows), "no pair twice"
    assert [c for c, _, _ in rows] == sorted(c for c, _, _ in rows), "sorted by class"
    assert all(0 < k <= slots[c, n] for (c, n), k in given_to.items())
    shipped = network.placed_on_nodes(flow)
    seen = 0
    for m in range(len(network.member_start) - 1):
        members = network.members[network.member_start[m] : network.member_start[m + 1]].tolist()
        pairs = np.flatnonzero(network.pair_node_group == m)
        amounts = {int(network.pair_class[a]): int(shipped[a]) for a in pairs}
        for cls, amount in [*amounts.items(), (None, sum(amounts.values()))]:
            shares = [sum(k for (c, at), k in given_to.items() if at == n and cls in (None, c)) for n in members]
            assert sum(shares) == amount
            assert set(shares) <= {amount // len(members), -(-amount // len(members))}
        seen += sum(amounts.values())
    assert seen == int(dealt.count.sum()) == int(network.placed_from_groups(flow).sum())


def limit(domain, maximum, expected, surplus=1_000) -> DomainLimit:
    return DomainLimit(ints(domain), ints(maximum), ints(expected), surplus)


@st.composite
def limited_problems(draw):
    """A problem, and for some classes a limit over domains of nodes, one by node, or both."""
    slots, costs, offsets, task_class = draw(problems(nodes=5, classes=3, tasks=9))
    classes, nodes = slots.shape
    limits: dict[int, list[DomainLimit]] = {}
    for c in range(classes):
        for per_node in (False, True):
            if draw(st.booleans()):
                continue
            if per_node:
                domain = draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes))
                domain = [n if inside else -1 for n, inside in enumerate(domain)]
            else:
                domain = draw(st.lists(st.integers(-1, 1), min_size=nodes, max_size=nodes))
            size = max(domain) + 1
            maximum = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
            expected = [draw(st.integers(0, m)) for m in maximum]
            found = limit(domain, maximum, expected, draw(st.sampled_from([0, 3, COST_MAX])))
            limits.setdefault(c, []).append(found)
            slots[c] = np.minimum(slots[c], np.append(found.maximum, 99)[found.domain])
    waiting = np.bincount(task_class, minlength=classes)
    task_class = task_class[(slots.max(axis=1, initial=0) > 0)[task_class]]
    costs = Costs(costs.place, costs.slot, costs.wait[: len(task_class)])
    assert (slots <= waiting[:, None]).all()
    return Capacities(slots, slots.max(axis=0, initial=0), limits), costs, offsets, task_class


def unreduced_cost_with_limits(capacities, costs, offsets, task_class) -> int:
    """As unreduced_cost; with a vertex per domain, and two arcs to a node with a soft limit."""
    classes, nodes = capacities.slots.shape
    place = np.broadcast_to(costs.place, (classes, nodes)).tolist()
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets))).tolist()
    graph = networkx.MultiDiGraph()
    graph.add_node("sink", demand=len(task_class))
    for t, cls in enumerate(task_class.tolist()):
        graph.add_node(("task", t), demand=-1)
        graph.add_edge(("task", t), "sink", capacity=1, weight=int(costs.wait[t]))
        graph.add_edge(("task", t), ("class", cls), capacity=1, weight=0)
    for c in range(classes):
        spanning = next((x for x in capacities.limits.get(c, ()) if not x.is_per_node), None)
        by_node = next((x for x in capacities.limits.get(c, ()) if x.is_per_node), None)
        for n in range(nodes):
            have = int(capacities.slots[c, n])
            start: tuple[object, ...] = ("class", c)
            if spanning is not None and spanning.domain[n] >= 0:
                start = ("domain", c, int(spanning.domain[n]))
            expected, extra = have, 0
            if by_node is not None and by_node.domain[n] >= 0:
                expected, extra = min(have, int(by_node.soft_limit[by_node.domain[n]])), by_node.soft_limit_cost
            graph.add_edge(start, ("node", n), capacity=expected, weight=place[c][n])
            graph.add_edge(start, ("node", n), capacity=have - expected, weight=place[c][n] + extra)
        for d in range(len(spanning.maximum) if spanning is not None else 0):
            assert spanning is not None
            maximum, expected = int(spanning.maximum[d]), int(spanning.soft_limit[d])
            graph.add_edge(("class", c), ("domain", c, d), capacity=expected, weight=0)
            graph.add_edge(("class", c), ("domain", c, d), capacity=maximum - expected, weight=spanning.soft_limit_cost)
    for n in range(nodes):
        for k in range(int(capacities.depth[n])):
            run = max(i for i, offset in enumerate(offsets.tolist()) if offset <= k)
            graph.add_edge(("node", n), "sink", capacity=1, weight=slot[n][run])
    return int(networkx.network_simplex(graph)[0])


@given(limited_problems())
def test_limits_of_domains_survive_the_reductions(problem):
    capacities, costs, offsets, task_class = problem
    network = build(capacities, costs, offsets, task_class)
    solution = OrToolsSolver().solve(network.flow)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == unreduced_cost_with_limits(capacities, costs, offsets, task_class)
    dealt = spread_over_members(network, solution.flow)
    for c, limits in capacities.limits.items():
        mine = dealt.cls == c
        assert (dealt.count[mine] <= capacities.slots[c, dealt.node[mine]]).all()
        for spanning in [x for x in limits if not x.is_per_node][:1]:
            domain = spanning.domain[dealt.node[mine]]
            taken = np.bincount(domain[domain >= 0], dealt.count[mine][domain >= 0], minlength=len(spanning.maximum))
            assert (taken <= spanning.maximum).all()


def solved(slots, limits, tasks: int) -> dict[int, int]:
    """Tasks on each node of one class with these limits, if only limits have costs."""
    capacities = Capacities(ints([slots]), ints(slots), {0: limits})
    costs = Costs(ints([[0]]), ints([[0]]), np.full(tasks, WAIT_MIN, np.int64))
    network = build(capacities, costs, ints([0]), np.zeros(tasks, np.int64))
    dealt = spread_over_members(network, OrToolsSolver().solve(network.flow).flow)
    return dict(zip(dealt.node.tolist(), dealt.count.tolist(), strict=True))


@pytest.mark.parametrize(
    ("limits", "tasks", "by_zone"),
    [
        # nodes 0, 1 in zone 0, node 2 in zone 1, node 3 in none
        pytest.param([limit([0, 0, 1, -1], [4, 4], [3, 3])], 6, (3, 3, 0), id="what-is-wanted-first"),
        pytest.param([limit([0, 0, 1, -1], [1, 4], [1, 3])], 4, (1, 3, 0), id="each-zone-its-own"),
        pytest.param([limit([0, 0, 1, -1], [1, 1], [0, 0])], 9, (1, 1, 7), id="no-more-than-most"),
        pytest.param(
            [limit([0, 0, 1, -1], [9, 9], [3, 3]), limit([0, 1, 2, -1], [9, 9, 9], [2, 1, 3])], 6, (3, 3, 0), id="both"
        ),
    ],
)
def test_a_flow_levels_domains(limits, tasks, by_zone):
    # the node outside every domain has no limit: it is given room only for what zones may not take
    spare = max(tasks - sum(by_zone[:2]), 0)
    taken = solved([9, 9, 9, spare], limits, tasks)
    assert (taken.get(0, 0) + taken.get(1, 0), taken.get(2, 0), taken.get(3, 0)) == by_zone


def test_of_two_limits_per_node_the_first_is_built_and_both_bound_the_slots():
    first, second = limit([0, 1], [3, 3], [1, 3]), limit([0, 1], [2, 2], [2, 0])
    # 4 tasks at nothing extra: 1 on node 0 and 3 on node 1; slots let through only 2 each
    assert solved([3, 3], [first, second], 4) == {0: 1, 1: 3}
    assert solved([2, 2], [first, second], 4) == {0: 2, 1: 2}


@pytest.mark.parametrize("solver", [OrToolsSolver(), NetworkxSolver()], ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("supply", "status"),
    [
        pytest.param([3, 0, -3], Status.OPTIMAL, id="optimal"),
        pytest.param([4, 0, -4], Status.INFEASIBLE, id="infeasible"),
        pytest.param([3, 0, -4], Status.UNBALANCED, id="unbalanced"),
    ],
)
def test_a_solver_returns_a_status_and_never_raises(solver, supply, status):
    # 0 > 1 > 2 with room for 3; two arcs from 1, the cheaper with room for 1: 3 * 1 + 1 * 2 + 2 * 5 = 15
    network = FlowNetwork(
        np.array([0, 1, 1], np.int32), np.array([1, 2, 2], np.int32), ints([3, 1, 2]), ints([1, 2, 5]), ints(supply)
    )
    solution = solver.solve(network)
    assert solution.status is status
    if status is Status.OPTIMAL:
        assert (solution.cost, solution.flow.tolist()) == (15, [3, 1, 2])


def test_costs_outside_the_safe_range_have_a_separate_status():
    network = FlowNetwork(np.array([0], np.int32), np.array([1], np.int32), ints([1]), ints([2**62]), ints([1, -1]))
    assert OrToolsSolver().solve(network).status is Status.BAD_COST_RANGE


def test_the_contract_of_costs_keeps_a_large_network_in_range():
    """The highest unit cost times the largest number of vertices that flow/solver.py guarantees is below 2**63."""
    assert max(WAIT_MAX, 2 * COST_MAX) * (2**22 + 1) < 2**63
