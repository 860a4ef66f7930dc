"""What the engine is sent of gangs, and when."""

import asyncio

import pytest

from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, NATIVE
from tests.poseidon_py.fakes import FakeEngine
from tests.poseidon_py.rig import Rig as BridgeRig
from tests.poseidon_py.state.gangs.builders import Objects, owner_or_group
from tests.poseidon_py.state.gangs.builders import pod as gang_pod

CRD = {"scheduling.x-k8s.io/pod-group": "g"}


class Engine(FakeEngine):
    """Has gangs: skips tasks of those that it was not sent. Places nothing."""

    def _clear(self):
        super()._clear()
        self.gangs = {}
        self.gang_of = {}

    def _apply(self, update, reply):
        for gang in update.gangs:
            self.gangs[gang.id] = gang
        for gang_id in update.removed_gangs:
            self.gangs.pop(gang_id, None)
        columns = update.tasks
        for uid, gang_id in zip(columns.uid, columns.gang_id or [0] * len(columns.uid), strict=True):
            if gang_id and gang_id not in self.gangs:
                reply.unknown_gangs.append(gang_id)
            else:
                self.gang_of[uid] = gang_id
        super()._apply(update, reply)

    def fits(self, node, cls):
        return False


class Rig(BridgeRig):
    def __init__(self, *objects):
        super().__init__()
        self.engine: Engine = Engine()
        self.session._engine = self.feed._engine = self.loop._engine = self.engine
        self.store.gangs.objects = self.objects = Objects(*objects)

    async def __aenter__(self):
        await super().__aenter__()
        self._tasks.append(asyncio.create_task(self.feed.gang_worker()))
        return self

    def member(self, name, labels=CRD):
        self.store.observe_pod(gang_pod(name, labels=labels))

    def put(self, each, resource=COSCHEDULING):
        self.objects.put(resource, each)
        self.store.gangs.changed(resource, each)

    def minimums(self):
        return [gang.minimum for gang in self.engine.gangs.values()]


def group(minimum):
    return owner_or_group(COSCHEDULING, spec={"minMember": minimum})


async def test_a_gang_is_sent_with_its_first_member_and_again_when_it_changes():
    async with Rig((COSCHEDULING, group(2))) as rig:
        rig.member("a")
        await rig.settle()
        assert rig.minimums() == [2]
        assert set(rig.engine.gang_of.values()) == set(rig.engine.gangs)
        rig.put(group(5))
        await rig.settle()
        assert rig.minimums() == [5]
        reported = rig.engine.calls["apply"]
        rig.member("a")
        await rig.settle()
        assert rig.engine.calls["apply"] == reported  # nothing new


async def test_a_pod_blocked_by_its_gang_is_not_sent_and_one_that_was_sent_is_removed():
    async with Rig() as rig:
        rig.member("a")
        await rig.settle()
        assert rig.engine.tasks == {}
        rig.put(group(1))
        await rig.settle()
        assert len(rig.engine.tasks) == 1
        gone = rig.objects.by_name.pop((COSCHEDULING, "ns", "g"))
        rig.store.gangs.changed(COSCHEDULING, gone, gone=True)
        await rig.settle()
        assert rig.engine.tasks == {}


async def test_gangs_that_the_engine_has_lost_are_sent_again():
    async with Rig((COSCHEDULING, group(2))) as rig:
        rig.member("a")
        await rig.settle()
        rig.engine.gangs.clear()
        rig.member("b")
        await rig.settle()
        assert rig.minimums() == [2]
        assert len(rig.engine.gang_of) == 2
        assert 0 not in rig.engine.gang_of.values()


async def test_a_restarted_engine_is_sent_gangs_too():
    async with Rig((COSCHEDULING, group(2))) as rig:
        rig.member("a")
        await rig.settle()
        rig.engine.restart()
        rig.member("b")
        await rig.settle()
        assert rig.minimums() == [2]
        assert len(rig.engine.gang_of) == 2


@pytest.mark.parametrize("policy", [{"gang": {"minCount": 2}}, {"basic": {}}])
async def test_a_gang_that_is_disrupted_as_a_whole_is_described_so(policy):
    def pod_group(mode):
        return owner_or_group(NATIVE, spec={"schedulingPolicy": policy, "disruptionMode": mode})

    minimum = 2 if "gang" in policy else 0
    async with Rig((NATIVE, pod_group({"all": {}}))) as rig:
        rig.store.observe_pod(gang_pod("a", spec={"schedulingGroup": {"podGroupName": "g"}}))
        await rig.settle()
        assert [(gang.minimum, gang.disrupted_whole) for gang in rig.engine.gangs.values()] == [(minimum, True)]
        assert set(rig.engine.gang_of.values()) == set(rig.engine.gangs)
        rig.put(pod_group({"single": {}}), NATIVE)
        await rig.settle()
        assert [(gang.minimum, gang.disrupted_whole) for gang in rig.engine.gangs.values()] == [(minimum, False)]
        assert any(rig.engine.gang_of.values()) is bool(minimum)  # else its pods are single ones


@pytest.mark.parametrize("policy", [{"gang": {"minCount": 2}}, {"basic": {}}])
async def test_pods_have_the_priority_and_the_preemption_policy_of_their_pod_group(policy):
    async with Rig() as rig:
        for name, node in (("bound", "n"), ("pending", None)):
            rig.store.observe_pod(
                gang_pod(name, node=node, priority=100, spec={"schedulingGroup": {"podGroupName": "g"}})
            )
        await rig.settle()

        def described():
            classes = {rig.store.pods[f"uid-{name}"].described.class_id for name in ("bound", "pending")}
            return {(rig.engine.classes[each].priority, rig.engine.classes[each].never_preempts) for each in classes}

        for spec, found in (
            ({"priorityClassName": "c", "priority": 7, "preemptionPolicy": "Never"}, (7, True)),
            ({"priorityClassName": "c", "priority": 8}, (8, False)),
            ({}, (100, False)),
        ):
            rig.put(owner_or_group(NATIVE, spec={"schedulingPolicy": policy, **spec}), NATIVE)
            await rig.settle()
            assert described() == {found}
            records = [rig.store.pods[f"uid-{name}"].described for name in ("bound", "pending")]
            assert {(record.priority, record.never_preempts) for record in records} == {found}


async def test_a_deleted_gang_is_removed():
    async with Rig((COSCHEDULING, group(2))) as rig:
        rig.member("a")
        await rig.settle()
        rig.store.remove_pod("uid-a")
        await rig.settle()
        assert rig.minimums() == [2]  # its PodGroup is still there
        gone = rig.objects.by_name.pop((COSCHEDULING, "ns", "g"))
        rig.store.gangs.changed(COSCHEDULING, gone, gone=True)
        await rig.settle()
        assert rig.minimums() == []
        assert not rig.store.gangs.removed
