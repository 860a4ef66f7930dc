"""Jobs as a scheduler observes them: outcomes, `poseidon jobs`, hooks, and another process that takes over."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.jobs.test_hooks import KEY, BillingEndpoint, endpoint
from tests.e2e.objects import node, pod, taint
from tests.e2e.preemption import HIGH, LOW, define_priorities, ranked
from tests.e2e.processes import POSEIDON, Scheduler, run
from tests.e2e.test_queues import eventually
from tests.e2e.test_restarts import LEASE

__all__ = ["endpoint"]

pytestmark = pytest.mark.e2e

Schedule = Callable[..., Scheduler]
GANG = {"poseidon.io/gang": "2", "poseidon.io/gang-name": "team"}
"""Pods of one job without an owner."""


def when(seconds: float) -> str:
    """A time, that long from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def report(backend: Backend, name: str, phase: str, *, started: float = -60, code: int = 0) -> None:
    """Writes the status of a pod as a kubelet does. `started`: seconds from now."""
    ran: Json = {"startedAt": when(started)}
    ended = {"terminated": {**ran, "finishedAt": when(0), "exitCode": code, "reason": "Error"}}
    container = {
        "name": "main", "image": "i", "imageID": "i", "restartCount": 0, "ready": phase == "Running",
        "state": {"running": ran} if phase == "Running" else ended,
    }  # fmt: skip
    backend.patch(f"{PODS}/{name}/status", {"status": {"phase": phase, "containerStatuses": [container]}})


def jobs(scheduler: Scheduler, name: str = "") -> dict[str, Any]:
    """By name."""
    arguments = [name] if name else []
    shown = run(*POSEIDON, "jobs", *arguments, "-o", "json", "--address", scheduler.address)
    return {job["name"].removeprefix("default/"): job for job in json.loads(shown.stdout)["jobs"]}


def states(scheduler: Scheduler) -> dict[str, str]:
    return {name: job["state"] for name, job in jobs(scheduler).items()}


def until_states(scheduler: Scheduler, **expected: str) -> None:
    eventually(lambda: states(scheduler) == expected, f"{expected}, not {states(scheduler)}")


