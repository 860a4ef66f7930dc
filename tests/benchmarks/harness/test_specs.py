from typing import Any

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import QUICK, Options, choose, measure_of
from benchmarks.harness.specs import SpecError, Target, parse

RAW: dict[str, Any] = {
    "title": "t",
    "about": "a",
    "metrics": {"x_s": {"title": "x"}},
    "defaults": {"nodes": 1, "pods": 2},
    "cases": [{"name": "one", "sizes": {"pods": 3}, "target": {"metric": "x_s", "at_most": 1.0}}],
}


@pytest.mark.parametrize("name", specs.available())
def test_every_suite_is_described_and_can_be_measured(name):
    suite = specs.load(name)
    assert callable(measure_of(name))
    virtual = {
        "cvxcluster",
        "defragmentation",
        "gpu-jobs",
        "openi",
        "quality",
        "packing",
        "preemption",
        "priorities",
        "split",
        "starts",
    }
    assert suite.virtual is (name in virtual)
    assert suite.title
    assert suite.about
    assert choose(suite, quick=True, names=()), f"{name} has no case labelled {QUICK}"


def test_a_case_has_the_defaults_and_its_own_sizes():
    (case,) = parse("demo", RAW).cases
    assert case.sizes == {"nodes": 1, "pods": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"titel": "x"}, "unknown field 'titel'", id="suite"),
        pytest.param({"cases": [{"name": "one", "sizes": {}, "label": []}]}, "unknown field 'label'", id="case"),
        pytest.param({"metrics": {"x_s": {"title": "x", "units": "s"}}}, "unknown field 'units'", id="metric"),
        pytest.param({"cases": [RAW["cases"][0], RAW["cases"][0]]}, "twice", id="duplicate"),
        pytest.param(
            {"cases": [{"name": "one", "sizes": {}, "target": {"metric": "y", "at_most": 1}}]},
            "unknown metric",
            id="target",
        ),
        pytest.param(
            {"cases": [{"name": "one", "sizes": {}, "target": {"metric": "x_s"}}]}, "exactly one", id="no bound"
        ),
    ],
)
def test_an_invalid_description_is_an_error(change, message):
    with pytest.raises(SpecError, match=message):
        parse("demo", {**RAW, **change})


def test_an_unknown_suite_lists_the_known_ones():
    with pytest.raises(SpecError, match=r"unknown suite 'nix'; choose one of: .*round"):
        specs.load("nix")


def test_targets_compare_with_their_bounds():
    assert Target("x", at_most=1.0).met(1.0)
    assert not Target("x", at_most=1.0).met(1.01)
    assert Target("x", at_least=0.7).met(0.7)
    assert not Target("x", at_least=0.7).met(0.69)


def test_scaling_keeps_0_at_0_and_others_at_1_or_more():
    assert [Options(scale=0.01).scaled(n) for n in (0, 10, 1000)] == [0, 1, 10]
