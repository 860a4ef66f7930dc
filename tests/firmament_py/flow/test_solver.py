"""What OR-Tools answers is told: networks that have no flow, and such that it cannot solve."""

import numpy as np
import pytest

from firmament_py.flow.network import FlowNetwork, Status
from firmament_py.flow.solver import OrToolsSolver


@pytest.mark.parametrize(
    ("capacity", "cost", "supply", "status"),
    [
        pytest.param(2, 3, (2, -2), Status.OPTIMAL, id="optimal"),
        pytest.param(1, 3, (2, -2), Status.INFEASIBLE, id="infeasible"),
        pytest.param(2, 3, (2, -1), Status.UNBALANCED, id="unbalanced"),
        pytest.param(2, 2**61, (2, -2), Status.BAD_COST_RANGE, id="costs"),
        pytest.param(-1, 3, (2, -2), Status.BAD_CAPACITY_RANGE, id="negative capacity"),
    ],
)
def test_every_status_is_told(capacity, cost, supply, status):
    tail, head = np.array([0], np.int32), np.array([1], np.int32)
    network = FlowNetwork(tail, head, np.array([capacity]), np.array([cost]), np.array(supply))
    solution = OrToolsSolver().solve(network)
    assert (solution.status, solution.flow.tolist()) == (status, [2 if status is Status.OPTIMAL else 0])
    assert solution.cost == (6 if status is Status.OPTIMAL else 0)
