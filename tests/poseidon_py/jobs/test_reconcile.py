"""The writes of the controller, against an API server of dictionaries: refusals, lost answers, stops at any write."""

import asyncio
import contextlib
import itertools
import json

import pytest

from poseidon_py.jobs.cache import Cache, CachedJob
from poseidon_py.jobs.events import JobEvents
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.reconcile import Reconciler, RefusedError, describe_refusals
from poseidon_py.jobs.transitions import Transitions
from poseidon_py.jobs.writer import NotLeadingError, Writer, merge_patch
from poseidon_py.kube.client import ConflictError, KubeError
from poseidon_py.metrics.metrics import Metrics
from tests.poseidon_py.jobs.builders import policy, task
from tests.poseidon_py.jobs.fake_api import FORBIDDEN, FakeApi

KEY = ("ns", "j")
JOB = "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j"
PODS = "/api/v1/namespaces/ns/pods"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/ns/commands"


class Rig:
    """A controller without watches and queue: `settle` reports changes and makes decisions until nothing is written."""

    def __init__(self, *tasks, api=None, annotations=None, **fields):
        self.api = api or FakeApi()
        self.now = 1767225600.0 + 100  # 100 s after everything was created
        self.transitions = []
        self.writes_left = None
        self.start()
        if api is None:
            metadata = {"name": "j", "annotations": annotations or {}}
            self.api.put(JOB, {"metadata": metadata, "spec": {"tasks": list(tasks) or [task()], **fields}})

    def start(self):
        """A new process: it knows nothing, and lists what is there."""
        metrics = JobMetrics(Metrics())
        passing = Transitions(metrics)
        passing.listeners.append(self.transitions.append)
        self.strangers: list[CachedJob] = []
        clock = lambda: self.now  # noqa: E731
        self.cache = Cache(lambda key, urgent: None, passing, lambda old, new: self.strangers.append(new), clock)
        self.events = JobEvents(self.api, clock)
        writer = Writer(self.api, self.cache, metrics, self._leads)
        self.reconciler = Reconciler(self.cache, writer, self.events, passing, clock)
        for path, body in list(self.api.objects.items()):
            self.api._changes.append(("observe", path, body))

    def _leads(self):
        if self.writes_left is None:
            return True
        self.writes_left -= 1
        return self.writes_left >= 0

    async def step(self):
        self.api.feed(self.cache)
        return await self.reconciler.reconcile(KEY)

    async def settle(self, limit=40):
        for _ in range(limit):
            before = self.api.version
            again = await self.step()
            self.api.feed(self.cache)
            if self.api.version == before and again != 0:
                await self.events.stop()
                return
        raise AssertionError(f"not settled: {self.api.objects[JOB].get('status')}")

    @property
    def status(self):
        return self.api.objects[JOB]["status"]

    @property
    def phase(self):
        return self.status["state"]["phase"]

    def set_phase(self, phase, *names):
        for name in names:
            found = self.api.objects[f"{PODS}/{name}"]
            self.api.put(f"{PODS}/{name}", found | {"status": {"phase": phase}})

    def command(self, action, name="c"):
        target = {"kind": "Job", "name": "j"}
        self.api.put(f"{COMMANDS}/{name}", {"metadata": {"name": name}, "action": action, "target": target})

    def events_of(self, reason):
        found = (each for path, each in self.api.objects.items() if "/events/" in path)
        return [each["message"] for each in found if each["reason"] == reason]


def run(coroutine):
    return asyncio.run(coroutine)


def test_transitions_of_all_machines_pass_one_place():
    async def scenario():
        rig = Rig(task("w", 1))
        await rig.settle()
        rig.set_phase("Running", "j-w-0")
        await rig.settle()
        rig.set_phase("Succeeded", "j-w-0")
        await rig.settle()
        return rig

    found = run(scenario()).transitions
    for machine, states in {
        "job": ["", "Pending", "Running", "Completed"],
        "task": ["", "Pending", "Running", "Succeeded"],
        "replica": ["Absent", "Pending", "Running", "Succeeded"],
    }.items():
        mine = [each for each in found if each.machine == machine]
        assert [(each.old, each.new) for each in mine] == list(itertools.pairwise(states))
        assert {(each.namespace, each.job, each.job_uid) for each in mine} == {("ns", "j", "u1")}


