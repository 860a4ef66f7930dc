"""Gangs that are preempted entirely: all of their members are deleted, or none is."""

import asyncio

import pytest

from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.client import ApiError, BusyError
from poseidon_py.state.gangs.by_pod_group import NATIVE
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.listener import GangListener
from tests.poseidon_py.preempt.bench import Bench
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import Objects, owner_or_group
from tests.poseidon_py.state.gangs.builders import pod as gang_pod

BUSY = BusyError(500, "InternalError", "failed calling webhook")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
MEMBERS = ("a", "b", "c")
MARKED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


class GangBench(Bench, GangListener):
    """Bound members of a gang as victims of `p`; the store sees what the API server has after each `work`."""

    def __init__(self, *members, minimum=3, mode="Pod"):
        super().__init__()
        self.below: list[str] = []
        policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
        group = owner_or_group(NATIVE, spec={"schedulingPolicy": policy, "disruptionMode": mode})
        self.store.gangs.objects = Objects((NATIVE, group))
        self.store.gangs.listener = self
        for name in members:
            self.member(name, node="n")

    def preempted(self, group):
        self.preemptor.finish(group)

    def below_minimum(self, group: Group):
        self.below.append(group.name)

    def member(self, name, group="g", **fields):
        if name not in self.api.pods:
            self.api.put(name)
        spec = {"schedulingGroup": {"podGroupName": group}}
        self.store.observe_pod(gang_pod(name, spec=spec, **fields))
        self.describe()

    def half_delete(self):
        """An earlier leader has deleted one of three members, all of which have the condition."""
        for name in ("a", "b", "c"):
            self.api.put(name, deleting=name == "a", condition=MARKED["conditions"][0])
            self.member(name, node="n", deleting=name == "a", status=MARKED)

    def describe(self):
        for known in list(self.store.pods.values()):
            if known.dirty:
                known.dirty = False
                describe_pod(self.store, known)
        for gang_id in list(self.store.gangs.groups):
            self.store.gangs.message(gang_id)

    async def work(self):
        """The watch reports the conditions and deletions of all members, and what follows from that is done."""
        for name in MEMBERS:
            there = self.api.pods.get(name)
            if there is not None and f"uid-{name}" in self.store.pods:
                self.member(
                    name, node="n", deleting=there.get("deleting", False), status=MARKED if "condition" in there else {}
                )
        await settle()
        self.describe()
        await settle()

    def gone(self, name):
        self.api.pods.pop(name, None)
        self.store.remove_pod(f"uid-{name}")

    async def preempt_all(self, *members):
        self.take(nominated=[("p", "n")], victims=[(name, "p") for name in members])
        await settle()

    async def pass_time(self):
        """The delays that have begun end, and those that begin then."""
        for _ in range(2):
            await self.end_delays()
            await self.work()

    async def end_delays(self):
        """The delays that have begun end; the watch reports nothing."""
        timers, self.timers[:] = list(self.timers), []
        for timer in timers:
            timer.call()
        await settle()

    def deleted(self):
        return {name for name, there in self.api.pods.items() if there.get("deleting")}


async def test_no_member_is_deleted_before_all_have_the_condition():
    bench = GangBench(*MEMBERS)
    bench.api.only, bench.api.faults = "mark", [BUSY, BUSY]
    await bench.preempt_all(*MEMBERS)
    requests = [kind for kind, *_ in bench.api.requests if kind != "nominate"]
    assert requests == ["mark"] * 5 + ["delete"] * 3
    assert bench.outcomes() == {"deleted": 3}
    assert {name for name, *_ in bench.reports.preemptions} == {*MEMBERS}
    assert bench.idle


async def test_no_member_is_deleted_if_one_cannot_get_the_condition():
    bench = GangBench(*MEMBERS)
    bench.api.only, bench.api.faults = "mark", [None, FORBIDDEN]
    await bench.preempt_all(*MEMBERS)
    await bench.work()
    assert bench.deleted() == set()
    assert bench.outcomes() == {"refused": 1, "dropped": 2}
    assert [bench.known(name).spared for name in MEMBERS].count(True) == 1
    assert not any(bench.known(name).leaving for name in MEMBERS)
    assert bench.known("p").nominated == ""
    assert len(bench.rejected) == 1
    assert bench.idle


