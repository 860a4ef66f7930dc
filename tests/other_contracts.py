"""The contract between bridge and flow service as other versions have it: with fewer fields, or with more."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from protos.contract import description

_NEW = 1000
"""The number of the field that is added."""


def without(*fields: str) -> FileDescriptorSet:
    """Without some fields of messages, such as Update.budgets, or values of enumerations."""
    files = FileDescriptorSet.FromString(description())
    for each in fields:
        owner, name = each.split(".")
        found = _parts_of(files, owner)
        (part,) = (part for part in found if part.name == name)
        found.remove(part)
    return files


def with_more(*messages: str) -> FileDescriptorSet:
    """With a field more in each of some messages, which comes later."""
    files = FileDescriptorSet.FromString(description())
    for each in messages:
        _parts_of(files, each).append(
            FieldDescriptorProto(
                name="later",
                number=_NEW,
                type=FieldDescriptorProto.TYPE_STRING,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
            )
        )
    return files


def _parts_of(files: FileDescriptorSet, name: str) -> Any:
    """The fields of a message, or the values of an enumeration, wherever it is."""
    pending: list[Any] = list(files.file)
    while pending:
        at = pending.pop()
        nested = list(at.nested_type if isinstance(at, DescriptorProto) else at.message_type)
        for message in nested:
            if message.name == name:
                return message.field
        for enum in at.enum_type:
            if enum.name == name:
                return enum.value
        pending += nested
    raise AssertionError(name)


def class_of(files: FileDescriptorSet, message: str) -> Any:
    """The class of a message, as the other version has it."""
    pool = DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"firmament.{message}"))
