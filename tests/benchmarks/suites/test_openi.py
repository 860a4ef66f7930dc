"""The suite of the overloaded AI cluster, at a small scale."""

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import openi as suite

SMALL = next(case for case in specs.load("openi").cases if case.name == "small/seed-0")


@pytest.mark.slow
def test_the_suite_is_sound_at_a_small_scale(monkeypatch):
    monkeypatch.setattr(suite, "_warm_up", lambda: None)
    sample = suite.measure(SMALL, Options(scale=0.3))
    assert [check for check in sample.checks if not check.ok] == []
    assert {check.name.partition(":")[0] for check in sample.checks} == {"delayed", "none", "volcano"}
    jobs = sample.facts["jobs"]
    for rules in ("delayed", "none", "volcano"):
        outcome = sample.facts[rules]
        assert 0.5 * jobs < outcome["done"] <= jobs
        assert 0.7 < outcome["use_in_overload"] <= 1
        assert 0 <= outcome["imbalance"] <= outcome["spread"] + 1
    delayed, none, volcano = (sample.facts[rules] for rules in ("delayed", "none", "volcano"))
    assert delayed["preemptions"] > 0
    assert delayed["announced"] >= delayed["jobs"] + delayed["spared"]
    assert delayed["pods"] == delayed["pods_chosen"]  # whole jobs
    assert volcano["pods"] >= volcano["pods_chosen"] > 0
    assert none["announced"] == none["jobs"] == volcano["announced"] == 0
    assert none["urgent_wait_s"] > delayed["urgent_wait_s"]
