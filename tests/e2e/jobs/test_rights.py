"""The rights of the account of `poseidon jobs run`, as test_rights.py has it for the scheduler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.api import Json, View
from tests.e2e.backends import Backend
from tests.e2e.jobs.manifests import Start, command, job, phase, policy, task, until_phase, until_pods
from tests.e2e.objects import pod
from tests.e2e.real_backend import Real, why_not_real
from tests.e2e.rights import REVIEWS, account_with_rights, granted_to
from tests.e2e.test_restarts import LEASE

ACCOUNT = "system:serviceaccount:kube-system:poseidon-jobs"
UNSEEN = {("batch.volcano.sh", "jobs/finalizers", "update")}
"""Asked for by an admission plug-in of some servers, not by a request."""


@pytest.fixture(scope="module", params=["real"])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """A server whose kubeconfig is that of an account with all rights of the table."""
    if problem := why_not_real():
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("rights")
    real = Real(Path(os.environ["KUBEBUILDER_ASSETS"]), folder, authorization="RBAC", watched=ACCOUNT)
    try:
        real.kubeconfig = real.kubeconfig_with(account_with_rights(real, "jobs", "poseidon-jobs"), folder / "account")
        yield real
    finally:
        real.close()


def grant(what: Json, verb: str) -> tuple[str, str, str]:
    """Group, resource and verb of a request."""
    return what.get("apiGroup", ""), "/".join(filter(None, (what["resource"], what.get("subresource")))), verb


def test_exactly_the_needed_requests_are_allowed(server: Real, backend: Backend, jobs: View, start: Start) -> None:
    try:
        do_everything(backend, jobs, start)
    finally:
        asked = [
            (entry["verb"], entry["objectRef"], entry["responseStatus"]["code"])
            for entry in server.audited()
            if entry["user"]["username"] == ACCOUNT and "objectRef" in entry
        ]
        refused = {grant(what, verb) for verb, what, code in asked if code in (401, 403)}
        assert refused == set(), "the rights do not allow what is needed"
    assert {grant(what, verb) for verb, what, _ in asked} == granted_to("jobs") - UNSEEN - REVIEWS


def do_everything(backend: Backend, jobs: View, start: Start) -> None:
    """Causes every kind of request, with two replicas of which the second takes over."""
    lease = (*LEASE, "--lease-name", "poseidon-jobs")
    leader = start(*lease)
    leader.until_says("leading: ")
    standby = start(*lease)
    standby.until_says("the leader is ")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    backend.create(pod("taken-w-0"))
    backend.create(job("taken", task("w", 1)))
    backend.until_event("Refused", "taken", "pod taken-w-0 exists and is not of this job")
    plugins: Json = {"svc": []}
    policies = [policy("RestartPod"), policy("NoAction", "Seen")]
    first = job("j", plugins=plugins, volumes=volumes, policies=policies, ttlSecondsAfterFinished=0, minAvailable=1)
    backend.create(first)
    until_pods(backend, "j-w-0", "j-w-1", "taken-w-0")
    leader.end()
    standby.until_says("leading: ")
    phase(backend, "Running", "j-w-0")
    until_phase(jobs, "j", "Running", running=1, pending=1)
    phase(backend, "Failed", "j-w-1")
    until_phase(jobs, "j", "Running", running=1, pending=1, retryCount=1)
    changed = job("j", task("w", 3, minAvailable=1))["spec"]["tasks"]
    backend.patch("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/j", {"spec": {"tasks": changed}})
    until_pods(backend, "j-w-0", "j-w-1", "j-w-2", "taken-w-0")
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/j"
    backend.patch(path, {"metadata": {"annotations": {"poseidon.io/event": "Seen"}}})
    jobs.until(
        lambda items: [
            item for item in items if item["metadata"]["name"] == "j" and not item["metadata"].get("annotations")
        ]
    )
    backend.create(command("j", "CompleteJob"))
    jobs.until(lambda items: [item["metadata"]["name"] for item in items] == ["taken"], "the deletion of j")
    backend.delete("/api/v1/namespaces/default/persistentvolumeclaims", "j-pvc-0")
