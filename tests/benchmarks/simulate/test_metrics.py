"""Metrics of placements and replays, compared with values by hand, and the series for plots."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness import series
from benchmarks.harness.series import MAX_POINTS, Series, cdf, curve, timeline
from benchmarks.simulate import effects, metrics
from benchmarks.simulate.baselines import first_fit
from benchmarks.simulate.replay import Settings, replay
from benchmarks.traces.form import SECOND, MachineEvent, Shape, TraceBuilder, TraceError
from policies.colocation import KINDS
from tests.benchmarks.traces.made import small


def test_link_use_adds_up_what_shares_a_link():
    # machine 0: 30 + 20 of 100, machine 1: 90 of 60, machine 2: nothing
    found = effects.link_use(np.array([0, 0, 1]), np.array([30, 20, 90]), np.array([100, 60, 10]))
    assert found == {
        "link use": pytest.approx((0.5 + 1.5) / 3),
        "link p99": pytest.approx(1.5 - 0.02 * 1.0),  # between the second and the fullest of three
        "fullest link": 1.5,
        "links over": pytest.approx(1 / 3),
    }


def test_bytes_move_unless_their_holder_is_near():
    # task 0 runs on a holder, task 1 in the rack of one, task 2 far from all, task 3 has no holder
    on_machine, in_rack = effects.near_data(
        machine=np.array([0, 1, 3, 0]),
        task=np.array([0, 0, 1, 2]),
        holder=np.array([0, 2, 0, 1]),
        rack=np.array([0, 0, 1, 1]),
    )
    assert on_machine.tolist() == [True, False, False, False]
    assert in_rack.tolist() == [True, True, False, False]


def test_interference_counts_neighbours_but_not_the_task_itself():
    devil, turtle, rabbit = (KINDS.index(k) for k in ("devil", "turtle", "rabbit"))
    alone = effects.interference(np.array([0, 1]), np.array([devil, devil]), 2)
    assert alone == 0
    # together: each devil suffers 200
    assert effects.interference(np.array([0, 0]), np.array([devil, devil]), 2) == pytest.approx(200)
    # rabbit and devil suffer 1000 from each other and 10 from the turtle, which suffers 50 from each: 2120 / 3
    both = effects.interference(np.zeros(3, np.int64), np.array([rabbit, devil, turtle]), 1)
    assert both == pytest.approx(2120 / 3)
    assert effects.interference(np.zeros(0, np.int64), np.zeros(0, np.int64), 1) == 0


def labelled(*jobs, racks=("r", "r", "s")):
    """A trace of one task of one cpu a job, one a second: (seconds it runs, labels); machines of 1 cpu and 100 kbps."""
    builder = TraceBuilder("labelled")
    for i, rack in enumerate(racks):
        labels = {"link-kbps": "100", "topology.kubernetes.io/rack": rack}
        builder.event(0, builder.machine(f"m{i}", labels), MachineEvent.ADD, {"cpu": 2})
    for i, (seconds, labels) in enumerate(jobs):
        builder.task(i * SECOND, builder.job(f"j{i}", 0, labels), seconds * SECOND, builder.shape(Shape.of({"cpu": 1})))
    return builder.build()


def test_effects_of_running_tasks_are_sampled_and_bytes_read_are_summed():
    # first-fit: j0 and j1 on m0, j2 and j3 on m1; j0 ends after 4.5 s, all others stay
    trace = labelled(
        (4, {"bandwidth-kbps": "50", "interference-class": "devil"}),
        (99, {"bandwidth-kbps": "70", "interference-class": "devil", "data-bytes": "100", "data-machines": "m0 m2"}),
        (99, {"data-bytes": "200", "data-machines": "m0"}),
        (99, {"data-bytes": "700", "data-machines": "m2 gone"}),
    )
    outcome = replay(trace, first_fit(), 6 * SECOND, Settings(round_ms=100, bind_ms=0, samples=6))
    sampled = {name: values.round(9).tolist() for name, values in outcome.sampled.items()}
    # at 0 .. 6 s, before what happens then: j0 runs from 0.1 to 4.1 s, j1 from 1.1 s on
    assert sampled["fullest link"] == [0, 0.5, 1.2, 1.2, 1.2, 0.7, 0.7]
    assert sampled["links over"] == [0, 0, *[round(1 / 3, 9)] * 3, 0, 0]
    assert sampled["interference"] == [0, 0, 200, 200, 200, 0, 0]
    assert sampled["bytes moved"] == [0, 0, 0, round(2 / 3, 9), 0.9, 0.9, 0.9]
    assert sampled["bytes across racks"] == [0, 0, 0, 0, 0.7, 0.7, 0.7]
    summary = metrics.summary(outcome)
    assert summary["bytes_moved"] == 0.9
    assert summary["bytes_across_racks"] == 0.7
    assert summary["link_use_max"] == pytest.approx(5.5 / 7)
    assert summary["interference"] == pytest.approx(600 / 7)
    names = {line.name for line in metrics.series_of(outcome)}
    assert {"spread between nodes", "nodes used", "link p99", "bytes moved", "interference"} <= names


def test_effects_without_labels_are_not_sampled():
    outcome = replay(labelled((9, {"interference-class": "nobody"})), first_fit(), 2 * SECOND, Settings(samples=2))
    assert not {"fullest link", "bytes moved", "interference"} & set(outcome.sampled)
    assert "nodes used" in {line.name for line in metrics.series_of(outcome)}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"data-bytes": "8GB", "data-machines": "m0"}, "job j0: label data-bytes is '8GB'; give a whole number"),
        ({"data-bytes": str(2**50 + 1), "data-machines": "m0"}, "data-bytes"),
        ({"bandwidth-kbps": "-1"}, "bandwidth-kbps"),
        ({"bandwidth-kbps": ""}, "bandwidth-kbps"),
    ],
)
def test_a_label_that_is_not_a_number_is_an_error(labels, message):
    with pytest.raises(TraceError, match=message):
        replay(labelled((1, labels)), first_fit(), SECOND)


def test_waits_completions_and_slowdowns_by_hand():
    # one machine of 4: a runs 0.01 .. 20.01; b needs it alone and runs 20.02 .. 25.02 though it came at 10;
    # c comes at 24 and waits still at 25; rounds take 10 ms
    trace = small([("a", 0, 20, 4, 0), ("b", 10, 5, 4, 0), ("c", 24, 5, 4, 0)], ((4, 4),))
    outcome = replay(trace, first_fit(), 25 * SECOND, Settings(round_ms=10, bind_ms=0))
    wait, completion, alone, jobs = metrics.jobs_s(outcome)
    assert jobs.tolist() == [0, 1, 2]
    assert wait == pytest.approx([0.01, 10.02, 1.0])
    assert completion == pytest.approx([20.01, math.nan, math.nan], nan_ok=True)
    assert alone.tolist() == [20, 5, 5]
    assert metrics.waits_s(outcome) == pytest.approx([0.01, 10.02, 1.0])
    summary = metrics.summary(outcome)
    assert summary["job_wait_s"] == pytest.approx(11.03 / 3)
    assert summary["completed_jobs"] == 1
    assert summary["waiting_tasks"] == 1
    assert "gang_wait_s" not in summary


def test_waits_by_size_by_hand():
    # a machine has 4; small asks for 4 and runs 1 s, middle for 12 and 2 s, large for 36 and 5 s, which never fits
    builder = TraceBuilder("whom")
    for i in range(3):
        builder.event(0, builder.machine(f"m{i}"), MachineEvent.ADD, {"cpu": 4})
    for name, tasks, seconds in (("small", 2, 1), ("middle", 6, 2), ("large", 18, 5)):
        job = builder.job(name, tasks)
        for _ in range(tasks):
            builder.task(0, job, seconds * SECOND, builder.shape(Shape.of({"cpu": 2})))
    outcome = replay(builder.build(), first_fit(), 10 * SECOND, Settings(round_ms=10, bind_ms=0))
    wait = dict(zip(("small", "middle", "large"), metrics.jobs_s(outcome)[0].tolist(), strict=True))
    assert (wait["middle"] > wait["small"], wait["large"]) == (True, 10)
    summary = metrics.summary(outcome)
    assert summary["job_wait_small_s"] == wait["small"]
    assert summary["job_wait_large_s"] == wait["large"]
    weighted = wait["small"] * 4 + wait["middle"] * 24 + wait["large"] * 180
    assert summary["job_wait_by_use_s"] == pytest.approx(weighted / 208)


def test_slowdowns_are_bounded():
    # 40 s for 20 s of work: 2; 15 s for 1 s, which counts as 10: 1.5; faster than alone: 1
    found = metrics.slowdown(np.array([40.0, 15.0, 3.0]), np.array([20.0, 1.0, 2.0]))
    assert found.tolist() == [2, 1.5, 1]


def test_balance_and_fragmentation_are_sampled():
    # two machines of 4; a task of 3 on the first: the sample has 3/4 and 0; what is free is 1 and 4, and the only
    # shape, of 3, fits on the second alone: 1 of 5 is lost
    outcome = replay(small([("a", 0, None, 3, 0)], ((4, 4), (4, 4))), first_fit(), SECOND, Settings(samples=2))
    last = {name: values[-1] for name, values in outcome.sampled.items()}
    assert last["fragmentation"] == pytest.approx(1 / 5)
    assert last["deviation"] == pytest.approx(0.375)
    assert last["spread"] == pytest.approx(0.75 * 0.8)  # the 90th and 10th percentile of two values
    assert last["nodes used"] == 1
    assert last["utilisation cpu"] == pytest.approx(3 / 8)
    assert (last["running"], last["waiting"]) == (1, 0)


def test_a_replay_has_lines_to_draw():
    trace = small([("g", 0, 5, 1, 1)] * 2, ((4, 4),), gangs={"g": 2})
    lines = metrics.series_of(replay(trace, first_fit(), 10 * SECOND, Settings()))
    names = {line.name: line for line in lines}
    assert {"utilisation of cpu", "waiting tasks", "spread between nodes", "job wait", "gang wait"} <= set(names)
    assert names["job wait"].kind == "cdf"
    assert names["job wait"].y[-1] == 1.0
    assert names["utilisation of cpu"].kind == "timeline"
    assert max(names["utilisation of cpu"].y) == pytest.approx(0.5)
    assert all(len(line.x) <= MAX_POINTS for line in lines)


# -- series ---------------------------------------------------------------------------------------------------


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=2000))
def test_a_cdf_is_one_of_its_values(values):
    line = cdf("w", values, "wait", "s")
    assert len(line.x) <= MAX_POINTS
    assert line.y == sorted(line.y)
    assert line.y[-1] == 1.0
    for x, y in zip(line.x[:: max(len(line.x) // 5, 1)], line.y[:: max(len(line.y) // 5, 1)], strict=True):
        slack = 1e-5 * max(abs(x), 1)
        assert sum(v < x - slack for v in values) / len(values) <= y + 1e-5
        assert sum(v <= x + slack for v in values) / len(values) >= y - 1e-5


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=2000))
def test_a_long_timeline_keeps_its_mean(values):
    line = timeline("u", np.arange(len(values)), values, "use", "ratio")
    assert len(line.x) <= MAX_POINTS
    assert line.x == sorted(line.x)
    counts = len(values) / len(line.x)
    # groups differ by at most one in size
    assert np.mean(line.y) == pytest.approx(np.mean(values), rel=2 / counts, abs=max(values) / len(line.x) + 1e-6)


def test_a_short_timeline_is_itself():
    line = timeline("u", [0, 1.5], [3, 1 / 3], "use", "ratio")
    assert (line.x, line.y) == ([0, 1.5], [3, 0.333333])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"kind": "pie"}, "kind is 'pie'", id="kind"),
        pytest.param({"x": [1.0]}, "1 x and 2 y values", id="length"),
        pytest.param({"x": [2.0, 1.0]}, "x is not ascending", id="order"),
        pytest.param({"y": [1.0, math.nan]}, "not finite numbers", id="nan"),
        pytest.param({"x": ["a", "b"]}, "not finite numbers", id="text"),
        pytest.param({"x": [1.0] * 501, "y": [1.0] * 501}, "at most 500", id="many"),
        pytest.param({"x": 5}, "lists", id="no list"),
        pytest.param({"color": "red"}, "has the fields", id="field"),
    ],
)
def test_a_series_that_cannot_be_drawn_is_refused(change, message):
    raw = {
        "name": "n", "kind": "curve", "x": [1.0, 2.0], "y": [1.0, 2.0],
        "x_title": "nodes", "x_unit": "count", "y_title": "time", "y_unit": "s",
    }  # fmt: skip
    assert series.parse(raw) == curve("n", [1, 2], [1, 2], "nodes", "count", "time", "s")
    with pytest.raises(ValueError, match=message):
        series.parse({**raw, **change})


def test_a_series_is_plain_json():
    line = curve("n", np.array([1, 2]), np.array([1.23456789, 2]), "nodes", "count", "time", "s")
    assert isinstance(line, Series)
    assert all(type(v) is float for v in (*line.x, *line.y))
    assert line.y[0] == 1.23457
