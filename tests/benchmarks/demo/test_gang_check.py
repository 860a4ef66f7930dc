"""The demo's check of gangs, on synthetic histories."""

import pytest

from benchmarks.demo.evidence import Evidence
from benchmarks.demo.gang_check import check_gangs


def member(name, job="j", node="n"):
    metadata = {
        "name": name,
        "uid": name,
        "labels": {"demo.poseidon.io/kind": "gang"},
        "ownerReferences": [{"name": job, "controller": True}],
    }
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def entries(*steps):
    return [{"what": what, "uid": uid, "time": time} for time, what, uid in steps]


PODS = [member("a"), member("b"), member("x", "k")]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], "has 1 of 2"),
        ([(0, "bind", "a"), (1, "bind", "b")], ""),
        ([(0, "bind", "a")], "default/j has 1 of 2 bound"),
        ([(0, "bind", "a"), (9, "bind", "b")], "default/j took 9.0 s to be bound completely"),
        (
            [(0, "bind", "a"), (1, "finish", "a"), (2, "bind", "b")],
            "default/j lost a member before it was bound completely",
        ),
        ([(0, "bind", "a"), (1, "bind", "b"), (2, "finish", "a"), (30, "finish", "b")], ""),
        ([(0, "bind", "x"), (0, "bind", "unknown")], ""),
    ],
)
def test_histories(steps, found):
    pods = PODS if steps else [member("a"), member("b", node="")]
    ok, detail = check_gangs(Evidence(pods, [], entries(*steps)))
    assert ok == (not found)
    assert found in detail


@pytest.mark.parametrize(("answer", "ok"), [(0.1, False), (1.9, True)])
def test_the_time_of_a_burst_is_measured_by_the_machine(answer, ok):
    """Nine seconds, where the scheduler takes 1.9 s for an answer: 9 < 5 * 1.9."""
    steps = entries((0, "bind", "a"), (9, "bind", "b"))
    assert check_gangs(Evidence(PODS[:2], [], steps, slowest_answer=answer))[0] is ok
