"""Any life of a job: pods that fail, vanish or wait, commands, changes of the replicas, and a controller that stops
after any of its writes, against an API server of dictionaries."""

import dataclasses
import json
import random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from poseidon_py.jobs.rules.decide import decide
from poseidon_py.jobs.rules.machines import ACTIVE, FINISHED, JOB, REPLICA, STOPPED, TASK, JobPhase, ReplicaState
from poseidon_py.jobs.rules.missed import missed_evictions
from poseidon_py.jobs.rules.policies import OF_COMMANDS, Action
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.spec import read_spec
from poseidon_py.jobs.rules.status import read_status, write_status
from poseidon_py.jobs.rules.world import Eviction, Signal, World
from tests.effort import examples
from tests.poseidon_py.jobs.builders import template

R = ReplicaState
ALIVE = (R.PENDING, R.RUNNING)
EVENTS = st.sampled_from(["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "Custom"])
RESTARTS = [Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION]
ACTIONS = st.sampled_from([*RESTARTS, *RESTARTS, *RESTARTS, *Action]).map(str)
COMMANDS = st.sampled_from([*[Action.RESTART_JOB, Action.ABORT_JOB, Action.RESUME_JOB] * 4, *sorted(OF_COMMANDS)])
"""Mostly what a job survives: the life of a finished one has no incidents."""


@st.composite
def policies(draw):
    found = []
    for event in draw(st.lists(EVENTS, max_size=3, unique=True)):
        timeout = draw(st.sampled_from([None, "5s", "1m"]))
        found.append({"event": event, "action": draw(ACTIONS)} | ({"timeout": timeout} if timeout else {}))
    return found


@st.composite
def tasks(draw, name):
    replicas = draw(st.integers(0, 3))
    found = {"name": name, "replicas": replicas, "template": template(), "policies": draw(policies())}
    if draw(st.booleans()):
        found["minAvailable"] = draw(st.integers(0, replicas))
    if name == "b" and draw(st.booleans()):
        found["dependsOn"] = {"name": ["a"]}
    if replicas and draw(st.booleans()):
        found["partitionPolicy"] = {"totalPartitions": replicas, "partitionSize": 1}
    return found


@st.composite
def specifications(draw):
    found = {
        "tasks": [draw(tasks("a")), draw(tasks("b"))],
        "policies": draw(policies()),
        "maxRetry": draw(st.integers(1, 3)),
    }
    if draw(st.booleans()):
        found["minSuccess"] = draw(st.integers(1, 3))
    annotations: dict[str, Any] = {}
    if draw(st.booleans()):
        annotations["poseidon.io/main-task"] = "a"
    if draw(st.booleans()):
        annotations["poseidon.io/completion-policy"] = {"b": {"minSucceeded": 1, "maxFailed": 2}}
    if draw(st.booleans()):
        retry = {"delay": draw(st.sampled_from([0, 30])), "tasks": {"a": {"maxRetryCount": 2, "delay": 3}}}
        annotations["poseidon.io/retry-policy"] = retry
    return found, {name: text if isinstance(text, str) else json.dumps(text) for name, text in annotations.items()}


class Life(RuleBasedStateMachine):
    """The API server has the status, the pods and the commands; the controller has only the evictions that it saw."""

    @initialize(specification=specifications(), seed=st.integers(0, 2**16))
    def create(self, specification, seed):
        self.fields, self.annotations = specification
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.raw = {}
        self.pods: dict[str, Replica] = {}
        self.commands: list[Signal] = []
        self.effects: dict[str, int] = {}
        self.seen: list[Eviction] = []
        self.met = False
        self.uids = 0
        self.phases = [JobPhase.NEW]
        self.retries_of: dict[str, int] = {}

    @property
    def spec(self):
        return read_spec("j", Raw(json.dumps(self.fields).encode()), self.annotations)

    @property
    def status(self):
        return read_status(Raw(json.dumps(self.raw).encode()))

    # -- the controller ---------------------------------------------------------------------------------------

    @rule(steps=st.integers(1, 8))
    def work(self, steps):
        """The controller makes decisions."""
        for _ in range(steps):
            for write in self._decide():
                write()

    @rule(writes=st.integers(0, 8))
    def stop_in_the_middle(self, writes):
        """The controller stops after a number of writes, and forgets what it has seen."""
        while writes:
            before = writes
            for write in self._decide():
                if not writes:
                    break
                write()
                writes -= 1
            if writes == before:
                break
        self.met, self.seen = False, []

    def _decide(self):
        spec, before = self.spec, self.status
        replicas = tuple(sorted(self.pods.values(), key=lambda each: each.name))
        evictions = tuple(self.seen) if self.met else missed_evictions(spec, before, replicas, self.now)
        signal = self.commands[0] if self.commands else None
        world = World(spec, before, replicas, evictions, signal, now=self.now)
        found = decide(world)
        assert decide(world) == found, "a decision depends on the world alone"
        assert not (set(found.deletions) & set(found.restarted))
        yield from (self._mark(each, found.status.retry_count) for each in found.restarted)
        yield lambda: self._write(spec, before, found)
        if signal is not None:
            yield lambda: self._acknowledge(signal)
        if found.status.phase == before.phase:
            yield from (self._delete(each) for each in found.deletions)
            yield from (self._create(spec, found.status, each) for each in found.creations)
        yield self._remember

    def _mark(self, replica, number):
        def write():
            if replica.name in self.pods and self.pods[replica.name].uid == replica.uid:
                self.pods[replica.name] = dataclasses.replace(self.pods[replica.name], restart_number=number)

        return write

    def _write(self, spec, before, found):
        new = found.status
        if new.phase != before.phase:
            assert new.phase in JOB[before.phase]
            self.phases.append(new.phase)
        for name, state in new.tasks.items():
            old = before.tasks.get(name, "")
            assert old == state or state in TASK[old], f"task {name} from {old} to {state}"
        assert new.retry_count in (before.retry_count, before.retry_count + 1)
        if found.cause is not None and found.cause.event == "CommandIssued" and found.cause.action:
            self.effects[new.handled] = self.effects.get(new.handled, 0) + 1
        self.raw = write_status(new, self.pods.values(), {"plugin-env": "env"}, spec.min_available, 1000.0)
        again = self.status
        assert (again.phase, again.version, again.retry_count) == (new.phase, new.version, new.retry_count)
        assert (again.tasks, again.retries, again.handled) == (new.tasks, new.retries, new.handled)

    def _acknowledge(self, signal):
        self.commands = [each for each in self.commands if each.token != signal.token]

    def _delete(self, replica):
        def write():
            mine = self.pods.get(replica.name)
            if mine is not None and mine.uid == replica.uid:
                assert not mine.deleting
                self.pods[replica.name] = mine.being_deleted()
                if self.rng.random() < 0.7:  # the others need a while
                    del self.pods[replica.name]

        return write

    def _create(self, spec, status, creation):
        def write():
            name = f"j-{creation.task}-{creation.index}"
            assert status.phase in ACTIVE
            assert name not in self.pods
            assert creation.index < spec.task(creation.task).replicas
            self.uids += 1
            self.pods[name] = Replica(
                "ns", name, f"u{self.uids}", "1", creation.task, creation.index, status.version, R.PENDING, False,
                self.now, evicted_at=creation.evicted_at,
            )  # fmt: skip

        return write

    def _remember(self):
        self.met, self.seen = True, []

    # -- the rest of the cluster ------------------------------------------------------------------------------

    def _any(self, *phases):
        return sorted(name for name, each in self.pods.items() if each.phase in phases)

    @precondition(lambda self: self._any(*ALIVE))
    @rule(data=st.data())
    def change(self, data):
        name = data.draw(st.sampled_from(self._any(*ALIVE)))
        pod = self.pods[name]
        new = data.draw(st.sampled_from(sorted(REPLICA[pod.phase] - {R.TERMINATING, R.ABSENT, R.UNKNOWN})))
        ended = self.now if new in (R.SUCCEEDED, R.FAILED) else 0.0
        restarts = data.draw(st.integers(0, 1)) + pod.restarts
        self.pods[name] = dataclasses.replace(
            pod, phase=new, ended=ended, exit_code=int(new == R.FAILED), restarts=restarts
        )

    @precondition(lambda self: any(each.deleting for each in self.pods.values()))
    @rule()
    def finish_deletions(self):
        for name in [name for name, each in self.pods.items() if each.deleting]:
            del self.pods[name]

    @precondition(lambda self: self._any(*ALIVE))
    @rule(data=st.data())
    def evict(self, data):
        pod = self.pods.pop(data.draw(st.sampled_from(self._any(*ALIVE))))
        by_us = pod.deleting or pod.marked or pod.job_version < self.status.version
        if self.met and not by_us:
            self.seen.append(Eviction(pod.task, pod.index, self.now))

    @rule(seconds=st.sampled_from([1, 10, 100]))
    def wait(self, seconds):
        self.now += seconds

    @precondition(lambda self: not self.commands)
    @rule(action=COMMANDS)
    def command(self, action):
        self.uids += 1
        self.commands.append(Signal(f"command u{self.uids}", "CommandIssued", action))

    @rule(data=st.data())
    def scale(self, data):
        at = data.draw(st.integers(0, 1))
        task = self.fields["tasks"][at]
        if "partitionPolicy" not in task:
            task["replicas"] = data.draw(st.integers(task.get("minAvailable", 0), 3))

    # -- what always holds ------------------------------------------------------------------------------------

    @invariant()
    def phases_are_legal_and_ends_are_final(self):
        for old, new in zip(self.phases, self.phases[1:], strict=False):
            assert new in JOB[old]
            assert old not in FINISHED
            if old in STOPPED:
                assert (old, new) == (JobPhase.ABORTED, JobPhase.RESTARTING)

    @invariant()
    def retries_are_bounded(self):
        assert self.status.retry_count <= self.spec.max_retry
        for name, each in self.status.retries.items():
            assert each.count <= 2, name

    @invariant()
    def commands_have_at_most_one_effect(self):
        assert all(count == 1 for count in self.effects.values())

    def teardown(self):
        """Left alone, the controller comes to rest, and repeats nothing."""
        if not hasattr(self, "fields"):
            return
        for _ in range(200):
            writes = list(self._decide())
            before = json.dumps(self.raw, sort_keys=True), dict(self.pods), list(self.commands)
            for write in writes:
                write()
            for name in [name for name, each in self.pods.items() if each.deleting]:
                del self.pods[name]
            if before == (json.dumps(self.raw, sort_keys=True), self.pods, self.commands):
                break
        else:
            raise AssertionError(f"it does not come to rest in {self.status.phase}")
        missing = {(task.name, index) for task in self.spec.tasks for index in range(task.replicas)} - {
            (each.task, each.index) for each in self.pods.values()
        }
        if self.status.phase in ACTIVE:
            waiting = {task.name for task in self.spec.tasks if task.depends_on}
            assert {task for task, _ in missing} <= waiting
        else:
            assert self.status.phase in STOPPED or self.status.phase == JobPhase.RESTARTING
            assert not self._any(*ALIVE)


Life.TestCase.settings = examples(100, steps=60, deadline=None)
TestLife = pytest.mark.slow(Life.TestCase)
