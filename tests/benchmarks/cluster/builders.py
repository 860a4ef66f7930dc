"""Builders of objects for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from benchmarks.cluster import Cluster, ClusterSettings
from benchmarks.cluster.api.binding import bind

Json = dict[str, Any]


def pod(name: str = "p", *, cpu: str | None = None, **spec: Any) -> Json:
    """A pod manifest; `labels`, `annotations` and `namespace` go to the metadata, the rest to the spec."""
    metadata: Json = {"name": name}
    for key in ("labels", "annotations", "namespace", "finalizers", "ownerReferences"):
        if key in spec:
            metadata[key] = spec.pop(key)
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    container = {"name": "main", "image": "app:1", "resources": spec.pop("resources", resources)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def job(name: str = "j", *, annotations: Json | None = None, **spec: Any) -> Json:
    """A Job manifest."""
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def replicated(kind: str, name: str = "web", replicas: int = 3, image: str = "app:1", **spec: Any) -> Json:
    """A ReplicaSet, Deployment or StatefulSet manifest."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


def budget(name: str, app: str, **spec: Any) -> Json:
    """A PodDisruptionBudget manifest."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition that simulated components or a client bring about asynchronously."""
    while not condition():  # noqa: ASYNC110 - the conditions are about plain objects, which set no event
        await asyncio.sleep(0.002)


class Still:
    """A cluster that is not started: its time is controlled by the test."""

    def __init__(self, **settings: Any) -> None:
        self.time = 0.0
        settings = {"start_seconds": 1.0, "stop_seconds": 1.0, "heartbeat_seconds": 0.0, **settings}
        self.cluster = Cluster(ClusterSettings(**settings), now=lambda: self.time)
        self.api = self.cluster.api
        self.store = self.cluster.store
        self.pass_time(0)

    def pass_time(self, seconds: float) -> None:
        """Run all work that is due within these seconds."""
        end = self.time + seconds
        while True:
            wait = self.cluster.agenda.run()
            if wait is None or self.time + wait > end:
                break
            self.time += wait
        self.time = end

    def bind(self, name: str, node: str, namespace: str = "default", **metadata: Any) -> None:
        """Bind a pod as a scheduler would."""
        bind(self.api, namespace, name, {"metadata": {"name": name, **metadata}, "target": {"name": node}})

    def bind_all(self, node: str = "node-00000") -> None:
        """Bind every pending pod."""
        for obj in self.pods():
            if not obj["spec"].get("nodeName"):
                self.bind(obj["metadata"]["name"], node, obj["metadata"]["namespace"])

    def pods(self, namespace: str = "") -> list[Json]:
        """All pods."""
        from benchmarks.cluster.store.kinds import PODS

        return self.cluster.objects(PODS, namespace)

    def phases(self) -> dict[str, int]:
        """The number of pods in each phase."""
        found: dict[str, int] = {}
        for obj in self.pods():
            phase = obj["status"]["phase"]
            found[phase] = found.get(phase, 0) + 1
        return found
