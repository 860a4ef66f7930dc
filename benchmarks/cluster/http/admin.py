"""The paths below /_ that control and inspect the simulation; no Kubernetes client uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from benchmarks.cluster.api.audit import Audit
from benchmarks.cluster.http.faults import Faults
from benchmarks.cluster.http.server import HttpApi
from benchmarks.cluster.nodes.devices.allocation_audit import AllocationAudit
from benchmarks.cluster.nodes.devices.drivers import Drivers
from benchmarks.cluster.nodes.devices.inventory import Inventory
from benchmarks.cluster.nodes.kubelets import Kubelets
from benchmarks.cluster.store.errors import method_not_allowed, no_such_path
from benchmarks.cluster.store.store import Store

MAX_ADDED_NODES = 100_000
"""Maximum number of nodes that one request adds, so that a typo does not exhaust the memory."""


class Simulation(Protocol):
    """The interface of the controlled `Cluster`."""

    faults: Faults
    store: Store
    http: HttpApi
    kubelets: Kubelets | None
    inventory: Inventory
    allocations: AllocationAudit
    drivers: Drivers

    @property
    def unprepared(self) -> Mapping[str, str]:
        """Pods whose claims kubelets could not prepare."""

    @property
    def audit(self) -> Audit:
        """The history of binds, evictions and deletions."""

    @property
    def rejected(self) -> Mapping[str, int]:
        """Pods that kubelets rejected, per reason."""

    def add_nodes(self, count: int) -> list[str]:
        """Add nodes; returns their names."""

    def fail_node(self, name: str) -> None:
        """Stop a node's kubelet."""

    def restore_node(self, name: str) -> None:
        """Restart a node's kubelet."""


class Admin:
    """GET and POST /_faults, GET /_audit, GET /_stats, POST /_nodes, GET and POST /_devices."""

    def __init__(self, cluster: Simulation) -> None:
        self._cluster = cluster

    def __call__(self, method: str, path: str, body: Any) -> Any:
        """Answer one request. Raises ValueError for an invalid body."""
        cluster = self._cluster
        match path, method:
            case "/_faults", "GET":
                return cluster.faults.json()
            case "/_faults", "POST":
                cluster.faults.take(body)
                return cluster.faults.json()
            case "/_audit", "GET":
                return {
                    "counts": cluster.audit.counts,
                    "entries": [entry.json() for entry in cluster.audit.entries],
                }
            case "/_stats", "GET":
                return self._stats()
            case "/_nodes", "POST":
                return self._nodes(body)
            case "/_devices", "GET":
                return self._devices()
            case "/_devices", "POST":
                return {"generation": self._change_pool(body)}
        if path in ("/_faults", "/_audit", "/_stats", "/_nodes", "/_devices"):
            raise method_not_allowed(path, "", method.lower())
        raise no_such_path()

    def _stats(self) -> Any:
        cluster = self._cluster
        return {
            "resourceVersion": cluster.store.version,
            "objects": {
                f"{each.kind.plural}.{each.kind.group}".rstrip("."): len(each.objects)
                for each in cluster.store.collections()
            },
            "requests": cluster.http.requests,
            "watches": len(cluster.http.watches),
            "rejected": dict(cluster.rejected),
            "unprepared": dict(cluster.unprepared),
            "deviceViolations": len(cluster.allocations.violations),
            "audit": cluster.audit.counts,
        }

    def _devices(self) -> Any:
        cluster = self._cluster
        pools = [
            {**home._asdict(), "generation": generation, "complete": complete, "devices": devices}
            for home, generation, complete, devices in cluster.inventory.pools()
        ]
        return {"pools": pools, "violations": [one._asdict() for one in cluster.allocations.violations]}

    def _change_pool(self, body: Any) -> int:
        """{"driver": ..., "pool": ...}: the driver restarts; {"device": ..., "taints": [...]} with it: the device has
        these taints."""
        texts = ("driver", "pool", "device")
        if (
            not isinstance(body, dict)
            or not {"driver", "pool"} <= set(body)
            or set(body) - {*texts, "taints"}
            or not all(isinstance(body.get(name, ""), str) for name in texts)
            or ("device" in body) is not ("taints" in body)
        ):
            raise ValueError("expected an object with driver and pool, and with device and taints to taint a device")
        if "device" not in body:
            return self._cluster.drivers.restart(body["driver"], body["pool"])
        taints = body["taints"]
        if not isinstance(taints, list) or not all(isinstance(taint, dict) for taint in taints):
            raise ValueError('taints must be a list of taints, such as [{"key": "k", "effect": "NoExecute"}]')
        return self._cluster.drivers.taint(body["driver"], body["pool"], body["device"], taints)

    def _nodes(self, body: Any) -> Any:
        """{"fail": [names], "restore": [names], "add": count}."""
        cluster = self._cluster
        if not isinstance(body, dict) or set(body) - {"fail", "restore", "add"}:
            raise ValueError("expected an object with any of: fail, restore (lists of node names), add (a count)")
        known = set(cluster.kubelets.names()) if cluster.kubelets is not None else set()
        failing, restored = (_names(body, field, known) for field in ("fail", "restore"))
        count = body.get("add", 0)
        if type(count) is not int or not 0 <= count <= MAX_ADDED_NODES:
            raise ValueError(f"add must be a number of nodes from 0 to {MAX_ADDED_NODES}, not {count!r}")
        for name in failing:
            cluster.fail_node(name)
        for name in restored:
            cluster.restore_node(name)
        return {"added": cluster.add_nodes(count)}


def _names(body: dict[str, Any], field: str, known: set[str]) -> list[str]:
    names = body.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{field} must be a list of node names")
    for name in names:
        if name not in known:
            raise ValueError(f"{field}: there is no node {name!r}")
    return names
