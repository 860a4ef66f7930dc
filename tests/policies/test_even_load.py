"""cpu-memory under 95 % load: nodes of several shapes, tasks of many kinds, and the resulting differences of load."""

import numpy as np
import pytest

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import ClassDefined, NodeObserved
from firmament_py.model.options import EngineOptions
from firmament_py.state.cluster import ClusterState
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_tasks
from tests.effort import seeds

GIB = 2**30
SHAPES = ((16_000, 64), (32_000, 128), (32_000, 96), (64_000, 256))
"""millicores, GiB"""

LOAD = 0.95
KINDS = 30


def mixture(seed, nodes):
    """Capacities (nodes, 2), requests of KINDS kinds of tasks (KINDS, 2), and the kinds of tasks (T,) that together
    request LOAD of cpu or of memory, and nearly as much of the other."""
    rng = np.random.default_rng(seed)
    capacity = np.array([(cpu, gib * GIB) for cpu, gib in SHAPES])[rng.integers(0, len(SHAPES), nodes)]
    cpu = rng.choice([100, 200, 250, 300, 500, 700, 1000, 1500], KINDS)
    memory = cpu * rng.choice([1, 2, 3, 4, 6, 8], KINDS) * GIB / 1000
    weight = rng.dirichlet(np.ones(KINDS))
    total = capacity.sum(axis=0)
    memory *= (weight @ cpu / total[0]) / (weight @ memory / total[1])
    requests = np.stack([cpu, memory], axis=1).astype(np.int64)
    kinds = rng.choice(KINDS, 2 * int((total / (weight @ requests)).min()), p=weight)
    share = (requests[kinds].cumsum(axis=0) / total).max(axis=1)
    return capacity, requests, kinds[share <= LOAD]


def utilisation(policy, seed, nodes, rounds, improve=1.0):
    """(nodes, 2) shares of cpu and memory that are requested after all tasks were placed in so many rounds."""
    capacity, requests, kinds = mixture(seed, nodes)
    state = ClusterState()
    for i, (cpu, memory) in enumerate(capacity.tolist()):
        state.apply(NodeObserved(f"n{i}", f"n{i}", {"pods": 1000, "cpu": cpu, "memory": memory}))
    for i, (cpu, memory) in enumerate(requests.tolist()):
        state.apply(ClassDefined(i + 1, {"cpu": cpu, "memory": memory}))
    scheduler = Scheduler(state, policy, OrToolsSolver(), options=EngineOptions(improve=improve))
    placed = 0
    for part in np.array_split(np.arange(len(kinds)), rounds):
        state.apply(make_tasks((part + 1).tolist(), (kinds[part] + 1).tolist()))
        result = scheduler.run(NOW_US)
        assert result.stats.fallback == ""
        placed += len(result.tasks)
    rows = state.present_nodes()
    columns = [state.resources.names.index(name) for name in ("cpu", "memory")]
    return len(kinds) - placed, state.nodes.used[rows][:, columns] / capacity


def spread(shares):
    """How far apart nodes are in what they are full of: the share of the fuller of cpu and memory."""
    fuller = shares.max(axis=1)
    return fuller.max() - fuller.min()


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 5, 20])
@seeds(4)
def test_at_95_percent_nodes_are_less_than_ten_points_apart(seed, rounds):
    left, shares = utilisation(CpuMemory(), seed, 100, rounds)
    assert left == 0
    assert shares.mean() > 0.9
    assert spread(shares) < 0.1


@pytest.mark.slow
def test_counting_tasks_does_not_even_out_load():
    """The purpose of the mixture: if spread by number of tasks, nodes are unequal or some tasks do not fit, unless they
    are packed anew."""
    left, shares = utilisation(LoadSpreading(), 0, 100, 1, improve=0)
    assert left > 0 or spread(shares) > 0.1
