"""A synthetic cluster in a thread, and a scheduler that answers on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import Cluster, ClusterSettings
from poseidon_py.kube.leader.leader_record import LEADER, LeaderRecord
from poseidon_py.util.timestamps import timestamp

Json = dict[str, Any]


class ClusterThread:
    """A cluster whose event loop runs elsewhere, since commands have one of their own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.cluster = Cluster(ClusterSettings(controllers=False, kubelets=False, nodes=1))
        self._run(self.cluster.start())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def stop(self) -> None:
        self._run(self.cluster.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def create(self, obj: Json, namespace: str = "kube-system") -> None:
        async def created() -> None:
            self.cluster.create(obj, namespace)

        self._run(created())

    def token(self, account: str) -> str:
        """Of a ServiceAccount in kube-system, which may nothing yet."""

        async def issued() -> str:
            self.cluster.create(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}, "kube-system"
            )
            return str(self.cluster.http._accounts.issue("kube-system", account)["status"]["token"])

        return str(self._run(issued()))

    def lease(self, record: LeaderRecord | None, name: str = "poseidon", age: float = 0.0, **spec: Any) -> None:
        """`age`: seconds since it was renewed. `record`: of its holder, unless `spec` names another one."""
        renewed = timestamp(time.time() - age)
        holder = record.identity if record is not None else "somebody"
        self.create(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "annotations": {LEADER: record.annotation()} if record else {}},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed} | spec,
            }
        )

    def pod(self, name: str, ports: str) -> None:
        """A pod in kube-system; `ports`: those of this machine that stand for its own."""
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "annotations": {"cluster.poseidon.io/ports": ports}},
                "spec": {"nodeName": "node-00000", "containers": [{"name": "scheduler", "image": "poseidon"}]},
            }
        )


class SchedulerStub:
    """Answers on loopback as a scheduler with an identity does."""

    def __init__(self) -> None:
        self.identity: Json = {"identity": "host_1", "server": "", "in_cluster": False, "version": "0.1.0",
                               "scheduler_names": ["poseidon"]}  # fmt: skip
        self.hosts: list[str] = []
        self.tokens: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.hosts.append(self.headers["Host"])
                stub.tokens += self.headers.get_all("Authorization", [])
                body = stub.identity if self.path == "/identity" else {"path": self.path}
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def world() -> Iterator[ClusterThread]:
    running = ClusterThread()
    yield running
    running.stop()


@pytest.fixture
def stub() -> Iterator[SchedulerStub]:
    running = SchedulerStub()
    yield running
    running.stop()


@pytest.fixture
def kubeconfig(world: ClusterThread, tmp_path: Path) -> Callable[..., str]:
    """Writes one for the cluster. `token`: of its user."""

    def write(token: str = "") -> str:
        file = tmp_path / "kubeconfig"
        text = world.cluster.kubeconfig()
        file.write_text(text.replace("user: {}", f"user: {{token: {token}}}") if token else text)
        return str(file)

    return write
