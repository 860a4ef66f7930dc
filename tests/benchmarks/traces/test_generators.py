"""Generated traces have the moments that their presets document, and the seed decides everything."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.traces.describe import describe
from benchmarks.traces.distributions import Fixed, Lognormal, Mixture, Pareto, choices
from benchmarks.traces.fitting import homeless, notes
from benchmarks.traces.form import FOREVER, HOUR, SECOND, MachineEvent, Shape, TraceBuilder, TraceError, sizes_of_jobs
from benchmarks.traces.generate import generate, offered_load, preset
from benchmarks.traces.presets import GPU, GPU_MILLI, PRESETS, Tier
from firmament_py.model.constraints import Operator, Requirement
from tests.benchmarks.traces.made import content, small

GRID = (np.arange(20_000) + 0.5) / 20_000

positive = st.floats(0.1, 100)
DISTRIBUTIONS = st.one_of(
    st.builds(Fixed, positive),
    st.builds(lambda m, s, w: Lognormal(m, s, m / w, m * w), positive, st.floats(0.1, 2), st.floats(2, 50)),
    st.builds(
        lambda a, low, w: Pareto(a, low, low * w), st.sampled_from((0.4, 0.69, 1, 1.5)), positive, st.floats(2, 900)
    ),
)


@pytest.mark.slow
@given(one=DISTRIBUTIONS, other=DISTRIBUTIONS, weight=st.floats(0.1, 0.9))
def test_means_are_those_of_the_draws(one, other, weight):
    for distribution in (one, Mixture(((weight, one), (1 - weight, other)))):
        assert distribution.at(GRID).mean() == pytest.approx(distribution.mean(), rel=0.03)


def test_quantiles_are_those_of_the_formulas():
    lognormal = Lognormal(10, 1, 1e-9, 1e9)
    # one sigma above the median: e times as much
    assert lognormal.at(np.array([0.5, 0.841344746]))[1] == pytest.approx(10 * np.e, rel=1e-6)
    pareto = Pareto(1, 1, 1e9)  # P(X > x) = 1 / x
    assert pareto.at(np.array([0.5, 0.99])) == pytest.approx([2, 100], rel=1e-6)
    assert sorted(set(choices({1: 0.25, 8: 0.75}).at(GRID))) == [1, 8]
    assert (choices({1: 0.25, 8: 0.75}).at(GRID) == 8).mean() == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_state_the_source_of_each_parameter(name):
    one = preset(name)
    assert sum(t.share for t in one.tiers) == pytest.approx(1)
    assert {"kinds", "jobs_per_machine_hour", "tasks", "duration_s", "requests", "removals", "arrivals"} <= set(
        one.sources
    )
    assert all("published" in text or "approximates" in text for text in one.sources.values())
    # what a tier draws at most fits on some machine
    for tier in (*one.tiers, *([one.standing_tier] if one.standing_tier else [])):
        maximum = {r: float(d.at(np.array([0.0, 1.0])).max()) for r, d in tier.requests.items()}
        assert any(all(k.allocatable.get(r, 0) >= a for r, a in maximum.items()) for k in one.kinds), tier.name


@pytest.mark.parametrize("name", PRESETS)
def test_the_seed_decides_everything(name):
    made = [generate(preset(name), 20, 2, seed=s, labels=True) for s in (1, 1, 2)]
    assert content(made[0]) == content(made[1])
    assert content(made[0]) != content(made[2])


@pytest.mark.slow
def test_google_2011_machines_are_as_published():
    trace = generate(preset("google2011"), 12_583, 0.01)
    cpu, memory = (trace.resources.index(r) for r in ("cpu", "memory"))
    offers = trace.event_allocatable[trace.event_us == 0]
    kinds, counts = np.unique(offers[:, [cpu, memory]], axis=0, return_counts=True)
    largest = kinds.max(axis=0)
    found = {tuple((k / largest).round(2)): n for k, n in zip(kinds, counts.tolist(), strict=True)}
    assert found[0.5, 0.5] == 6732
    assert found[0.5, 0.25] == 3863
    assert found[1.0, 1.0] == 795


@pytest.mark.slow
def test_google_2011_jobs_are_small_and_short_and_many():
    trace = generate(preset("google2011"), 1000, 48, seed=4)
    arrived = np.unique(trace.task_job[trace.task_us > 0])
    sizes = sizes_of_jobs(trace)[arrived]
    assert (sizes == 1).mean() == pytest.approx(0.75, abs=0.03)
    assert sizes.mean() == pytest.approx(38, rel=0.4)  # a heavy tail: the mean moves
    # 964 jobs an hour on 12,583 machines: 76.6 on 1,000
    assert len(arrived) / 48 == pytest.approx(76.6, rel=0.15)
    first = np.unique(trace.task_job, return_index=True)[1]
    durations = trace.task_duration_us[first]
    durations = durations[durations != FOREVER] / SECOND
    assert np.median(durations) == pytest.approx(180, rel=0.1)
    assert (durations > 900).mean() == pytest.approx(0.2, abs=0.03)
    removals = (trace.event_kind == MachineEvent.REMOVE).sum()
    assert removals == pytest.approx(0.025 * 1000 * 2, abs=3 * np.sqrt(50))


def test_google_2011_services_use_the_share_of_the_preset():
    trace = generate(preset("google2011"), 400, 1)
    stays = trace.task_duration_us == FOREVER
    cpu = trace.resources.index("cpu")
    in_use = trace.requests[trace.task_shape[stays], cpu].sum() / trace.capacity[cpu]
    assert in_use == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize(("tier", "p95"), [("best-effort-batch", 498), ("mid", 67), ("free", 21)])
def test_google_2019_tails_of_tasks_a_job(tier, p95):
    [one] = [t for t in preset("google2019").tiers if t.name == tier]
    assert float(one.tasks.at(np.array([0.95]))[0]) == pytest.approx(p95, rel=0.06)


@pytest.mark.slow
def test_alibaba_durations_requests_and_gangs():
    trace = generate(preset("alibaba-gpu"), 1000, 24, seed=2)
    first = np.unique(trace.task_job, return_index=True)[1]
    durations = trace.task_duration_us[first] / SECOND
    assert np.median(durations) == pytest.approx(23 * 60, rel=0.08)
    assert np.percentile(durations, 90) == pytest.approx(4.5 * 3600, rel=0.1)
    cpu = trace.requests[trace.task_shape[first], trace.resources.index("cpu")]
    assert np.median(cpu) == pytest.approx(6000, rel=0.1)
    sizes = sizes_of_jobs(trace)
    assert sizes.mean() == pytest.approx(7, rel=0.15)
    gangs = np.array([job.gang_minimum for job in trace.jobs])
    assert ((gangs > 0)[sizes > 1]).mean() == pytest.approx(0.85, abs=0.02)
    assert (gangs[sizes == 1] == 0).all()
    gpus = trace.capacity[trace.resources.index(GPU_MILLI)] / 1000
    assert gpus == pytest.approx(6742 / 1814 * 1000, rel=0.01)


def test_philly_jobs_are_gangs_of_gpus():
    trace = generate(preset("philly"), 552, 24 * 7, seed=2)
    assert trace.capacity[trace.resources.index(GPU)] == pytest.approx(2490, abs=4)
    sizes = sizes_of_jobs(trace)
    assert all(job.gang_minimum in (0, int(size)) for job, size in zip(trace.jobs, sizes, strict=True))
    gpus = np.bincount(trace.task_job, trace.requests[trace.task_shape, trace.resources.index(GPU)])
    assert (gpus == 1).mean() == pytest.approx(0.78, abs=0.02)
    assert set(gpus.tolist()) <= {1, 2, 4, 8, 16, 32}


@pytest.mark.parametrize("load", [0.4, 0.7, 1.3])
def test_the_wanted_load_is_met(load):
    # without heavy tails, so that one trace is near the mean: tasks of half an hour, in jobs of 1 to 3
    tier = Tier("t", 1, 0, choices({1: 0.5, 3: 0.5}), Fixed(1800), {"cpu": Fixed(1000), "memory": Fixed(1)})
    plain = dataclasses.replace(preset("google2011"), tiers=(tier,), burst_sigma=0.0)
    assert offered_load(generate(plain, 100, 6, load=load), "cpu") == pytest.approx(load, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["google2011", "alibaba-gpu", "philly"])
def test_the_wanted_load_is_met_in_the_middle_of_many_seeds(name):
    loads = [offered_load(generate(preset(name), 300, 6, seed=s, load=1.3), preset(name).contended) for s in range(11)]
    assert np.median(loads) == pytest.approx(1.3, rel=0.25)  # heavy tails: the mean of few is no measure


def test_offered_load_by_hand():
    # 4 cpu for 10 s are 40; asked: 1 for 5 s and 2 from 4 s on, which the last event at 10 s cuts off: 5 + 12 = 17
    trace = small([("a", 0, 5, 1, 0), ("b", 4, None, 2, 0), ("c", 10, 1, 0, 0)], ((4, 8),))
    assert offered_load(trace, "cpu") == pytest.approx(17 / 40)


def test_a_description_has_the_figures_of_the_trace():
    trace = small([("a", 0, 5, 1, 0), ("a", 0, None, 2, 0), ("b", 3600, 1, 1, 1, 7)], gangs={"a": 2})
    message = describe(trace)
    assert (message["jobs"], message["tasks"], message["tasks_that_stay"], message["gangs"], message["hours"]) == (
        2,
        3,
        1,
        1,
        1.0,
    )
    assert message["tasks_a_job"]["mean"] == 1.5
    assert message["tasks_by_priority"] == {0: 2, 7: 1}


def test_tasks_that_fit_on_no_machine_are_named():
    builder = TraceBuilder("t")
    for name, zone, offer in (("m", "a", {"cpu": 4, "memory": 8, "pods": 0}), ("n", "b", {"cpu": 2, "memory": 9})):
        row = builder.machine(name, {"zone": zone})
        builder.event(0, row, MachineEvent.ADD, offer)
        builder.event(5, row, MachineEvent.REMOVE)
    in_b = (Requirement("zone", Operator.IN, ("b",)),)
    asked = [
        ({"cpu": 4, "memory": 8}, ()),
        ({"cpu": 4, "memory": 9}, ()),  # each machine lacks something
        ({"cpu": 2, "pods": 7}, in_b),  # a task takes one slot, whatever it requests
        ({"cpu": 3}, in_b),  # what fits is excluded
        ({"example.com/gpu": 1}, ()),
        ({}, (Requirement("zone", Operator.DOES_NOT_EXIST),)),
        ({"cpu": 3}, ()),
    ]
    for requests, selector in asked:
        builder.task(9, builder.job("j"), 1, builder.shape(Shape.of(requests, 0, selector)))
    trace = builder.build()
    assert [trace.task_name(t) for t in homeless(trace)] == ["j/1", "j/3", "j/4", "j/5"]
    assert notes(trace) == [
        "4 tasks do not fit on any empty machine of the trace and wait forever, e.g. j/1 (cpu 4m, memory 9)"
    ]


def test_no_task_fits_without_machines():
    builder = TraceBuilder("t")
    builder.machine("m")
    builder.task(0, builder.job("j"), 1, builder.shape(Shape.of({}, 0, (Requirement("zone", Operator.EXISTS),))))
    assert notes(builder.build()) == [
        "1 tasks do not fit on any empty machine of the trace and wait forever, e.g. j/0 (zone Exists)"
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_request_only_what_some_machine_offers(name):
    assert notes(generate(preset(name), 100, 6)) == []


def test_a_trace_can_be_cut():
    trace = generate(preset("google2019"), 20, 3)
    short, reported = trace.until(HOUR)
    assert reported == []
    assert short.task_us.max() < HOUR
    assert len(short.task_us) == (trace.task_us < HOUR).sum()


def test_a_cut_keeps_only_jobs_machines_and_shapes_in_use():
    late = [(100, 0, MachineEvent.UPDATE, 2, 8)]
    trace = small([("late", 100, 5, 2, 0), ("a", 0, 5, 1, 0), ("b", 9, 5, 1, 0), ("b", 99, 5, 3, 0)], events=late)
    short, reported = trace.until(99 * SECOND)
    assert reported == []
    assert short.jobs == tuple(job for job in trace.jobs if job.name in ("a", "b"))
    assert [short.task_name(t) for t in range(2)] == ["a/0", "b/0"]
    assert (len(short.shapes), len(short.event_us)) == (1, 1)
    assert content(short) == content(small([("a", 0, 5, 1, 0), ("b", 9, 5, 1, 0)]))


def test_a_cut_drops_machines_that_come_later():
    builder = TraceBuilder("t")
    for name, us in (("late", 7), ("m", 0), ("n", 3)):
        builder.event(us, builder.machine(name), MachineEvent.ADD, {"cpu": us})
    builder.task(0, builder.job("j"), 5, builder.shape(Shape.of({"cpu": 1})))
    short, _ = builder.build().until(7)
    assert [m.name for m in short.machines] == ["m", "n"]
    assert short.event_allocatable[:, short.resources.index("cpu")].tolist() == [0, 3]
    assert short.event_machine.tolist() == [0, 1]


def test_a_gang_that_is_cut_below_its_minimum_is_left_out():
    two_and_two = [("gang", at, 5, 1, 0) for at in (0, 0, 4000, 4000)]
    soft = [("enough", at, 5, 1, 0) for at in (0, 0, 4000)]
    trace = small([*two_and_two, *soft, ("one", 1, 5, 1, 0)], gangs={"gang": 4, "enough": 2})
    short, reported = trace.until(HOUR)
    assert {job.name: int(n) for job, n in zip(short.jobs, sizes_of_jobs(short), strict=True)} == {
        "enough": 2,
        "one": 1,
    }
    assert reported == ["left out: 1 gangs with 2 tasks, too few of which are submitted before the end, e.g. gang"]


@pytest.mark.parametrize(
    ("machines", "hours", "load", "message"),
    [(0, 1, None, "0 machines"), (1, 0, None, "0 hours"), (1, 1, 0, "the load is 0; give more than 0")],
)
def test_an_impossible_size_is_rejected(machines, hours, load, message):
    with pytest.raises(TraceError, match=message):
        generate(preset("google2011"), machines, hours, load=load)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(TraceError, match="unknown preset 'nix'; choose one of: google2011"):
        preset("nix")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda b: b.event(1, 0, MachineEvent.ADD, {}), "m is added while it is present", id="added twice"),
        pytest.param(lambda b: b.event(-1, 0, MachineEvent.ADD, {}), "times start at 0", id="event before 0"),
        pytest.param(lambda b: b.event(1, 0, MachineEvent.UPDATE, {"cpu": -1}), "cpu is -1", id="offer below 0"),
        pytest.param(lambda b: b.event(0, b.machine("x"), MachineEvent.REMOVE), "x is removed or upd", id="not there"),
        pytest.param(lambda b: b.task(-1, 0, 1, 0), "submitted before 0", id="task before 0"),
        pytest.param(lambda b: b.task(0, 0, 0, 0), "has a duration of 0 or less", id="no duration"),
        pytest.param(lambda b: b.task(0, 0, 1, 0, 0), "j/0 appears twice", id="twice"),
        pytest.param(lambda b: b.job("k", -1), "gang_minimum of job k is -1", id="gang"),
    ],
)
def test_an_invalid_trace_is_rejected(spoil, message):
    builder = TraceBuilder("t")
    builder.event(0, builder.machine("m"), MachineEvent.ADD, {"cpu": 1})
    builder.task(0, builder.job("j"), 1, builder.shape(Shape.of({"cpu": 1})))
    with pytest.raises(TraceError, match=message):  # noqa: PT012
        spoil(builder)
        builder.build()


def test_a_preset_is_a_value():
    assert dataclasses.replace(preset("philly"), zones=2).zones == 2
