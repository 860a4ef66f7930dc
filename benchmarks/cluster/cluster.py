"""A whole cluster: store, API, HTTP server, kubelets and controllers, started and stopped together.

async with Cluster(ClusterSettings(nodes=10)) as cluster:
    print(cluster.url, cluster.kubeconfig())
"""

from __future__ import annotations

import asyncio
import copy
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from aiohttp import web

from benchmarks.cluster.api.audit import Audit
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.bootstrap import bootstrap
from benchmarks.cluster.controllers.all_controllers import Controllers
from benchmarks.cluster.http.admin import Admin
from benchmarks.cluster.http.answers import Server
from benchmarks.cluster.http.faults import Faults
from benchmarks.cluster.http.server import HttpApi
from benchmarks.cluster.nodes.devices.allocation_audit import AllocationAudit, Violation
from benchmarks.cluster.nodes.devices.drivers import Drivers
from benchmarks.cluster.nodes.devices.inventory import Inventory
from benchmarks.cluster.nodes.kubelets import Kubelets
from benchmarks.cluster.nodes.registration import node_object
from benchmarks.cluster.settings import ClusterSettings, NodeShape
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.device_kinds import served_kinds
from benchmarks.cluster.store.kinds import BUILT_IN, NODES, PODS, Kind, Kinds
from benchmarks.cluster.store.store import Record, Store

Json = dict[str, Any]

_AGENDA_BUDGET_S = 0.005
"""How long simulated components may occupy the event loop before requests are handled."""


