"""Small networks of Quincy's form, and checks of them."""

import numpy as np

from firmament_py.flow.certificate import faults as faults_of_flow
from firmament_py.flow.incremental.certificate import faults
from firmament_py.flow.incremental.layout import (
    COST_SHIFT,
    FAR,
    FLOWS,
    HEAD,
    HEAD_BITS,
    RESIDUAL,
    SIZE_IN,
    START,
    TASK_BITS,
    USED,
    VERTEX_SHIFT,
)
from firmament_py.flow.incremental.network import TaskNetwork
from firmament_py.flow.network import Status
from firmament_py.flow.solver import NetworkxSolver, OrToolsSolver

NODES, RACKS, JOBS, DEGREE = 4, 2, 2, 4
CLUSTER = NODES + RACKS
FIRST_JOB = CLUSTER + 1
UNSCHEDULED = FIRST_JOB + JOBS
SINK = UNSCHEDULED + 1
VERTICES = SINK + 1
PLENTY = 1000

#: (tail, head, capacity, cost): two slots a node of rising cost, bounded arcs through racks, unscheduled for all
FIXED = np.array(
    [
        *[(n, SINK, 1, 3 * k) for n in range(NODES) for k in range(2)],
        *[(NODES + n % RACKS, n, 2, 0) for n in range(NODES)],
        *[(CLUSTER, NODES + r, 3, 1) for r in range(RACKS)],
        *[(FIRST_JOB + j, UNSCHEDULED, PLENTY, j) for j in range(JOBS)],
        (UNSCHEDULED, SINK, PLENTY, 0),
    ]
)
BOUNDED = np.flatnonzero(FIXED[:, 2] < PLENTY)


def small_network(tasks=4, fixed=FIXED):
    """A network without tasks, with capacity for this number before its arrays grow."""
    return TaskNetwork(VERTICES, SINK, *fixed.T[:2], *fixed.T[2:], degree=DEGREE, tasks=tasks)


def routed_network(tasks=6, seed=0):
    """A network with tasks that are routed by a full solve, and its reoptimizer."""
    from firmament_py.flow.incremental.reoptimize import Reoptimizer

    rng = np.random.default_rng(seed)
    network = small_network(tasks)
    heads = np.column_stack(
        [rng.integers(0, NODES, (tasks, 2)), np.full(tasks, CLUSTER), rng.integers(FIRST_JOB, UNSCHEDULED, tasks)]
    )
    costs = np.column_stack([rng.integers(0, 10, (tasks, 3)), rng.integers(20, 40, tasks)])
    rows = network.add_tasks(heads, costs)
    reoptimizer = Reoptimizer(network, OrToolsSolver(), repair_share=100.0)
    assert reoptimizer.run().status is Status.OPTIMAL
    return network, rows, reoptimizer


def assert_optimal(network, result):
    """Both other solvers find the same cost, and both certificates hold."""
    assert result.status is Status.OPTIMAL
    flow_network, arcs = network.flow_network()
    assert result.cost == network.cost() == OrToolsSolver().solve(flow_network).cost
    assert result.cost == NetworkxSolver().solve(flow_network).cost
    assert faults(network) == []
    flow, potential = expanded(network, arcs)
    assert faults_of_flow(flow_network, flow, potential) == []


def expanded(network, arcs):
    """The flow and the potentials of a network in the numbering of its flow_network()."""
    graph = network.graph
    rows = np.flatnonzero(network.live)
    flow = np.concatenate([np.isin(arcs, graph.chosen[rows]).astype(np.int64), graph.flow])
    heads, costs = network.task_arcs(rows)
    chosen = np.arange(len(rows)), graph.chosen[rows] - rows * network.degree
    return flow, np.concatenate([graph.potential, costs[chosen] + graph.potential[heads[chosen]]])


def assert_index(network):
    """Checks the data that searches rely on between rounds: arcs by head, positions of tasks, fixed arcs, bounds."""
    g, degree = network.graph, network.degree
    heads, costs = g.arc & HEAD, g.arc >> HEAD_BITS
    task = np.arange(len(g.arc)) // degree
    for v in range(network.vertices):
        start, size, used = g.vertex[v, [START, SIZE_IN, USED]]
        assert start + size <= g.vertex[v + 1, START]
        arcs = g.in_arc[start : start + size]
        assert sorted(arcs.tolist()) == np.flatnonzero(heads == v).tolist()
        assert g.in_place[arcs].tolist() == list(range(size))
        assert (g.in_word[start : start + size] == costs[arcs] << TASK_BITS | task[arcs]).all()
        assert sorted(task[arcs[:used]].tolist()) == np.flatnonzero(g.now & HEAD == v).tolist()
        assert (g.chosen[task[arcs[:used]]] == arcs[:used]).all()
        for place, arc in enumerate(arcs[:used].tolist()):
            row = slice(arc // degree * degree, (arc // degree + 1) * degree)
            other = (heads[row] != v) & (heads[row] < network.vertices)
            least = (costs[row] + np.append(g.potential, 0)[heads[row]])[other].min(initial=FAR)
            assert g.in_least[start + place] - g.fallen[0] <= least
    there = g.chosen >= 0
    assert (g.now[there] == g.arc[g.chosen[there]]).all()
    assert (g.now[~there] & HEAD == network.vertices).all()
    state = np.where(g.flow < g.capacity, RESIDUAL, 0) | np.where(g.flow > 0, FLOWS, 0)
    assert (g.out_word == g.cost << COST_SHIFT | g.head << VERTEX_SHIFT | state).all()
    assert (g.into_word[g.into_place] == g.cost << COST_SHIFT | g.tail << VERTEX_SHIFT | state).all()
