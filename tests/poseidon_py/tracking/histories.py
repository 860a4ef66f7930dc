"""Pods as they exist in an API server, and a tracker that is told of them; clocks are the test's."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry

from poseidon_py.machines.states import JOB, REPLICA, TASK
from poseidon_py.machines.transitions import AnyTransitions
from poseidon_py.tracking.metrics import TrackingMetrics
from poseidon_py.tracking.tracker import Surroundings, Tracker
from poseidon_py.tracking.transition import Observed
from tests.poseidon_py import builders

START = 1_767_225_600
"""2026-01-01T00:00:00Z"""


def timestamp(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Life:
    """A pod as the API server has it. Times are seconds since the epoch, 0: not yet."""

    name: str
    created: int = START
    bound: int = 0
    started: int = 0
    ended: int = 0
    phase: str = "Pending"
    exit_code: int = 0
    deleting: int = 0
    """When its deletion was requested."""
    disruption: str = ""
    owner: str = ""
    kind: str = "Job"
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    cpu: str = "1"
    reason: str = ""

    @property
    def uid(self):
        return f"uid-{self.name}"

    def json(self) -> dict[str, Any]:
        status: dict[str, Any] = {"conditions": []}
        if self.bound:
            status["conditions"].append(
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(self.bound)}
            )
        if self.disruption:
            status["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": self.disruption})
        if self.reason:
            status["reason"] = self.reason
        if self.ended:
            ran = {"startedAt": timestamp(self.started)} if self.started else {}
            terminated = {**ran, "finishedAt": timestamp(self.ended), "exitCode": self.exit_code, "reason": "Error"}
            status["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
        elif self.started:
            running = {"running": {"startedAt": timestamp(self.started)}}
            status["containerStatuses"] = [{"name": "main", "state": running}]
        found = builders.pod_json(
            self.name,
            node="n" if self.bound else "",
            phase=self.phase,
            cpu=self.cpu,
            memory=None,
            labels=self.labels,
            annotations=self.annotations,
            created=timestamp(self.created),
            status=status,
        )
        if self.owner:
            version = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}.get(self.kind, "example.com/v1")
            owner = {"uid": self.owner, "kind": self.kind, "name": self.owner.removeprefix("uid-")}
            found["metadata"]["ownerReferences"] = [{**owner, "controller": True, "apiVersion": version}]
        if self.deleting:
            found["metadata"]["deletionTimestamp"] = timestamp(self.deleting + 30)
            found["metadata"]["deletionGracePeriodSeconds"] = 30
        return found

    @property
    def pod(self):
        return builders.as_pod(self.json())

    def bind(self, at):
        return replace(self, bound=at)

    def start(self, at):
        return replace(self, started=at, phase="Running", bound=self.bound or at)

    def succeed(self, at):
        return replace(self, ended=at, phase="Succeeded")

    def fail(self, at, code=1, **fields):
        return replace(self, ended=at, phase="Failed", exit_code=code, **fields)

    def delete(self, at, disruption=""):
        return replace(self, deleting=at, disruption=disruption or self.disruption)

    def annotate(self, **annotations):
        found = {f"poseidon.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        return replace(self, annotations={**self.annotations, **found})


def of_job(name, number=0, **fields):
    """A pod of a job."""
    return Life(f"{name}-{number}", owner=f"uid-{name}", **fields)


class Watched:
    """A tracker after its first list, the transitions that it passes on, and what surrounds it."""

    def __init__(self, *lives, now=START, verdicts=None, listed=True, **options):
        self.now = now
        self.passed: list[Observed] = []
        self.verdicts: dict[str, str] = dict(verdicts or {})
        self.evictions: dict[str, str] = {}
        self.queues: dict[str, str] = {}
        self.gang_is_short = False
        metrics = TrackingMetrics(CollectorRegistry())
        self.transitions: AnyTransitions[Observed] = AnyTransitions(
            {"job": JOB, "task": TASK, "replica": REPLICA}, metrics.transitions, metrics.illegal
        )
        self.transitions.listeners.append(self.passed.append)
        self.metrics = metrics
        around = Surroundings(
            lambda uid: self.queues.get(uid, ""),
            lambda uid: self.gang_is_short,
            lambda uid: self.evictions.get(uid, ""),
            lambda owner, kind: self.verdicts.get(owner),
        )
        self.tracker = Tracker(
            frozenset(("poseidon",)), self.transitions.passed, around, now=lambda: self.now, **options
        )
        metrics.show(self.tracker)
        for life in lives:
            self.tracker.observed(life.pod)
        if listed:
            self.tracker.listed({life.uid for life in lives})

    def tell(self, *lives):
        """Each is observed, at the time of its last change."""
        for life in lives:
            times = (life.created, life.bound, life.started, life.ended, life.deleting)
            self.now = max(self.now, *times)
            self.tracker.observed(life.pod)

    def gone(self, life, at=0):
        self.now = max(self.now, at)
        self.tracker.removed(life.pod)

    def at(self, now):
        self.now = now
        self.tracker.sweep()

    def job(self, name):
        (found,) = (job for key, job in self.tracker.jobs.items() if key.name == name)
        return found

    def state(self, name):
        return str(self.job(name).state)

    def path(self, machine, name=""):
        """The states after the first one of a job, or of one of its tasks or pods, with their times."""
        of = {"job": lambda it: it.job, "task": lambda it: it.task, "replica": lambda it: it.pod}[machine]
        return [(str(it.new), it.time - START) for it in self.passed if it.machine == machine and name in ("", of(it))]

    def illegal(self):
        return Counter(
            {
                tuple(sample.labels.values()): sample.value
                for each in self.metrics.illegal.collect()
                for sample in each.samples
            }
        )
