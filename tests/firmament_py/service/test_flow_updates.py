"""Updates through a real client: repeated, refused in part, in any order, with any number."""

import pytest

from protos.gen import firmament_pb2, flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, requirement, task_class, tasks


def test_an_update_can_be_repeated(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.tell_small()
    assert service.round(acknowledged=1) == flow_pb2.RoundReply()


def test_unknown_classes_are_requested_and_then_accepted(service):
    reply = service.apply(nodes=[node("a")], tasks=tasks([1], 78))
    assert list(reply.unknown_classes) == [78]
    assert placed(service.round()) == {}
    assert list(service.apply(classes=[task_class(78)], tasks=tasks([1], 78)).unknown_classes) == []
    assert placed(service.round(acknowledged=1)) == {1: "id-a"}


BAD_OPERATOR = flow_pb2.TaskClass(id=5, node_selector=[requirement("k", "Equals", "v")])
BAD_AFFINITY = flow_pb2.TaskClass(
    id=5,
    node_affinity=firmament_pb2.NodeSelector(
        nodeSelectorTerms=[firmament_pb2.NodeSelectorTerm(matchFields=[requirement("metadata.name", "in")])]
    ),
)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"classes": [task_class(0)]}, ("class", "0", "id"), id="class-zero"),
        pytest.param({"classes": [task_class(5, cpu=-1)]}, ("class", "5", "requests[cpu]"), id="class-negative"),
        pytest.param({"classes": [BAD_OPERATOR]}, ("class", "5", "operator of 'k'"), id="class-operator"),
        pytest.param({"classes": [BAD_AFFINITY]}, ("class", "5", "operator of 'metadata.name'"), id="class-affinity"),
        pytest.param({"classes": [task_class(1, cpu=2)]}, ("class", "1", "id"), id="class-changed"),
        pytest.param({"nodes": [node("b", cpu=-5)]}, ("node", "b", "allocatable[cpu]"), id="node-negative"),
        pytest.param({"nodes": [flow_pb2.Node(name="b")]}, ("node", "b", "id"), id="node-without-id"),
        pytest.param(
            {"tasks": flow_pb2.Tasks(uid=[9], class_id=[1])}, ("task", "all 1", "tasks.job_id"), id="columns-differ"
        ),
        pytest.param(
            {
                "tasks": flow_pb2.Tasks(
                    uid=[9], class_id=[1], job_id=[0], created_us=[0], node=[2], name=["x"], nodes=["id-a"]
                )
            },
            ("task", "all 1", "tasks.node"),
            id="node-index",
        ),
    ],
)
def test_a_refusal_does_not_affect_other_parts(service, parts, expected):
    """Besides the refused part, the update has a node, a class and a removal, which are applied."""
    service.tell_small()
    update = {key: list(value) for key, value in parts.items() if key != "tasks"}
    update.setdefault("nodes", []).append(node("good", cpu=1))
    update.setdefault("classes", []).append(task_class(50, cpu=1))
    reply = service.apply(**update, removed_tasks=[3], tasks=parts.get("tasks"))
    assert [(r.kind, r.id, r.field) for r in reply.refused] == [expected]
    assert reply.refused[0].reason
    state = service.engine.state
    assert state.node_row("id-good") is not None
    assert state.node_row("id-b") is None
    assert state.task_row(3) is None
    assert state.task_row(9) is None
    assert list(service.apply(tasks=tasks([60], 50)).unknown_classes) == []
    assert len(state.tasks) == 3


@pytest.mark.parametrize(
    "demand",
    [
        pytest.param({"node_selector": [requirement("cores", "Gt", "9" * 6000)]}, id="selector"),
        pytest.param({"node_selector": [requirement("cores", "Lt", "1" * 5000)]}, id="lower"),
    ],
)
def test_an_absurd_number_matches_nothing(service, demand):
    service.tell_small()
    reply = service.apply(classes=[flow_pb2.TaskClass(id=5, **demand)], tasks=tasks([9], 5))
    assert list(reply.refused) == []
    assert set(placed(service.round())) == {1, 2, 3}
    assert [r.kind for r in service.explain(9).reasons] == [flow_pb2.Reason.SELECTOR_MISMATCH]


def test_a_task_removed_and_created_again_in_one_update_is_the_new_one(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.apply(removed_tasks=[1], tasks=tasks([1], 1))
    assert placed(service.round(acknowledged=1)) == {1: "id-a"}


def test_a_node_replaced_in_one_update_is_the_new_one(service):
    service.tell_small()
    service.apply(removed_nodes=["id-a"], nodes=[node("a", cpu=1)])
    assert len(placed(service.round())) == 1


@pytest.mark.parametrize("amount", [0, 1, 2**53, 2**63 - 1])
def test_any_amount_is_accepted(service, amount):
    service.apply(
        classes=[task_class(1, cpu=amount), task_class(2, cpu=1)],
        nodes=[node("a", cpu=amount)],
        tasks=tasks([1], 1, on="a"),
    )
    service.apply(tasks=tasks([2, 3], 2))
    # one of `amount` fills the node, whatever it is
    assert placed(service.round()) == {}


@pytest.mark.parametrize("now_us", [0, 1, 2**63 - 1])
def test_any_clock_is_accepted(service, now_us):
    service.tell_small()
    service.clock.now_us = now_us
    assert len(placed(service.round())) == 3


def test_an_update_can_describe_any_number_of_classes_before_their_tasks(service):
    """As a resynchronisation of a cluster with 3000 different kinds of tasks does."""
    numbers = range(1, 3001)
    everything = flow_pb2.Tasks(
        uid=numbers,
        class_id=numbers,
        job_id=[0] * 3000,
        created_us=[NOW_US] * 3000,
        node=[0] * 3000,
        name=[f"ns/task-{n}" for n in numbers],
    )
    reply = service.resync(flow_pb2.Update(classes=[task_class(n) for n in numbers]), flow_pb2.Update(tasks=everything))
    assert list(reply.unknown_classes) == []
