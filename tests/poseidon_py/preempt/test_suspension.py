"""Victims that are all pods of a workload leave by its suspension: deletions would count as failures of a Job."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.client import ApiError, BusyError
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.workloads.lookup import Workloads
from poseidon_py.workloads.suspender import WorkloadSuspender
from poseidon_py.workloads.writer import WorkloadWriter
from tests.poseidon_py.preempt.bench import NOW, Bench
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import JOB, SET, Objects
from tests.poseidon_py.state.gangs.builders import pod as owned_pod
from tests.poseidon_py.workloads.rig import FakeWorkloads

BUSY = BusyError(500, "InternalError", "failed calling webhook")
FORBIDDEN = ApiError(403, "Forbidden", "jobs is forbidden")
EIGHT = tuple("abcdefgh")
MARKED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


class WorkloadBench(Bench, GangListener):
    """Job j with bound pods; the store sees what the API server has after each `watch`."""

    def __init__(self, *names, gang=True, **fields):
        self.kube = FakeWorkloads()
        self.objects = Objects()
        self.events = []
        super().__init__(**fields)
        self.store.gangs.objects = self.objects
        self.store.gangs.listener = self
        annotations = {"poseidon.io/gang": "all"} if gang else {}
        self.workload(JOBS, "j", {"parallelism": len(names)}, annotations)
        self.members = names
        for name in names:
            self.member(name)

    def new_suspender(self):
        store = self.store
        lookup = Workloads(store.pods, store.owned, lambda: store.gangs.objects)
        clocks: dict[str, Any] = {"sleep": self.sleep, "monotonic": lambda: self.clock, "rng": lambda: 1.0}
        writer = WorkloadWriter(self.kube, lambda each: f"/{each.name}", lambda: self.leads, **clocks)
        return WorkloadSuspender(
            lookup, writer, self, store.metrics, is_kueues=lambda each: False, now=lambda: NOW + self.clock
        )

    def on_workload(self, workload, reason, message, *, warning):
        self.events.append((workload.name, reason))

    def preempted(self, group):
        self.preemptor.finish(group)

    def workload(self, resource, name, spec, annotations=None, owner=None):
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": annotations or {}}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if owner is not None:
            reference = {"kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}
            metadata["ownerReferences"] = [reference | {"apiVersion": f"{owner.group}/v1"}]
        self.kube.put(f"/{name}", {"metadata": metadata, "spec": spec})
        body = json.dumps(self.kube.objects[f"/{name}"])
        self.objects.put(resource, owner_or_group_of(resource, msgspec.json.decode(body, type=Item)))

    def member(self, name, owner=JOB, **fields):
        if name not in self.api.pods:
            self.api.put(name)
        self.store.observe_pod(owned_pod(name, owner=owner, **({"node": "n"} | fields)))
        self.describe()

    def describe(self):
        for known in list(self.store.pods.values()):
            if known.dirty:
                known.dirty = False
                describe_pod(self.store, known)
        for gang_id in list(self.store.gangs.groups):
            self.store.gangs.message(gang_id)

    async def preempt(self, *names):
        self.take(nominated=[("p", "n")], victims=[(name, "p") for name in names])
        await settle()

    async def watch(self):
        """The watch reports the conditions of all members."""
        for name in self.members:
            self.member(name, status=MARKED if "condition" in self.api.pods[name] else {})
        await settle()

    async def end_delays(self):
        timers, self.timers[:] = list(self.timers), []
        for timer in timers:
            timer.call()
        await settle()

    @property
    def is_suspended(self):
        return bool(self.kube.objects["/j"]["spec"].get("suspend"))

    def requests(self):
        return [kind for kind, *_ in self.api.requests if kind != "nominate"]


async def test_a_job_of_eight_pods_leaves_by_one_patch():
    """8 deletions are more than the default backoffLimit of 6: the Job would have failed for good."""
    bench = WorkloadBench(*EIGHT)
    await bench.preempt(*EIGHT)
    assert bench.requests() == ["mark"] * 8
    assert [path for path, _ in bench.kube.patches] == ["/j"]
    assert bench.is_suspended
    assert bench.outcomes() == {"suspended": 8}
    assert all(bench.known(name).preempting for name in EIGHT)  # until they are gone
    assert sorted(name for name, *_ in bench.reports.preemptions) == list(EIGHT)
    assert bench.events == [("j", "Suspended")]
    assert bench.idle


async def test_it_is_suspended_once_all_have_their_condition():
    bench = WorkloadBench("a", "b")
    bench.api.only, bench.api.faults = "mark", [BUSY, BUSY, BUSY]
    await bench.preempt("a", "b")
    assert bench.requests() == ["mark"] * 5
    assert bench.is_suspended


async def test_if_one_cannot_get_the_condition_nothing_leaves():
    bench = WorkloadBench("a", "b")
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    await bench.preempt("a", "b")
    assert not bench.is_suspended
    assert bench.outcomes() == {"refused": 1, "dropped": 1}


async def test_if_the_patch_is_refused_the_pods_are_deleted():
    bench = WorkloadBench("a", "b")
    bench.kube.faults = [FORBIDDEN]
    await bench.preempt("a", "b")
    assert bench.requests() == ["mark", "mark", "delete", "delete"]
    assert len(bench.kube.patches) == 1
    assert bench.events == [("j", "SuspendFailed")]
    assert bench.outcomes() == {"deleted": 2}
    assert bench.idle


async def test_a_part_of_a_job_is_deleted():
    bench = WorkloadBench("a", "b", "c", gang=False)
    await bench.preempt("a", "b")
    assert bench.requests().count("delete") == 2
    assert not bench.is_suspended


async def test_the_only_pod_of_a_job_leaves_by_a_suspension():
    """After seven preemptions it would have failed."""
    bench = WorkloadBench("a")
    await bench.preempt("a")
    assert bench.requests() == ["mark"]
    assert bench.is_suspended


async def test_pods_that_are_no_gang_leave_together_if_they_are_all():
    bench = WorkloadBench("a", "b", gang=False)
    bench.pending("q")
    bench.take(nominated=[("p", "n"), ("q", "m")], victims=[("a", "p"), ("b", "q")])
    await settle()
    assert bench.is_suspended
    assert bench.outcomes() == {"suspended": 2}


async def test_they_leave_after_the_longest_notice():
    bench = WorkloadBench("a", "b", gang=False, notice=60.0)
    bench.pending("q")
    bench.known("b").described.preemption = bench.known("b").described.preemption._replace(notice=300.0)
    bench.take(nominated=[("p", "n"), ("q", "m")], victims=[("a", "p"), ("b", "q")])
    await settle()
    assert {bench.known(name).announced.eviction_us for name in "ab"} == {int((NOW + 300) * 1e6)}


async def test_several_gangs_of_one_workload_leave_by_one_patch():
    """As those of Kueue's pod sets."""
    bench = WorkloadBench(gang=False)
    bench.workload(JOB_SETS, "s", {})
    gang = {"poseidon.io/gang": "all"}
    for name in ("one", "two"):
        bench.workload(JOBS, name, {"parallelism": 2}, gang, SET)
        for at in range(2):
            bench.member(f"{name}-{at}", Owner("Job", name, f"uid-{name}", "batch"))
    assert len({known.gang.id for known in bench.store.pods.values() if known.gang.id}) == 2
    await bench.preempt("one-0", "one-1")
    assert bench.requests().count("delete") == 2  # the other gang stays
    for at in range(2):
        bench.store.remove_pod(f"uid-one-{at}")
        bench.member(f"one-{at}", Owner("Job", "one", "uid-one", "batch"))
    await bench.preempt("one-0", "one-1", "two-0", "two-1")
    assert bench.requests().count("delete") == 2
    assert [path for path, _ in bench.kube.patches] == ["/s"]