def test_a_settled_job_causes_no_requests():
    async def scenario():
        rig = Rig()
        await rig.settle()
        rig.api.requests.clear()
        for _ in range(3):
            await rig.step()
        return rig.api.requests

    assert run(scenario()) == []


@pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "CompleteJob"])
@pytest.mark.parametrize("writes", range(9))
def test_a_stop_before_any_write_changes_nothing_about_the_outcome(action, writes):
    """The process ends before the n-th write of a command's effect; its successor continues."""

    async def outcome(limit):
        rig = Rig(task("w", 3), maxRetry=9)
        await rig.settle()
        rig.set_phase("Running", "j-w-0", "j-w-1", "j-w-2")
        await rig.settle()
        rig.command(action)
        if limit is not None:
            rig.writes_left = limit
            with pytest.raises(NotLeadingError):
                await rig.settle()
            rig.writes_left = None
            rig.start()
        await rig.settle()
        return rig

    async def scenario():
        if action != "RestartJob" and writes > 5:
            return  # fewer writes: status, command, group, 3 pods
        undisturbed, stopped = await outcome(None), await outcome(writes)
        for name in ("phase", "version", "retryCount", "taskStatusCount"):
            assert _of(stopped, name) == _of(undisturbed, name)
        assert stopped.api.names("pods") == undisturbed.api.names("pods")
        assert stopped.api.names("commands") == []
        jobs = [(each.old, each.new) for each in stopped.transitions if each.machine == "job"]
        assert jobs == [(each.old, each.new) for each in undisturbed.transitions if each.machine == "job"]

    run(scenario())


def _of(rig, name):
    return rig.phase if name == "phase" else rig.status.get(name)


def test_a_job_that_changed_meanwhile_is_left_to_the_next_decision():
    async def scenario():
        rig = Rig()
        await rig.settle()
        rig.set_phase("Running", "j-w-0", "j-w-1")
        rig.api.feed(rig.cache)
        found = rig.api.objects[JOB]
        rig.api.put(JOB, found | {"spec": found["spec"] | {"maxRetry": 7}})
        with pytest.raises(ConflictError):
            await rig.reconciler.reconcile(KEY)
        await rig.settle()
        assert rig.phase == "Running"
        assert rig.strangers == []

    run(scenario())


def test_a_lost_answer_to_a_status_is_no_foreign_change():
    async def scenario():
        rig = Rig()
        await rig.settle()
        rig.set_phase("Running", "j-w-0", "j-w-1")
        rig.api.lose.append("PATCH")
        with pytest.raises(KubeError):
            await rig.settle()
        await rig.settle()
        assert (rig.phase, rig.strangers) == ("Running", [])
        found = json.loads(json.dumps(rig.api.objects[JOB]))
        found["status"]["state"]["phase"] = "Pending"
        rig.api.put(JOB, found)
        rig.api.feed(rig.cache)
        assert [each.status.phase for each in rig.strangers] == ["Pending"]

    run(scenario())


def test_lost_answers_to_creations_and_deletions_of_pods_repeat_nothing():
    async def scenario():
        rig = Rig(task("w", 2), policies=[policy("RestartJob", "PodEvicted")])
        await rig.step()
        rig.api.lose.append("POST")
        for _ in range(4):
            with contextlib.suppress(RefusedError, KubeError):
                await rig.step()
        await rig.settle()
        assert rig.api.names("pods") == ["j-w-0", "j-w-1"]
        rig.command("RestartJob")
        rig.api.lose.append("DELETE")
        for _ in range(4):
            with contextlib.suppress(RefusedError, KubeError):
                await rig.step()
        await rig.settle()
        # a pod whose deletion was requested here is not evicted, whatever became of the answer
        assert (rig.status["retryCount"], rig.phase) == (1, "Pending")

    run(scenario())


