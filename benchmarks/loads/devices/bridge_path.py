"""The bridge's path of pods with device claims, without a server and an engine.

Objects arrive as JSON, as from watches. Nodes are given in rotation, so that all that is measured is the bridge's;
writes are answered in memory, and what that costs is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import msgspec
import orjson

from benchmarks.loads.devices.claim_audit import ClaimAudit
from benchmarks.loads.devices.device_objects import (
    RESOURCE,
    allocation_of,
    claim_of,
    device_class,
    device_count,
    devices_in_turn,
    open_class,
    slice_of,
)
from poseidon_py.bind.device_claims import DeviceBinder
from poseidon_py.devices.objects import DeviceClass, ResourceClaim, ResourceSlice
from poseidon_py.feed.update_rows import describe_pod, node_message
from poseidon_py.kube.objects import Node, Pod
from poseidon_py.state.devices.chooser import DeviceChooser
from poseidon_py.state.store import Store

Json = dict[str, Any]

SCHEDULER = "poseidon"
PODS_A_CLAIM = 256
"""Users that a claim can have at once."""
_AT_ONCE = 500
"""Pods that a round places."""
_COLLECTION = "/apis/resource.k8s.io/v1/resourceclaims"


@dataclass(frozen=True, slots=True)
class PathSpec:
    """`pods` pods of a kind (device_objects.KINDS) on `nodes` nodes of `devices` devices each. running: the share of
    the devices that other pods have already."""

    nodes: int
    pods: int
    devices: int = 10
    kind: str = "selector"
    running: float = 0.0


@dataclass(slots=True)
class PathFigures:
    """CPU seconds of each part, and how often anything was described."""

    observe_s: float = 0.0
    describe_s: float = 0.0
    choose_s: float = 0.0
    write_s: float = 0.0
    follow_s: float = 0.0
    """Events that the binds cause, and what is described again because of them."""
    pods_described: int = 0
    nodes_described: int = 0
    placed: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        return self.observe_s + self.describe_s + self.choose_s + self.write_s + self.follow_s


class _Answers:
    """The API server's part of bind.device_claims.ClaimApi: claims as JSON, and the CPU time that they took."""

    def __init__(self, audit: ClaimAudit) -> None:
        self.claims: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.news: list[bytes] = []
        """Claims that were written and not told yet."""
        self.seconds = 0.0
        self._audit = audit
        self._version = 0

    def put(self, claim: Json) -> bytes:
        began = process_time()
        self._version += 1
        name = claim["metadata"]["name"]
        change = "MODIFIED" if name in self.claims else "ADDED"
        claim["metadata"]["resourceVersion"] = str(self._version)
        self.claims[name] = claim
        self._audit.take(change, claim)
        found = orjson.dumps(claim)
        self.news.append(found)
        self.seconds += process_time() - began
        return found

    async def create(self, path: str, body: Mapping[str, Any]) -> bytes:
        began = process_time()
        claim = orjson.loads(orjson.dumps(body))
        number = len(self.claims)
        claim["metadata"] |= {"name": f"{claim['metadata']['generateName']}{number}", "uid": f"claim-{number}"}
        self.seconds += process_time() - began
        return self.put(claim)

    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes:
        began = process_time()
        given = orjson.loads(orjson.dumps(patch))
        name = path.removesuffix("/status").rpartition("/")[2]
        claim = orjson.loads(orjson.dumps(self.claims[name]))
        claim["metadata"] |= given["metadata"]
        claim["status"] = (claim.get("status") or {}) | given.get("status", {})
        self.seconds += process_time() - began
        return self.put(claim)

    async def call(self, verb: str, path: str, body: bytes = b"") -> bytes:
        raise AssertionError(f"nothing is given back or deleted here, as {verb} {path} would")

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        self.pods[name]["status"] |= orjson.loads(orjson.dumps(patch["status"]))


