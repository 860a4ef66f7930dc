"""Networks as files that other solvers read."""

from pathlib import Path

import networkx as nx
import numpy as np

from firmament_py.flow.dimacs import Export
from firmament_py.flow.network import FlowNetwork, Solution, Status

# two units from vertex 0 to 2: one by the cheap arc 0-1-2 of capacity 1, one directly; 1 * (1 + 2) + 1 * 7 = 10
NETWORK = FlowNetwork(
    tail=np.array([0, 1, 0], np.int32),
    head=np.array([1, 2, 2], np.int32),
    capacity=np.array([1, 1, 5], np.int64),
    unit_cost=np.array([1, 2, 7], np.int64),
    supply=np.array([2, 0, -2], np.int64),
)
SOLUTION = Solution(Status.OPTIMAL, np.array([1, 1, 1], np.int64), 10)


def test_a_network_and_its_flow(tmp_path):
    Export(tmp_path / "new")(NETWORK, SOLUTION)
    lines = (tmp_path / "new" / "000001.min").read_text().splitlines()
    assert lines == ["p min 3 3", "n 1 2", "n 3 -2", "a 1 2 0 1 1", "a 2 3 0 1 2", "a 1 3 0 5 7"]
    assert (tmp_path / "new" / "000001.sol").read_text().splitlines() == ["s 10", "f 1 2 1", "f 2 3 1", "f 1 3 1"]


def test_another_solver_finds_the_same_cost(tmp_path):
    Export(tmp_path)(NETWORK, SOLUTION)
    graph = nx.DiGraph()
    for line in (tmp_path / "000001.min").read_text().splitlines():
        match line.split():
            case ["n", vertex, supply]:
                graph.add_node(vertex, demand=-int(supply))
            case ["a", tail, head, "0", capacity, cost]:
                graph.add_edge(tail, head, capacity=int(capacity), weight=int(cost))
    assert nx.min_cost_flow_cost(graph) == SOLUTION.cost


def test_the_last_ones_stay_and_a_failed_one_has_no_flow(tmp_path):
    export = Export(tmp_path, count=2)
    for status in (Status.OPTIMAL, Status.OPTIMAL, Status.INFEASIBLE):
        export(NETWORK, Solution(status, SOLUTION.flow, SOLUTION.cost))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000002.min", "000002.sol", "000003.min"]


def test_an_error_stops_no_round(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.touch()
    Export(blocked)(NETWORK, SOLUTION)
    assert "cannot export a network" in caplog.text
    assert Path(blocked).read_text() == ""
