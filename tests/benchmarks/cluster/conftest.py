"""A running cluster and clients of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from benchmarks.cluster import Cluster, ClusterSettings, RunTime

Json = dict[str, Any]


class Http:
    """A JSON client of one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        """Status code and parsed answer."""
        data = None if body is None else orjson.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, self.url + path, data=data, headers={"Content-Type": kind, **named}
        ) as response:
            raw = await response.read()
            return response.status, orjson.loads(raw) if raw[:1] in (b"{", b"[") else raw

    def watch(self, path: str) -> Any:
        """The response of a watch; read its `content` line by line."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=20)
        return self.session.get(self.url + path, timeout=timeout)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    settings = ClusterSettings(
        nodes=3, start_seconds=0.0, stop_seconds=0.0, run_time=RunTime("fixed", 0.05), job_backoff_seconds=0.01
    )
    async with Cluster(settings) as running:
        yield running


@pytest.fixture
async def http(cluster: Cluster) -> AsyncIterator[Http]:
    async with aiohttp.ClientSession() as session:
        yield Http(session, cluster.url)


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs kubectl against the cluster; call it in a thread, since the server lives in this process."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    config = tmp_path / "kubeconfig"
    config.write_text(cluster.kubeconfig())
    base = [program, f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}"]

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*base, *arguments], input=stdin or "", capture_output=True, text=True, timeout=20, check=False
        )

    return run
