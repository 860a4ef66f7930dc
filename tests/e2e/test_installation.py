"""The chart and the kustomize base on an API server with RBAC: from nothing to the first pod that is bound, who gets
answers from the pod's ports, and the life of a release. tests/deploy/test_install.py has the same on the synthetic
cluster.

No controllers and no kubelets run: the test creates the pod of the Deployment, and runs it as a process.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from deploy.generate import CHART, KUSTOMIZE
from deploy.kustomize_files import template
from poseidon_py.kube.leader.leader_record import LEADER
from tests.deploy.conftest import both, newest  # noqa: F401
from tests.deploy.installation import NAMESPACE, Installation, active
from tests.deploy.pod_processes import why_not
from tests.deploy.test_chart import EVERYTHING
from tests.e2e.api import PATIENCE, Api, ApiError, Json
from tests.e2e.backends import PODS
from tests.e2e.conftest import judge_output
from tests.e2e.objects import node, pod
from tests.e2e.real_backend import Real, why_not_real
from tests.e2e.rights_by_feature.world import eventually
from tests.effort import NO_HELM, NO_SERVER

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("installation"),  # the ports of a pod are those of the machine
]

HEALTH, SECURE = 10271, 10273
RESTRICTED = "poseidon-system"
"""A namespace in which the server admits pods of the restricted Pod Security Standard alone."""
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS = (
    "serviceaccounts,configmaps,services,deployments,poddisruptionbudgets,networkpolicies,roles,rolebindings,"
    "clusterroles,clusterrolebindings,customresourcedefinitions,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings"
)
_ADDED_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_OF_TOOLS = ("meta.helm.sh/", "helm.sh/", "kubectl.kubernetes.io/", "app.kubernetes.io/managed-by")


@dataclass
class OnServer(Installation):
    """With the one pod that the ports of this machine allow."""

    first_record: int = 0
    """Number of the first record of its requests in the audit log."""
    schemas: bool = True
    """Whether the server has schemas for tools: one that was built with another version of Go may not."""
    ended: list[str] = field(default_factory=list)
    """What the pods that have ended have written."""

    def helm(self, *arguments: str) -> str:
        checks = arguments[0] in ("install", "upgrade") and not self.schemas
        return super().helm(*arguments, *(["--disable-openapi-validation"] if checks else []))

    def control(self, count: int) -> None:
        """The pod of the Deployment, in its present form; pods of former ones are deleted."""
        deployment = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/poseidon"
        form: Json = self.api("GET", deployment)["spec"]["template"] if count else {}
        name = "poseidon-" + hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:10]
        found = {item["metadata"]["name"] for item in active(self.api("GET", self.pods)["items"])}
        current = {each for each in found if count and each.startswith(name)}
        for gone in found - current:
            self.api("DELETE", f"{self.pods}/{gone}?gracePeriodSeconds=0")
            if gone in self.running:
                self.ended.append(self.running[gone].process.output)
        if count and not current:
            metadata = {**form["metadata"], "name": f"{name}-{len(self.ended)}", "namespace": self.namespace}
            self.api("POST", self.pods, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": form["spec"]})

    def test_pod(self) -> None:
        if self.schemas:
            super().test_pod()
        else:  # `helm test` has no flag to go without
            self.api("POST", self.pods, yaml.safe_load(self.helm("get", "hooks", "poseidon")))
            self.run_test_pod()
        self.api("DELETE", f"{self.pods}/poseidon-test?gracePeriodSeconds=0")

    def apply(self, way: str) -> None:
        if way == "helm":
            assert "schedules pods with `schedulerName: poseidon`" in self.helm("install", "poseidon", str(CHART))
        else:
            flags = [] if self.schemas else ["--validate=ignore"]
            self.kubectl("apply", "-k", str(KUSTOMIZE / "base"), *flags)

    def remove(self, way: str) -> None:
        """All, with what uninstalling leaves."""
        if way == "helm":
            self.helm("uninstall", "poseidon", "--ignore-not-found")
            self.api("DELETE", f"{_DEFINITIONS}/queues.poseidon.io")
        else:
            self.kubectl("delete", "-k", str(KUSTOMIZE / "base"))
        self.run_pods(0)

    def objects(self) -> dict[str, Json]:
        """Those of the installation, without what the server and the tools write into them."""
        chosen = ("-A", "-l", "app.kubernetes.io/name=poseidon", "-o", "json")
        found = json.loads(self.kubectl("get", _KINDS, *chosen))["items"]
        return {"/".join((item["kind"], item["metadata"]["name"])): self._plain(item) for item in found}

    def _plain(self, item: Json) -> Json:
        metadata = {key: value for key, value in item["metadata"].items() if key not in _ADDED_BY_SERVER}
        for key in ("labels", "annotations"):
            remaining = {name: value for name, value in metadata.pop(key, {}).items() if not name.startswith(_OF_TOOLS)}
            metadata |= {key: remaining} if remaining else {}
        body = {key: value for key, value in item.items() if key not in ("metadata", "status")}
        if item["kind"] == "Service":
            body["spec"] = {key: value for key, value in body["spec"].items() if not key.startswith("clusterIP")}
        return {"metadata": metadata, **body}


@pytest.fixture(scope="module", params=["real"])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """With RBAC, two nodes, and an empty namespace."""
    if problem := why_not_real():
        pytest.skip(NO_SERVER + problem)
    if problem := why_not():
        pytest.skip(f"{NO_HELM}pods cannot run as processes here: {problem}")
    folder = tmp_path_factory.mktemp("installation")
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    real = Real(assets, folder, authorization="RBAC", watched_group="system:serviceaccounts")
    try:
        real.create(*(node(f"n{at}", cpu="8") for at in range(2)))
        metadata = {"name": RESTRICTED, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
        real.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        eventually(lambda: answers(real, "/openapi/v2"), "schemas, by which the tools check what they send")
        yield real
    finally:
        real.close()


def installation(server: Real, tools: Path, folder: Path, namespace: str = NAMESPACE) -> OnServer:
    api = server.api
    connection = api.connect(PATIENCE)
    kind = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    try:
        connection.request("GET", "/openapi/v2", headers={"Authorization": f"Bearer {api.token}", "Accept": kind})
        schemas = connection.getresponse().status == 200
    finally:
        connection.close()
    records = len(server.audited())
    return OnServer(
        tools, folder, server.kubeconfig, server.certificate, api,
        namespace=namespace, first_record=records, schemas=schemas,
    )  # fmt: skip


def nothing_was_refused(server: Real, it: OnServer) -> None:
    """Since the installation began."""
    refused = [
        (entry["user"]["username"], entry["verb"], entry["requestURI"])
        for entry in server.audited()[it.first_record :]
        if entry["responseStatus"]["code"] in (401, 403)
    ]
    assert refused == []


# -- from nothing ----------------------------------------------------------------------------------------------------


def test_from_nothing_to_the_first_pod(server: Real, newest: Path, tmp_path: Path) -> None:  # noqa: F811
    """By Helm and by kustomize, with the same objects."""
    found = []
    for way in ("helm", "kustomize"):
        it = installation(server, newest, tmp_path / way)
        it.folder.mkdir()
        server.create(pod(f"first-{way}"))  # before there is a scheduler
        it.apply(way)
        found.append(it.objects())
        try:
            (running,) = it.run_pods(1)
            it.until_bound(f"first-{way}")
        finally:
            it.stop()
        judge_output(running.process.output)
        nothing_was_refused(server, it)
        it.remove(way)
        assert it.objects() == {}
    assert found[0].keys() >= {"Deployment/poseidon", "Role/poseidon", "ValidatingAdmissionPolicy/poseidon-pods"}
    assert found[0] == found[1]


# -- who gets answers ------------------------------------------------------------------------------------------------

FOR_VIEWERS = ("/identity", "/status", "/explain?pod=default/none", "/gangs", "/queues", "/jobs", "/rebalance")
FOR_NOBODY = ("/configz", "/debug/flags/v")
"""Paths that no role of the chart grants."""
PATHS = (*FOR_VIEWERS, "/metrics", *FOR_NOBODY)


def ask(url: str, token: str = "", method: str = "GET") -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method=method, data=b"{}" if method != "GET" else None)
    try:
        with urllib.request.urlopen(
            request, timeout=PATIENCE, context=context if url.startswith("https") else None
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def codes(token: str) -> dict[str, int]:
    """What the secure port answers to each request."""
    secure = f"https://127.0.0.1:{SECURE}"
    writes = {"/fits": ask(f"{secure}/fits", token, "POST")[0], "v": ask(f"{secure}/debug/flags/v", token, "PUT")[0]}
    return {path: ask(f"{secure}{path}", token)[0] for path in PATHS} | writes


def other_address() -> str:
    """An address of this machine that is not on loopback; empty: it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address = str(probe.getsockname()[0])
    return "" if address.startswith("127.") else address


