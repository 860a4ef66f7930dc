"""The load and the suite `priorities`."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import CannotMeasureError, Options
from benchmarks.loads.priorities import PriorityLoad
from benchmarks.suites import priorities


def make_load(nodes, capacity, requests, priority, set_of) -> PriorityLoad:
    capacity, requests, priority, set_of = (np.array(c, np.int64) for c in (capacity, requests, priority, set_of))
    return PriorityLoad(nodes, capacity, requests, priority, set_of, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_small_clusters_are_packed_as_well_as_possible(seed):
    case = specs.load("priorities").cases[0]
    sample = priorities.measure(replace(case, sizes={**case.sizes, "best_s": 5}), Options(seed=seed))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["no_worse"] == 1.0
    assert sample.metrics["of_kube"] >= 1.0 or sample.metrics["no_worse_than_kube"] == 1.0


def test_a_load_follows_from_its_seed_and_requests_the_given_share():
    one, same, other = (PriorityLoad.random(seed, 20, 8, 4, 0.95) for seed in (5, 5, 6))
    assert str(one.events()) == str(same.events())
    assert str(one.events()) != str(other.events())
    assert len(one.set_of) == 160
    requested = one.requests[one.set_of].sum(axis=0) / (20 * one.capacity)
    assert requested == pytest.approx(0.95, abs=0.01)
    assert set(one.priority.tolist()) == {0, 1, 2, 3}


def test_kube_scheduler_places_by_priority_then_age():
    load = make_load(1, [4, 4], [[3, 3], [3, 3], [1, 1]], [0, 1, 0], [0, 1, 2])
    assert load.kube_scheduler().tolist() == [0, 1, 1]


def test_the_exact_solver_goes_by_priority():
    """One pod of the higher priority outweighs two of the lower."""
    load = make_load(1, [4, 4], [[4, 4], [2, 2]], [1, 0], [0, 1, 1])
    assert load.cp_sat(5.0) == ([1, 0], True)
    assert load.by_priority(np.array([0, 2])) == [0, 2]


@pytest.mark.parametrize(
    ("placed", "problem"),
    [
        ([[1, 0], [0, 1]], ""),
        ([[1, 0], [1, 0]], "a node is over-committed"),
        ([[1, 1], [0, 0]], "a pod is placed twice"),
    ],
)
def test_violations_are_found(placed, problem):
    load = make_load(2, [4, 4], [[4, 4], [2, 2]], [1, 0], [0, 1, 1])
    assert load.violations(np.array(placed)) == problem


def test_loads_without_competition_are_skipped(monkeypatch):
    monkeypatch.setattr(priorities, "_COMBINATIONS", ((1, 0.01),))
    monkeypatch.setattr(priorities, "_TRIES", 3)
    case = specs.load("priorities").cases[0]
    with pytest.raises(CannotMeasureError, match="place all pods of 3 loads"):
        priorities.measure(case, Options())
