"""The loads and the suite of kept networks."""

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.loads.quincy import PREFERENCES, SHAPES, QuincyLoad
from benchmarks.suites import incremental as suite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("numba")]  # the first test compiles


def slots_of(load):
    graph = load.network.graph
    into_sink = (graph.head == load.network.sink) & (graph.tail < load.nodes)
    return int(graph.capacity[into_sink].sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_load_is_of_the_shape_that_it_is_named_for(shape):
    load = QuincyLoad(shape, nodes=50, tasks=600, seed=1)
    assert slots_of(load) == int(600 / SHAPES[shape].demand)
    heads, costs = load.network.task_arcs(np.arange(600))
    preferred = heads[:, :PREFERENCES]
    popular = np.sort(np.bincount(preferred.ravel(), minlength=50))[::-1]
    # evenly spread, the five most popular of 50 nodes would have a tenth of all preferences
    assert (popular[:5].sum() > 0.3 * preferred.size) == (shape == "zipf")
    cheap = (costs[:, 0] < SHAPES[shape].scale // 20).mean()
    assert (cheap == 1.0) == (shape == "running")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_load_follows_from_its_seed(shape):
    def changes(seed):
        load = QuincyLoad(shape, nodes=20, tasks=240, seed=seed)
        return [*load.network.task_arcs(np.arange(240)), *load.churn(10)]

    assert all(np.array_equal(a, b) for a, b in zip(changes(3), changes(3), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(changes(3), changes(4), strict=True))


@pytest.mark.parametrize("case", specs.load("incremental").cases, ids=lambda c: c.name)
def test_every_case_is_sound_at_a_hundredth_of_its_size(case):
    sample = suite.measure(case, Options(scale=0.01))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.facts["full_solves"] == 1
    assert sample.facts["searches"] > 0
