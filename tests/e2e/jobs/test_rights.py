"""The rights that deploy/jobs.yaml grants to `poseidon jobs run`, as test_rights.py has it for the scheduler."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json, View
from tests.e2e.backends import Backend, home_of
from tests.e2e.jobs.manifests import Start, command, job, phase, policy, task, until_phase, until_pods
from tests.e2e.objects import pod
from tests.e2e.real_backend import Real, why_not_real
from tests.e2e.test_restarts import LEASE
from tests.paths import ROOT

MANIFEST = ROOT / "deploy" / "jobs.yaml"
ACCOUNT = "system:serviceaccount:kube-system:poseidon-jobs"
UNSEEN = {("batch.volcano.sh", "jobs/finalizers", "update")}
"""Asked for by an admission plug-in of some servers, not by a request."""


def manifest(*kinds: str) -> list[Json]:
    return [item for item in yaml.safe_load_all(MANIFEST.read_text()) if item["kind"] in kinds]


@pytest.fixture(scope="module", params=["real"])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """A server on which the manifest was applied, whose kubeconfig is that of the manifest's account."""
    if problem := why_not_real():
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("rights")
    real = Real(Path(os.environ["KUBEBUILDER_ASSETS"]), folder, authorization="RBAC", watched=ACCOUNT)
    try:
        for item in yaml.safe_load_all(MANIFEST.read_text()):
            real.api("POST", f"{home_of(item)}?fieldValidation=Strict", item)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        account = "/api/v1/namespaces/kube-system/serviceaccounts/poseidon-jobs"
        token = real.api("POST", f"{account}/token", request)["status"]["token"]
        real.kubeconfig = real.kubeconfig_with(token, folder / "account")
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
        assert refused == set(), "the manifest does not allow what is needed"
    rules = [rule for role in manifest("ClusterRole", "Role") for rule in role["rules"]]
    granted = {each for r in rules for each in itertools.product(r["apiGroups"], r["resources"], r["verbs"])}
    assert {grant(what, verb) for verb, what, _ in asked} == granted - UNSEEN


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


def test_a_namespace_that_demands_restricted_pods_takes_the_controller(backend: Backend) -> None:
    metadata = {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    backend.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    (deployment,) = manifest("Deployment")
    template = deployment["spec"]["template"]
    item = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "p", **template["metadata"]}}
    backend.api("POST", "/api/v1/namespaces/strict/pods?dryRun=All", item)
