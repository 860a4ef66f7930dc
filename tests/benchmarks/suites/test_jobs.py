"""The suite of jobs that fit only once other tasks end or move, at a small scale."""

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import jobs as suite

CASES = specs.load("jobs").cases


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_suite_is_sound_at_a_small_scale(case):
    sample = suite.measure(case, Options(scale=50 / case.sizes["nodes"], seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    assert (sample.facts["servable"] == 0) == (case.name in ("just-fails", "consolidation-infeasible"))
    assert sample.metrics["unproved"] == 0
    assert sample.metrics["of_bound"] >= 1
    assert sample.metrics["undecided"] == 0
    if not case.sizes.get("mixed"):
        assert sample.metrics["victims"] + sample.metrics["moves"] == sample.facts["bound"]
