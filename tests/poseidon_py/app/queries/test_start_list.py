"""What waits and when it starts: as JSON, and as `poseidon queue` and `poseidon explain` print it."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from poseidon_py.app.queries.start_list import FAR, MADE_NOW, NEW, NO_END, WAITING_SHOWN, start_of, starts_json
from poseidon_py.cli.listing.queue import basis, print_queue
from poseidon_py.cli.rendering.render import expected_line
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import node, pod

NOW_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z"""

S = 1_000_000
CREATED = "2025-12-31T23:58:00Z"


@pytest.fixture
def store() -> Store:
    found = Store(["poseidon"])
    for name in ("m", "n"):
        found.observe_node(node(name))
    return found


def add(store, *names, **fields):
    for name in names:
        store.observe_pod(pod(name, uid=name, created=CREATED, **fields))


def task(store, name):
    return store.pods[name].task


def forecast(store, starts, **fields) -> flow_pb2.StartsReply:
    """`starts`: names of pods with the seconds until they start, 0: not forecast, and their nodes."""
    reply = flow_pb2.StartsReply(
        made_us=NOW_US,
        nodes=[store.id_of_node("m"), store.id_of_node("n")],
        **{"whole": True, "probability": 0.8, **fields},
    )
    for name, (seconds, where) in starts.items():
        reply.uid.append(task(store, name))
        times = (NOW_US + round(seconds * share * S) if seconds else 0 for share in (0.5, 1, 3))
        for column, value in zip((reply.earliest_us, reply.likely_us, reply.latest_us), times, strict=True):
            column.append(value)
        reply.node.append({"": 0, "m": 1, "n": 2}[where])
    return reply


def listed(store, reply, **fields) -> dict[str, Any]:
    return starts_json(store, reply, now_us=NOW_US, **fields)


def test_each_pod_with_its_start_and_its_node(store):
    add(store, "a")
    body = listed(store, forecast(store, {"a": (100, "n")}, errors=30, durations=7))
    assert body == {
        "made": "2026-01-01T00:00:00Z",
        "age_seconds": 0,
        "probability": 0.8,
        "compared": 30,
        "durations": 7,
        "problem": "",
        "more": 0,
        "waiting": [
            {
                "name": "default/a",
                "kind": "pod",
                "pods": 1,
                "queue": "",
                "priority": 0,
                "created": CREATED,
                "age_seconds": 120,
                "start": {
                    "earliest": "2026-01-01T00:00:50Z",
                    "likely": "2026-01-01T00:01:40Z",
                    "latest": "2026-01-01T00:05:00Z",
                    "in_seconds": 100,
                },
                "nodes": ["n"],
                "why": "",
            }
        ],
    }


def test_a_start_that_is_over_is_now(store):
    add(store, "a")
    body = starts_json(store, forecast(store, {"a": (10, "n")}), now_us=NOW_US + 60 * S)
    assert body["waiting"][0]["start"]["in_seconds"] == 0
    assert body["age_seconds"] == 60


def test_a_gang_starts_when_its_minimum_does(store, monkeypatch):
    """Three members, of which two start together, and one later."""
    add(store, "a", "b", "c")
    monkeypatch.setattr(store.gangs, "group_of", lambda _: SimpleNamespace(id=7, name="default/g"))
    [gang] = listed(store, forecast(store, {"a": (50, "n"), "b": (50, "m"), "c": (90, "m")}))["waiting"]
    assert (gang["name"], gang["kind"], gang["pods"]) == ("default/g", "gang", 3)
    assert gang["start"]["in_seconds"] == 50
    assert gang["nodes"] == ["m", "n"]


def test_the_order_is_that_of_priorities_or_of_starts(store):
    add(store, "early", "late", "never")
    add(store, "important")
    store.pods["important"].described.priority = 5
    reply = forecast(store, {"early": (10, ""), "late": (90, ""), "never": (0, ""), "important": (50, "")})

    def names(**fields):
        return [each["name"].removeprefix("default/") for each in listed(store, reply, **fields)["waiting"]]

    assert names() == ["important", "early", "late", "never"]
    assert names(by_start=True) == ["early", "important", "late", "never"]


