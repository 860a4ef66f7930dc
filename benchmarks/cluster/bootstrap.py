"""The objects that every cluster has."""

from __future__ import annotations

from benchmarks.cluster.api.schema import model_of
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.kinds import NAMESPACES, PRIORITY_CLASSES

_CRITICAL = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def bootstrap(api: Api) -> None:
    """Namespaces and the system priority classes."""
    for kind in ("Pod", "Binding", "Event"):
        model_of("v1", kind)  # here, so that the first request is not delayed by a tenth of a second
    for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
        api.create(NAMESPACES, "", {"metadata": {"name": name}})
    for name, (value, description) in _CRITICAL.items():
        metadata = {"name": name, "creationTimestamp": now_text()}
        api.create(PRIORITY_CLASSES, "", {"metadata": metadata, "value": value, "description": description})
