"""What `poseidon explain` says of a waiting pod first: the verdict, what to do, what blocks, and what helps."""

from collections.abc import Iterable
from typing import Any

from poseidon_py.devices.column_names import displayed
from poseidon_py.kube.quantity import shown
from poseidon_py.report import messages
from protos.gen import flow_pb2

Json = dict[str, Any]

_Reply = flow_pb2.ExplainReply
WAIT, CHANGE_REQUEST, ASK_ADMIN = "wait", "change-request", "ask-admin"
VERDICTS = {
    _Reply.WAITS_ITS_TURN: ("waits its turn", WAIT),
    _Reply.OVER_QUOTA: ("over quota", WAIT),
    _Reply.NO_ROOM_NOW: ("no room now", WAIT),
    _Reply.CAN_NEVER_FIT: ("can never fit", CHANGE_REQUEST),
    _Reply.WAITS_FOR_MEMBERS: ("waits for members of its gang", WAIT),
    _Reply.ROOM_IS_MADE: ("room is being made", WAIT),
    _Reply.FITS_BY_NOW: ("fits by now", WAIT),
}
"""The verdict in words, and what to do."""
_CLOSED = (flow_pb2.Reason.QUEUE_UNKNOWN, flow_pb2.Reason.QUEUE_STOPPED, flow_pb2.Reason.NO_FLAVOR)
"""What only a change of the queues ends."""


def verdict_json(reply: flow_pb2.ExplainReply) -> Json:
    """`verdict`, `action`: null: it does not wait. `blocking`: the smallest set of constraints of the pod itself by
    which every node fails, empty if some node takes it; `blocking_is_smallest`: else no part of it blocks, but a
    smaller set may. `remedies`: what alone is in the way on some nodes."""
    verdict, action = VERDICTS.get(reply.verdict, (None, None))
    if verdict is not None and any(each.kind in _CLOSED for each in reply.reasons):
        action = ASK_ADMIN
    return {
        "verdict": verdict,
        "action": action,
        "blocking": [
            {"constraint": _blocking(each), "nodes": each.nodes, "short": _amounts([each])} for each in reply.blocking
        ],
        "blocking_is_smallest": reply.blocking_is_smallest,
        "remedies": [
            {
                "without": [_remedy(of) for of in each.without],
                "short": _amounts(each.without),
                "nodes": each.nodes,
                "node": each.node,
            }
            for each in reply.remedies
        ],
    }


def _amounts(constraints: Iterable[flow_pb2.BlockingConstraint]) -> dict[str, int]:
    """Resource -> how much is missing, in the engine's units."""
    return {displayed(each.detail): each.short for each in constraints if each.short}


def _blocking(found: flow_pb2.BlockingConstraint) -> str:
    if found.short:
        return f"{displayed(found.detail)}, {shown(found.detail, found.short)} too little at least"
    return _named(found)


def _remedy(found: flow_pb2.BlockingConstraint) -> str:
    """What would have to be otherwise."""
    if found.short:
        return f"{shown(found.detail, found.short)} {displayed(found.detail)} less"
    match found.kind:
        case flow_pb2.Reason.UNTOLERATED_TAINT:
            return f"a toleration of {_named(found)}"
        case flow_pb2.Reason.SELECTOR_MISMATCH:
            return f"no {_named(found)}"
    return f"without: {_named(found)}"


def _named(found: flow_pb2.BlockingConstraint) -> str:
    match found.kind:
        case flow_pb2.Reason.UNTOLERATED_TAINT:
            return f"the taint {found.detail}" + (f"={found.value}" if found.value else "")
        case flow_pb2.Reason.SELECTOR_MISMATCH:
            return found.value if found.value == "node affinity" else f"node selector {found.value}"
    return messages.reason(flow_pb2.Reason(kind=found.kind, detail=found.detail, value=found.value), detailed=True)
