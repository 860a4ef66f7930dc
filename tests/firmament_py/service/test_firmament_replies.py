"""Replies of the original contract: preemptions, and more than fits into one."""

import pytest

from firmament_py.service import firmament_deltas
from protos.gen import firmament_pb2 as pb
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.poseidon import MIB, description, generate_uuid, resources, topology

# -- preemption -----------------------------------------------------------------------------------------------------


def full_machine(poseidon, victims=1):
    poseidon.add_node(topology("n1", cpu=1000 * victims))
    poseidon.submit(*(description(uid, resources(cpu=1000)) for uid in range(1, victims + 1)))
    assert len(poseidon.schedule()) == victims
    urgent = description(9, resources(cpu=1000))
    urgent.task_descriptor.priority = 10
    poseidon.submit(urgent)


def deltas(poseidon):
    """(task, kind) of each delta of the next reply, in its order."""
    reply = poseidon.stub.Schedule(pb.ScheduleRequest())
    return [(delta.task_id, pb.SchedulingDelta.ChangeType.Name(delta.type)) for delta in reply.deltas]


def test_the_original_contract_does_not_preempt(poseidon):
    full_machine(poseidon)
    assert deltas(poseidon) == []
    assert deltas(poseidon) == []


def test_the_original_contract_preempts_if_told_to(preempting, service):
    full_machine(preempting)
    assert deltas(preempting) == [(1, "PREEMPT")]
    assert deltas(preempting) == [], "told once"
    preempting.remove(1)  # the client has deleted its pod
    assert deltas(preempting) == [(9, "PLACE")]


def test_preemptions_that_do_not_fit_a_reply_are_in_the_next_ones(monkeypatch, preempting):
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 1)
    full_machine(preempting, victims=1)
    urgent = description(10, resources(cpu=1000))
    urgent.task_descriptor.priority = 10
    preempting.add_node(topology("n2", cpu=1000))
    preempting.submit(description(2, resources(cpu=1000)), urgent)
    assert [kind for _, kind in deltas(preempting)] == ["PREEMPT"]
    assert [kind for _, kind in deltas(preempting)] == ["PLACE"]


def test_a_victim_that_is_gone_already_is_not_named(monkeypatch, preempting):
    full_machine(preempting)
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 0)
    assert deltas(preempting) == []
    preempting.complete(1)
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 9)
    assert deltas(preempting) == [(9, "PLACE")]


# -- large replies --------------------------------------------------------------------------------------------------


def test_deltas_that_do_not_fit_a_reply_are_in_the_next_ones(monkeypatch, service, poseidon):
    """Five placements, two per reply; a task and a machine that are removed meanwhile are left out."""
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 2)
    poseidon.add_node(topology("n1", pods=5))
    poseidon.submit(*(description(uid) for uid in range(1, 6)))
    first = poseidon.schedule()
    assert len(first) == 2
    assert poseidon.unscheduled == set(), "the others are placed, too"
    left = sorted({1, 2, 3, 4, 5} - set(first))
    poseidon.remove(left[0])
    assert poseidon.schedule() == {left[1]: "n1", left[2]: "n1"}
    assert poseidon.schedule() == {}
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert dict(status.tasks) == {"waiting": 0, "assumed": 0, "bound": 4, "ended": 0}


def test_a_task_submitted_again_before_its_placement_is_delivered(monkeypatch, poseidon):
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    (reported,) = poseidon.schedule()
    other = 3 - reported
    poseidon.remove(other)
    poseidon.submit(description(other))
    assert poseidon.schedule() == {other: "n1"}
    assert poseidon.schedule() == {}, "placed anew, and told once"


@pytest.mark.parametrize("how", ["complete", "fail"])
def test_the_placement_of_a_task_that_has_ended_is_not_delivered(monkeypatch, poseidon, how):
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    (reported,) = poseidon.schedule()
    getattr(poseidon, how)(3 - reported)
    assert poseidon.schedule() == {}


def test_a_placement_on_a_removed_machine_is_not_delivered(monkeypatch, poseidon):
    monkeypatch.setattr(firmament_deltas, "MAX_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    assert len(poseidon.schedule()) == 1
    poseidon.remove_node("n1")
    assert poseidon.schedule() == {}


@pytest.mark.slow
def test_sixty_thousand_placements_take_two_replies(service, poseidon):
    numbers = range(1, 60_001)
    service.apply(
        classes=[flow_pb2.TaskClass(id=1, requests={"cpu": 1})],
        nodes=[
            flow_pb2.Node(id=generate_uuid(f"n{i}"), name=f"n{i}", allocatable={"pods": 7000, "cpu": 7000})
            for i in range(10)
        ],
        tasks=flow_pb2.Tasks(
            uid=numbers,
            class_id=[1] * len(numbers),
            job_id=[0] * len(numbers),
            created_us=[NOW_US] * len(numbers),
            node=[0] * len(numbers),
            name=[str(n) for n in numbers],
        ),
    )
    replies = [poseidon.stub.Schedule(pb.ScheduleRequest()) for _ in range(3)]
    assert [len(reply.deltas) for reply in replies] == [50_000, 10_000, 0]
    assert len({delta.task_id for reply in replies for delta in reply.deltas}) == 60_000
    assert all(reply.ByteSize() < 4 * MIB for reply in replies), "what the Go client takes"
