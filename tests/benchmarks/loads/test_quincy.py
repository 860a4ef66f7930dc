"""Networks of Quincy's form: of the shape that they are named for, and the same for the same seed."""

import numpy as np
import pytest

from benchmarks.loads.quincy import PREFERENCES, SHAPES, quincy_network

NODES, TASKS = 50, 600


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_is_of_its_shape(shape):
    network = quincy_network(shape, NODES, TASKS, seed=1)
    sink = int(np.flatnonzero(network.supply < 0)[0])
    into_sink = (network.head == sink) & (network.tail < NODES)
    assert int(network.capacity[into_sink].sum()) == int(TASKS / SHAPES[shape].demand)
    heads, costs = (
        column[: TASKS * (PREFERENCES + 3)].reshape(TASKS, -1) for column in (network.head, network.unit_cost)
    )
    assert (network.tail[: heads.size].reshape(TASKS, -1) == sink + 1 + np.arange(TASKS)[:, None]).all()
    popular = np.sort(np.bincount(heads[:, :PREFERENCES].ravel(), minlength=NODES))[::-1]
    # evenly spread, the five most popular of 50 nodes would have a tenth of all preferences
    assert (popular[:5].sum() > 0.3 * TASKS * PREFERENCES) == (shape == "zipf")
    assert ((costs[:, 0] < SHAPES[shape].scale // 20).all()) == (shape == "running")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_follows_from_its_seed(shape):
    def columns(seed):
        network = quincy_network(shape, 20, 240, seed)
        return network.head.tolist(), network.unit_cost.tolist()

    assert columns(3) == columns(3)
    assert columns(3) != columns(4)
