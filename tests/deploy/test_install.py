"""Helm installs, upgrades, tests, rolls back and uninstalls the chart, on the synthetic cluster, which judges the
scheduler's token by RBAC. Pods run as processes (pod_processes.py). In the thorough profile alone.
"""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy.generate import CHART
from poseidon_py.app.serving.certificate import _self_signed
from poseidon_py.kube.leader.leader_record import LEADER
from tests.deploy.pod_processes import Json, PodProcess, why_not
from tests.e2e.api import Api, ApiError, View
from tests.e2e.objects import node, pod
from tests.e2e.processes import POSEIDON, Process, environment
from tests.effort import NO_HELM, THOROUGH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not THOROUGH, reason="make test-thorough runs it"),
    pytest.mark.timeout(300),
]

NAMESPACE = "kube-system"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.poseidon.io"
ONE = (
    "--set=replicaCount=1",
    "--set=updateStrategy.type=Recreate",
    '--set-json=podAnnotations={"cluster.poseidon.io/ports":"10271"}',
    '--set-json=access.kubectl=[{"kind":"ServiceAccount","name":"asks","namespace":"kube-system"}]',
)
"""Pods share the network of this machine, so one at a time has its ports. An account may ask the scheduler."""


@dataclass
class Installation:
    """A cluster, a Helm, and the pods that run."""

    helm: Path
    folder: Path
    kubeconfig: Path
    certificate: Path
    api: Api
    running: dict[str, PodProcess] = field(default_factory=dict)

    def run(self, *arguments: str) -> str:
        command = [str(self.helm / "helm"), *arguments, f"--namespace={NAMESPACE}", f"--kubeconfig={self.kubeconfig}"]
        home = {"HELM_CACHE_HOME": f"{self.folder}/cache", "HELM_CONFIG_HOME": f"{self.folder}/config"}
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=environment() | home
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def run_pods(self, count: int) -> list[PodProcess]:
        """Ends the processes of pods that are gone, binds those of the chart, and runs them until they are ready."""
        view = View(self.api, PODS)
        try:
            view.until(lambda pods: len(active(pods)) == count, f"{count} pods of the chart")
            pods = {item["metadata"]["name"]: item for item in active(list(view.objects.values()))}
        finally:
            view.stop()
        for name in set(self.running) - set(pods):
            assert self.running.pop(name).process.end() == 0
        for name, item in pods.items():
            if name not in self.running:
                if not item["spec"].get("nodeName"):
                    self.bind(name)
                self.running[name] = PodProcess(self.api, self.api.url, self.certificate, item, self.folder)
        for each in self.running.values():
            each.until_ready()
        return list(self.running.values())

    def bind(self, name: str) -> None:
        """As kube-scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": "n0"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.api("POST", f"{PODS}/{name}/binding", body)

    def until_bound(self, name: str) -> None:
        view = View(self.api, "/api/v1/namespaces/default/pods")
        try:
            view.until(lambda pods: [p for p in pods if p["metadata"]["name"] == name and p["spec"].get("nodeName")])
        finally:
            view.stop()

    def leader(self) -> str:
        """Who leads, as `kubectl poseidon status` finds out with the rights that the chart gives to those who ask."""
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        metadata = {"name": "asks"}
        self.api("POST", account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.api("POST", f"{account}/asks/token", request)["status"]["token"]
        kubeconfig = self.folder / "asks"
        kubeconfig.write_text(self.kubeconfig.read_text().replace("user: {}", f"user: {{token: {token}}}"))
        command = [sys.executable, "-c", "from poseidon_py.cli.shell.kubectl import main; main()", "status", "--json"]
        ran = subprocess.run(
            [*command, f"--kubeconfig={kubeconfig}"], capture_output=True, text=True, check=False, timeout=120,
            env=environment(),
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (0, "")
        return str(json.loads(ran.stdout)["leader"])

    def test_pod(self) -> None:
        """`helm test`, whose pod runs once the scheduler has placed it."""
        helm = Process([str(self.helm / "helm"), "test", "poseidon", f"--namespace={NAMESPACE}",
                        f"--kubeconfig={self.kubeconfig}", "--timeout=60s"], self.folder / "helm-test.log")  # fmt: skip
        view = View(self.api, PODS)
        try:
            (found,) = view.until(
                lambda pods: [
                    p for p in pods if p["metadata"]["name"] == "poseidon-test" and p["spec"].get("nodeName")
                ],
                "the test's pod on a node",
            )
        finally:
            view.stop()
        process = PodProcess(self.api, self.api.url, self.certificate, found, self.folder)
        assert process.finish() == 0, process.process.output
        assert "ok" in process.process.output
        assert helm.wait() == 0, helm.output


def active(pods: list[Json]) -> list[Json]:
    """Pods of the chart's Deployments that are not being deleted."""
    return [
        item
        for item in pods
        if item["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "scheduler"
        and "deletionTimestamp" not in item["metadata"]
    ]


@pytest.fixture
def installation(both: Path, tmp_path: Path) -> Iterator[Installation]:
    if problem := why_not():
        pytest.skip(f"{NO_HELM}pods cannot run as processes here: {problem}")
    import datetime

    certificate, kubeconfig = tmp_path / "server.pem", tmp_path / "kubeconfig"
    certificate.write_bytes(_self_signed(datetime.datetime.now(datetime.UTC)))
    cluster = Process(
        [
            *POSEIDON, "cluster", "--nodes=0", "--port=0", f"--tls={certificate}", str(certificate),
            f"--kubeconfig-out={kubeconfig}",
        ],
        tmp_path / "cluster.log",
    )  # fmt: skip
    url = cluster.until_says(r"synthetic cluster .* at (\S+)")[1]
    api = Api(url, tls=ssl.create_default_context(cafile=str(certificate)))
    api.many("POST", [("/api/v1/nodes", node(f"n{at}", cpu="8")) for at in range(2)])
    installed = Installation(both, tmp_path, kubeconfig, certificate, api)
    yield installed
    for each in installed.running.values():
        each.process.end(signal.SIGTERM)
    cluster.end()


def test_the_life_of_a_release(installation: Installation) -> None:
    it = installation
    notes = it.run("install", "poseidon", str(CHART), *ONE)
    assert "schedules pods with `schedulerName: poseidon`" in notes
    (first,) = it.run_pods(1)
    it.api("POST", "/api/v1/namespaces/default/pods", pod("a"))
    it.until_bound("a")
    lease = it.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/poseidon")
    assert it.leader() == lease["spec"]["holderIdentity"]
    assert json.loads(lease["metadata"]["annotations"][LEADER])["pod"] == f"{NAMESPACE}/{first.name}"
    it.test_pod()

    it.run("upgrade", "poseidon", str(CHART), *ONE, '--set-json=schedulerName=["poseidon","batch"]')
    (second,) = it.run_pods(1)
    assert second.name != first.name
    it.api("POST", "/api/v1/namespaces/default/pods", pod("b", schedulerName="batch"))
    it.until_bound("b")

    it.run("rollback", "poseidon", "1")
    (third,) = it.run_pods(1)
    assert third.name != second.name
    it.api("POST", "/api/v1/namespaces/default/pods", pod("c"))
    it.until_bound("c")
    revisions = json.loads(it.run("history", "poseidon", "--output=json"))
    assert [each["status"] for each in revisions] == ["superseded", "superseded", "deployed"]

    it.run("uninstall", "poseidon")
    it.run_pods(0)
    assert it.api("GET", DEFINITION)["metadata"]["name"] == "queues.poseidon.io"
    with pytest.raises(ApiError, match="404"):
        it.api("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/poseidon")
    it.run("install", "poseidon", str(CHART), *ONE)  # takes the definition over again
    for log in (first, second, third):
        assert "forbidden" not in log.process.output.lower(), log.process.output
