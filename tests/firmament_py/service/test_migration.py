"""Migrations in both contracts."""

import pytest

from firmament_py.model.options import Migrating
from protos.gen import firmament_pb2 as pb
from tests.firmament_py.service.flow_messages import node, task_class, tasks
from tests.firmament_py.service.poseidon import description, resources, topology


@pytest.fixture
def migrating(service):
    """A service whose tasks may migrate however short they have run."""
    service.configure(migrating=Migrating.ALWAYS, migrate_after_us=0)
    service.resync()
    return service


def test_a_migration_names_the_task_and_the_node(migrating):
    crew = tasks(range(1, 21), 1, on="a")
    crew.movable.extend([False] * 19 + [True])
    migrating.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=90), node("b", cpu=90)], tasks=crew)
    reply = migrating.round()
    assert list(reply.migrated.task_uid) == [20]
    assert [reply.migrated.nodes[at] for at in reply.migrated.node] == ["id-b"]
    assert reply.stats.migrated == 1
    assert migrating.apply(tasks=crew).status == 0, "the client has not evicted it"
    assert list(migrating.round(reply.round).migrated.task_uid) == [20]


def test_nothing_migrates_by_default(service):
    crew = tasks(range(1, 21), 1, on="a")
    crew.movable.extend([True] * 20)
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=90), node("b", cpu=90)], tasks=crew)
    assert not service.round().migrated.task_uid


@pytest.mark.parametrize(("label", "migrates"), [("true", True), ("false", False), (None, False)])
def test_the_original_contract_migrates_labelled_tasks_if_told_to(migrating, preempting, label, migrates):
    preempting.add_node(topology("n1", cpu=9000))
    described = [description(uid, resources(cpu=100)) for uid in range(1, 21)]
    if label is not None:
        described[0].task_descriptor.labels.add(key="poseidon.io/movable", value=label)
    preempting.submit(*described)
    assert len(preempting.schedule()) == 20
    preempting.add_node(topology("n2", cpu=9000))
    reply = preempting.stub.Schedule(pb.ScheduleRequest())
    found = [(delta.task_id, delta.type, delta.resource_id) for delta in reply.deltas]
    unit = topology("n2", cpu=9000).children[0].resource_desc.uuid
    assert found == [(1, pb.SchedulingDelta.MIGRATE, unit)] * migrates
    assert not preempting.stub.Schedule(pb.ScheduleRequest()).deltas, "told once"


def test_the_original_contract_does_not_migrate_by_default(migrating, poseidon):
    poseidon.add_node(topology("n1", cpu=9000))
    described = [description(uid, resources(cpu=100)) for uid in range(1, 21)]
    for task in described:
        task.task_descriptor.labels.add(key="poseidon.io/movable", value="true")
    poseidon.submit(*described)
    assert len(poseidon.schedule()) == 20
    poseidon.add_node(topology("n2", cpu=9000))
    assert not poseidon.stub.Schedule(pb.ScheduleRequest()).deltas