class BridgePath:
    """`run` once."""

    def __init__(self, spec: PathSpec) -> None:
        self._spec = spec
        self._nodes = [f"node-{at:05d}" for at in range(spec.nodes)]
        self.audit = ClaimAudit(spec.kind, self._nodes, spec.devices)
        self.figures = PathFigures()
        self._answers = _Answers(self.audit)
        self._store = Store([SCHEDULER])
        gate = self._store.devices
        gate.set_readable("")
        chooser = DeviceChooser(gate, self._store.nodes.get)
        self._binder = DeviceBinder(self._answers, gate, chooser, lambda: _COLLECTION, leads=lambda: True)
        self._pods = self._answers.pods
        self._on: dict[str, str] = {}
        """Name of a pod -> the node that it is given."""

    async def run(self) -> PathFigures:
        """CPU seconds of the whole path; the checks are in `figures.problems` and `audit.wrong`."""
        logging.disable(logging.INFO)
        try:
            self._make()
            self._observe()
            self.figures.describe_s = _timed(self._describe)
            waiting = [name for name in self._on if "nodeName" not in self._pods[name]["spec"]]
            for first in range(0, len(waiting), _AT_ONCE):
                await self._round(waiting[first : first + _AT_ONCE])
        finally:
            logging.disable(logging.NOTSET)
        return self.figures

    # -- the objects ----------------------------------------------------------------------------------------------

    def _make(self) -> None:
        spec = self._spec
        each = device_count(spec.kind)
        places = devices_in_turn(self._nodes, spec.devices, each)
        running = round(spec.running * spec.nodes * (spec.devices // each))
        for number in range(running):
            devices = next(places)
            name = f"running-{number:05d}"
            pod = self._pod(name, named=name)
            pod["spec"]["nodeName"] = self._on[name] = devices[0][0]
            pod["status"]["phase"] = "Running"
            user = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
            claim = claim_of(name, "match" if spec.kind == "match" else "selector")
            claim["metadata"]["uid"] = f"claim-of-{name}"
            claim["status"] = {"allocation": allocation_of(devices), "reservedFor": [user]}
            self._answers.put(claim)
        for number in range(spec.pods):
            name = f"pod-{number:05d}"
            if spec.kind == "shared":
                shared = f"shared-{number // PODS_A_CLAIM:03d}"
                if number % PODS_A_CLAIM == 0:
                    claim = claim_of(shared, spec.kind)
                    claim["metadata"]["uid"] = f"claim-of-{shared}"
                    self._answers.put(claim)
                    devices = next(places)
                self._pod(name, named=shared)
            elif spec.kind == "extended":
                devices = next(places)
                self._pod(name, extended=True)
            else:
                devices = next(places)
                pod = self._pod(name, made=f"{name}-device")
                claim = claim_of(f"{name}-device", spec.kind)
                owner = {"kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": True}
                claim["metadata"] |= {"uid": f"claim-of-{name}", "ownerReferences": [owner]}
                self._answers.put(claim)
            self._on[name] = devices[0][0]

    def _pod(self, name: str, *, named: str = "", made: str = "", extended: bool = False) -> Json:
        container: Json = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "100m"}}}
        spec: Json = {"schedulerName": SCHEDULER, "containers": [container]}
        status: Json = {"phase": "Pending"}
        if extended:
            container["resources"] = {"requests": {"cpu": "100m", RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
        elif named:
            spec["resourceClaims"] = [{"name": "device", "resourceClaimName": named}]
        else:
            spec["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": "device"}]
            status["resourceClaimStatuses"] = [{"name": "device", "resourceClaimName": made}]
        about = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
        about["creationTimestamp"] = "2026-01-01T00:00:00Z"
        self._pods[name] = {"metadata": about, "spec": spec, "status": status}
        return self._pods[name]

    # -- the bridge -----------------------------------------------------------------------------------------------

    def _observe(self) -> None:
        classes = [orjson.dumps(each) for each in (device_class(), open_class())]
        slices = [orjson.dumps(slice_of(node, self._spec.devices)) for node in self._nodes]
        nodes = [orjson.dumps(_node(name)) for name in self._nodes]
        pods = [orjson.dumps(pod) for pod in self._pods.values()]

        def observe() -> None:
            gate, store = self._store.devices, self._store
            for each in classes:
                gate.put_class(msgspec.json.decode(each, type=DeviceClass))
            for each in nodes:
                store.observe_node(msgspec.json.decode(each, type=Node))
            for each in slices:
                gate.put_slice(msgspec.json.decode(each, type=ResourceSlice))
            self._tell()
            for each in pods:
                store.observe_pod(msgspec.json.decode(each, type=Pod))

        self.figures.observe_s = _timed(observe)

    def _tell(self) -> None:
        """The watch of claims."""
        news, self._answers.news = self._answers.news, []
        for each in news:
            self._store.devices.put_claim(msgspec.json.decode(each, type=ResourceClaim))

    def _describe(self) -> None:
        """Describes what has changed until nothing has."""
        store, figures = self._store, self.figures
        while True:
            pods = [known for known in store.pods.values() if known.dirty]
            for known in pods:
                known.dirty = False
                describe_pod(store, known)
            nodes = [known for known in store.nodes.values() if known.dirty]
            for node in nodes:
                node.dirty = False
                node_message(store, node)
            figures.pods_described += len(pods)
            figures.nodes_described += len(nodes)
            if not (pods or nodes):
                return

    async def _round(self, names: list[str]) -> None:
        """Places pods on their nodes, and lets them be bound there."""
        store, figures = self._store, self.figures
        writes: list[Awaitable[None]] = []

        def choose() -> None:
            for name in names:
                known = store.pods[f"uid-{name}"]
                if not known.described.class_id or known.devices.blocked not in ("", _BEHIND):
                    figures.problems.append(f"{name} cannot be placed: {known.devices.blocked}")
                    continue
                store.assume(known, self._on[name])
                prepared = self._binder.prepare(known, self._on[name])
                if prepared is not None:
                    writes.append(prepared)

        figures.choose_s += _timed(choose)
        before, answered = process_time(), self._answers.seconds
        await asyncio.gather(*writes)
        figures.write_s += process_time() - before - (self._answers.seconds - answered)
        bound = []
        for name in names:
            pod = self._pods[name]
            pod["spec"]["nodeName"] = self._on[name]
            pod["metadata"]["resourceVersion"] = "2"
            bound.append(orjson.dumps(pod))
        figures.placed += len(writes)

        def follow() -> None:
            self._tell()
            for each in bound:
                store.observe_pod(msgspec.json.decode(each, type=Pod))
            self._describe()

        figures.follow_s += _timed(follow)

    # -- what came of it ------------------------------------------------------------------------------------------

    def wrong(self) -> Iterator[str]:
        """What is not as it has to be: everything that the audit has found, and pods without devices of their node."""
        yield from self.audit.wrong
        yield from self.figures.problems
        for name, node in self._on.items():
            if (has := self.audit.nodes.get(f"uid-{name}", "none")) != node:
                yield f"{name} is on {node}, and has a device of {has}"


_BEHIND = "behind a pod that names the same claim and is placed first"
"""Of a shared claim: its users are told this until the first of them has devices."""


def _timed(call: Callable[[], None]) -> float:
    """CPU seconds."""
    began = process_time()
    call()
    return process_time() - began


def _node(name: str) -> Json:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "512"}
    ready = {"type": "Ready", "status": "True"}
    about = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": about,
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def measured(spec: PathSpec) -> BridgePath:
    """The path of `spec`, after it was run. Its store works on an event loop."""

    async def run() -> BridgePath:
        path = BridgePath(spec)
        await path.run()
        return path

    return asyncio.run(run())
