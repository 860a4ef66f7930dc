"""The phases and conditions of Volcano's PodGroups, and which of those without pods are admitted."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from poseidon_py.kube.client import ApiError, NotFoundError
from poseidon_py.report.volcano_groups import Enqueuer, volcano_conditions, volcano_phase
from poseidon_py.state.gangs.by_pod_group import VOLCANO
from poseidon_py.state.gangs.model import Owner, Unknown
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

GROUP = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
RUNS: dict[str, Any] = {"node": "n", "phase": "Running"}
BOUND: dict[str, Any] = {"node": "n"}
DONE: dict[str, Any] = {"node": "n", "phase": "Succeeded"}
FAILED: dict[str, Any] = {"node": "n", "phase": "Failed"}
LEAVES: dict[str, Any] = {"node": "n", "phase": "Running", "deleting": True}
NOW = "2026-01-01T00:00:09Z"


def group_of(*pods, minimum=2):
    rig = Rig((VOLCANO, owner_or_group(VOLCANO, spec={"minMember": minimum})))
    for number, fields in enumerate(pods):
        rig.pod(f"p{number}", **GROUP, **fields)
    (group,) = rig.registry.groups.values()
    return group


@pytest.mark.parametrize(
    ("pods", "present", "lasting", "phase"),
    [
        # getPodGroupPhase of pkg/scheduler/framework/session.go
        pytest.param([{}], "", False, "Pending", id="waits"),
        pytest.param([{}], "Inqueue", False, "Inqueue", id="was-admitted"),
        pytest.param([{}, BOUND], "Inqueue", False, "Inqueue", id="one-is-bound"),
        pytest.param([BOUND, BOUND], "Inqueue", False, "Running", id="its-minimum-is-bound"),
        pytest.param([RUNS, DONE], "Running", False, "Running", id="one-has-succeeded"),
        pytest.param([RUNS, FAILED], "Running", False, "Running", id="one-has-failed"),
        pytest.param([RUNS, LEAVES], "Running", False, "Running", id="one-leaves-its-node"),
        pytest.param([DONE, DONE], "Running", False, "Completed", id="all-have-succeeded"),
        pytest.param([DONE, FAILED], "Running", False, "Completed", id="all-have-ended"),
        pytest.param([RUNS, {}], "Running", False, "Running", id="one-is-replaced"),
        pytest.param([RUNS, {}], "Running", True, "Unknown", id="one-is-not-replaced"),
        pytest.param([RUNS, {}], "Unknown", False, "Unknown", id="it-stays-so"),
        pytest.param([RUNS, RUNS], "Unknown", False, "Running", id="until-its-minimum-runs"),
        pytest.param([{}, {}], "Running", True, "Pending", id="all-were-replaced"),
    ],
)
def test_the_phase(pods, present, lasting, phase):
    assert volcano_phase(group_of(*pods), present, lasting=lasting) == phase


def test_a_group_without_a_minimum_is_not_complete_without_pods():
    assert volcano_phase(group_of({}, minimum=0), "Inqueue", lasting=False) == "Inqueue"


def test_the_conditions():
    """As the plugin gang writes them (plugins/gang/gang.go, OnSessionClose)."""
    others = [{"type": "Other", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}]
    (other, waits) = volcano_conditions(group_of({}), others, NOW)
    assert [other] == others
    assert waits.pop("transitionID")
    assert waits == {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughTasks",
        "message": "2/1 tasks in gang unschedulable: 1 more member is needed",
        "lastTransitionTime": NOW,
    }
    (waits,) = volcano_conditions(group_of({}, {}, {}), [], NOW)
    assert (waits["reason"], waits["message"]) == (
        "NotEnoughResources",
        "2/3 tasks in gang unschedulable: they do not fit together yet",
    )
    later = "2026-01-01T00:00:10Z"
    assert volcano_conditions(group_of({}, {}, {}), [waits], later) == [waits]
    (_, scheduled) = volcano_conditions(group_of(BOUND, RUNS), [waits], later)
    assert (scheduled["type"], scheduled["reason"]) == ("Scheduled", "tasks in gang are ready to be scheduled")
    assert scheduled["lastTransitionTime"] == later  # the latest one tells Volcano's controller
    again = volcano_conditions(group_of({}, {}, {}), [waits, scheduled], "2026-01-01T00:00:11Z")
    assert [each["type"] for each in again] == ["Scheduled", "Unschedulable"]


JOB = Owner("Job", "j", "uid-j", "batch.volcano.sh")


class Bench:
    """PodGroups on an API server, and what is free in the cluster. Each pause is a step of the test."""

    def __init__(self, *, names=("poseidon",), free=None, scheduler="poseidon"):
        self.groups: dict[str, Any] = {}
        self.free = free or {}
        self.scheduler = scheduler
        self.errors: list[Exception] = []
        self.unknown = False
        self.phases: list[tuple[str, str]] = []
        self.pauses = 0
        self.resume = asyncio.Event()
        bench: Any = self
        self.enqueuer = Enqueuer(bench, bench, lambda: True, names, self.left, self.write, sleep=self.pause)

    def create(self, name, created="2026-01-01T00:00:00Z", owner=JOB, phase="", **spec):
        status = {"phase": phase} if phase else {}
        self.groups[name] = owner_or_group(VOLCANO, name, spec=spec, status=status, owner=owner, created=created)
        self.enqueuer.note(self.groups[name])

    def find(self, resource, namespace, name):
        return self.groups.get(name)

    def path_of(self, resource, entry):
        return f"/groups/{entry.name}"

    def path_of_owner(self, owner, namespace):
        if self.unknown:
            raise Unknown("kind Job")
        return f"/jobs/{owner.name}"

    async def call(self, verb, path):
        if self.errors:
            raise self.errors.pop()
        return f'{{"spec":{{"schedulerName":"{self.scheduler}"}}}}'.encode()

    async def left(self):
        return self.free

    async def write(self, path, pod_group, status):
        if self.errors:
            raise self.errors.pop()
        self.phases.append((pod_group.name, status["phase"]))
        self.groups[pod_group.name] = replace(self.groups[pod_group.name], phase=status["phase"])

    async def pause(self, seconds):
        self.pauses += 1
        await self.resume.wait()
        self.resume.clear()

    async def step(self):
        """What happens until the enqueuer pauses or ends, then one pause ends."""
        await settle()
        found, self.phases = self.phases, []
        self.resume.set()
        return found


@pytest.fixture
async def bench():
    benches: list[Bench] = []

    def create(**fields):
        bench = Bench(**fields)
        benches.append(bench)
        return bench

    yield create
    for each in benches:
        await each.enqueuer.stop()


async def test_a_group_without_pods_is_admitted_at_once_if_it_needs_no_resources(bench):
    """actions/enqueue/enqueue.go: MinResources == nil."""
    world = bench()
    world.create("new", minMember=2)
    world.create("pending", minMember=2, phase="Pending")
    world.create("running", minMember=2, phase="Running")
    assert await world.step() == [("new", "Inqueue"), ("pending", "Inqueue")]
    assert world.pauses == 0


async def test_one_that_needs_resources_is_admitted_when_they_are_free(bench):
    world = bench(free={"cpu": 4000})
    world.create("g", minMember=1, minResources={"cpu": "11"})
    assert await world.step() == [("g", "Pending")]
    assert await world.step() == []
    world.free = {"cpu": 11000}
    assert await world.step() == [("g", "Inqueue")]


async def test_what_was_admitted_and_has_not_started_is_not_free_for_others(bench):
    """plugins/overcommit: inqueueResource."""
    world = bench(free={"cpu": 10000})
    world.create("young", "2026-01-01T00:00:02Z", minResources={"cpu": "6"})
    world.create("old", "2026-01-01T00:00:01Z", minResources={"cpu": "6"})
    assert await world.step() == [("old", "Inqueue"), ("young", "Pending")]
    world.free = {"cpu": 9000}  # a pod of it is bound
    world.enqueuer.started("uid-old")
    assert await world.step() == [("young", "Inqueue")]


@pytest.mark.parametrize(
    ("names", "scheduler", "owner", "admitted"),
    [
        pytest.param(["poseidon"], "poseidon", JOB, True, id="of-this-scheduler"),
        pytest.param(["poseidon"], "volcano", JOB, False, id="of-volcano"),
        pytest.param(["poseidon", "volcano"], "other", JOB, True, id="called-volcano"),
        pytest.param(["poseidon"], "poseidon", None, False, id="nobodys"),
    ],
)
async def test_whose_pod_group_it_is(bench, names, scheduler, owner, admitted):
    world = bench(names=names, scheduler=scheduler)
    world.create("g", owner=owner, minMember=1)
    assert await world.step() == ([("g", "Inqueue")] if admitted else [])


async def test_an_object_that_cannot_be_read_yet_is_read_again(bench):
    world = bench()
    world.unknown = True
    world.create("g", minMember=1)
    assert await world.step() == []
    world.unknown = False
    world.errors = [ApiError(403, "", "forbidden")]
    assert await world.step() == []
    world.errors = [NotFoundError(404, "", "gone")]
    assert await world.step() == []
    world.create("h", minMember=1)
    assert await world.step() == [("h", "Inqueue")]


async def test_invalid_resources_stop_no_other_group(bench):
    world = bench()
    world.create("bad", minResources={"cpu": "lots"})
    world.create("good", "2026-01-01T00:00:02Z", minMember=1)
    assert await world.step() == [("good", "Inqueue")]
