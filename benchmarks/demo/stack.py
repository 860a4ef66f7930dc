"""Cluster and scheduler as separate processes, as in production, that are started and stopped together.

async with Stack(...) as stack:
    await stack.start_cluster(); ...; await stack.start_scheduler()

The folder with the kubeconfig and the logs is removed at the end, also after an error.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp
import orjson

from benchmarks.cluster import NodeShape
from benchmarks.demo.children import Child, ChildError
from benchmarks.demo.workload import POOL_LABEL
from poseidon_py.kube import credentials
from poseidon_py.kube.client import MERGE_PATCH, Kube

_START_SECONDS = 60.0
_COMPILE_SECONDS = 180.0
_TAINTS_AT_ONCE = 32


class Stack:
    """The processes of a demo or a benchmark. `kube` is a client of the API server."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="poseidon-demo-"))
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
            shutil.rmtree(self.folder, ignore_errors=True)

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

    async def start_scheduler(self, kubeconfig: Path, scheduler: str, policy: str, flags: Sequence[str] = ()) -> None:
        """Starts `poseidon run` and waits until it is ready. Raises ChildError."""
        await self._compile()
        self.health_port = free_port()
        arguments = ["poseidon_py", "run", "--kubeconfig", str(kubeconfig), "--scheduler-name", scheduler]
        arguments += ["--health-port", str(self.health_port), *(["--policy", policy] if policy else []), *flags]
        self.scheduler = Child("the scheduler", arguments, self.folder / "scheduler.log")
        await self.scheduler.start()
        ready = asyncio.create_task(self._answers_readyz())
        try:
            await self.scheduler.until(ready.done, _START_SECONDS)
        finally:
            ready.cancel()

    async def _compile(self) -> None:
        """Compiles the searches of the flow service, which preempts no tasks before they are compiled."""
        compiler = Child("the compiler", ["firmament_py.compile_ahead"], self.folder / "compiler.log")
        await compiler.start()
        try:
            with suppress(ChildError):  # the flow service tries again
                await compiler.until(lambda: not compiler.running, _COMPILE_SECONDS)
        finally:
            await compiler.stop()

    async def scheduler_status(self) -> dict[str, object]:
        """The scheduler's status; {} if it does not answer."""
        limits = aiohttp.ClientTimeout(total=2.0)
        try:
            async with (
                aiohttp.ClientSession(timeout=limits) as session,
                session.get(f"{self.health_url}/status") as answer,
            ):
                found = orjson.loads(await answer.read()) if answer.status == 200 else {}
                return found if isinstance(found, dict) else {}
        except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError):
            return {}

    async def _answers_readyz(self) -> None:
        limits = aiohttp.ClientTimeout(total=2.0)
        async with aiohttp.ClientSession(timeout=limits) as session:
            while True:
                try:
                    async with session.get(f"{self.health_url}/readyz") as answer:
                        if answer.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError, OSError):
                    pass  # not listening yet
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
    return ",".join(parts)


def free_port() -> int:
    """A TCP port that is free at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
