"""Our .proto files against the original's numbers: both are compatible on the wire."""

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from protos.gen import firmament_pb2, stats_pb2
from tests.firmament_py.service.original_contract import (
    FIRMAMENT_ENUMS,
    FIRMAMENT_MESSAGES,
    METHODS,
    STATS_ENUMS,
    STATS_MESSAGES,
)

FIRST_OF_OURS = 101
"""Fields of our own that we add to the original's messages start here."""

FILES = {"firmament": firmament_pb2.DESCRIPTOR, "stats": stats_pb2.DESCRIPTOR}
TYPES = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in ("double", "float", "int32", "int64", "uint32", "uint64", "bool", "string", "bytes")
}


def find(package: str, name: str):
    """A message or an enum, which may be inside a message."""
    outer, _, inner = name.rpartition(".")
    if outer:
        message = FILES[package].message_types_by_name[outer]
        return message.enum_types_by_name[inner]
    file = FILES[package]
    return file.message_types_by_name.get(name) or file.enum_types_by_name[name]


def field_text(field: FieldDescriptor) -> str:
    named = field.message_type or field.enum_type
    star = "*" if field.is_repeated else ""
    return f"{field.number} {field.name} {star}{named.name if named else TYPES[field.type]}"


def message_text(message: Descriptor) -> str:
    fields = sorted((f for f in message.fields if f.number < FIRST_OF_OURS), key=lambda f: f.number)
    return ", ".join(field_text(f) for f in fields)


def enum_text(enum: EnumDescriptor) -> str:
    return ", ".join(f"{v.number} {v.name}" for v in sorted(enum.values, key=lambda v: v.number))


def cases(package: str, table: dict[str, str]):
    return [pytest.param(package, name, text, id=name) for name, text in table.items()]


@pytest.mark.parametrize(
    ("package", "name", "text"), cases("firmament", FIRMAMENT_MESSAGES) + cases("stats", STATS_MESSAGES)
)
def test_fields_have_the_original_numbers_and_types(package, name, text):
    assert message_text(find(package, name)) == text


@pytest.mark.parametrize(("package", "name", "text"), cases("firmament", FIRMAMENT_ENUMS) + cases("stats", STATS_ENUMS))
def test_enum_values_have_the_original_numbers(package, name, text):
    assert enum_text(find(package, name)) == text


@pytest.mark.parametrize("service", METHODS)
def test_methods_have_the_original_names_and_messages(service):
    package, name = service.split(".")
    descriptor = FILES[package].services_by_name[name]
    assert descriptor.full_name == service
    mine = {
        m.name: f"{'*' * m.client_streaming}{m.input_type.name} {'*' * m.server_streaming}{m.output_type.name}"
        for m in descriptor.methods
    }
    assert mine == METHODS[service]


def test_no_message_of_ours_is_missing_from_the_tables():
    """A field added below FIRST_OF_OURS, or a message that the original does not have, would be found here."""
    names = {name for name, message in FILES["firmament"].message_types_by_name.items() if message.fields}
    assert names == set(FIRMAMENT_MESSAGES)
    assert {name for name, m in FILES["stats"].message_types_by_name.items() if m.fields} == set(STATS_MESSAGES)


@pytest.mark.parametrize(
    ("message", "octets"),
    [
        pytest.param(firmament_pb2.TaskCompletedResponse(type=firmament_pb2.TASK_COMPLETED_OK), "", id="completed-ok"),
        pytest.param(firmament_pb2.NodeAddedResponse(type=firmament_pb2.NODE_ADDED_OK), "", id="node-added-ok"),
        pytest.param(firmament_pb2.TaskInfoResponse(), "", id="taskinfo-submitted-ok"),
        pytest.param(firmament_pb2.TaskSubmittedResponse(type=firmament_pb2.TASK_SUBMITTED_OK), "0801", id="submitted"),
        pytest.param(firmament_pb2.TaskInfoResponse(type=firmament_pb2.TASKINFO_REMOVED_OK), "0802", id="no-value-1"),
        pytest.param(firmament_pb2.TaskUID(task_uid=2**64 - 1), "08" + "ff" * 9 + "01", id="uid-is-a-plain-varint"),
        pytest.param(
            firmament_pb2.SchedulingDelta(task_id=1, resource_id="u", type=firmament_pb2.SchedulingDelta.PLACE),
            "080112017518 01".replace(" ", ""),
            id="place",
        ),
        # field 1, 32 bits: 250.0 = 0x437a0000, little end first; field 3: 1000
        pytest.param(
            firmament_pb2.ResourceVector(cpu_cores=250, ram_cap=1000), "0d00007a4318e807", id="cpu-is-a-float"
        ),
    ],
)
def test_octets_on_the_wire(message, octets):
    assert message.SerializeToString(deterministic=True).hex() == octets
