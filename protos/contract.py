"""Which bridges and flow services understand each other, by the fields that each knows.

Protocol buffers skip fields that the receiver does not know. In a state that would be wrong in silence: a constraint
that a service skips does not hold. So a service says in Hello which fields it knows (`description`), and a bridge does
not use one that lacks some of those in which the bridge sends state (`unknown_to`). A service may know more: a field
that is not sent has its default, which is what was the case before there was the field. A field never changes its
meaning or type; it gets a successor with another number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from protos.gen import flow_pb2

_STATE = ("Update", "RoundRequest", "UsageReport", "CarryOutRequest")
"""The messages with which a bridge sends state and orders. What queries lack is missing in their answers alone."""
_SHOWN = 5


@cache
def description() -> bytes:
    """All messages of the contract: a FileDescriptorSet."""
    found: dict[str, FileDescriptorProto] = {}
    _collect(flow_pb2.DESCRIPTOR, found)
    return FileDescriptorSet(file=found.values()).SerializeToString()


def unknown_to(service: bytes) -> list[str]:
    """The fields and values of enumerations, such as TaskClass.requests, that a bridge of this version may send and a
    service with this description does not know. Raises ValueError if that is no description."""
    try:
        files = FileDescriptorSet.FromString(service)
    except DecodeError as error:
        raise ValueError("describes its fields in a way that cannot be decoded") from error
    messages: dict[str, DescriptorProto] = {}
    enums: dict[str, EnumDescriptorProto] = {}
    for file in files.file:
        _index(file.package, file.message_type, file.enum_type, messages, enums)
    missing: dict[str, None] = {}
    for owner, field in _sent():
        theirs = messages.get(owner)
        if theirs is None or (field.number, field.type) not in {(each.number, each.type) for each in theirs.field}:
            missing[f"{_short(owner)}.{field.name}"] = None
        elif field.enum_type is not None:
            known = enums.get(field.enum_type.full_name)
            numbers = {value.number for value in known.value} if known is not None else set()
            missing.update(
                (f"{_short(field.enum_type.full_name)}.{value.name}", None)
                for value in field.enum_type.values
                if value.number not in numbers
            )
    return list(missing)


def shown(missing: list[str]) -> str:
    """The first of them, for a message."""
    remainder = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return ", ".join(missing[:_SHOWN]) + remainder


def _collect(file: FileDescriptor, found: dict[str, FileDescriptorProto]) -> None:
    for each in file.dependencies:
        _collect(each, found)
    if file.name not in found:
        found[file.name] = FileDescriptorProto.FromString(file.serialized_pb)


def _index(
    prefix: str,
    messages: Iterable[DescriptorProto],
    enums: Iterable[EnumDescriptorProto],
    of_messages: dict[str, DescriptorProto],
    of_enums: dict[str, EnumDescriptorProto],
) -> None:
    """By full names, nested ones included."""
    for enum in enums:
        of_enums[f"{prefix}.{enum.name}"] = enum
    for message in messages:
        name = f"{prefix}.{message.name}"
        of_messages[name] = message
        _index(name, message.nested_type, message.enum_type, of_messages, of_enums)


def _sent() -> Iterator[tuple[str, FieldDescriptor]]:
    """All fields of the messages that carry state, and of those within them, each with the full name of its message."""
    pending = [flow_pb2.DESCRIPTOR.message_types_by_name[name] for name in _STATE]
    seen: set[str] = set()
    while pending:
        message: Descriptor = pending.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            yield message.full_name, field
            if field.message_type is not None:
                pending.append(field.message_type)


def _short(name: str) -> str:
    """Without the package."""
    return name.partition(".")[2]
