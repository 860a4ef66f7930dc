"""What happens on the server while pods are measured: objects come and go, pods are deleted, Jobs are admitted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import orjson
from msgspec import Struct, field

from benchmarks.cluster.nodes.registration import node_object
from benchmarks.live.perf.furnishing import JOBS, PODS, SERVICES
from benchmarks.live.perf.sizes import Churn
from benchmarks.live.perf.templates import NODES, SERVICE, TEMPLATES
from benchmarks.live.session import LABEL
from poseidon_py.kube.client import ApiError, Kube

CHURN = "churn"
_NAME = f"{LABEL}-{CHURN}"
_NODES = "/api/v1/nodes"
_NOW = orjson.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})


async def churn(kube: Kube, about: Churn, scheduler: str) -> None:
    """Creates objects until cancelled, the first at once. Where they are recreated, every other interval has none."""
    number = 0
    try:
        while True:
            name = f"{scheduler}-{CHURN}-{number:05d}"
            pod = TEMPLATES[about.template].pod(name, CHURN, scheduler, "")
            await kube.call("POST", PODS, orjson.dumps(pod))
            if about.node:
                node = node_object(_NAME, number, NODES["standard"], "zone-0", "")
                node["metadata"]["labels"][LABEL] = "true"
                await kube.call("POST", _NODES, orjson.dumps({"apiVersion": "v1", "kind": "Node", **node}))
            if about.service:
                service = {"metadata": {"name": _NAME, "labels": {LABEL: "true"}}, "spec": SERVICE}
                await kube.call("POST", SERVICES, orjson.dumps(service))
            number += 1
            await asyncio.sleep(about.every)
            if about.recreate:
                await _delete_all(kube, about, name)
                await asyncio.sleep(about.every)
    finally:
        if about.node:
            await delete(kube, f"{_NODES}/{_NAME}")


async def _delete_all(kube: Kube, about: Churn, pod: str) -> None:
    await delete(kube, f"{PODS}/{pod}")
    if about.node:
        await delete(kube, f"{_NODES}/{_NAME}")
    if about.service:
        await delete(kube, f"{SERVICES}/{_NAME}")


async def delete_pods(kube: Kube, names: Sequence[str], per_second: float) -> None:
    """Deletes pods at a steady rate."""
    began = time.monotonic()
    for number, name in enumerate(names):
        await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
        await delete(kube, f"{PODS}/{name}")


async def delete(kube: Kube, path: str) -> None:
    """Deletes an object at once, if it is there."""
    with suppress(ApiError):  # it has gone
        await kube.call("DELETE", path, _NOW)


class _Spec(Struct):
    suspend: bool = False


class _Job(Struct):
    spec: _Spec = field(default_factory=_Spec)


class _Event(Struct):
    object: _Job


async def first_admission(kube: Kube) -> float:
    """When the first Job of the benchmark is no longer suspended (seconds of the monotonic clock); all are created
    suspended."""
    decode = msgspec.json.Decoder(_Event).decode_lines
    own = f"{LABEL}=true"
    while True:
        partial = b""
        async for piece in kube.watch(JOBS, {"resourceVersion": "0", "labelSelector": own}, 60.0):
            end = piece.rfind(b"\n") + 1
            lines, partial = (partial + piece[:end], piece[end:]) if end else (b"", partial + piece)
            if any(not event.object.spec.suspend for event in decode(lines)):
                return time.monotonic()
