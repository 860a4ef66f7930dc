"""A synthetic cluster with bridges.

A bridge has a real flow service, called as one that it starts: on threads of the test's process, which are there at
once. A service that the test kills, or whose flags matter, is a process that the bridge starts, as in production
(`own_service`).
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from benchmarks.cluster import Cluster, ClusterSettings, NodeShape
from benchmarks.cluster.store.kinds import EVENTS, PODS
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from policies.load_spreading import LoadSpreading
from poseidon_py.app.bridge import Bridge
from poseidon_py.config.settings import Settings

SMALL = NodeShape(cpu="4", memory="8Gi", pods=20)
_FLAGS_OF_THE_SERVICE = {"policy", "policy_option", "usage", "gang_reserve_after", "improve", "firmament_args"}


def template(cpu="100m", scheduler="poseidon", **fields):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}}}
    return {"spec": {"schedulerName": scheduler, "containers": [container], **fields}}


class World:
    """Stops its bridges: see `world_of`."""

    def __init__(self, cluster, folder) -> None:
        self.cluster = cluster
        self.folder = folder
        self.bridges: list[Bridge] = []
        self._services: dict[Bridge, Server] = {}
        self._numbers = itertools.count()
        self._sockets = TemporaryDirectory(prefix="world-")  # short, as paths of sockets have to be

    async def bridge(self, *, own_service=False, prepare=lambda bridge: None, **fields) -> Bridge:
        """A started bridge with these settings. `own_service`: it starts its flow service as a process. `prepare` is
        called with it before it starts."""
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(self.cluster.kubeconfig())
        defaults: dict[str, Any] = {
            "leader_elect": False,
            "health_port": 0,
            "log_level": "warning",
            "shutdown_timeout": 5.0,
        }
        service = None
        if not own_service and not _FLAGS_OF_THE_SERVICE & set(fields):
            address = f"direct:{self._sockets.name}/{next(self._numbers)}"
            service = Server(Engine(LoadSpreading(), OrToolsSolver()), address)
            service.start()
            defaults["firmament_address"] = address
        bridge = Bridge(Settings(kubeconfig=kubeconfig, **(defaults | fields)))
        self.bridges.append(bridge)
        if service is not None:
            self._services[bridge] = service
        prepare(bridge)
        await bridge.start()
        return bridge

    async def stop(self, bridge: Bridge) -> None:
        await bridge.stop()
        self.bridges.remove(bridge)
        if bridge in self._services:
            self._services.pop(bridge).stop(0)

    async def stop_all(self) -> None:
        for bridge in list(self.bridges):
            await self.stop(bridge)
        self._sockets.cleanup()

    async def until(self, condition, seconds=30.0):
        """Polls until the condition holds; the time is only a limit."""
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
        """Asserts that no pod was bound twice and no node is over-committed."""
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
        await world.stop_all()
