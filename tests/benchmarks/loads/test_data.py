"""The load of pods that read data: its sums, and the bytes that quincy moves compared with the minimum."""

import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from benchmarks.loads.data import MIB, DataLoad, DataSpec
from benchmarks.loads.engine import START_US, LoadSpec
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event, Outcome
from policies.load_spreading import LoadSpreading
from policies.quincy import Quincy

pytestmark = pytest.mark.slow


def half_mib(load: DataLoad) -> np.ndarray:
    """(P, N) what each pod moves to each node, by its blocks one after the other: 2 for a MiB from another rack, 1 for
    one from the same."""
    rack = load.rack.tolist()
    row = {node.name: i for i, node in enumerate(load.load.nodes)}
    cost = np.zeros((load.load.spec.pods, len(rack)), np.int64)
    for described in load.inputs():
        for block in described.blocks:
            here = {row[name] for name in block.nodes}
            around = {rack[n] for n in here}
            for n in range(len(rack)):
                cost[described.id - 1, n] += block.bytes // MIB * (0 if n in here else 1 if rack[n] in around else 2)
    return cost


def placed(load: DataLoad, policy) -> dict[int, int]:
    """Pending pod -> node, after a round."""
    engine = Engine(policy, OrToolsSolver())
    reported: list[Event] = [*load.nodes(), *load.load.classes, *load.inputs(), load.tasks()]
    assert engine.apply(reported) == Outcome()
    result = engine.run_round(START_US)
    assert result is not None
    state = engine.state
    row = {node.id: i for i, node in enumerate(load.load.nodes)}
    uids = state.tasks.uid[result.tasks].tolist()
    nodes = [state.nodes.id[n] for n in result.nodes.tolist()]
    assert load.load.violations(state.tasks.uid[result.tasks], nodes) == []
    read, core, rack = load.moved(state.tasks.uid[result.tasks], nodes)
    found = {uid - 1 - load.load.running: row[node] for uid, node in zip(uids, nodes, strict=True)}
    cost = half_mib(load)
    assert 2 * core + rack == sum(int(cost[pod, node]) for pod, node in found.items()) * MIB
    assert core + rack <= read
    return found


def least(load: DataLoad) -> int:
    """The minimum of half MiB to move, over all pods and nodes, with the capacity of a node for the only class."""
    cost = half_mib(load)
    pods, nodes = cost.shape
    free = load.load.allocatable - load.load.requested(np.zeros(0, np.int64), np.zeros(0, np.int64))
    request = load.load.requests[0]
    capacities = (free[:, request > 0] // request[request > 0]).min(axis=1)
    solver = min_cost_flow.SimpleMinCostFlow()
    tail, head = np.divmod(np.arange(pods * nodes), nodes)
    solver.add_arcs_with_capacity_and_unit_cost(tail, pods + head, np.ones(len(tail), np.int64), cost.ravel())
    sink = pods + nodes
    solver.add_arcs_with_capacity_and_unit_cost(
        pods + np.arange(nodes), np.full(nodes, sink), capacities, np.zeros(nodes, np.int64)
    )
    solver.set_nodes_supplies(np.arange(sink + 1), np.r_[np.ones(pods, np.int64), np.zeros(nodes, np.int64), -pods])
    assert solver.solve() == solver.OPTIMAL
    return int(solver.optimal_cost())


@pytest.mark.parametrize("fill", [0.7, 0.98])
@pytest.mark.parametrize("spots", [0.0, 0.5])
@pytest.mark.parametrize("blocks", [(3, 8), (10, 10)], ids=["few-blocks", "many-blocks"])
def test_quincy_moves_within_one_percent_of_the_minimum(fill, spots, blocks):
    fewest, maximum = blocks
    data = DataSpec(fewest, maximum, rack_nodes=10, spots=spots)
    load = DataLoad(LoadSpec(nodes=80, pods=400, running=400, classes=1, fill=fill), data)
    found = placed(load, Quincy())
    assert len(found) == 400
    cost = half_mib(load)
    moved = sum(int(cost[pod, node]) for pod, node in found.items())
    assert moved <= 1.01 * least(load)
    spread = placed(load, LoadSpreading())
    assert sum(int(cost[pod, node]) for pod, node in spread.items()) > 1.15 * moved
