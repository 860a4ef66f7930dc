"""Pods that are no part of the figures, created with those that are: they cannot be placed, or not before others
leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Literal

import orjson

from benchmarks.live.session import LABEL, in_parallel, node_names
from poseidon_py.kube.client import ApiError, Kube

Kind = Literal["never", "victims"]
"""never: their preemptionPolicy is Never. victims: they preempt."""

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_PODS = "/api/v1/namespaces/default/pods"
_NAME = "poseidon-bench-companions"
_PRIORITY = 1000
_LARGE = {"cpu": "20", "memory": "1Gi"}
"""Of 32 cpu: what a running pod of each node has, and each companion asks for. What is left suffices for many small
pods, and for no companion."""


async def run_pods(kube: Kube, count: int) -> None:
    """Creates so many running pods, evenly on all nodes."""
    nodes = await node_names(kube)
    await in_parallel(
        lambda i: _create(kube, f"running-{i:06d}", {"cpu": "100m"}, nodeName=nodes[i % len(nodes)]), range(count)
    )


async def _create(kube: Kube, name: str, requests: dict[str, str], **fields: str) -> None:
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {LABEL: "true"}}
    body = {"metadata": metadata, "spec": {"containers": [container], **fields}}
    await kube.call("POST", _PODS, orjson.dumps(body))


class Companions:
    """So many of a scheduler, on a server whose nodes have 32 cpu. kind: None: there are none."""

    def __init__(self, kube: Kube, scheduler: str, kind: Kind | None, count: int) -> None:
        self._kube, self._scheduler, self._kind, self._count = kube, scheduler, kind, count

    async def prepare(self) -> None:
        """Gives each node a running pod of priority 0."""
        if self._kind is None:
            return
        nodes = await node_names(self._kube)
        policy = "Never" if self._kind == "never" else "PreemptLowerPriority"
        priority_class = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": _NAME, "labels": {LABEL: "true"}},
            "value": _PRIORITY,
            "preemptionPolicy": policy,
        }
        await self._kube.call("POST", _CLASSES, orjson.dumps(priority_class))
        await in_parallel(
            lambda i: _create(self._kube, f"filler-{i:05d}", _LARGE, nodeName=nodes[i]), range(len(nodes))
        )

    def creations(self) -> list[Callable[[], Awaitable[None]]]:
        """Each creates one of them."""
        fields = {"schedulerName": self._scheduler, "priorityClassName": _NAME}
        names = (f"companion-{i:05d}" for i in range(self._count))
        return [partial(_create, self._kube, name, _LARGE, **fields) for name in names]

    async def remove(self) -> None:
        """What `session.remove` leaves."""
        if self._kind is None:
            return
        with suppress(ApiError):
            await self._kube.call("DELETE", f"{_CLASSES}/{_NAME}")
