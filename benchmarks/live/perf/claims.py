"""Pods with device claims in a case: slices and classes, claims and templates, and what the claims' watch has shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from benchmarks.harness.results import Check
from benchmarks.live.perf.sizes import ClaimSizes
from benchmarks.live.session import LABEL, in_parallel
from benchmarks.loads.devices.claim_audit import ClaimAudit
from benchmarks.loads.devices.device_objects import (
    RESOURCE,
    allocation_of,
    claim_of,
    claim_spec,
    device_class,
    device_count,
    devices_in_turn,
    open_class,
    slice_of,
)
from poseidon_py.kube.client import MERGE_PATCH, Kube, KubeError

Json = dict[str, Any]

_ROOT = "/apis/resource.k8s.io/v1"
SLICES, CLASSES = f"{_ROOT}/resourceslices", f"{_ROOT}/deviceclasses"
CLAIMS = f"{_ROOT}/namespaces/default/resourceclaims"
_TEMPLATES = f"{_ROOT}/namespaces/default/resourceclaimtemplates"
_PODS = "/api/v1/namespaces/default/pods"
COLLECTIONS = (CLAIMS, _TEMPLATES, CLASSES, SLICES)
"""All that is created here, in the order of removal."""
ENTRY = "device"
"""The name of the entry in spec.resourceClaims."""
_PODS_A_CLAIM = 256
_IDLE_TIMEOUT = 150.0


class CaseClaims:
    """`prepare`, then `follow` while pods are measured, then `checks`."""

    def __init__(self, kube: Kube, sizes: ClaimSizes, scheduler: str, pods: int) -> None:
        self._kube, self._sizes, self._scheduler, self._pods = kube, sizes, scheduler, pods
        self._nodes: list[str] = []
        self._seen: list[bytes] = []
        """Lines of the watch, which are judged in the end: that must not slow down what is measured."""

    async def prepare(self, nodes: list[str]) -> None:
        """Creates everything, and the pods that run beforehand."""
        self._nodes, sizes = nodes, self._sizes
        for each in (device_class(), open_class()):
            await self._post(CLASSES, each)
        await self._post_all(SLICES, (slice_of(node, sizes.devices) for node in nodes))
        metadata = {"labels": {LABEL: "true"}}
        template = {
            "metadata": {"name": self._template},
            "spec": {"metadata": metadata, "spec": claim_spec(sizes.kind)},
        }
        await self._post(_TEMPLATES, template)
        if sizes.kind == "shared":
            claims = range(-(-self._pods // _PODS_A_CLAIM))
            await self._post_all(CLAIMS, (claim_of(self._shared(at), sizes.kind) for at in claims))
        places = list(devices_in_turn(nodes, sizes.devices, device_count(sizes.kind)))
        count = min(round(sizes.running * len(places)), len(places) - sizes.left)
        await in_parallel(lambda at: self._run(at, places[at]), range(max(count, 0)))

    @property
    def _template(self) -> str:
        return f"{self._scheduler}-claims"

    def _shared(self, number: int) -> str:
        return f"{self._scheduler}-shared-{number:03d}"

    async def _run(self, number: int, devices: list[tuple[str, str]]) -> None:
        """A running pod, and its claim with these devices."""
        name = f"{self._scheduler}-running-{number:05d}"
        await self._post(CLAIMS, claim_of(name, "match" if self._sizes.kind == "match" else "selector"))
        container = {"name": "main", "image": "example.com/app:1"}
        spec = {
            "schedulerName": f"{LABEL}-no-scheduler",
            "nodeName": devices[0][0],
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "resourceClaims": [{"name": ENTRY, "resourceClaimName": name}],
        }
        pod = await self._post(_PODS, {"metadata": {"name": name}, "spec": spec})
        user = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        finalizers = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        status = {"status": {"allocation": allocation_of(devices), "reservedFor": [user]}}
        path = f"{CLAIMS}/{name}"
        await self._kube.call("PATCH", path, orjson.dumps(finalizers), MERGE_PATCH)
        await self._kube.call("PATCH", f"{path}/status", orjson.dumps(status), MERGE_PATCH)

    async def _post(self, path: str, body: Json) -> Json:
        labelled = body | {"metadata": {**body["metadata"], "labels": {LABEL: "true"}}}
        found: Json = orjson.loads(await self._kube.call("POST", path, orjson.dumps(labelled)))
        return found

    async def _post_all(self, path: str, bodies: Iterable[Json]) -> None:
        each = list(bodies)

        async def one(number: int) -> None:
            await self._post(path, each[number])

        await in_parallel(one, range(len(each)))

    def add_to(self, pod: Json, number: int) -> None:
        """Lets a pod, the `number`th, ask for devices."""
        spec, kind = pod["spec"], self._sizes.kind
        if kind == "extended":
            resources = spec["containers"][0]["resources"]
            spec["containers"][0]["resources"] = {
                "requests": {**resources["requests"], RESOURCE: "1"},
                "limits": {RESOURCE: "1"},
            }
        elif kind == "shared":
            spec["resourceClaims"] = [{"name": ENTRY, "resourceClaimName": self._shared(number // _PODS_A_CLAIM)}]
        else:
            spec["resourceClaims"] = [{"name": ENTRY, "resourceClaimTemplateName": self._template}]

    async def follow(self) -> None:
        """Notes every change of a claim until cancelled."""
        version = "0"  # what is there comes first
        try:
            while True:  # servers end watches when they like
                partial = b""
                async for piece in self._kube.watch(CLAIMS, {"resourceVersion": version}, _IDLE_TIMEOUT):
                    end = piece.rfind(b"\n") + 1
                    lines, partial = (partial + piece[:end], piece[end:]) if end else (b"", partial + piece)
                    self._seen += lines.splitlines()
                if self._seen:
                    last = orjson.loads(self._seen[-1])
                    if last["type"] == "ERROR":
                        return
                    version = last["object"]["metadata"]["resourceVersion"]
        except KubeError as error:
            self._seen.append(orjson.dumps({"type": "ERROR", "object": str(error)}))

    def checks(self, on: Mapping[str, str]) -> list[Check]:
        """What is right. on: UID of each measured pod -> its node."""
        audit, broken = ClaimAudit(self._sizes.kind, self._nodes, self._sizes.devices), ""
        for line in self._seen:
            event = orjson.loads(line)
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                audit.take(event["type"], event["object"])
            else:
                broken = f"the watch of claims broke: {event}"
        wrong = [*audit.wrong, *([broken] if broken else [])]
        apart = sum(audit.nodes.get(uid) != node for uid, node in on.items())
        return [
            Check("devices are given as claims ask, each once", not wrong, "; ".join(wrong[:3])),
            Check("every bound pod has devices of its node", not apart, f"{apart} of {len(on)} have not"),
        ]


async def settled(kube: Kube, seconds: float) -> None:
    """Waits until no claim is left, since those of extended resources have no label, and go with their pods."""
    async with asyncio.timeout(seconds):
        while orjson.loads(await kube.call("GET", f"{CLAIMS}?limit=1"))["items"]:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
