"""Cluster and scheduler as separate processes, as in production, that are started and stopped together.

async with Stack(...) as stack:
    await stack.start_cluster(); ...; await stack.start_scheduler()

The folder with the kubeconfig and the logs is removed at the end, also after an error, unless it is to be kept. That of
a process that is killed is removed by the next one.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp
import orjson

from benchmarks.cluster import NodeShape
from benchmarks.demo.children import Child
from benchmarks.demo.evidence import get
from benchmarks.demo.workload import POOL_LABEL
from poseidon_py.kube import credentials
from poseidon_py.kube.client import MERGE_PATCH, Kube
from poseidon_py.util.process.private_folder import PrivateFolder
from poseidon_py.util.tasks import end_tasks

_START_SECONDS = 600.0
"""For a machine that is slow or busy: a process that fails to start ends at once."""
_ANSWER_SECONDS = 20.0
_TAINTS_AT_ONCE = 32
_ERROR = re.compile(r' level=error .*?msg=(".*")$')
"""A line of the log, with its message as a JSON string."""


class Stack:
    """The processes of a demo or a benchmark. `kube` is a client of the API server."""

    def __init__(self) -> None:
        self._private = PrivateFolder("poseidon-demo-")
        self.folder = self._private.path
        self.kubeconfig = self.folder / "kubeconfig"
        self.cluster: Child | None = None
        self.scheduler: Child | None = None
        self.health_port = 0
        self._kube: Kube | None = None

    @property
    def kube(self) -> Kube:
        """The client of the API server; connect() must have been called."""
        assert self._kube is not None
        return self._kube

    @property
    def health_url(self) -> str:
        """Where the scheduler serves health, metrics and status."""
        return f"http://127.0.0.1:{self.health_port}"

    async def __aenter__(self) -> Stack:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops all processes, the scheduler first. Idempotent."""
        try:
            if self._kube is not None:
                await self._kube.close()
            for child in (self.scheduler, self.cluster):
                if child is not None:
                    await child.stop()
        finally:
            self._private.remove()

    def keep_logs(self) -> None:
        """The folder with the logs of all processes outlives this process."""
        self._private.keep()

    async def start_cluster(self, nodes: int, shapes: Sequence[NodeShape], seed: int) -> None:
        """Starts a synthetic cluster and taints its nodes. Raises ChildError."""
        arguments = ["benchmarks.cluster", "--nodes", str(nodes), "--port", "0", "--seed", str(seed)]
        arguments += ["--kubeconfig-out", str(self.kubeconfig)]
        for shape in shapes:
            arguments += ["--shape", shape_argument(shape)]
        self.cluster = Child("the synthetic cluster", arguments, self.folder / "cluster.log")
        await self.cluster.start()
        await self.cluster.until(lambda: self.kubeconfig.exists() and bool(self.kubeconfig.read_text()), _START_SECONDS)
        await self.connect(self.kubeconfig)
        for shape in shapes:
            if shape.taints:
                await self._taint(shape)

    async def connect(self, kubeconfig: Path, concurrency: int = 32) -> None:
        """Connects `kube` to the API server that `kubeconfig` names."""
        self._kube = Kube(await credentials.load(kubeconfig, None), concurrency)
        await self._kube.start()

    async def start_scheduler(
        self,
        kubeconfig: Path,
        scheduler: str,
        policy: str,
        flags: Sequence[str] = (),
    ) -> None:
        """Starts `poseidon run` and waits until it is ready. Raises ChildError."""
        self.health_port = free_port()
        arguments = ["poseidon_py", "run", "--kubeconfig", str(kubeconfig), "--scheduler-name", scheduler]
        arguments += ["--lease-name", scheduler]  # another scheduler in the cluster has one of its own
        arguments += ["--health-port", str(self.health_port), *(["--policy", policy] if policy else []), *flags]
        self.scheduler = Child("the scheduler", arguments, self.folder / "scheduler.log")
        await self.scheduler.start()
        ready = asyncio.create_task(self._answers_readyz(), name="ready")
        try:
            await self.scheduler.until(ready.done, _START_SECONDS)
        finally:
            await end_tasks(ready)

    async def start_other(self, command: Sequence[str]) -> None:
        """Starts another scheduler, whose readiness only its first bind shows."""
        self.scheduler = Child("the scheduler", command[1:], self.folder / "scheduler.log", command[:1])
        await self.scheduler.start()

    async def scheduler_status(self) -> dict[str, object]:
        """The scheduler's status; {} if it does not answer."""
        with suppress(aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError):
            found = orjson.loads(await get(f"{self.health_url}/status", _ANSWER_SECONDS))
            return found if isinstance(found, dict) else {}
        return {}

    def complaints(self) -> list[str]:
        """The errors that the scheduler and its flow service have logged, each line once."""
        lines = (self.folder / "scheduler.log").read_text(errors="replace").splitlines()
        found = (_ERROR.search(line) for line in lines)
        return list(dict.fromkeys(json.loads(each[1]) for each in found if each is not None))

    async def _answers_readyz(self) -> None:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError, OSError):  # it does not listen yet, or is not ready
                await get(f"{self.health_url}/readyz", _ANSWER_SECONDS)
                return
            await asyncio.sleep(0.05)

    async def _taint(self, shape: NodeShape) -> None:
        """Taints the nodes of a shape through the API: the cluster's command line has no taints."""
        pool = shape.labels[POOL_LABEL]
        page = await self.kube.page("/api/v1/nodes", {"labelSelector": f"{POOL_LABEL}={pool}"})
        names = [node["metadata"]["name"] for node in orjson.loads(page)["items"]]
        body = orjson.dumps({"spec": {"taints": [dict(taint) for taint in shape.taints]}})
        for first in range(0, len(names), _TAINTS_AT_ONCE):
            calls = (
                self.kube.call("PATCH", f"/api/v1/nodes/{name}", body, MERGE_PATCH)
                for name in names[first : first + _TAINTS_AT_ONCE]
            )
            await asyncio.gather(*calls)


def shape_argument(shape: NodeShape) -> str:
    """A node shape in the form of `--shape`, which has no taints."""
    parts = [f"cpu={shape.cpu}", f"memory={shape.memory}", f"pods={shape.pods}", f"weight={shape.weight}"]
    parts += [f"{name}={amount}" for name, amount in shape.extended.items()]
    parts += [f"label:{name}={value}" for name, value in shape.labels.items()]
    parts += [f"device:{name}={count}" for name, count in shape.devices]
    return ",".join(parts)


def free_port() -> int:
    """A TCP port that is free at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