def evict(backend: Backend, name: str) -> None:
    """As a client of the eviction API does; then its kubelet ends it."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    backend.api("POST", f"{PODS}/{name}/eviction", body)
    backend.delete(PODS, name)


def a_mixed_day(backend: Backend, scheduler: Scheduler) -> None:
    """A job that succeeds, one that fails, one that is evicted, one that will be, and one that waits."""
    define_priorities(backend)
    backend.create(node("n", cpu="5"), node("m", labels={"kind": "m"}, taints=[taint("kind")], cpu="1"))
    announced = {"annotations": {"poseidon.io/preemption-notice": "30m"}}
    on_m: Json = {"cpu": "1", "nodeSelector": {"kind": "m"}, "tolerations": [{"operator": "Exists"}]}
    user = {"labels": {"poseidon.io/user": "anna"}}
    backend.create(
        pod("good", cpu="1", metadata=user),
        pod("bad", cpu="1"),
        pod("evicted", cpu="1"),
        ranked("noticed", LOW, metadata=announced, **on_m),
        *(pod(f"team-{number}", cpu="1", metadata={"annotations": GANG}) for number in range(2)),
        pod("big", cpu="100"),
    )
    backend.until_bound(6)
    for name in ("good", "bad", "evicted", "noticed", "team-0", "team-1"):
        report(backend, name, "Running")
    until_states(
        scheduler, good="Running", bad="Running", evicted="Running", noticed="Running", team="Running", big="Pending"
    )
    report(backend, "good", "Succeeded")
    report(backend, "bad", "Failed", code=3)
    evict(backend, "evicted")
    backend.create(ranked("urgent", HIGH, **on_m))


AFTERWARDS = {
    "good": "Succeeded",
    "bad": "Failed",
    "evicted": "Stopped",
    "noticed": "WillEvicted",
    "team": "Running",
    "urgent": "Privileged",
    "big": "Pending",
}


def test_states_statistics_and_reasons(backend: Backend, schedule: Schedule) -> None:
    scheduler = schedule()
    a_mixed_day(backend, scheduler)
    until_states(scheduler, **AFTERWARDS)
    found = jobs(scheduler)
    assert (found["good"]["user"], found["bad"]["user"]) == ("anna", "default")
    assert found["bad"]["reason"] == "Error (exit code 3)"
    assert found["noticed"]["preempted_by"] == "default/urgent"
    assert found["team"]["pods"] == {"Running": 2}
    assert found["team"]["kind"] == "PodGroup"
    good = jobs(scheduler, "good")["good"]
    assert (good["statistics"]["succeeded"], good["statistics"]["waits"]["count"]) == (1, 1)
    (replica,) = good["replicas"]
    assert replica["state"] == "Succeeded"
    started, ended = (datetime.fromisoformat(replica[key]) for key in ("started", "ended"))
    assert good["statistics"]["run_seconds"] == (ended - started).total_seconds()
    evicted = jobs(scheduler, "default/evicted")["evicted"]
    assert evicted["pods"] == {"Evicted": 1}
    assert evicted["statistics"]["lost_seconds"] == evicted["statistics"]["run_seconds"], "it has no checkpoint"
    (waiting,) = jobs(scheduler, "big")["big"]["waiting"]
    assert waiting == {
        "pod": "default/big",
        "why": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {kind: }.",
    }
    table = run(*POSEIDON, "jobs", "--state", "failed", "--address", scheduler.address).stdout
    assert "default/bad" in table
    assert "default/good" not in table
    missing = run(*POSEIDON, "jobs", "goood", "--address", scheduler.address)
    assert missing.returncode == 1
    assert missing.stderr == "error: job goood not found; did you mean good?\n"
    assert scheduler.metric("poseidon_queue_pods_ended_total") == 3
    assert scheduler.status()["outcomes"] == {"succeeded": 1, "failed": 1, "removed": 1}


def test_another_process_finds_the_same_states(backend: Backend, schedule: Schedule) -> None:
    """But for a job whose pods are all gone."""
    first = schedule()
    a_mixed_day(backend, first)
    until_states(first, **AFTERWARDS)
    shown = jobs(first)
    first.expected = {-signal.SIGKILL}
    first.end(signal.SIGKILL)
    second = schedule()
    until_states(second, **{name: state for name, state in AFTERWARDS.items() if name != "evicted"})
    again = jobs(second)
    for name, job in again.items():
        for key in ("pods", "ended", "user", "kind", "reason", "created", "eviction_time"):
            assert job[key] == shown[name][key]


@pytest.fixture
def hooks_file(endpoint: BillingEndpoint, tmp_path: Path) -> Path:
    (tmp_path / "billing.key").write_bytes(KEY)
    hook = {
        "name": "billing",
        "url": endpoint.url,
        "on": [
            {"machine": "job"},
            {"machine": "replica", "after": "Running"},
            {"machine": "replica", "before": "Running"},
        ],
        "secret": {"file": "billing.key"},
        "retry": {"attempts": 1000, "first": 0.05, "longest": 0.2},
    }
    path = tmp_path / "hooks.yaml"
    path.write_text(yaml.safe_dump({"namespace": "default", "hooks": [hook]}))
    return path


def test_hooks_get_every_transition_also_of_a_leader_that_is_killed(
    backend: Backend, schedule: Schedule, endpoint: BillingEndpoint, hooks_file: Path
) -> None:
    """While the endpoint is closed a pod starts and ends; the leader is killed, and the other one goes on."""
    backend.create(node("n", cpu="8"))
    leader = schedule(*LEASE, "--hooks", str(hooks_file))
    leader.until_says("leading: ")
    standby = schedule(*LEASE, "--hooks", str(hooks_file))
    standby.until_says(r"the leader is \S+")
    backend.create(pod("p", cpu="1"))
    backend.until_bound(1)
    report(backend, "p", "Running", started=0)
    endpoint.until_seen(("replica", "p", "Running"), ("job", "p", "Running"))
    endpoint.closed = True
    backend.create(pod("q", cpu="1"))
    backend.until_bound(2)
    report(backend, "q", "Running", started=0)
    endpoint.until_refused()
    report(backend, "p", "Failed", started=0, code=1)
    until_states(leader, p="Failed", q="Running")
    leader.expected = {-signal.SIGKILL}
    leader.end(signal.SIGKILL)
    report(backend, "q", "Succeeded", started=0)
    standby.until_says("leading: ")
    endpoint.closed = False
    endpoint.until_seen(("replica", "q", "Running"), ("replica", "q", "Succeeded"), ("job", "q", "Succeeded"))
    endpoint.until_seen(("replica", "p", "Failed"), ("job", "p", "Failed"))
    assert endpoint.forged == 0
    for name, end in (("p", "Failed"), ("q", "Succeeded")):
        path = [(before, after) for it, before, after in endpoint.seen("job") if it == name]
        assert path == [("", "Pending"), ("Pending", "Running"), ("Running", end)]
        assert (name, "Bound", "Running") in endpoint.seen("replica")
    assert endpoint.ledger.usage(time.time())["incomplete"] == []


def test_hooks_get_the_states_of_a_delayed_preemption(
    backend: Backend, schedule: Schedule, endpoint: BillingEndpoint, hooks_file: Path
) -> None:
    define_priorities(backend)
    backend.create(node("n", cpu="1"))
    scheduler = schedule("--hooks", str(hooks_file))
    announced = {"annotations": {"poseidon.io/preemption-notice": "30m"}}
    backend.create(ranked("victim", LOW, cpu="1", metadata=announced))
    backend.until_bound(1)
    report(backend, "victim", "Running", started=0)
    until_states(scheduler, victim="Running")
    backend.create(ranked("preemptor", HIGH, cpu="1"))
    endpoint.until_seen(("job", "victim", "WillEvicted"), ("job", "preemptor", "Privileged"))
    backend.delete(PODS, "preemptor")
    until_states(scheduler, victim="Running", preemptor="Stopped")
    report(backend, "victim", "Succeeded", started=0)
    endpoint.until_seen(("job", "victim", "Succeeded"))
    path = [(before, after) for name, before, after in endpoint.seen("job") if name == "victim"]
    running, will = "Running", "WillEvicted"
    assert path == [("", "Pending"), ("Pending", running), (running, will), (will, running), (running, "Succeeded")]
