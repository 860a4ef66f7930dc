"""The suite of rounds with queues, at a small scale."""

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import queues as suite

CASES = specs.load("queues").cases
TREES = [case for case in CASES if not case.name.startswith("reclaim/")]
RECLAIM = [case for case in CASES if case.name.startswith("reclaim/")]


@pytest.mark.slow
@pytest.mark.parametrize("case", TREES, ids=lambda case: case.name)
def test_trees_are_sound_at_a_small_scale(case):
    sample = suite.measure(case, Options(scale=0.05, seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    assert len(sample.checks) >= 3 + ("drf" not in case.name) + case.name.startswith("alike")
    assert 0 < sample.metrics["placed"] <= sample.facts["placed_plain"]
    assert (sample.facts["running"] == 5000) == case.name.startswith("churn")


@pytest.mark.slow
@pytest.mark.parametrize("case", RECLAIM, ids=lambda case: case.name)
def test_guarantees_are_reclaimed_at_a_small_scale(case):
    sample = suite.measure(case, Options(scale=0.1, seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["undecided"] == 0
    assert sample.metrics["of_bound"] == 1
    assert (sample.metrics["victims"] == 0) == ("just-fails" in case.name)
