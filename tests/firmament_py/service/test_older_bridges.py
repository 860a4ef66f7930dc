"""Bridges of other versions than the service."""

from typing import Any

import grpc
import pytest

from protos.contract import description, unknown_to
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks
from tests.other_contracts import class_of, with_more, without

OLDER = without(
    "HelloReply.description", "Update.budgets", "Update.queues", "TaskClass.never_preempts", "TaskClass.traits",
    "Tasks.checkpoint_us", "UpdateReply.quiet", "RoundStats.gap",
)  # fmt: skip
NEWER = with_more("Update", "TaskClass", "Node", "Tasks", "RoundRequest", "RoundReply")


class OtherBridge:
    """A client with the messages of another version."""

    def __init__(self, channel: grpc.Channel, contract) -> None:
        self._channel, self._contract = channel, contract

    def like(self, message):
        """A message of ours without the fields that the other version does not know, and with one that it alone has."""
        made = class_of(self._contract, type(message).__name__)()
        made.ParseFromString(message.SerializeToString())
        made.DiscardUnknownFields()
        if any(field.name == "later" for field in made.DESCRIPTOR.fields):
            made.later = "?"
        return made

    def call(self, method: str, request, reply: str, *, stream: bool = False):
        kind = self._channel.stream_unary if stream else self._channel.unary_unary
        found = class_of(self._contract, reply)
        ask: Any = kind(
            f"/firmament.FlowScheduler/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=found.FromString,
        )
        return ask(iter(request) if stream else request)


@pytest.mark.parametrize("contract", [OLDER, NEWER], ids=["older", "newer"])
def test_a_bridge_of_another_version_has_its_tasks_placed(service, contract):
    bridge = OtherBridge(service.channel, contract)
    hello = bridge.call("Hello", bridge.like(flow_pb2.HelloRequest()), "HelloReply")
    assert hello.policy == "load-spreading"
    whole = [flow_pb2.Update(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)]), flow_pb2.Update(complete=True)]
    epoch = bridge.call("Resync", [bridge.like(each) for each in whole], "UpdateReply", stream=True).epoch
    waiting = flow_pb2.Update(epoch=epoch, tasks=tasks([1, 2, 3], 1))
    assert not bridge.call("Apply", bridge.like(waiting), "UpdateReply").refused
    asked = flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US)
    assert placed(bridge.call("Round", bridge.like(asked), "RoundReply")) == {1: "id-a", 2: "id-a", 3: "id-a"}
    service.validate()


def test_a_service_says_which_fields_it_knows(service):
    assert service.flow.Hello(flow_pb2.HelloRequest()).description == description()


@pytest.mark.parametrize(
    ("contract", "missing"),
    [
        (with_more("Update", "TaskClass", "Node"), []),
        (without("HelloReply.description", "RoundReply.round", "GangsReply.gangs"), []),
        (without("TaskClass.never_preempts", "Update.budgets"), ["TaskClass.never_preempts", "Update.budgets"]),
        (without("Reason.kind"), []),
    ],
    ids=["more", "replies", "state", "reasons"],
)
def test_what_matters_is_what_the_bridge_sends(contract, missing):
    assert sorted(unknown_to(contract.SerializeToString())) == sorted(missing)


def test_a_field_of_another_type_is_another_field():
    contract = without()
    (field,) = (
        field
        for file in contract.file
        for message in file.message_type
        if message.name == "TaskClass"
        for field in message.field
        if field.name == "priority"
    )
    field.type = field.TYPE_STRING
    assert unknown_to(contract.SerializeToString()) == ["TaskClass.priority"]


def test_what_is_no_description_is_an_error():
    with pytest.raises(ValueError, match="cannot be decoded"):
        unknown_to(b"\xff\xff")
