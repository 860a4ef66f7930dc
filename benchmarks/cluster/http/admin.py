"""The paths below /_ that steer and inspect the simulation; no Kubernetes client uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.cluster.store.errors import method_not_allowed, no_such_path

if TYPE_CHECKING:
    from benchmarks.cluster.cluster import Cluster


class Admin:
    """GET and POST /_faults, GET /_audit, GET /_stats, POST /_nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self, method: str, path: str, body: Any) -> Any:
        """Answer one request; ValueError for a body that makes no sense."""
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
        if path in ("/_faults", "/_audit", "/_stats", "/_nodes"):
            raise method_not_allowed(path, "", method.lower())
        raise no_such_path()

    def _stats(self) -> Any:
        cluster = self._cluster
        return {
            "resourceVersion": cluster.store.version,
            "objects": {
                f"{shelf.kind.plural}.{shelf.kind.group}".rstrip("."): len(shelf.objects)
                for shelf in cluster.store.shelves()
            },
            "requests": cluster.http.requests,
            "watches": len(cluster.http.watches),
            "rejected": dict(cluster.rejected),
            "audit": cluster.audit.counts,
        }

    def _nodes(self, body: Any) -> Any:
        """{"fail": [names], "restore": [names], "add": count}."""
        cluster = self._cluster
        if not isinstance(body, dict) or set(body) - {"fail", "restore", "add"}:
            raise ValueError("expected an object with any of: fail, restore (lists of node names), add (a count)")
        known = set(cluster.kubelets.names()) if cluster.kubelets is not None else set()
        for name in (*body.get("fail", ()), *body.get("restore", ())):
            if name not in known:
                raise ValueError(f"there is no node {name!r}")
        for name in body.get("fail", ()):
            cluster.fail_node(name)
        for name in body.get("restore", ()):
            cluster.restore_node(name)
        return {"added": cluster.add_nodes(int(body.get("add", 0)))}
