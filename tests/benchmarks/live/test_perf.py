"""Cases in the shape of scheduler_perf: every measured pod is bound, and what must stay pending does."""

import sys

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.harness import specs
from benchmarks.harness.results import read
from benchmarks.harness.runner import Options
from benchmarks.live.perf.phase import Outcome, figures
from benchmarks.live.perf.sizes import parse
from benchmarks.live.perf.templates import NODES, TEMPLATES
from tests.effort import THOROUGH

CASES = [case for case in specs.load("end-to-end").cases if case.sizes["mode"] == "perf"]
FIGURES = {
    "bound_per_s",
    *(f"{name}{q}{unit}" for name, unit in (("window_p", ""), ("p", "_s")) for q in (50, 90, 95, 99)),
}
ANOTHER = "perf-mixed-churn/5000", "perf-disruption-all", "perf-kueue"
"""One of each kind of objects; the others differ in the pods."""


def measured(tmp_path, name, *arguments):
    out = tmp_path / "r.json"
    command = ["run", "end-to-end", "--case", name, "--scale", "0.004", "--repeat", "1", "--json", str(out)]
    done = CliRunner().invoke(cli, [*command, *arguments])
    assert done.exit_code == 0, done.output
    case = min(read(out).cases, key=lambda case: len(case.name))  # the names of others may begin with its own
    assert case.failed == []
    assert set(case.samples) >= FIGURES
    assert case.samples["bound_per_s"][0] > 0, "some seconds may be without a bind"
    assert 0 < case.samples["p50_s"][0] <= case.samples["p99_s"][0]
    return case


@pytest.mark.e2e
@pytest.mark.parametrize("name", ANOTHER)
def test_a_case_of_each_kind_runs_on_the_synthetic_cluster(tmp_path, name):
    case = measured(tmp_path, name)
    assert case.checked == (2 if name.startswith("perf-mixed") else 1)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="make test-thorough runs it: ten seconds each")
@pytest.mark.parametrize("name", sorted({case.name for case in CASES if not case.name.startswith(ANOTHER)}))
def test_each_case_runs_on_the_synthetic_cluster(tmp_path, name):
    measured(tmp_path, name)


@pytest.mark.e2e
def test_another_scheduler_is_measured_on_the_same_nodes(tmp_path):
    """Poseidon by another name."""
    command = f"{sys.executable} -m poseidon_py run --kubeconfig {{kubeconfig}} --scheduler-name other"
    start = f"{command} --lease-name other --health-port -1"
    case = measured(tmp_path, "perf-preemption-async", "--against", "other", "--start", start)
    assert {f"other_{name}" for name in FIGURES - {"bound_per_s"}} | {"other_per_s"} <= set(case.samples)
    mine, other = case.samples["bound_per_s"][0], case.samples["other_per_s"][0]
    assert case.samples["times_other"][0] == pytest.approx(mine / other)
    assert case.checked == 4, "of each: the measured pods, and those that come meanwhile"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--start", "somebody"], "--start needs --against"),
        (["--against", "somebody"], "--against needs --kubeconfig"),
        (["--against", "poseidon", "--start", "somebody"], "give another scheduler"),
    ],
)
def test_another_scheduler_needs_a_name_and_a_place(arguments, word):
    done = CliRunner().invoke(cli, ["run", "end-to-end", "--case", "perf-basic/5000-nodes/10000", *arguments])
    assert done.exit_code == 2
    assert word in " ".join(done.output.split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_pods_of_a_case_fit_at_every_scale(case):
    for scale in (1.0, 0.1, 0.02, 0.004):
        sizes = parse(case.sizes, Options(scale=scale))
        assert {sizes.template, sizes.initial_template, sizes.waiting_template} <= set(TEMPLATES)
        cpu = {"": 0, "100m": 100, "300m": 300, "900m": 900, "3970m": 3970}
        asked = (
            sizes.pods * cpu[TEMPLATES[sizes.template].cpu] + sizes.initial * cpu[TEMPLATES[sizes.initial_template].cpu]
        )
        if sizes.template != "whole-node":  # these preempt
            assert asked <= sizes.nodes * int(NODES[sizes.node].cpu) * 1000
        if sizes.of_gang:
            assert sizes.pods % sizes.of_gang == 0


def test_large_gangs_shrink_and_small_ones_become_fewer():
    def at(**sizes):
        found = parse({"mode": "perf", "nodes": 5000, **sizes}, Options(scale=0.01))
        return found.pods, found.of_gang

    assert at(pods=3000, members=3) == (30, 3)
    assert at(pods=3000, gangs=3) == (30, 10)


def test_a_size_that_no_case_has_is_refused():
    with pytest.raises(specs.SpecError, match="unknown field 'initail'"):
        parse({"mode": "perf", "nodes": 5, "pods": 5, "initail": 3}, Options())


def test_throughput_is_counted_in_whole_seconds():
    outcome = Outcome([0.1, 0.2, 0.9, 1.5, 2.1, 2.4], [0.01, 0.02, 0.03, 0.04, 0.05, 0.06], [])
    found = dict(figures(outcome))
    assert found["per_s"] == pytest.approx(6 / 2.4)
    assert (found["per_s_p50"], found["per_s_p99"]) == (1, 3), "of [0, 1) and [1, 2); the third second is not whole"
    assert (found["p50_s"], found["p99_s"]) == (0.03, 0.06)


def test_less_than_a_second_has_one_rate():
    assert Outcome([0.1, 0.5], [0.1, 0.1], []).windows() == [4.0]
