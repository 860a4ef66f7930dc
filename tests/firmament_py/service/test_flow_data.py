"""Locations of tasks' data, through the batched contract."""

import pytest

from policies.quincy import Quincy
from protos.gen import flow_pb2
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks


def reading(message: flow_pb2.Tasks, *inputs: int) -> flow_pb2.Tasks:
    message.inputs_id.extend(inputs)
    return message


def input_set(number: int, size: int, *nodes: str, racks: tuple[str, ...] = ()) -> flow_pb2.Inputs:
    return flow_pb2.Inputs(id=number, blocks=[flow_pb2.Block(bytes=size, nodes=nodes, racks=racks)])


@pytest.fixture
def quincy(service):
    service.engine.policy = service.engine.scheduler.policy = Quincy(rack_label="rack")
    return service


def labelled(name: str, rack: str) -> flow_pb2.Node:
    message = node(name)
    message.labels["rack"] = rack
    return message


DATA_NODES = [labelled("a", "r"), labelled("b", "s"), labelled("c", "t")]


def test_tasks_are_placed_near_their_data(quincy):
    sets = [input_set(5, 2**30, "a"), input_set(6, 2**30, "b", "gone"), input_set(7, 2**30, racks=("t",))]
    reply = quincy.apply(
        nodes=DATA_NODES, classes=[task_class(1)], inputs=sets, tasks=reading(tasks([1, 2, 3], 1), 5, 6, 7)
    )
    assert list(reply.unknown_inputs) == []
    assert placed(quincy.round()) == {1: "id-a", 2: "id-b", 3: "id-c"}


def test_unknown_inputs_are_requested_and_then_accepted(quincy):
    reported = reading(tasks([1, 2], 1), 0, 6)
    reply = quincy.apply(nodes=DATA_NODES, classes=[task_class(1)], tasks=reported)
    assert list(reply.unknown_inputs) == [6]
    assert set(placed(quincy.round())) == {1}
    reply = quincy.apply(inputs=[input_set(6, 2**30, "b")], tasks=reading(tasks([2], 1), 6))
    assert list(reply.unknown_inputs) == []
    assert placed(quincy.round(acknowledged=1)) == {2: "id-b"}


def test_invalid_inputs_are_refused_alone_and_count_as_none(quincy):
    reply = quincy.apply(
        nodes=DATA_NODES,
        classes=[task_class(1)],
        inputs=[input_set(5, -1, "a"), input_set(6, 2**30, "b")],
        tasks=reading(tasks([1, 2], 1), 5, 6),
    )
    assert [(r.kind, r.id, r.field) for r in reply.refused] == [("inputs", "5", "blocks[0].bytes")]
    assert list(reply.unknown_inputs) == []
    assert placed(quincy.round())[2] == "id-b"


def test_a_column_of_inputs_that_is_too_short_is_refused(quincy):
    reply = quincy.apply(classes=[task_class(1)], tasks=reading(tasks([1, 2], 1), 5))
    assert [(r.kind, r.field) for r in reply.refused] == [("task", "tasks.inputs_id")]


def test_inputs_survive_a_resync(quincy):
    everything = flow_pb2.Update(
        nodes=DATA_NODES,
        classes=[task_class(1)],
        inputs=[input_set(6, 2**30, "b")],
        tasks=reading(tasks([1], 1), 6),
    )
    quincy.apply(inputs=[input_set(5, 2**30, "a")])
    quincy.resync(everything)
    assert list(quincy.apply(tasks=reading(tasks([2], 1), 5)).unknown_inputs) == [5]
    assert placed(quincy.round()) == {1: "id-b"}
