"""The flow networks of a round, drawn, as JSON: GET /network, which `poseidon network` prints.

{"rounds": [{"number": int, "started": str, "placed": int, "solves": int}]     those that there are networks of
 "round": int                  whose networks follow
 "networks": [{                in the order in which they were solved
    "solved_by": str           "flow", or "cheapest slots" where tasks of one class need no network
    "status": str              of the solver
    "cost": int, "size": {"vertices": int, "arcs": int, "tasks": int}           of the whole network
    "too_large": bool          so that it is not kept, and nothing follows
    "vertices": [{             those with the most flow of each kind, and one for all others
        "id": int, "kind": str one of tasks, class, nodes, domain, pair, rack, unscheduled, sink
        "label": str, "count": int, "names": [str]       of tasks, classes or nodes, 20 names at most
        "supply": int          tasks that begin here, or minus those that end here
        "potential": int|null  what one more task here would cost; null: unknown, or no way leads on
        "merged": int}]        number of vertices that it stands for
    "arcs": [{"from": int, "to": int, "capacity": int, "flow": int
        "cost": int, "cost_max": int                     of a task, if it stands for several arcs
        "merged": int}]}]}
"""

from typing import Any

from poseidon_py.kube.objects import InvalidField
from poseidon_py.tracking.times import written
from protos.gen import flow_pb2

Json = dict[str, Any]

_LARGEST = 2**31
_CHEAPEST_SLOTS = "cheapest slots"


class UnknownNetwork(Exception):
    """There is no such network; the message says why."""


def network_request(**selection: str) -> flow_pb2.NetworkRequest:
    """`selection`: round, class, pod, node, limit, each empty if it was not given. Raises InvalidField."""
    return flow_pb2.NetworkRequest(
        round=_number("round", selection["round"]),
        class_name=selection["class"],
        task=selection["pod"],
        node=selection["node"],
        limit=_number("limit", selection["limit"]),
    )


def _number(name: str, text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 0 < int(text) < _LARGEST):
        raise InvalidField(name, f"is {text[:64]!r}; give a number from 1 to {_LARGEST - 1}")
    return int(text)


def network_json(reply: flow_pb2.NetworkReply) -> Json:
    """Raises UnknownNetwork."""
    if reply.problem:
        raise UnknownNetwork(reply.problem)
    return {
        "rounds": [
            {
                "number": each.number,
                "started": written(each.started_us / 1e6),
                "placed": each.placed,
                "solves": each.networks,
            }
            for each in reply.rounds
        ],
        "round": reply.round,
        "networks": [_network(each) for each in reply.networks],
    }


def _network(drawn: flow_pb2.DrawnNetwork) -> Json:
    by_slots = drawn.status == _CHEAPEST_SLOTS
    return {
        "solved_by": _CHEAPEST_SLOTS if by_slots else "flow",
        "status": "optimal" if by_slots else drawn.status,
        "cost": drawn.cost,
        "size": {"vertices": drawn.vertices_in_all, "arcs": drawn.arcs_in_all, "tasks": drawn.tasks},
        "too_large": drawn.too_large,
        "vertices": [
            {
                "id": number,
                "kind": each.kind,
                "label": each.label,
                "count": each.count,
                "names": list(each.names),
                "supply": each.supply,
                "potential": each.price if each.HasField("price") else None,
                "merged": each.merged,
            }
            for number, each in enumerate(drawn.vertices)
        ],
        "arcs": [
            {
                "from": each.tail,
                "to": each.head,
                "capacity": each.capacity,
                "flow": each.flow,
                "cost": each.least_cost,
                "cost_max": each.most_cost,
                "merged": each.merged,
            }
            for each in drawn.arcs
        ],
    }
