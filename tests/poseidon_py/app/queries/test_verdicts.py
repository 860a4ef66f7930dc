"""The verdict of `poseidon explain`: words for all that the engine may say, and what is printed."""

import pytest

from poseidon_py.app.queries.verdicts import ASK_ADMIN, CHANGE_REQUEST, VERDICTS, WAIT, verdict_json
from poseidon_py.cli.rendering.render import verdict_lines
from protos.gen import flow_pb2

Reply, Reason = flow_pb2.ExplainReply, flow_pb2.Reason
CPU = flow_pb2.BlockingConstraint(kind=Reason.INSUFFICIENT_RESOURCE, detail="cpu", nodes=12, short=1500)
TAINT = flow_pb2.BlockingConstraint(kind=Reason.UNTOLERATED_TAINT, detail="gpu", value="yes", nodes=3)
LABEL = flow_pb2.BlockingConstraint(kind=Reason.SELECTOR_MISMATCH, value="disk=ssd", nodes=1)
FULL = flow_pb2.BlockingConstraint(kind=Reason.TOO_MANY_TASKS, nodes=2)


def test_every_verdict_of_the_contract_has_words():
    assert {*VERDICTS} == {*Reply.Verdict.values()} - {Reply.VERDICT_UNSPECIFIED}


@pytest.mark.parametrize(
    ("verdict", "reason", "action"),
    [
        (Reply.NO_ROOM_NOW, Reason.INSUFFICIENT_RESOURCE, WAIT),
        (Reply.CAN_NEVER_FIT, Reason.INSUFFICIENT_RESOURCE, CHANGE_REQUEST),
        (Reply.OVER_QUOTA, Reason.OVER_QUOTA, WAIT),
        (Reply.OVER_QUOTA, Reason.QUEUE_STOPPED, ASK_ADMIN),
        (Reply.OVER_QUOTA, Reason.QUEUE_UNKNOWN, ASK_ADMIN),
    ],
)
def test_what_to_do(verdict, reason, action):
    assert verdict_json(Reply(verdict=verdict, reasons=[Reason(kind=reason)]))["action"] == action


def test_a_pod_that_does_not_wait_has_no_verdict():
    found = verdict_json(Reply())
    assert (found["verdict"], found["action"], verdict_lines(found)) == (None, None, [])


def test_what_blocks_and_what_helps():
    reply = Reply(
        verdict=Reply.NO_ROOM_NOW,
        blocking=[CPU, TAINT],
        blocking_is_smallest=True,
        remedies=[
            flow_pb2.Remedy(without=[TAINT], nodes=1, node="a"),
            flow_pb2.Remedy(without=[LABEL], nodes=2, node="c"),
            flow_pb2.Remedy(without=[CPU, LABEL], nodes=3, node="b"),
        ],
    )
    found = verdict_json(reply)
    assert found["blocking"] == [
        {"constraint": "cpu, 1.5 too little at least", "nodes": 12, "short": {"cpu": 1500}},
        {"constraint": "the taint gpu=yes", "nodes": 3, "short": {}},
    ]
    assert found["remedies"][2] == {
        "without": ["1.5 cpu less", "no node selector disk=ssd"],
        "short": {"cpu": 1500},
        "nodes": 3,
        "node": "b",
    }
    assert verdict_lines(found) == [
        "verdict: no room now; action: wait",
        "blocked by: cpu, 1.5 too little at least (12 nodes); the taint gpu=yes (3 nodes)",
        "would fit with a toleration of the taint gpu=yes: on a",
        "would fit with no node selector disk=ssd: on c and 1 node like it",
        "would fit with 1.5 cpu less, no node selector disk=ssd: on b; 2 nodes more lack as much or more",
    ]


def test_a_set_that_need_not_be_the_smallest():
    found = verdict_json(Reply(verdict=Reply.NO_ROOM_NOW, blocking=[FULL]))
    assert verdict_lines(found)[1] == "blocked by (a smaller set may do): Too many pods (2 nodes)"


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("devices:gpu", "devices of class gpu"),
        ("devices:gpu:0a1b", "devices of class gpu"),
        ("device-resources:nvidia.com/gpu", "devices for nvidia.com/gpu"),
        ("device-sets:0a1b", "devices for all of its claims"),
        ("nvidia.com/gpu", "nvidia.com/gpu"),
    ],
)
def test_columns_for_devices_have_names_that_users_know(resource, name):
    lacks = flow_pb2.BlockingConstraint(kind=flow_pb2.Reason.INSUFFICIENT_RESOURCE, detail=resource, short=2, nodes=1)
    reply = flow_pb2.ExplainReply(verdict=flow_pb2.ExplainReply.NO_ROOM_NOW, blocking=[lacks])
    (found,) = verdict_json(reply)["blocking"]
    assert found == {"constraint": f"{name}, 2 too little at least", "nodes": 1, "short": {name: 2}}