def test_only_what_was_asked_for(store):
    add(store, "a")
    store.observe_pod(pod("b", namespace="other", uid="b"))
    reply = forecast(store, {"a": (10, ""), "b": (10, "")})
    assert [each["name"] for each in listed(store, reply, namespace="other")["waiting"]] == ["other/b"]
    assert listed(store, reply, queue="q")["waiting"] == []


def test_bound_and_assumed_pods_do_not_wait(store):
    add(store, "bound", node="n", phase="Running")
    add(store, "assumed")
    store.assume(store.pods["assumed"], "n")
    assert listed(store, forecast(store, {}))["waiting"] == []


@pytest.mark.parametrize(
    ("starts", "fields", "why"),
    [
        pytest.param({"a": (0, "")}, {}, NO_END, id="no end lets it start"),
        pytest.param({"a": (0, "")}, {"whole": False}, FAR, id="too far"),
        pytest.param({}, {}, NEW, id="newer than the forecast"),
        pytest.param({}, {"made_us": 0}, MADE_NOW, id="the first one"),
        pytest.param({}, {"made_us": 0, "problem": "no copy"}, "no copy", id="no forecast"),
    ],
)
def test_why_there_is_no_start(store, starts, fields, why):
    add(store, "a")
    reply = forecast(store, starts)
    for name, value in fields.items():
        setattr(reply, name, value)
    [waiting] = listed(store, reply)["waiting"]
    assert (waiting["start"], waiting["why"]) == (None, why)
    expected = start_of(store, store.pods["a"], reply, NOW_US)
    assert expected_line(expected) == f"expected start: unknown, {why}"


def test_a_gate_is_why_there_is_no_start(store):
    add(store, "a", gates=True)
    assert start_of(store, store.pods["a"], forecast(store, {}), NOW_US)["why"] == "it has scheduling gates"


def test_the_list_is_bounded(store):
    add(store, *(f"p{i}" for i in range(WAITING_SHOWN + 3)))
    body = listed(store, forecast(store, {}))
    assert (len(body["waiting"]), body["more"]) == (WAITING_SHOWN, 3)


def printed(body, **fields) -> str:
    text = io.StringIO()
    print_queue(body, Console(file=text, width=200), **fields)
    return text.getvalue()


def test_the_table(store):
    add(store, "a", "b")
    body = listed(store, forecast(store, {"a": (100, "n"), "b": (0, "")}))
    text = printed(body, with_times=False)
    assert "in 1m40s" in text
    assert NO_END in text
    assert "2026-01-01T00:05:00Z" not in text
    text = printed(body, with_times=True)
    assert "2026-01-01T00:05:00Z" in text
    assert "as a guess: too few have been compared with starts" in text
    assert printed(listed(Store(["poseidon"]), flow_pb2.StartsReply()), with_times=False) == "nothing waits\n"


def test_what_the_times_are_based_on(store):
    add(store, "a")
    body = listed(store, forecast(store, {"a": (100, "n")}, errors=30, durations=7))
    assert basis(body) == (
        "forecast 0s ago, if nothing else arrives; 8 of 10 starts are expected between earliest and latest, "
        "by 30 earlier forecasts; durations learned from 7 pods"
    )
    assert basis(listed(store, flow_pb2.StartsReply(problem="no copy"))) == "no copy"


def test_the_line_of_explain(store):
    add(store, "a")
    expected = start_of(store, store.pods["a"], forecast(store, {"a": (100, "n")}), NOW_US)
    between = "between 2026-01-01T00:00:50Z and 2026-01-01T00:05:00Z"
    assert expected_line(expected) == f"expected start: 2026-01-01T00:01:40Z ({between}), on n"
    assert expected_line(None) == ""