def test_answers_are_for_those_whom_the_api_server_permits(server: Real, newest: Path, tmp_path: Path) -> None:  # noqa: F811
    it = installation(server, newest, tmp_path)
    metrics = [{"name": "metrics", "namespace": NAMESPACE}]
    viewers = [{"kind": "ServiceAccount", "name": "viewer", "namespace": NAMESPACE}]
    readers = (f"--set-json=metrics.readers={json.dumps(metrics)}", f"--set-json=access.viewers={json.dumps(viewers)}")
    it.helm("install", "poseidon", str(CHART), *readers)
    try:
        (running,) = it.run_pods(1)
        assert set(codes("").values()) == {401}
        assert set(codes("forged").values()) == {401}
        it.api("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account("none"))
        assert set(codes(token("none", it)).values()) == {403}
        # for another audience, whatever its account may do
        it.api("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account("viewer"))
        assert set(codes(token("viewer", it, "vault")).values()) == {401}
        found = codes(token("viewer", it))
        assert {path for path, code in found.items() if code == 403} == {"/metrics", *FOR_NOBODY, "v"}
        assert {found[path] for path in ("/identity", "/status", "/gangs", "/queues", "/jobs")} == {200}
        assert 401 not in found.values()
        it.api("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account("metrics"))
        found = codes(token("metrics", it))
        assert [path for path, code in found.items() if code == 200] == ["/metrics"]
        assert {code for path, code in found.items() if path != "/metrics"} == {403}
        no_longer(it)
        from_other_machines(token("viewer", it))
        judge_output(running.process.output)
        assert "forbidden" not in running.process.output.lower()
        nothing_was_refused(server, it)
    finally:
        it.stop()
        it.remove("helm")


def account(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def token(name: str, it: Installation, *audiences: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [*audiences]}}
    found: str = it.api("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token", request)["status"][
        "token"
    ]
    return found


def no_longer(it: Installation) -> None:
    """A token whose account is deleted. Both servers remember answers: each question has a token of its own."""
    name = "gone"
    it.api("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account(name))
    tokens = [token(name, it) for _ in range(20)]
    assert ask(f"https://127.0.0.1:{SECURE}/metrics", tokens.pop())[0] == 403
    it.api("DELETE", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}")
    while ask(f"https://127.0.0.1:{SECURE}/metrics", tokens.pop())[0] != 401:
        assert tokens, "a token outlives its account"
        time.sleep(0.1)  # the API server's authenticator hears of the deletion by a watch


def from_other_machines(token: str) -> None:
    """The health port has nothing but the probes for these, also with a token; through a proxy likewise."""
    health = f"http://127.0.0.1:{HEALTH}"
    for path in (*FOR_VIEWERS[:2], "/metrics", *FOR_NOBODY):
        assert ask(f"{health}{path}")[0] == 200
    for address in filter(None, [other_address()]):
        assert ask(f"http://{address}:{HEALTH}/readyz") == (200, "ok\n")
        for path in PATHS:
            code, text = ask(f"http://{address}:{HEALTH}{path}", token)
            assert (code, "other machines get nothing but the probes" in text) == (403, True), path
        assert ask(f"http://{address}:{HEALTH}/fits", token, "POST")[0] == 403
        assert ask(f"https://{address}:{SECURE}/status")[0] == 401
        assert ask(f"https://{address}:{SECURE}/status", token)[0] == 200


# -- a restricted namespace ------------------------------------------------------------------------------------------


def pods_of_chart(helm: Path, values: Json) -> dict[str, Json]:
    """The pods of the Deployments, and that of `helm test`, by name."""
    items = template(helm, CHART, values, "--no-hooks=false")
    specs = {item["metadata"]["name"]: item["spec"] for item in items if item["kind"] == "Pod"}
    specs |= {i["metadata"]["name"]: i["spec"]["template"]["spec"] for i in items if i["kind"] == "Deployment"}
    return {
        name: {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
    }


@pytest.mark.parametrize("values", [{}, EVERYTHING | {"hostNetwork": False}], ids=["defaults", "everything"])
def test_the_restricted_standard_admits_every_pod(server: Real, newest: Path, values: Json) -> None:  # noqa: F811
    pods = pods_of_chart(newest / "helm", values)
    assert pods.keys() == {"poseidon", "poseidon-test", *(["poseidon-jobs"] if values else [])}
    path = f"/api/v1/namespaces/{RESTRICTED}/pods"
    assert {name: refusal(server.api, item, path) for name, item in pods.items()} == dict.fromkeys(pods, "")
    host = pods_of_chart(newest / "helm", values | {"hostNetwork": True})["poseidon"]
    assert "violates PodSecurity" in refusal(server.api, host, path)


# -- the life of a release -------------------------------------------------------------------------------------------


def test_the_life_of_a_release_on_a_server(server: Real, both: Path, tmp_path: Path) -> None:  # noqa: F811
    """In a restricted namespace; the lease is in kube-system."""
    it = installation(server, both, tmp_path, RESTRICTED)
    queue = {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 2}}
    try:
        it.helm("install", "poseidon", str(CHART))
        (first,) = it.run_pods(1)
        server.create(pod("a"))
        it.until_bound("a")
        lease = it.api("GET", f"{_LEASES}/poseidon")
        assert json.loads(lease["metadata"]["annotations"][LEADER])["pod"] == f"{it.namespace}/{first.name}"
        it.test_pod()

        it.helm("upgrade", "poseidon", str(CHART), '--set-json=schedulerName=["poseidon","batch"]')
        (second,) = it.run_pods(1)
        assert second.name != first.name
        server.create(pod("b", scheduler="batch"))
        it.until_bound("b")
        misspelt = pod("c", scheduler="batch", metadata={"annotations": {"poseidon.io/gang-mn": "2"}})
        eventually(lambda: refusal(it.api, misspelt), "a policy for pods of both schedulers")
        assert "did you mean poseidon.io/gang-max or poseidon.io/gang-min?" in refusal(it.api, misspelt)
        server.create(queue)  # somebody has to write its status
        eventually(lambda: answers(server, f"{_LEASES}/poseidon-queues-poseidon"), "a lease for queues")

        it.helm("rollback", "poseidon", "1")
        (third,) = it.run_pods(1)
        assert third.name != second.name
        eventually(lambda: not refusal(it.api, misspelt), "a policy for pods of one scheduler")
        server.create(pod("d"))
        it.until_bound("d")
        revisions = json.loads(it.helm("history", "poseidon", "--output=json"))
        assert [each["status"] for each in revisions] == ["superseded", "superseded", "deployed"]
        nothing_was_refused(server, it)

        it.helm("uninstall", "poseidon")  # takes the rights first, then the pods
        it.run_pods(0)
        for output in it.ended:
            judge_output(output)
        assert it.objects().keys() == {"CustomResourceDefinition/queues.poseidon.io"}
        assert it.api("GET", "/apis/poseidon.io/v1/queues/q")["spec"]["weight"] == 2
        it.helm("install", "poseidon", str(CHART))  # takes the definition over again
    finally:
        it.stop()
        it.remove("helm")
        server.delete(PODS, "a", "b", "d")


def refusal(api: Api, item: Json, path: str = PODS) -> str:
    """What the server says about a pod; empty: it accepts it. A policy does not say when it is in force."""
    try:
        api("POST", f"{path}?dryRun=All", item)
    except ApiError as error:
        return error.body
    return ""


def answers(server: Real, path: str) -> bool:
    try:
        server.api("GET", path)
    except ApiError:
        return False
    return True