async def test_if_one_cannot_get_the_condition_all_preemptors_of_its_gang_are_decided_on_anew():
    bench = GangBench(*MEMBERS)
    bench.pending("q")
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    bench.take(nominated=[("p", "n"), ("q", "m")], victims=[("a", "p"), ("b", "p"), ("c", "q")])
    await settle()
    assert bench.deleted() == set()
    assert [bench.known(name).nominated for name in "pq"] == ["", ""]
    assert len(bench.rejected) == 2
    assert bench.idle


@pytest.mark.parametrize("fault", [BUSY, FORBIDDEN], ids=str)
async def test_the_others_are_deleted_if_the_deletion_of_one_fails_and_it_is_tried_again(fault):
    bench = GangBench(*MEMBERS)
    bench.api.only, bench.api.faults = "delete", [fault]
    await bench.preempt_all(*MEMBERS)
    await bench.work()
    if fault is BUSY:
        assert bench.deleted() == {*MEMBERS}
        return
    assert bench.outcomes() == {"deleted": 2, "refused": 1}
    assert len(bench.deleted()) == 2
    for name in bench.deleted():
        bench.gone(name)
    await bench.work()
    (left,) = {*MEMBERS} & {*bench.api.pods}
    assert "deleting" not in bench.api.pods[left]  # not before its delay
    await bench.pass_time()
    assert bench.deleted() == {left}
    assert bench.outcomes() == {"deleted": 3, "refused": 1}


async def test_a_gang_is_deleted_entirely_although_its_preemptor_is_gone_after_the_first():
    bench = GangBench(*MEMBERS)
    bench.api.only, bench.api.faults = "delete", [None, BUSY, BUSY]
    bench.asleep = asyncio.Event()
    await bench.preempt_all(*MEMBERS)
    assert len(bench.deleted()) == 1
    bench.gone("p")
    bench.asleep.set()
    await settle()
    assert bench.deleted() == {*MEMBERS}
    assert bench.outcomes() == {"deleted": 3}


async def test_a_gang_stays_if_its_preemptor_is_gone_before_all_members_have_the_condition():
    bench = GangBench(*MEMBERS)
    bench.api.only, bench.api.faults = "mark", [None, BUSY]
    bench.asleep = asyncio.Event()
    await bench.preempt_all(*MEMBERS)
    bench.gone("p")
    bench.asleep.set()
    await settle()
    await bench.work()
    assert bench.deleted() == set()
    assert bench.outcomes() == {"dropped": 3}
    assert not any(bench.known(name).leaving for name in MEMBERS)


@pytest.mark.parametrize("waits", [True, False])
async def test_a_gang_that_several_pods_preempt_goes_as_long_as_one_of_them_waits(waits):
    bench = GangBench(*MEMBERS)
    bench.pending("q")
    bench.api.only, bench.api.faults = "mark", [None, None, BUSY]
    bench.asleep = asyncio.Event()
    bench.take(nominated=[("p", "n"), ("q", "m")], victims=[("a", "p"), ("b", "p"), ("c", "q")])
    await settle()
    for name in ("p",) if waits else ("p", "q"):
        bench.gone(name)
    bench.asleep.set()
    await settle()
    assert bench.deleted() == ({*MEMBERS} if waits else set())


async def test_members_above_the_minimum_are_victims_one_by_one():
    bench = GangBench(*MEMBERS, minimum=1)
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    await bench.preempt_all("a", "b")
    assert bench.deleted() == {"b"}
    assert bench.outcomes() == {"deleted": 1, "refused": 1}


@pytest.mark.parametrize("mode", ["Pod", "PodGroup"])
async def test_the_next_leader_deletes_what_is_left_of_a_gang(mode):
    bench = GangBench()
    bench.member("a", node="n", deleting=True, status=MARKED)
    bench.member("b", node="n", status=MARKED)
    bench.member("c", node="n", status=MARKED)
    await bench.pass_time()
    assert bench.deleted() == {"b", "c"}
    assert bench.api.of("mark") == []
    assert bench.reports.preemptions == [("b", None, "n"), ("c", None, "n")]


async def test_the_next_leader_deletes_what_is_left_though_the_first_was_gone_at_once():
    """Its condition was not seen: events of a pod coalesce."""
    bench = GangBench("a", "b", "c")
    for name in ("b", "c"):
        bench.api.put(name, condition=MARKED["conditions"][0])
        bench.member(name, node="n", status=MARKED)
    bench.gone("a")
    for _ in range(2):
        await bench.end_delays()
    assert bench.deleted() == {"b", "c"}


