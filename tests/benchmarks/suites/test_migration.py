"""The suite of rounds that reconsider running tasks, at a small scale."""

from dataclasses import replace

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import migration as suite


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [c for c in specs.load("migration").cases if "200-nodes" in c.name], ids=lambda c: c.name
)
def test_the_suite_is_sound_at_a_small_scale(case):
    sample = suite.measure(replace(case, sizes={**case.sizes, "rounds": 8}), Options(scale=0.1, seed=2))
    assert [check for check in sample.checks if not check.ok] == []
    assert (sample.metrics["migrated"] > 0) == ("quincy" in case.name)
    assert sample.facts["placed"] >= 8 * round(0.01 * sample.facts["running"])
    memory = sample.facts["memory_mib"]
    assert list(memory) == ["process", "nodes", "tasks", "first round", "peak"]
    assert 0 < memory["process"] <= memory["peak"]