class Cluster:
    """A synthetic cluster. Usable without starting it: then it serves no requests and simulates nothing."""

    def __init__(self, settings: ClusterSettings | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings or ClusterSettings()
        self.kinds = Kinds((*BUILT_IN, *served_kinds(self.settings.device_versions)))
        self.store = Store(self.settings.history)
        self.api = Api(self.store, self.settings.seed)
        self.agenda = Agenda(now, self.settings.speed)
        self.faults = Faults(self.settings.seed)
        bootstrap(self.api)
        self.inventory = Inventory(self.store)
        self.allocations = AllocationAudit(self.store, self.inventory)
        self.drivers = Drivers(self.api)
        self.kubelets = (
            Kubelets(self.api, self.agenda, self.settings, self.inventory) if self.settings.kubelets else None
        )
        self.controllers = Controllers(self.api, self.kinds, self.agenda, self.settings, self.kubelets, self.inventory)
        self.http = HttpApi(
            self.api,
            self.kinds,
            self.faults,
            bookmark_every_s=self.settings.bookmark_seconds,
            token=self.settings.token,
            seed=self.settings.seed,
            admin=Admin(self),
        )
        self.faults.on_command = self._command
        self._runner: web.ServerRunner | None = None
        self._wake: asyncio.TimerHandle | asyncio.Handle | None = None
        self._wake_at = 0.0
        self._port = 0
        self._named = 0
        if self.settings.nodes:
            self.add_nodes(self.settings.nodes)
        for name, count in self.settings.device_pools:
            self.drivers.attach(name, count, [f"zone-{at}" for at in range(self.settings.zones)])

    # life

    async def __aenter__(self) -> Cluster:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, and run the simulated components. Raises OSError if the port is in use."""
        server = Server(self.http.handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        listener = socket.create_server((self.settings.host, self.settings.port), backlog=1024)
        self._port = listener.getsockname()[1]
        context = None
        if self.settings.tls is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*self.settings.tls)
        await web.SockSite(self._runner, listener, backlog=1024, ssl_context=context).start()
        self.agenda.on_work = self._schedule
        self._schedule(0.0)

    async def stop(self) -> None:
        """End the watches, close the connections, stop the simulated components."""
        self.agenda.on_work = None
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        self.http.watches.end()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _schedule(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + delay
        if self._wake is not None:
            if self._wake_at <= at:
                return
            self._wake.cancel()
        self._wake_at = at
        self._wake = loop.call_later(delay, self._work) if delay > 0 else loop.call_soon(self._work)

    def _work(self) -> None:
        self._wake = None
        self._wake_at = 0.0
        again = self.agenda.run(_AGENDA_BUDGET_S)
        if again is not None and self.agenda.on_work is not None:
            self._schedule(again)

    # where it is

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port or self.settings.port

    @property
    def url(self) -> str:
        """The server's address."""
        host = self.settings.host
        if host in ("0.0.0.0", "::"):
            host = "127.0.0.1"
        scheme = "http" if self.settings.tls is None else "https"
        return f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"

    def kubeconfig(self) -> str:
        """A kubeconfig for kubectl and other clients, as YAML."""
        user: Json = {"token": self.settings.token} if self.settings.token else {}
        server: Json = {"server": self.url}
        if self.settings.tls is not None:
            server["certificate-authority"] = str(self.settings.tls[0].resolve())
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "synthetic", "cluster": server}],
            "users": [{"name": "synthetic", "user": user}],
            "contexts": [
                {
                    "name": "synthetic",
                    "context": {"cluster": "synthetic", "user": "synthetic", "namespace": "default"},
                }
            ],
            "current-context": "synthetic",
        }
        return yaml.safe_dump(config, sort_keys=False)

    @property
    def audit(self) -> Audit:
        """The history of binds, evictions and deletions."""
        return self.api.audit

    @property
    def rejected(self) -> Mapping[str, int]:
        """Number of pods that kubelets rejected, per reason; more than 0 means that a node was over-committed."""
        return self.kubelets.rejected if self.kubelets is not None else {}

    @property
    def device_violations(self) -> Sequence[Violation]:
        """Writes of claims that gave away devices, capacity or counters that were not free; none may be."""
        return self.allocations.violations

    @property
    def unprepared(self) -> Mapping[str, str]:
        """Pods that kubelets could not start because of their claims, with the reason; none may be."""
        return self.kubelets.unprepared if self.kubelets is not None else {}

    # what is in it

    def add_nodes(
        self,
        count: int,
        shape: NodeShape | None = None,
        *,
        prefix: str | None = None,
        zones: int | None = None,
        racks_per_zone: int | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> list[str]:
        """Add ready nodes, with zones and racks in rotation and shapes by weight. Returns the names."""
        settings = self.settings
        shapes = [shape] if shape else [one for one in settings.shapes for _ in range(one.weight)]
        zone_count = settings.zones if zones is None else zones
        rack_count = settings.racks_per_zone if racks_per_zone is None else racks_per_zone
        names: list[str] = []
        for _ in range(count):
            at = self._named
            self._named += 1
            zone = f"zone-{at % zone_count}" if zone_count else ""
            rack = ""
            if rack_count:
                place = at // max(zone_count, 1) % rack_count
                rack = f"{zone}-rack-{place}" if zone else f"rack-{place}"
            chosen = shapes[at % len(shapes)]
            name = f"{settings.node_prefix if prefix is None else prefix}{at:05d}"
            node = node_object(name, at, chosen, zone, rack)
            node["metadata"]["labels"].update(labels or {})
            if taints:
                node["spec"]["taints"] = [*node["spec"].get("taints", ()), *(dict(taint) for taint in taints)]
            self.api.create(NODES, "", node)
            if chosen.devices:
                self.drivers.equip(name, chosen.devices)
            names.append(name)
        return names

    def add_pods(self, count: int, template: Json, *, namespace: str = "default", prefix: str = "pod-") -> list[Record]:
        """Create pods that differ only in name; `template` is a whole Pod or {"metadata": ..., "spec": ...}."""
        width = max(len(str(count - 1)), 4)
        return self.create_many(PODS, template, [f"{prefix}{i:0{width}d}" for i in range(count)], namespace)

    def create_many(self, kind: Kind, template: Json, names: Sequence[str], namespace: str = "default") -> list[Record]:
        """Create objects that differ only in name; much faster than one by one."""
        return self.api.create_many(kind, namespace, template, list(names))

    def create(self, obj: Json, namespace: str = "default") -> Json:
        """Create any object from its manifest."""
        kind = self.kinds.by_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
        if kind is None:
            raise ValueError(f"no such kind: {obj.get('apiVersion')} {obj.get('kind')}")
        home = (obj.get("metadata") or {}).get("namespace") or namespace
        return self.api.create(kind, home if kind.namespaced else "", copy.deepcopy(obj)).parse()

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Json:
        """An object by name. Raises ApiError 404 if it does not exist."""
        return self.api.get(kind, namespace if kind.namespaced else "", name).parse()

    def objects(self, kind: Kind, namespace: str = "") -> list[Json]:
        """All objects of a kind, in key order."""
        return [record.parse() for record in self.store.collection(kind).records(namespace)]

    # what goes wrong

    def fail_node(self, name: str) -> None:
        """The node's kubelet stops reporting; the node becomes Unknown after its grace time."""
        self.controllers.node_life.fail(name)

    def restore_node(self, name: str) -> None:
        """The node's kubelet reports again."""
        self.controllers.node_life.restore(name)

    def compact(self) -> int:
        """Drop the history: older resourceVersions and continue tokens answer 410."""
        self.http.lists.forget()
        return self.store.compact()

    def drop_watches(self) -> int:
        """Break all open watches."""
        return self.http.watches.drop()

    def _command(self, command: str, _: Any) -> None:
        if command == "compact":
            self.compact()
        elif command == "drop_watches":
            self.drop_watches()
