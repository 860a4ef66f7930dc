"""The calls that a service answers, by name: what each server serves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from firmament_py.service.calls.caller import Caller


@dataclass(frozen=True, slots=True)
class Method:
    """One call of a contract. handle: from its message, or an iterator of its messages if it `takes_stream`, to its
    reply, or an iterator of its replies if it `gives_stream`. It may raise FailedCall; the iterator that it gets raises
    BrokenStream, and DecodeError."""

    name: str
    message: type[Message]
    reply: type[Message]
    takes_stream: bool
    gives_stream: bool
    handle: Callable[[Any, Caller], Any]


@dataclass(frozen=True, slots=True)
class Service:
    """The calls of one service of a contract. name: with its package."""

    name: str
    methods: Mapping[str, Method]


def service_of(contract: ServiceDescriptor, answers: object) -> Service:
    """`answers` has a method of the same name for each call of the contract. Raises AttributeError if one lacks."""
    return Service(
        contract.full_name,
        {
            each.name: Method(
                each.name,
                GetMessageClass(each.input_type),
                GetMessageClass(each.output_type),
                each.client_streaming,
                each.server_streaming,
                getattr(answers, each.name),
            )
            for each in contract.methods
        },
    )
