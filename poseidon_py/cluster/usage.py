"""metrics.k8s.io: a plausible load of pods and nodes.

Each pod uses a share of its request that is its own (from its UID) and moves smoothly with time; a node uses
what its running pods use, plus a little of its own.
"""

from __future__ import annotations

import math
import time
from typing import Any

import xxhash

from poseidon_py.cluster.amounts import units
from poseidon_py.cluster.clock import rfc3339
from poseidon_py.cluster.errors import not_found
from poseidon_py.cluster.kinds import NODES, POD_NODE, POD_PHASE, PODS
from poseidon_py.cluster.paths import Target
from poseidon_py.cluster.store import Record, Selection, Store

Json = dict[str, Any]

WINDOW = "15s"
_IDLE_CPU_MILLI = 100
_IDLE_MEMORY_BYTES = 512 * 2**20
_BEST_EFFORT_CPU_MILLI = 20
_BEST_EFFORT_MEMORY_BYTES = 32 * 2**20


def share(uid: str, resource: str, now: float) -> float:
    """The used share of a request, within (0, 1): a base per pod and a slow wave around it."""
    digest = xxhash.xxh64_intdigest(f"{uid}/{resource}".encode())
    base = 0.3 + 0.5 * ((digest & 0xFFFF) / 0xFFFF)
    swing = 0.05 if resource == "memory" else 0.15
    phase = (digest >> 16 & 0xFFFF) / 0xFFFF
    period = 300 + (digest >> 32 & 0xFF)
    return base + swing * math.sin(2 * math.pi * (now / period + phase))


class Usage:
    """Answers metrics.k8s.io from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, target: Target, selection: Selection) -> Json:
        """One object, or a list."""
        kind = target.kind
        now = time.time()
        measure = self._node if kind.plural == "nodes" else self._pod
        source = NODES if kind.plural == "nodes" else PODS
        if target.name:
            record = self._store.get(source, target.namespace, target.name)
            if record is None or (source is PODS and record.fields[POD_PHASE] != "Running"):
                raise not_found(f"{kind.plural}", kind.group, target.name)
            return measure(record, now)
        records = self._store.select(source, selection)
        if source is PODS:
            items = [self._pod(record, now) for record in records if record.fields[POD_PHASE] == "Running"]
        else:
            per_node = self._per_node(now)
            items = [self._node(record, now, per_node) for record in records]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}, "items": items}

    def _container_usage(self, uid: str, container: Json, now: float) -> tuple[int, int]:
        requests = (container.get("resources") or {}).get("requests") or {}
        cpu = units("cpu", requests["cpu"]) if "cpu" in requests else _BEST_EFFORT_CPU_MILLI
        memory = units("memory", requests["memory"]) if "memory" in requests else _BEST_EFFORT_MEMORY_BYTES
        return int(cpu * share(uid, "cpu", now)), int(memory * share(uid, "memory", now))

    def _pod(self, record: Record, now: float) -> Json:
        pod = record.parse()
        containers = []
        for container in pod["spec"]["containers"]:
            cpu, memory = self._container_usage(record.uid, container, now)
            containers.append({"name": container["name"], "usage": _usage(cpu, memory)})
        return {**_head("PodMetrics", record, now), "containers": containers}

    def _per_node(self, now: float) -> dict[str, tuple[int, int]]:
        total: dict[str, tuple[int, int]] = {}
        for record in self._store.shelf(PODS).records():
            if record.fields[POD_PHASE] != "Running":
                continue
            cpu, memory = total.get(record.fields[POD_NODE], (0, 0))
            for container in record.parse()["spec"]["containers"]:
                more_cpu, more_memory = self._container_usage(record.uid, container, now)
                cpu, memory = cpu + more_cpu, memory + more_memory
            total[record.fields[POD_NODE]] = (cpu, memory)
        return total

    def _node(self, record: Record, now: float, per_node: dict[str, tuple[int, int]] | None = None) -> Json:
        cpu, memory = (self._per_node(now) if per_node is None else per_node).get(record.name, (0, 0))
        usage = _usage(cpu + _IDLE_CPU_MILLI, memory + _IDLE_MEMORY_BYTES)
        return {**_head("NodeMetrics", record, now), "usage": usage}


def _usage(cpu_milli: int, memory_bytes: int) -> Json:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes // 1024}Ki"}


def _head(kind: str, record: Record, now: float) -> Json:
    metadata: Json = {"name": record.name, "creationTimestamp": rfc3339(now)}
    if record.namespace:
        metadata["namespace"] = record.namespace
    if record.labels:
        metadata["labels"] = record.labels
    return {
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": metadata,
        "timestamp": rfc3339(now),
        "window": WINDOW,
    }