def test_refusals_are_told_and_the_other_pods_are_created():
    async def scenario():
        rig = Rig()
        await rig.step()
        rig.api.refusals.append(("POST", "pods/j-w-0", FORBIDDEN))
        with pytest.raises(RefusedError) as error:
            await rig.settle()
        assert describe_refusals(error.value) == ["exceeded quota: pods=2"]
        assert rig.api.names("pods") == ["j-w-1"]
        rig.api.refusals.clear()
        await rig.settle()
        assert rig.api.names("pods") == ["j-w-0", "j-w-1"]

    run(scenario())


def test_a_pod_of_somebody_else_is_not_touched():
    async def scenario():
        rig = Rig()
        rig.api.put(f"{PODS}/j-w-0", {"metadata": {"name": "j-w-0"}})
        with pytest.raises(RefusedError) as error:
            await rig.settle()
        assert "pod j-w-0 exists and is not of this job; delete it" in describe_refusals(error.value)[0]
        assert ("DELETE", f"{PODS}/j-w-0") not in rig.api.requests

    run(scenario())


def test_nothing_is_written_without_the_lease():
    async def scenario():
        rig = Rig()
        rig.writes_left = 0
        with pytest.raises(NotLeadingError):
            await rig.step()
        assert {verb for verb, _ in rig.api.requests} <= {"GET"}

    run(scenario())


def test_an_unknown_command_is_removed_and_told():
    async def scenario():
        rig = Rig()
        await rig.settle()
        rig.command("Explode")
        await rig.settle()
        assert rig.api.names("commands") == []
        assert "action is 'Explode'; give one of AbortJob" in rig.events_of("InvalidCommand")[0]
        assert rig.phase == "Pending"

    run(scenario())


def test_a_command_for_an_earlier_job_of_that_name_is_not_obeyed():
    async def scenario():
        rig = Rig()
        await rig.settle()
        target = {"kind": "Job", "name": "j", "uid": "another"}
        rig.api.put(f"{COMMANDS}/c", {"metadata": {"name": "c"}, "action": "AbortJob", "target": target})
        await rig.settle()
        assert (rig.phase, rig.api.names("commands")) == ("Pending", ["c"])

    run(scenario())


def test_an_invalid_job_says_so_once_and_keeps_its_pods():
    async def scenario():
        rig = Rig()
        await rig.settle()
        found = rig.api.objects[JOB]
        rig.api.put(JOB, found | {"spec": found["spec"] | {"plugins": {"ssh": []}}})
        await rig.settle()
        assert rig.status["state"]["reason"] == "InvalidJob"
        assert rig.events_of("InvalidJob") == [rig.status["state"]["message"]]
        assert rig.api.names("pods") == ["j-w-0", "j-w-1"]
        rig.api.put(JOB, rig.api.objects[JOB] | {"spec": found["spec"]})
        await rig.settle()
        assert "reason" not in rig.status["state"]

    run(scenario())


def test_an_invalid_job_can_be_stopped():
    async def scenario():
        rig = Rig()
        await rig.settle()
        found = rig.api.objects[JOB]
        rig.api.put(JOB, found | {"spec": found["spec"] | {"plugins": {"ssh": []}}})
        rig.command("TerminateJob")
        await rig.settle()
        assert (rig.phase, rig.api.names("pods"), rig.api.names("commands")) == ("Terminated", [], [])
        assert rig.status["state"]["reason"] == "InvalidJob"

    run(scenario())


def test_fields_of_others_in_the_status_stay():
    async def scenario():
        rig = Rig()
        await rig.settle()
        found = json.loads(json.dumps(rig.api.objects[JOB]))
        found["status"]["another"] = {"x": 1}
        rig.api.put(JOB, found)
        rig.set_phase("Running", "j-w-0", "j-w-1")
        await rig.settle()
        assert (rig.status["another"], rig.phase) == ({"x": 1}, "Running")

    run(scenario())


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="equal"),
        pytest.param({"a": 1, "b": 2}, {"a": 3}, {"b": None, "a": 3}, id="removed and changed"),
        pytest.param({"m": {"x": 1, "y": 1}}, {"m": {"x": 1}}, {"m": {"y": None}}, id="inside"),
        pytest.param({"m": [1]}, {"m": {"x": 1}}, {"m": {"x": 1}}, id="another type"),
    ],
)
def test_merge_patches(old, new, patch):
    assert merge_patch(old, new) == patch
