"""An installed chart: Helm acts on an API server, and the pods run as processes (pod_processes.py)."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.pod_processes import Json, PodProcess
from tests.e2e.api import Api, View
from tests.e2e.processes import Process, environment

NAMESPACE = "kube-system"
"""That of the lease, and of releases that are given no other."""


@dataclass
class Installation:
    """A cluster, a folder with helm and kubectl, and the pods that run."""

    tools: Path
    folder: Path
    kubeconfig: Path
    certificate: Path
    api: Api
    running: dict[str, PodProcess] = field(default_factory=dict)
    namespace: str = NAMESPACE

    @property
    def pods(self) -> str:
        """The path of the pods of the release's namespace."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def helm(self, *arguments: str) -> str:
        return self._run("helm", *arguments, f"--namespace={self.namespace}")

    def kubectl(self, *arguments: str) -> str:
        return self._run("kubectl", *arguments)

    def _run(self, tool: str, *arguments: str) -> str:
        ran = subprocess.run(
            self._command(tool, *arguments), capture_output=True, text=True, check=False, timeout=120, env=environment()
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def _command(self, tool: str, *arguments: str) -> list[str]:
        """With a home, which Helm wants to look into."""
        return ["env", f"HOME={self.folder}", str(self.tools / tool), *arguments, f"--kubeconfig={self.kubeconfig}"]

    def run_pods(self, count: int) -> list[PodProcess]:
        """Ends the processes of pods that are gone, binds those of the chart, and runs them until they are ready."""
        self.control(count)
        view = View(self.api, self.pods)
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

    def control(self, count: int) -> None:
        """Creates and deletes pods as the controllers of the cluster do; here they run in it."""

    def bind(self, name: str) -> None:
        """As kube-scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": "n0"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.api("POST", f"{self.pods}/{name}/binding", body)

    def until_bound(self, name: str) -> None:
        view = View(self.api, "/api/v1/namespaces/default/pods")
        try:
            view.until(lambda pods: [p for p in pods if p["metadata"]["name"] == name and p["spec"].get("nodeName")])
        finally:
            view.stop()

    def token_of(self, account: str) -> str:
        """Of a ServiceAccount, which is created."""
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.api("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.api("POST", f"{accounts}/{account}/token", request)["status"]["token"]
        return token

    def test_pod(self) -> None:
        """`helm test`."""
        command = self._command("helm", "test", "poseidon", f"--namespace={self.namespace}", "--timeout=60s")
        helm = Process(command, self.folder / "helm-test.log")
        self.run_test_pod()
        assert helm.wait() == 0, helm.output

    def run_test_pod(self) -> None:
        """Runs the pod of `helm test`, once the scheduler has placed it."""
        view = View(self.api, self.pods)
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

    def stop(self) -> None:
        for each in self.running.values():
            each.process.end(signal.SIGTERM)


def active(pods: list[Json]) -> list[Json]:
    """Pods of the chart's Deployments that are not being deleted."""
    return [
        item
        for item in pods
        if item["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "scheduler"
        and "deletionTimestamp" not in item["metadata"]
    ]
