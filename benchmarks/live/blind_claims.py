"""The blind writer: gives pods with claims devices in rotation, and binds them. What it does per pod is the least that
a scheduler has to do; it decides nothing.

The calls are those of the bridge: the finalizer and the status of a claim, for extended resources the claim and the
status of the pod as well, then the bind. Like `blind`, it has the bridge's HTTP client and concurrency, and is a
process of its own: python -m benchmarks.live.blind_claims --kubeconfig F --scheduler-name NAME --kind KIND --devices N
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import click
import msgspec
import orjson
import uvloop
from msgspec import Struct, field

from benchmarks.demo.evidence import listed
from benchmarks.loads.devices.device_objects import (
    API,
    CLASS,
    RESOURCE,
    allocation_of,
    device_count,
    devices_in_turn,
)
from poseidon_py.config.settings import Settings
from poseidon_py.kube import credentials
from poseidon_py.kube.client import MERGE_PATCH, Kube, NotFoundError
from poseidon_py.util.tasks import end_tasks

Json = dict[str, Any]
Devices = list[tuple[str, str]]

_FINALIZER = "resource.kubernetes.io/delete-protection"
_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
_IDLE_TIMEOUT = 150.0


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = field(default="", name="resourceVersion")


class _Entry(Struct):
    claim: str | None = field(default=None, name="resourceClaimName")


class _Spec(Struct):
    scheduler: str | None = field(default=None, name="schedulerName")
    node: str | None = field(default=None, name="nodeName")
    claims: list[_Entry] = field(default_factory=list, name="resourceClaims")
    containers: list[msgspec.Raw] = field(default_factory=list)


class _Status(Struct):
    claims: list[_Entry] = field(default_factory=list, name="resourceClaimStatuses")


class _Object(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


class _Event(Struct):
    type: str
    object: _Object


class BlindWriter:
    """`run` until cancelled."""

    def __init__(self, kube: Kube, scheduler: str, kind: str, devices: int) -> None:
        self._kube, self._scheduler, self._kind, self._devices = kube, scheduler, kind, devices
        self._free: asyncio.Queue[Devices] = asyncio.Queue()
        self._of_claim: dict[str, Devices] = {}  # by name of the claim
        self._users: dict[str, list[_Metadata]] = {}  # of a shared claim
        self._written: dict[str, int] = {}  # of a shared claim: the users that it has
        self._locks: dict[str, asyncio.Lock] = {}
        self._work: asyncio.Queue[_Object] = asyncio.Queue()
        self._begun: set[str] = set()

    async def run(self, concurrency: int) -> None:
        """Serves all pods of the scheduler that come."""
        names = [node["metadata"]["name"] for node in await listed(self._kube, "/api/v1/nodes")]
        page = orjson.loads(await self._kube.page(_CLAIMS, {}))
        for claim in page["items"]:
            allocation = (claim.get("status") or {}).get("allocation") or {}
            if results := allocation.get("devices", {}).get("results"):
                self._of_claim[claim["metadata"]["name"]] = [(each["pool"], each["device"]) for each in results]
        taken = {device for devices in self._of_claim.values() for device in devices}
        for devices in devices_in_turn(names, self._devices, device_count(self._kind)):
            if not taken.intersection(devices):
                self._free.put_nowait(devices)
        nodes = cycle(names)
        tasks = [asyncio.create_task(self._follow_pods())]
        tasks.append(asyncio.create_task(self._follow_claims(page["metadata"]["resourceVersion"])))
        tasks += [asyncio.create_task(self._worker(nodes)) for _ in range(concurrency)]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end_tasks(*tasks)

    async def _events(self, path: str, version: str) -> AsyncIterator[_Event]:
        decode = msgspec.json.Decoder(_Event).decode_lines
        while True:  # servers end watches when they like
            partial = b""
            async for piece in self._kube.watch(path, {"resourceVersion": version}, _IDLE_TIMEOUT):
                end = piece.rfind(b"\n") + 1
                lines, partial = (partial + piece[:end], piece[end:]) if end else (b"", partial + piece)
                for event in decode(lines):
                    yield event
                    version = event.object.metadata.version or version

    async def _follow_pods(self) -> None:
        async for event in self._events("/api/v1/pods", "0"):  # those that are there come first
            pod = event.object
            if event.type == "DELETED" or pod.spec.scheduler != self._scheduler or pod.spec.node:
                continue
            ready = not pod.spec.claims or pod.spec.claims[0].claim or pod.status.claims
            if ready and pod.metadata.uid not in self._begun:
                self._begun.add(pod.metadata.uid)
                self._work.put_nowait(pod)

    async def _follow_claims(self, version: str) -> None:
        """What a claim had can be given away again once it has gone."""
        async for event in self._events(_CLAIMS, version):
            devices = self._of_claim.pop(event.object.metadata.name, None) if event.type == "DELETED" else None
            if devices is not None:
                self._free.put_nowait(devices)

    async def _worker(self, nodes: Any) -> None:
        while True:
            pod = await self._work.get()
            about = pod.metadata
            if pod.spec.claims:
                named = pod.spec.claims[0].claim
                name = named or pod.status.claims[0].claim or ""
                node = await (self._share(about, name) if named else self._give(about, name))
            elif any(RESOURCE.encode() in bytes(each) for each in pod.spec.containers):
                node = await self._make(about)
            else:
                node = next(nodes)
            with suppress(NotFoundError):
                await self._kube.bind(about.namespace, about.name, about.uid, node, 30.0)

    async def _give(self, pod: _Metadata, claim: str) -> str:
        """Devices for the pod's own claim. Returns their node."""
        devices = await self._free.get()
        self._of_claim[claim] = devices
        await self._protect(pod.namespace, claim)
        await self._allocate(pod.namespace, claim, devices, [pod])
        return devices[0][0]

    async def _share(self, pod: _Metadata, claim: str) -> str:
        """Devices for a claim that other pods name, too: one write for all that wait."""
        users = self._users.setdefault(claim, [])
        users.append(pod)
        number = len(users)
        async with self._locks.setdefault(claim, asyncio.Lock()):
            if claim not in self._of_claim:
                self._of_claim[claim] = await self._free.get()
                await self._protect(pod.namespace, claim)
            if self._written.get(claim, 0) < number:
                self._written[claim] = len(users)
                await self._allocate(pod.namespace, claim, self._of_claim[claim], users)
        return self._of_claim[claim][0][0]

    async def _make(self, pod: _Metadata) -> str:
        """The claim of a pod's extended resource, with devices."""
        devices = await self._free.get()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        request = "container-0-request-0"
        exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
        body = {
            "apiVersion": API,
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": f"{pod.name}-extended-resources-",
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
                "finalizers": [_FINALIZER],
            },
            "spec": {"devices": {"requests": [{"name": request, "exactly": exactly}]}},
        }
        made = orjson.loads(await self._kube.create(self._folder(pod.namespace), body))
        claim = made["metadata"]["name"]
        self._of_claim[claim] = devices
        await self._allocate(pod.namespace, claim, devices, [pod], request)
        mapping = {"containerName": "main", "resourceName": RESOURCE, "requestName": request}
        status = {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": claim}}
        await self._kube.patch_pod_status(pod.namespace, pod.name, {"metadata": {"uid": pod.uid}, "status": status})
        return devices[0][0]

    async def _protect(self, namespace: str, claim: str) -> None:
        await self._patch(f"{self._folder(namespace)}/{claim}", {"metadata": {"finalizers": [_FINALIZER]}})

    async def _allocate(
        self, namespace: str, claim: str, devices: Devices, users: list[_Metadata], request: str = "device"
    ) -> None:
        reserved = [{"resource": "pods", "name": each.name, "uid": each.uid} for each in users]
        status = {"allocation": allocation_of(devices, request), "reservedFor": reserved}
        await self._patch(f"{self._folder(namespace)}/{claim}/status", {"status": status})

    async def _patch(self, path: str, body: Json) -> None:
        await self._kube.call("PATCH", path, orjson.dumps(body), MERGE_PATCH)

    @staticmethod
    def _folder(namespace: str) -> str:
        return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"


async def _run(kubeconfig: Path, scheduler: str, kind: str, devices: int, concurrency: int) -> None:
    kube = Kube(await credentials.load(kubeconfig, None), concurrency)
    await kube.start()
    try:
        await BlindWriter(kube, scheduler, kind, devices).run(concurrency)
    finally:
        await kube.close()


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True)
@click.option("--scheduler-name", required=True)
@click.option("--kind", required=True, help="Of the claims: selector, match, extended or shared.")
@click.option("--devices", type=int, required=True, help="Of each node.")
@click.option("--concurrency", type=int, default=Settings().bind_concurrency)
def cli(kubeconfig: Path, scheduler_name: str, kind: str, devices: int, concurrency: int) -> None:
    """Give pods devices in rotation and bind them, until SIGTERM."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(kubeconfig, scheduler_name, kind, devices, concurrency))


if __name__ == "__main__":
    cli()
