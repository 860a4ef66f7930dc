"""A synthetic cluster, and bridges with real flow services beside it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.cluster import Cluster, ClusterSettings, NodeShape
from benchmarks.cluster.store.kinds import EVENTS, PODS
from poseidon_py.app.bridge import Bridge
from poseidon_py.config.settings import Settings

SMALL = NodeShape(cpu="4", memory="8Gi", pods=20)


def template(cpu="100m", scheduler="poseidon", **more):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}}}
    return {"spec": {"schedulerName": scheduler, "containers": [container], **more}}


class World:
    """Stops what it started: see `world_of`."""

    def __init__(self, cluster, folder) -> None:
        self.cluster = cluster
        self.folder = folder
        self.bridges: list[Bridge] = []

    async def bridge(self, **more) -> Bridge:
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(self.cluster.kubeconfig())
        defaults: dict[str, Any] = {
            "leader_elect": False,
            "health_port": 0,
            "log_level": "warning",
            "shutdown_timeout": 5.0,
        }
        bridge = Bridge(Settings(kubeconfig=kubeconfig, **(defaults | more)))
        self.bridges.append(bridge)
        await bridge.start()
        return bridge

    async def stop(self, bridge: Bridge) -> None:
        await bridge.stop()
        self.bridges.remove(bridge)

    async def until(self, condition, seconds=30.0):
        """Polls; the time is a limit, not an expectation."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @property
    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.cluster.objects(PODS)}

    def bound(self, prefix=""):
        return {name for name, pod in self.pods.items() if pod["spec"].get("nodeName") and name.startswith(prefix)}

    def events(self, reason):
        return [event for event in self.cluster.objects(EVENTS) if event.get("reason") == reason]

    def check(self):
        """Nobody was bound twice, no node took too much."""
        uids = [entry.uid for entry in self.cluster.audit.of("bind")]
        assert len(uids) == len(set(uids))
        assert dict(self.cluster.rejected) == {}


W = TypeVar("W", bound=World)


@asynccontextmanager
async def world_of(kind: type[W], folder: Path, **settings: Any) -> AsyncIterator[W]:
    """A world around a cluster of small nodes; its bridges are stopped at the end."""
    defaults: dict[str, Any] = {"nodes": 5, "shapes": (SMALL,), "start_seconds": 0.01, "stop_seconds": 0.01}
    async with Cluster(ClusterSettings(**(defaults | settings))) as cluster:
        world = kind(cluster, folder)
        yield world
        for bridge in world.bridges:
            await bridge.stop()