async def test_a_member_that_is_no_victim_keeps_the_others():
    bench = GangBench("a", "b", "c", minimum=5)
    bench.half_delete()
    bench.member("d", node="n")
    await bench.end_delays()
    assert bench.deleted() == {"a"}


async def test_a_standby_deletes_what_is_left_of_a_gang_once_it_leads():
    """It has seen the conditions before, and no pod of the gang changes any more."""
    bench = GangBench()
    bench.leads = False
    bench.half_delete()
    for _ in range(3):
        await bench.end_delays()
    assert bench.api.requests == []
    bench.leads = True
    await bench.end_delays()
    assert bench.deleted() == {"a", "b", "c"}


async def test_a_leader_that_was_suspended_in_between_deletes_what_is_left_of_a_gang():
    bench = GangBench()
    bench.preemptor.halt()
    bench.half_delete()
    await bench.end_delays()
    assert bench.api.requests == []
    bench.preemptor.resume()
    await bench.end_delays()
    assert bench.deleted() == {"a", "b", "c"}


async def test_a_leader_that_is_halted_while_it_deletes_goes_on_when_it_leads_again():
    bench = GangBench()
    bench.half_delete()
    bench.api.hold = asyncio.Event()
    bench.api.faults = [BUSY] * 2
    bench.asleep = asyncio.Event()
    await bench.end_delays()
    bench.api.hold.set()
    await settle()  # both are to be tried again
    bench.preemptor.halt()
    bench.asleep.set()
    await settle()
    assert bench.deleted() == {"a"}
    bench.describe()
    bench.preemptor.resume()
    await bench.end_delays()
    assert bench.deleted() == {"a", "b", "c"}


async def test_the_next_leader_leaves_the_gang_to_the_engine_if_nothing_was_decided():
    bench = GangBench()
    for name, status in (("a", MARKED), ("b", MARKED), ("c", {})):
        bench.member(name, node="n", status=status)
    await bench.pass_time()
    assert bench.api.requests == []


async def test_the_next_leader_waits_until_it_knows_all_members():
    bench = GangBench()
    for name in ("a", "b"):
        bench.member(name, node="n", status=MARKED)
    bench.api.put("c")
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    bench.store.observe_pod(gang_pod("c", node="n", spec=spec))  # not described yet
    for _ in range(3):
        (timer,) = bench.timers
        bench.timers.clear()
        timer.call()
        await settle()
        assert bench.api.requests == []
    bench.describe()  # one that has no condition
    await bench.pass_time()
    assert bench.api.requests == []


@pytest.mark.parametrize(("mode", "left"), [("Pod", {*()}), ({"all": {}}, {"a", "b"})])
async def test_the_next_leader_leaves_a_gang_that_has_its_minimum_unless_it_is_disrupted_as_a_whole(mode, left):
    bench = GangBench(minimum=1, mode=mode)
    for name in ("a", "b"):
        bench.member(name, node="n", status=MARKED)
    await bench.pass_time()
    assert bench.deleted() >= left
    assert bool(bench.deleted()) is bool(left)


async def test_a_gang_that_goes_entirely_is_not_reported_as_below_its_minimum():
    bench = GangBench(*MEMBERS)
    await bench.preempt_all(*MEMBERS)
    bench.describe()
    for name in MEMBERS:
        bench.gone(name)
        bench.describe()
    assert bench.below == []
    for name in MEMBERS:
        bench.member(f"new-{name}", node="n")
    bench.gone("new-a")
    bench.describe()
    assert bench.below == ["ns/g"]  # it is a gang like any other again


async def test_if_a_victim_stays_no_member_of_the_preempting_gang_is_nominated_any_more():
    bench = GangBench()
    for name in MEMBERS:
        bench.member(name)
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    bench.take(nominated=[(name, "n") for name in MEMBERS], victims=[("v", "a")])
    await settle()
    assert [bench.known(name).nominated for name in MEMBERS] == [""] * 3
    assert [bench.api.pods[name].get("nominated") for name in MEMBERS] == [""] * 3
    assert {name for name, *_ in bench.rejected} == {*MEMBERS}
    assert len({not_before for *_, not_before in bench.rejected}) == 1  # they are decided on together
