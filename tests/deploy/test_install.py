"""Helm installs, upgrades, tests, rolls back and uninstalls the chart, on the synthetic cluster, which judges the
scheduler's token by RBAC. Pods run as processes (pod_processes.py). In the thorough profile alone.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.generate import CHART
from poseidon_py.app.serving.certificate import _self_signed
from poseidon_py.kube.leader.leader_record import LEADER
from tests.deploy.installation import NAMESPACE, Installation
from tests.deploy.pod_processes import why_not
from tests.e2e.api import Api, ApiError
from tests.e2e.objects import node, pod
from tests.e2e.processes import POSEIDON, Process, environment
from tests.effort import NO_HELM, THOROUGH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not THOROUGH, reason="make test-thorough runs it"),
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("installation"),  # the ports of a pod are those of the machine
]

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.poseidon.io"
ONE = (
    "--set=replicaCount=1",
    "--set=updateStrategy.type=Recreate",
    '--set-json=podAnnotations={"cluster.poseidon.io/ports":"10271"}',
    '--set-json=access.kubectl=[{"kind":"ServiceAccount","name":"asks","namespace":"kube-system"}]',
)
"""Pods share the network of this machine, so one at a time has its ports. An account may ask the scheduler."""


@dataclass
class Release(Installation):
    """On the synthetic cluster, whose kubelets run no processes, but whose API server forwards ports."""

    def leader(self) -> str:
        """Who leads, as `kubectl poseidon status` finds out with the rights that the chart gives to those who ask."""
        kubeconfig = self.folder / "asks"
        kubeconfig.write_text(
            self.kubeconfig.read_text().replace("user: {}", f"user: {{token: {self.token_of('asks')}}}")
        )
        command = [sys.executable, "-c", "from poseidon_py.cli.shell.kubectl import main; main()", "status", "--json"]
        ran = subprocess.run(
            [*command, f"--kubeconfig={kubeconfig}"], capture_output=True, text=True, check=False, timeout=120,
            env=environment(),
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (0, "")
        return str(json.loads(ran.stdout)["leader"])


@pytest.fixture
def installation(both: Path, tmp_path: Path) -> Iterator[Release]:
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
    installed = Release(both, tmp_path, kubeconfig, certificate, api)
    yield installed
    installed.stop()
    cluster.end()


def test_the_life_of_a_release(installation: Release) -> None:
    it = installation
    notes = it.helm("install", "poseidon", str(CHART), *ONE)
    assert "schedules pods with `schedulerName: poseidon`" in notes
    (first,) = it.run_pods(1)
    it.api("POST", "/api/v1/namespaces/default/pods", pod("a"))
    it.until_bound("a")
    lease = it.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/poseidon")
    assert it.leader() == lease["spec"]["holderIdentity"]
    assert json.loads(lease["metadata"]["annotations"][LEADER])["pod"] == f"{NAMESPACE}/{first.name}"
    it.test_pod()

    it.helm("upgrade", "poseidon", str(CHART), *ONE, '--set-json=schedulerName=["poseidon","batch"]')
    (second,) = it.run_pods(1)
    assert second.name != first.name
    it.api("POST", "/api/v1/namespaces/default/pods", pod("b", schedulerName="batch"))
    it.until_bound("b")

    it.helm("rollback", "poseidon", "1")
    (third,) = it.run_pods(1)
    assert third.name != second.name
    it.api("POST", "/api/v1/namespaces/default/pods", pod("c"))
    it.until_bound("c")
    revisions = json.loads(it.helm("history", "poseidon", "--output=json"))
    assert [each["status"] for each in revisions] == ["superseded", "superseded", "deployed"]

    for each in (first, second, third):
        assert "forbidden" not in each.process.output.lower(), each.process.output

    it.helm("uninstall", "poseidon")  # takes the rights first, then the pods
    it.run_pods(0)
    assert it.api("GET", DEFINITION)["metadata"]["name"] == "queues.poseidon.io"
    with pytest.raises(ApiError, match="404"):
        it.api("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/poseidon")
    it.helm("install", "poseidon", str(CHART), *ONE)  # takes the definition over again
