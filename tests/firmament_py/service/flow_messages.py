"""Builders for messages of the batched contract."""

from collections.abc import Iterable

from protos.gen import firmament_pb2, flow_pb2
from tests.builders import NOW_US


def task_class(number: int, name: str = "", priority: int = 0, **requests: int) -> flow_pb2.TaskClass:
    return flow_pb2.TaskClass(id=number, requests=requests, name=name or f"class-{number}", priority=priority)


def node(name: str, *, pods: int = 110, **amounts: int) -> flow_pb2.Node:
    return flow_pb2.Node(id=f"id-{name}", name=name, allocatable={"pods": pods, **amounts})


def tasks(uids: Iterable[int], cls: int, on: str | None = None) -> flow_pb2.Tasks:
    uids = list(uids)
    count = len(uids)
    return flow_pb2.Tasks(
        uid=uids,
        class_id=[cls] * count,
        job_id=[0] * count,
        created_us=[NOW_US] * count,
        node=[0 if on is None else 1] * count,
        name=[f"ns/task-{uid}" for uid in uids],
        nodes=[] if on is None else [f"id-{on}"],
    )


def placed(reply: flow_pb2.RoundReply) -> dict[int, str]:
    """uid -> node id."""
    rows = zip(reply.placed.task_uid, reply.placed.node, strict=True)
    return {uid: reply.placed.nodes[node] for uid, node in rows}


def requirement(key: str, operator: str, *values: str) -> firmament_pb2.NodeSelectorRequirement:
    return firmament_pb2.NodeSelectorRequirement(key=key, operator=operator, values=values)
