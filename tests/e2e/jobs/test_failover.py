"""A controller of jobs that stops, and one that stands by."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.api import View
from tests.e2e.backends import PODS, Backend
from tests.e2e.jobs.manifests import BATCH, Start, command, job, phase, policy, task, until_phase, until_pods
from tests.e2e.test_restarts import LEASE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_successor_continues_where_the_controller_stopped(
    backend: Backend, jobs: View, start: Start, number: int
) -> None:
    first = start()
    policies = [policy("RestartJob", "PodEvicted"), policy("AbortJob")]
    backend.create(job("j", task("w", 4), policies=policies, maxRetry=9))
    until_pods(backend, *(f"j-w-{at}" for at in range(4)))
    phase(backend, "Running", *(f"j-w-{at}" for at in range(4)))
    until_phase(jobs, "j", "Running", running=4)
    backend.create(command("j", "RestartJob"))
    jobs.until(lambda items: items[0]["status"].get("retryCount") == 1, "the restart")
    first.end(number)  # somewhere in the restart
    start()
    until_pods(backend, *(f"j-w-{at}" for at in range(4)), job_version="1")
    phase(backend, "Running", *(f"j-w-{at}" for at in range(4)))
    second = until_phase(jobs, "j", "Running", running=4, retryCount=1)
    assert second["status"]["version"] == 1


def test_what_happens_while_no_controller_runs_has_its_effect(backend: Backend, jobs: View, start: Start) -> None:
    first = start()
    policies = [policy("RestartJob", "PodEvicted"), policy("AbortJob")]
    backend.create(job("evicted", policies=policies), job("failed", policies=policies))
    names = [f"{name}-w-{at}" for name in ("evicted", "failed") for at in range(2)]
    until_pods(backend, *names)
    phase(backend, "Running", *names)
    until_phase(jobs, "evicted", "Running", running=2)
    until_phase(jobs, "failed", "Running", running=2)
    first.end(signal.SIGKILL)
    backend.delete(PODS, "evicted-w-1")
    phase(backend, "Failed", "failed-w-0")
    start()
    until_phase(jobs, "failed", "Aborted", failed=1)
    until_phase(jobs, "evicted", "Pending", pending=2, version=1, retryCount=1)


def test_the_other_replica_takes_over(backend: Backend, jobs: View, start: Start) -> None:
    lease = (*LEASE, "--lease-name", "poseidon-jobs")
    leader = start(*lease)
    leader.until_says("leading: ")
    standby = start(*lease)
    standby.until_says("the leader is ")
    backend.create(job("j"))
    until_pods(backend, "j-w-0", "j-w-1")
    leader.end(signal.SIGKILL)
    phase(backend, "Running", "j-w-0", "j-w-1")
    until_phase(jobs, "j", "Running", running=2)
    standby.until_says("leading: ")


def test_it_stands_by_while_volcanos_controller_is_at_work(backend: Backend, jobs: View, start: Start) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "vc-controller-manager", "namespace": "kube-system"},
        "spec": {
            "holderIdentity": "volcano-controllers-0",
            "leaseDurationSeconds": 1,
            "renewTime": "2999-01-01T00:00:00.000000Z",
        },
    }
    backend.create(lease)
    waiting = start()
    waiting.until_says("standing by: Volcano's controller is at work .volcano-controllers-0 renews lease")
    backend.create(job("j"))
    waiting.until_says("no other controller of jobs is at work")  # the lease is not renewed
    until_pods(backend, "j-w-0", "j-w-1")
    (found,) = jobs.until(lambda items: [i for i in items if i.get("status", {}).get("pending") == 2])
    changed = found["status"] | {"state": {"phase": "Running"}, "version": 7}
    backend.api("PATCH", f"{BATCH}/j/status", {"status": changed}, "application/merge-patch+json")
    waiting.until_says(r"standing by: the status of job default/j was changed from Pending .* to Running \(version 7")
