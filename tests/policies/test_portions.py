"""Placing in portions, large tasks first, must not leave out tasks that other policies place."""

from dataclasses import replace

import numpy as np
import pytest

from firmament_py.policy import Costs, waiting_cost
from policies.bin_packing import BinPacking
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.policies.random_clusters import over_capacity, placed
from tests.policies.rig import make_view


@pytest.mark.parametrize("seed", range(12))
def test_the_policy_hardly_matters_to_how_many_are_placed(seed):
    events = over_capacity(seed)
    counts = [placed(events, policy()) for policy in (CpuMemory, BinPacking, LoadSpreading)]
    assert min(counts) >= 0.998 * max(counts)


def test_cpu_memory_uses_portions_unless_more_is_requested_than_is_free():
    view = make_view(
        resources=("cpu", "memory"), requests=[[2, 0], [1, 0]], allocatable=[[8, 8]] * 2, free=[[8, 8]] * 2
    )
    assert CpuMemory().costs(view).node_limit is not None
    over = CpuMemory().costs(replace(view, free=np.array([[0, 8]] * 2)))
    assert over.node_limit is None
    assert len(set(over.wait.tolist())) == 1, "large ones have no precedence"


class Portions:
    """Sends one task at a time to each node, the largest first."""

    name = "portions"

    def costs(self, view):
        size = view.requests[:, view.resources.index("cpu")][view.task_class]
        return Costs(
            place=np.zeros((1, 1), np.int64),
            slot=np.zeros((1, 1), np.int64),
            wait=waiting_cost(view) + size,
            node_limit=np.ones(len(view.allocatable), np.int64),
        )


def test_a_large_first_portion_leaves_no_more_tasks_waiting_than_necessary():
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=4), make_class(2, cpu=1)),
        *(make_tasks([1], 1), make_tasks([2, 3, 4, 5], 2)),
        policy=Portions(),
    )
    assert set(cluster.round()) == {2, 3, 4, 5}
