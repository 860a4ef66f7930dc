"""metrics.k8s.io as metrics-server serves it, and the Prometheus queries for the same figures and traffic.

Computed on request from the running pods and the time (nodes/usage_model.py); a node uses what its pods use, plus a
constant. Results are per whole second: two requests within one second get the same figures.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from benchmarks.cluster.http.paths import Target
from benchmarks.cluster.nodes.usage_model import Amounts, Profile, profile
from benchmarks.cluster.store.clock import rfc3339
from benchmarks.cluster.store.errors import not_found
from benchmarks.cluster.store.kinds import NODES, POD_NODE, POD_PHASE, PODS
from benchmarks.cluster.store.store import Record, Selection, Store

Json = dict[str, Any]

WINDOW = "15s"
_SYSTEM = Amounts(100.0, 512.0 * 2**20, 2000.0, 2000.0)
"""The usage of a node without pods."""
_AT_ONCE = 1000  # objects processed before other tasks of the event loop run
_FIGURES = {
    "container_cpu_usage_seconds_total": lambda use: use.cpu / 1000,
    "container_memory_working_set_bytes": lambda use: use.memory,
    "container_network_receive_bytes_total": lambda use: use.rx,
    "container_network_transmit_bytes_total": lambda use: use.tx,
}
_QUERY = re.compile(r"sum by \((?P<by>node|namespace, ?pod)\).*?(?P<metric>container_[a-z_]+)")


class Usage:
    """Answers from the store."""

    def __init__(self, store: Store, seed: int = 0, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seed = seed
        self._now = now
        self._profiles: dict[str, Profile] = {}  # by UID
        self._per_node: tuple[float, int, dict[str, Amounts]] = (0.0, 0, {})

    async def answer(self, target: Target, selection: Selection) -> Json:
        """One object of metrics.k8s.io, or a list."""
        kind, now = target.kind, float(int(self._now()))
        of_nodes = kind.plural == "nodes"
        source = NODES if of_nodes else PODS
        if target.name:
            record = self._store.get(source, target.namespace, target.name)
            if record is None or not (of_nodes or _runs(record)):
                raise not_found(f"{kind.plural}", kind.group, target.name)
            return self._node(record, now, await self._nodes(now)) if of_nodes else self._pod(record, now)
        records = list(self._store.select(source, selection))
        if of_nodes:
            used = await self._nodes(now)
            items = [self._node(record, now, used) async for record in _by_and_by(records)]
        else:
            items = [self._pod(record, now) async for record in _by_and_by(records) if _runs(record)]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}, "items": items}

    async def query(self, query: str) -> tuple[int, Json]:
        """Status and answer to an instant query of Prometheus: cAdvisor's figures, summed by node or pod."""
        now = float(int(self._now()))
        found = _QUERY.search(query)
        figure = _FIGURES.get(found["metric"]) if found is not None else None
        if found is None or figure is None:
            known = ", ".join(_FIGURES)
            error = f"unknown query: this server answers `sum by (node | namespace, pod) (...)` of {known}"
            return 400, {"status": "error", "errorType": "bad_data", "error": error}
        if found["by"] == "node":
            used = await self._nodes(now)
            names = [record.name for record in self._store.collection(NODES).records()]
            rows = [({"node": name}, used.get(name, _SYSTEM)) for name in names]
        else:
            pods = _by_and_by(self._store.collection(PODS).records())
            rows = [
                ({"namespace": record.namespace, "pod": record.name}, self._profile(record).uses(now))
                async for record in pods
                if _runs(record)
            ]
        result = [{"metric": labels, "value": [now, repr(figure(use))]} for labels, use in rows]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}

    def _profile(self, record: Record) -> Profile:
        known = self._profiles.get(record.uid)
        if known is None or known.version != record.version:
            known = self._profiles[record.uid] = profile(record.parse(), record.version, self._seed)
        return known

    def _pod(self, record: Record, now: float) -> Json:
        found = self._profile(record)
        shares = found.shares(now)
        containers = [
            {"name": name, "usage": _usage(cpu * shares.cpu, memory * shares.memory)}
            for name, cpu, memory in found.containers
        ]
        return {**_head("PodMetrics", record, now), "containers": containers}

    async def _nodes(self, now: float) -> dict[str, Amounts]:
        """Usage of the nodes with running pods, by name."""
        at, version, total = self._per_node
        if (at, version) == (now, self._store.version):
            return total
        total, running = {}, set()
        version = self._store.version
        async for record in _by_and_by(self._store.collection(PODS).records()):
            if _runs(record):
                node = record.fields[POD_NODE]
                total[node] = total.get(node, _SYSTEM).plus(self._profile(record).uses(now))
                running.add(record.uid)
        if len(self._profiles) > 2 * len(running) + _AT_ONCE:
            self._profiles = {uid: known for uid, known in self._profiles.items() if uid in running}
        self._per_node = (now, version, total)
        return total

    def _node(self, record: Record, now: float, used: dict[str, Amounts]) -> Json:
        use = used.get(record.name, _SYSTEM)
        return {**_head("NodeMetrics", record, now), "usage": _usage(use.cpu, use.memory)}


def _runs(record: Record) -> bool:
    return record.fields[POD_PHASE] == "Running"


async def _by_and_by(records: Iterable[Record]) -> AsyncIterator[Record]:
    """The records; yields to other tasks of the event loop in between."""
    for position, record in enumerate(list(records)):
        if position % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        yield record


def _usage(cpu_milli: float, memory_bytes: float) -> Json:
    return {"cpu": f"{round(cpu_milli * 1e6)}n", "memory": f"{int(memory_bytes) // 1024}Ki"}


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
