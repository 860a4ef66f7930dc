"""The demo's judge of gangs, on made-up histories."""

import pytest

from benchmarks.demo.evidence import Evidence
from benchmarks.demo.gang_check import never_half


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
        ([(0, "bind", "a"), (9, "bind", "b")], "default/j took 9.0 s to become whole"),
        ([(0, "bind", "a"), (1, "finish", "a"), (2, "bind", "b")], "default/j lost a member before it was whole"),
        ([(0, "bind", "a"), (1, "bind", "b"), (2, "finish", "a"), (30, "finish", "b")], ""),
        ([(0, "bind", "x"), (0, "bind", "stranger")], ""),
    ],
)
def test_histories(steps, found):
    pods = PODS if steps else [member("a"), member("b", node="")]
    ok, detail = never_half(Evidence(pods, [], entries(*steps)))
    assert ok == (not found)
    assert found in detail
