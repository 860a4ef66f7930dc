"""The suite of plans of moves, at a small scale."""

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import defragmentation as suite

CASES = specs.load("defragmentation").cases


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_suite_is_sound_at_a_small_scale(case):
    sample = suite.measure(case, Options(scale=0.2 if "machines" in case.sizes else 0.5, seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    if "machines" in case.sizes:
        assert 0 < sample.metrics["of_best"] <= 1
        assert sample.metrics["best_rate"] <= sample.metrics["rate"] < sample.facts["rate_before"]
    else:
        assert sample.metrics["broken"] > 0 or sample.metrics["fewest"] <= sample.metrics["moves"]


def test_a_plan_that_is_not_sound_fails_the_sample(monkeypatch):
    [case] = [case for case in CASES if case.name == "vmr2l/50-moves"]
    monkeypatch.setitem(suite.PLANS, "rebalance", lambda free, tasks, limit: np.array([[0, 0, 0], [0, 1, 0]]))
    sample = suite.measure(case, Options(scale=0.2))
    assert [check.ok for check in sample.checks] == [False]
    assert "a task moves twice" in sample.checks[0].detail
