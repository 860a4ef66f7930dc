"""The job mixes, and the suite `gpu-jobs`."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.loads.gpu_jobs import GPU, GPU_HOURS, mix
from benchmarks.suites import gpu_jobs as suite
from benchmarks.traces.form import HOUR
from tests.effort import THOROUGH
from tests.paths import DOCS


def gpus_of(trace):
    return trace.requests[trace.task_shape, trace.resources.index(GPU)]


@pytest.mark.parametrize("name", ["fitted", "mixed"])
def test_the_mean_job_takes_as_long_as_published_figures_imply(name):
    trace = mix(name, 20_000, 8, 0.8, 8, 1)
    hours = float(gpus_of(trace) @ trace.task_duration_us) / HOUR
    assert hours / 20_000 == pytest.approx(GPU_HOURS, rel=0.02)
    assert hours / (64 * trace.task_us.max() / HOUR) == pytest.approx(0.8, rel=1e-6)


def test_the_generator_of_the_author_draws_uniformly():
    trace = mix("uniform", 1000, 8, 0.8, 8, 0)
    size, count = np.unique(gpus_of(trace), return_counts=True)
    assert size.tolist() == [1, 2, 4, 8]
    assert count.min() > 200
    assert trace.task_us.max() / HOUR == pytest.approx(24, abs=0.2)
    assert trace.task_duration_us.max() <= 2 * HOUR


def test_jobs_of_sixteen_gpus_are_gangs_on_two_nodes():
    trace = mix("mixed", 500, 8, 0.8, 8, 0)
    sizes = np.bincount(trace.task_job)
    assert set(sizes.tolist()) == {1, 2}
    for job in np.flatnonzero(sizes == 2).tolist():
        assert trace.jobs[job].gang_minimum == 2
        assert (gpus_of(trace)[trace.task_job == job] == 8).all()


def test_jobs_anywhere_are_gangs_of_tasks_with_one_gpu():
    whole, split = (mix("fitted", 300, 8, 0.8, gpus, 0) for gpus in (8, 1))
    assert (gpus_of(split) == 1).all()
    sizes = np.bincount(split.task_job)
    assert (sizes == np.bincount(whole.task_job, gpus_of(whole))).all()
    assert [job.gang_minimum for job in split.jobs] == np.where(sizes > 1, sizes, 0).tolist()


@pytest.mark.slow
def test_the_suite_is_sound_and_its_figures_follow_from_the_seed():
    (case,) = (case for case in specs.load("gpu-jobs").cases if case.name == "small/on-nodes")
    sample = suite.measure(case, Options())
    assert [check for check in sample.checks if not check.ok] == []
    again = suite.measure(case, Options())
    sample.metrics.pop("round_s")
    again.metrics.pop("round_s")
    assert sample.metrics == again.metrics
    assert sample.metrics["use"] == pytest.approx(0.695, abs=0.0005)
    assert {name: sample.metrics[name] for name in ("starved", "fifo_starved", "sjf_starved")} == {
        "starved": 14,
        "fifo_starved": 21,
        "sjf_starved": 8,
    }


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="minutes; in the thorough profile")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [case for case in specs.load("gpu-jobs").cases if case.name.startswith("fitted/")])
def test_published_figures_are_those_that_the_command_prints(case):
    of = suite.measure(case, Options()).metrics
    lines = (DOCS / "benchmarks.md").read_text().splitlines()
    for prefix, scheduler in (("", case.sizes["policy"]), ("fifo_", "FIFO"), ("sjf_", "SJF")):
        longest = f"{of['longest_wait_s']:,.0f} s" if not prefix else ""
        assert row_of(case.name.partition("/")[2], scheduler, prefix, of, longest) in lines


def row_of(where, scheduler, prefix, of, longest):
    share = f"{of[f'{prefix}use']:.1%}".replace("%", " %")
    numbers = f"{of[f'{prefix}jobs_per_hour']:.1f} | {of[f'{prefix}starved']:.0f} | {of[f'{prefix}wait_s']:,.0f} s"
    return f"| {where}: {scheduler} | {share} | {numbers} | {longest} |"


def test_jobs_that_do_not_end_fail_the_sample(monkeypatch):
    monkeypatch.setattr(suite, "_LONG_US", HOUR)
    (case,) = (case for case in specs.load("gpu-jobs").cases if case.name == "small/on-nodes")
    sample = suite.measure(replace(case, sizes={**case.sizes, "policy": "first-fit", "jobs": 20}), Options())
    failed = {check.name for check in sample.checks if not check.ok}
    assert failed == {f"{scheduler}: all jobs end" for scheduler in ("first-fit", "fifo", "sjf")}
