"""The bounds against what is tried out on tiny clusters, and against the figures of KAI's tests."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.loads.jobs.bounds import fewest_removals, least_lost_s, removals_bound, servable_jobs
from benchmarks.loads.jobs.load import JobsLoad, JobsSpec
from tests.effort import seeds


def bounds(load, removable=None, *, moves=False) -> tuple[int, int, int]:
    """Tasks that can be served, and the fewest removals and least lost seconds for them."""
    removable = load.preemptible if removable is None else removable
    fewest = fewest_removals(load, removable)
    served = servable_jobs(load, fewest, moves=moves) * load.spec.size
    return served, *removals_bound(fewest, least_lost_s(load, removable, fewest), served)


@pytest.mark.parametrize(
    ("spec", "served", "victims"),
    [
        pytest.param(JobsSpec(500, 1, 250, 8), 250, 2000, id="large-a"),
        pytest.param(JobsSpec(500, 1, 500, 8, 1, 8), 500, 500, id="large-b"),
        pytest.param(JobsSpec(500, 4000, 1, 1), 4000, 4000, id="many"),
        pytest.param(JobsSpec(500, 50, 10, 5), 500, 2500, id="gangs"),
        pytest.param(JobsSpec(500, 1, 10, 8, preemptible=79), 0, 0, id="just fails"),
        pytest.param(JobsSpec(500, 1, 10, 8, preemptible=80), 10, 80, id="just fits"),
    ],
)
def test_the_figures_of_the_scale_tests(spec, served, victims):
    assert bounds(JobsLoad.generate(spec))[:2] == (served, victims)


@pytest.mark.parametrize(
    ("jobs", "size", "served", "moves"), [(41, 10, 410, 410), (1, 416, 416, 416), (1, 417, 0, 0), (42, 10, 410, 410)]
)
def test_the_figures_of_consolidation(jobs, size, served, moves):
    """m nodes with 6 GPUs for a job have 2 left, the others 8: 2 m + 8 (500 - m) >= 1,500 up to m = 416."""
    load = JobsLoad.generate(JobsSpec(500, jobs, size, 6, 3, 1, 0, True))
    assert bounds(load, np.ones(1500, np.bool_), moves=True)[:2] == (served, moves)


@seeds(12)
def test_no_choice_of_victims_is_better_than_the_bounds(seed):
    """All choices on 3 nodes of a few tasks of several sizes; where the bound is met the run time is compared too."""
    rng = np.random.default_rng(seed)
    load = JobsLoad.generate(JobsSpec(3, 1, int(rng.integers(1, 4)), int(rng.choice((4, 6, 8, 12))), mixed=True))
    few = np.sort(rng.choice(len(load.node), min(len(load.node), 10), replace=False))
    load = replace(load, node=load.node[few], cls=load.cls[few], run_s=rng.integers(1, 100, len(few)))
    served, count, lost_s = bounds(load)
    best = best_victims(load, load.spec.size)
    assert (best is not None) == (served > 0)
    if best is not None:
        assert best[0] >= count
        assert best[0] > count or best[1] >= lost_s


@seeds(12)
def test_the_bounds_are_exact_if_tasks_are_equal(seed):
    rng = np.random.default_rng(seed)
    load = JobsLoad.generate(JobsSpec(3, 1, int(rng.integers(1, 4)), int(rng.choice((3, 5, 8))), running=3))
    load = replace(load, run_s=rng.integers(1, 100, len(load.node)))
    assert bounds(load)[1:] == best_victims(load, load.spec.size)


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
    served, count, _ = bounds(load, np.ones(5, np.bool_), moves=True)
    assert (served > 0) == bool(moves)
    assert not moves or min(moves) >= count


def best_victims(load, tasks) -> tuple[int, int] | None:
    """The fewest victims, then the least run time in seconds, for so many tasks; None: no victims suffice."""
    preemptible = np.flatnonzero(load.preemptible).tolist()
    for count in range(len(preemptible) + 1):
        lost = []
        for victims in combinations(preemptible, count):
            stay = np.setdiff1d(np.arange(len(load.node)), victims)
            free = load.allocatable.copy()
            np.subtract.at(free, load.node[stay], load.requests[load.cls[stay]])
            if (free // load.member).min(axis=1).sum() >= tasks:
                lost.append(int(load.run_s[list(victims)].sum()))
        if lost:
            return count, min(lost)
    return None


def test_more_than_can_be_served_is_refused():
    load = JobsLoad.generate(JobsSpec(2, 1, 2, 8))
    fewest = fewest_removals(load, load.preemptible)
    with pytest.raises(ValueError, match="1 tasks of the jobs cannot be served"):
        removals_bound(fewest, least_lost_s(load, load.preemptible, fewest), 3)
