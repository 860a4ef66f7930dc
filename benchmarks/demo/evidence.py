"""The state that the API server and the scheduler report once the workload has settled: all that the checks use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from poseidon_py.kube.client import ApiError, Kube

Json = dict[str, Any]

_PAGE = "2000"
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """pods, nodes: complete objects. audit: the server's record of binds and ends, in order; empty if it keeps none.
    rejected: kubelets' rejections by reason. metrics: the scheduler's samples, `name{label="value"}` -> value.
    preempted, moved: the events about victims of preemption, and about pods that were moved. complaints: the errors in
    the scheduler's log. slowest_answer: the longest time, in seconds, that the scheduler took for an answer."""

    pods: Sequence[Json]
    nodes: Sequence[Json]
    audit: Sequence[Json] = ()
    rejected: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    preempted: Sequence[Json] = ()
    moved: Sequence[Json] = ()
    complaints: Sequence[str] = ()
    slowest_answer: float = 0.0
    claims: Sequence[Json] = ()
    """ResourceClaims."""

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        matchers = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value
            for sample, value in self.metrics.items()
            if sample.partition("{")[0] == name and all(matcher in sample for matcher in matchers)
        )


async def gather(kube: Kube, health_url: str) -> Evidence:
    """Lists pods, nodes and events of preemption, and reads metrics and status of the scheduler at `health_url`."""
    pods, nodes = await listed(kube, "/api/v1/pods"), await listed(kube, "/api/v1/nodes")
    try:
        audit = orjson.loads(await kube.page("/_audit", {}))["entries"]
        rejected = orjson.loads(await kube.call("GET", "/_stats"))["rejected"]
    except ApiError:  # not the synthetic API server
        audit, rejected = [], {}
    metrics, status = await asyncio.gather(get(f"{health_url}/metrics"), get(f"{health_url}/status"))
    preempted = await listed(kube, "/api/v1/events", fieldSelector="reason=Preempted")
    moved = await listed(kube, "/api/v1/events", fieldSelector="reason=Migrated")
    try:
        claims = await listed(kube, "/apis/resource.k8s.io/v1/resourceclaims")
    except ApiError:  # it serves none
        claims = []
    found = samples(metrics.decode()), orjson.loads(status)
    return Evidence(pods, nodes, audit, rejected, *found, preempted, moved, claims=claims)


async def listed(kube: Kube, path: str, **query: str) -> list[Json]:
    """All objects of a collection that match the parameters of the query."""
    items: list[Json] = []
    parameters = {"limit": _PAGE, **query}
    while True:
        page = orjson.loads(await kube.page(path, parameters))
        items += page["items"] or []
        token = page["metadata"].get("continue")
        if not token:
            return items
        parameters["continue"] = token


def samples(exposition: str) -> dict[str, float]:
    """The samples of Prometheus' text format."""
    found = {}
    for line in exposition.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


async def get(url: str, seconds: float = _ANSWER_SECONDS) -> bytes:
    """The answer of a scheduler to a request. Raises aiohttp.ClientError, OSError, TimeoutError."""
    limits = aiohttp.ClientTimeout(total=None)
    async with (
        asyncio.timeout(seconds),
        aiohttp.ClientSession(timeout=limits) as session,
        session.get(url) as answer,
    ):
        answer.raise_for_status()
        return await answer.read()