async def test_a_gang_of_pods_of_two_jobs_leaves_as_a_whole():
    bench = WorkloadBench(gang=False)
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "2"}
    for name in ("one", "two"):
        bench.workload(JOBS, name, {})
        bench.member(f"{name}-0", Owner("Job", name, f"uid-{name}", "batch"), labels=labels)
    bench.api.only, bench.api.faults = "mark", [BUSY]
    await bench.preempt("one-0", "two-0")
    assert bench.requests() == ["mark"] * 3
    assert sorted(path for path, _ in bench.kube.patches) == ["/one", "/two"]


async def test_a_pod_that_is_bound_in_between_keeps_the_job_running():
    """The others are deleted, as decided."""
    bench = WorkloadBench("a", "b", gang=False)
    bench.api.only, bench.api.faults = "mark", [BUSY]
    hold = bench.api.hold = asyncio.Event()
    await bench.preempt("a", "b")
    bench.member("late")
    hold.set()
    await settle()
    assert not bench.is_suspended
    assert bench.requests().count("delete") == 2


async def test_a_preemptor_that_is_gone_before_that_calls_it_off():
    bench = WorkloadBench("a", "b")
    bench.api.only, bench.api.faults, bench.asleep = "mark", [BUSY], asyncio.Event()
    await bench.preempt("a", "b")
    bench.store.remove_pod("uid-p")
    bench.asleep.set()
    await settle()
    assert not bench.is_suspended
    assert not any(bench.known(name).preempting for name in "ab")


@pytest.mark.parametrize("patched", [False, True], ids=["before the patch", "after the patch"])
async def test_the_rest_of_a_gang_that_an_earlier_leader_preempted_leaves_by_a_suspension(patched):
    bench = WorkloadBench("a", "b", "c")
    for name in "abc":
        bench.api.put(name, condition=MARKED["conditions"][0])
    bench.member("c", deleting=True, status=MARKED)
    bench.members = ("a", "b")
    if patched:
        annotations = {"poseidon.io/gang": "all", "poseidon.io/suspended": "{}"}
        bench.workload(JOBS, "j", {"parallelism": 3, "suspend": True}, annotations)
    await bench.watch()
    await bench.end_delays()
    assert bench.is_suspended
    assert bench.requests() == []
    assert len(bench.kube.patches) == (0 if patched else 1)
    assert bench.outcomes() == {"suspended": 2}


async def test_without_leadership_nothing_is_suspended():
    bench = WorkloadBench("a", "b")
    bench.leads = False
    await bench.preempt("a", "b")
    assert not bench.is_suspended
    assert bench.requests() == []
