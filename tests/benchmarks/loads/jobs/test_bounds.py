"""The bounds against what is tried out on tiny clusters, and against the figures of KAI's tests."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.loads.jobs.bounds import cheapest_removals, eviction_costs, least_cost, servable_jobs
from benchmarks.loads.jobs.load import JobsLoad, JobsSpec
from tests.effort import seeds


def bound(load, removable=None, cost=None, *, moves=False) -> tuple[int, int]:
    """Tasks that can be served, and the least cost for them, of 1 for each victim or mover unless given."""
    removable = load.preemptible if removable is None else removable
    costs = cheapest_removals(load, removable, np.ones_like(load.node) if cost is None else cost)
    served = servable_jobs(load, costs, moves=moves) * load.spec.size
    return served, least_cost(costs, served)


@pytest.mark.parametrize(
    ("spec", "served", "victims"),
    [
        pytest.param(JobsSpec(500, 1, 250, 8), 250, 2000, id="large-a"),
        pytest.param(JobsSpec(500, 1, 500, 8, 1, 8), 500, 500, id="large-b"),
        pytest.param(JobsSpec(500, 4000, 1, 1), 4000, 4000, id="many"),
        pytest.param(JobsSpec(500, 50, 10, 5), 500, 2500, id="gangs"),
        pytest.param(JobsSpec(500, 1, 10, 8, preemptible=79), 0, 0, id="just fails"),
        pytest.param(JobsSpec(500, 1, 10, 8, preemptible=80), 10, 80, id="just fits"),
        pytest.param(JobsSpec(5000, 1, 1500, 12, mixed=True), 1500, 3000, id="mixed"),
    ],
)
def test_the_figures_of_the_scale_tests(spec, served, victims):
    assert bound(JobsLoad.generate(spec)) == (served, victims)


@pytest.mark.parametrize(
    ("jobs", "size", "served", "moves"), [(41, 10, 410, 410), (1, 416, 416, 416), (1, 417, 0, 0), (42, 10, 410, 410)]
)
def test_the_figures_of_consolidation(jobs, size, served, moves):
    """m nodes with 6 GPUs for a job have 2 left, the others 8: 2 m + 8 (500 - m) >= 1,500 up to m = 416."""
    load = JobsLoad.generate(JobsSpec(500, jobs, size, 6, 3, 1, 0, True))
    assert bound(load, np.ones(1500, np.bool_), moves=True) == (served, moves)


@seeds(12)
def test_no_choice_of_victims_is_better_than_the_bound(seed):
    """All choices on 3 nodes of a few tasks of several sizes and costs. For one task at most to a node it is exact."""
    rng = np.random.default_rng(seed)
    each = int(rng.choice((4, 6, 8, 9, 12)))
    load = JobsLoad.generate(JobsSpec(3, 1, int(rng.integers(1, 4)), each, mixed=True))
    few = np.sort(rng.choice(len(load.node), min(len(load.node), 10), replace=False))
    load = replace(load, node=load.node[few], cls=load.cls[few], run_s=load.run_s[few])
    cost = rng.integers(1, 100, len(few))
    served, least = bound(load, cost=cost)
    best = best_victims(load, cost)
    assert (best is not None) == (served > 0)
    if best is not None:
        assert best >= least
        assert best == least or each <= 8


@seeds(12)
def test_the_bound_is_exact_if_tasks_are_equal(seed):
    rng = np.random.default_rng(seed)
    load = JobsLoad.generate(JobsSpec(3, 1, int(rng.integers(1, 4)), int(rng.choice((3, 5, 8))), running=3))
    assert bound(load)[1] == best_victims(load, np.ones(9, np.int64))


@seeds(8)
def test_no_choice_of_moves_is_better_than_the_bound(seed):
    """All placements of 5 movable tasks on 3 nodes."""
    rng = np.random.default_rng(seed)
    load = JobsLoad.generate(JobsSpec(3, 1, int(rng.integers(1, 3)), 6, 3, 1, 0, True))
    few = np.sort(rng.choice(9, 5, replace=False))
    load = replace(load, node=load.node[few], cls=load.cls[few], run_s=load.run_s[few])
    moves = [
        sum(a != b for a, b in zip(nodes, load.node.tolist(), strict=True))
        for nodes in product(range(3), repeat=5)
        if ((8 - np.bincount(nodes, minlength=3)) // 6).clip(0).sum() >= load.spec.size
        and np.bincount(nodes, minlength=3).max() <= 8
    ]
    served, count = bound(load, np.ones(5, np.bool_), moves=True)
    assert (served > 0) == bool(moves)
    assert not moves or min(moves) >= count


def best_victims(load, cost) -> int | None:
    """The least cost of victims that make place for the job; None: no victims suffice."""
    preemptible = np.flatnonzero(load.preemptible).tolist()
    least = None
    for count in range(len(preemptible) + 1):
        for victims in combinations(preemptible, count):
            stay = np.setdiff1d(np.arange(len(load.node)), victims)
            free = load.allocatable.copy()
            np.subtract.at(free, load.node[stay], load.requests[load.cls[stay]])
            if (free // load.member).min(axis=1).sum() >= load.spec.size:
                least = min(int(cost[list(victims)].sum()), least if least is not None else 2**31)
    return least


def test_the_eviction_cost_of_a_minute_and_of_an_hour():
    """A minute doubles the minute; 61 is 2 to the power of 5.93: 23 quarters."""
    assert eviction_costs(np.array([0, 60, 3600])).tolist() == [10_000, 11_000, 10_000 + 23 * 250]


def test_more_than_can_be_served_is_refused():
    load = JobsLoad.generate(JobsSpec(2, 1, 2, 8))
    with pytest.raises(ValueError, match="1 tasks of the jobs cannot be served"):
        least_cost(cheapest_removals(load, load.preemptible, np.ones(16, np.int64)), 3)
