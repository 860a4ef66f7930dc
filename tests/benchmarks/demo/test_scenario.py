from typing import Any

import pytest

from benchmarks.demo.evidence import samples
from benchmarks.demo.scenario import Plan, StatusPoller, _is_finite
from tests.benchmarks.demo.builders import make_evidence


def status(arcs: int, **fields: int) -> dict[str, object]:
    return {"policy": "p", "rounds": 4, "last_round": {"arcs": arcs, "vertices": 3, "seconds": 0.002, **fields}}


def test_the_largest_network_is_kept():
    poller = StatusPoller()
    answers: list[dict[str, object]] = [status(5), status(9, vertices=4), status(0), {}, {"error": "not ready"}]
    for answer in answers:
        poller.take(answer)
    assert poller.largest_network == {"vertices": 4, "arcs": 9, "pending": 0, "solves": 0}
    assert poller.policy == "p"
    assert poller.note == "; round 4: 2.0 ms, 9 arcs"


IDLE: dict[str, Any] = {
    "unfinished": {"changes": 0, "rounds": 0, "binds": 0, "reports": 0},
    "next_round_seconds": None,
    "versions": {"pods": "7"},
    "bound": 3,
}


@pytest.mark.parametrize(
    ("status", "idle"),
    [
        pytest.param(IDLE, True, id="idle"),
        pytest.param(IDLE | {"versions": {"pods": "6"}}, False, id="it has not seen the last change"),
        pytest.param(IDLE | {"unfinished": {"reports": 1}}, False, id="an event is to be written"),
        pytest.param(IDLE | {"unfinished": {"rounds": 1}}, False, id="a round runs"),
        pytest.param(IDLE | {"next_round_seconds": 0.5}, False, id="a round is due soon"),
        pytest.param(IDLE | {"next_round_seconds": 300.0}, True, id="a round is due later"),
        pytest.param({}, False, id="no answer"),
        pytest.param({"error": "starting"}, False, id="starting"),
    ],
)
def test_the_scheduler_says_when_it_has_done_what_it_can(status, idle):
    """However long that takes: seconds in which nothing happens prove nothing on a slow machine."""
    poller = StatusPoller()
    poller.take(IDLE)
    poller.take(status)
    assert poller.idle(7) is idle


def test_progress_of_the_scheduler_is_a_change():
    poller = StatusPoller()
    for status, changes in ((IDLE, True), (IDLE, False), (IDLE | {"bound": 4}, True), ({}, True), ({}, False)):
        poller.changed_at = 0.0
        poller.take(status)
        assert (poller.changed_at > 0.0) is changes


def test_a_pod_that_runs_longer_than_the_demo_is_not_finite():
    run = "cluster.poseidon.io/run-seconds"
    assert _is_finite({run: "3.5"})
    assert not _is_finite({run: "1000000"})
    assert not _is_finite({})


def test_patience_grows_with_the_workload():
    assert Plan(1, 1000, "", 0).patience_seconds < Plan(1, 10000, "", 0).patience_seconds
    assert Plan(1, 1000, "", 0, patience=5.0).patience_seconds == 5.0


@pytest.mark.parametrize(("labels", "total"), [({}, 6.0), ({"result": "a"}, 1.0), ({"result": "b"}, 5.0)], ids=str)
def test_metrics_are_added_up_by_label(labels, total):
    metrics = samples('# TYPE m counter\nm{result="a"} 1.0\nm{result="b",x="y"} 5.0\nm_created 9.0\n')
    assert make_evidence([], metrics=metrics).metric("m", **labels) == total


def answer(taken, pods, priced):
    """A status as far as usage goes."""
    return {
        "usage": {
            "basis": "larger",
            "polling": True,
            "samples": {"taken": taken, "old": 0, "refused": 0, "unknown": 0},
            "pods": {"measured": pods},
            "nodes": {"measured": 2},
            "last_round": {"measured": priced, "missing": 0, "stale": 0},
        }
    }


def test_the_maxima_of_measured_usage_are_kept():
    poller = StatusPoller()
    poller.take({})
    assert poller.usage == {}
    for taken, pods, priced in ((2, 0, 0), (50, 9, 7), (80, 4, 0)):
        poller.take(answer(taken, pods, priced))
    poller.take({})
    assert poller.usage == {
        "basis": "larger",
        "taken": 80,
        "old": 0,
        "refused": 0,
        "unknown": 0,
        "pods_measured": 9,
        "nodes_measured": 2,
        "pods_priced": 7,
    }


def test_without_measured_usage_the_summary_has_none():
    poller = StatusPoller()
    poller.take({"usage": {"basis": "requests", "polling": False, "samples": {"taken": 0}}})
    assert poller.usage == {}
