"""What a case has besides pods: priority classes, Services, PodGroups, Kueue's queues; and removing all of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import orjson

from benchmarks.harness.runner import CannotMeasureError
from benchmarks.live.perf.claims import COLLECTIONS, settled
from benchmarks.live.perf.sizes import PerfSizes
from benchmarks.live.perf.templates import HIGH, SERVICE
from benchmarks.live.session import LABEL, in_parallel, remove_labelled
from poseidon_py.kube.client import ApiError, Kube

Json = dict[str, Any]

NAMESPACE = "/namespaces/default"
PODS = f"/api/v1{NAMESPACE}/pods"
SERVICES = f"/api/v1{NAMESPACE}/services"
JOBS = f"/apis/batch/v1{NAMESPACE}/jobs"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUPS = "scheduling.k8s.io"
_GROUP_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
_KUEUE = "kueue.x-k8s.io"
_KUEUE_VERSIONS = ("v1beta2", "v1beta1")
_PRIORITY = 1000
QUEUE = f"{LABEL}-queue"
QUEUE_LABEL = f"{_KUEUE}/queue-name"
_AMPLE = {"cpu": "1000000", "memory": "10000Ti"}
_DISRUPTION_MODES = {"single": "Pod", "all": "PodGroup"}
"""The names of v1alpha2."""
_PATIENCE, _POLL_SECONDS = 30.0, 0.2
_CLAIM_PATIENCE = 120.0
"""Seconds for the controllers to free the devices of pods that are gone."""


class Furnishing:
    """The objects of a case on one server. synthetic: whether definitions that are lacking may be created."""

    def __init__(self, kube: Kube, sizes: PerfSizes, synthetic: bool) -> None:
        self._kube, self._sizes, self._synthetic = kube, sizes, synthetic
        self._groups = self._kueue = ""

    async def prepare(self) -> None:
        """Creates all of it but PodGroups. Raises CannotMeasureError if the server lacks a kind."""
        sizes = self._sizes
        high = {"value": _PRIORITY, "preemptionPolicy": "PreemptLowerPriority"}
        await self.put(PRIORITY_CLASSES, {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1"}, HIGH, **high)
        if sizes.service:
            await self.put(SERVICES, {}, LABEL, spec=SERVICE)
        if sizes.has_groups:
            enable = (
                "start the API server with --feature-gates=GenericWorkload=true and --runtime-config=all/alpha=true,"
                "all/beta=true, or use the synthetic cluster"
            )
            version = await self._served(_GROUPS, _GROUP_VERSIONS, {"podgroups": "PodGroup"}, enable)
            self._groups = f"{_GROUPS}/{version}"
        if sizes.claims is not None:
            kinds = {"resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim"}
            await self._served("resource.k8s.io", ("v1",), kinds, "use Kubernetes 1.34 or later")
        if sizes.jobs:
            await self._queues()

    async def groups(self, prefix: str, count: int, members: int, disruption: str = "") -> None:
        """Creates PodGroups PREFIX-0, PREFIX-1, ...; members: how many have to be placed at once, 0: each by itself."""
        spec: Json = {"schedulingPolicy": {"gang": {"minCount": members}} if members else {"basic": {}}}
        if disruption:
            old = self._groups.endswith("v1alpha2")
            spec["disruptionMode"] = _DISRUPTION_MODES[disruption] if old else {disruption: {}}
        about = {"apiVersion": self._groups, "kind": "PodGroup"}
        path = f"/apis/{self._groups}{NAMESPACE}/podgroups"
        await in_parallel(lambda i: self.put(path, about, f"{prefix}-{i}", spec=spec), range(count))

    async def put(self, path: str, about: Json, name: str, **fields: Any) -> None:
        """Creates an object with the label of all that is removed in the end."""
        body = {**about, "metadata": {"name": name, "labels": {LABEL: "true"}}, **fields}
        await self._kube.call("POST", path, orjson.dumps(body))

    async def remove(self) -> None:
        """Removes all that was created here and all pods, but no nodes and no definitions."""
        paths = [JOBS] * bool(self._sizes.jobs) + [PODS, PRIORITY_CLASSES]
        for _, plural, namespaced in _QUEUE_KINDS if self._kueue else ():
            paths.append(f"/apis/{self._kueue}{NAMESPACE if namespaced else ''}/{plural}")
        if self._groups:
            paths.append(f"/apis/{self._groups}{NAMESPACE}/podgroups")
        paths += COLLECTIONS if self._sizes.claims is not None else ()
        for path in paths:
            await self._clear(path)
        if self._sizes.claims is not None:
            with suppress(TimeoutError):
                await settled(self._kube, _CLAIM_PATIENCE)
        for name in (LABEL, f"{LABEL}-churn"):  # API servers may not delete collections of Services
            with suppress(ApiError):
                await self._kube.call("DELETE", f"{SERVICES}/{name}")

    async def _clear(self, path: str) -> None:
        """Deletes what was created in a collection, and waits for what finalizers hold."""
        end = time.monotonic() + _PATIENCE
        while True:
            await remove_labelled(self._kube, path)
            own = f"{path}?labelSelector={LABEL}%3Dtrue&limit=1"
            if not orjson.loads(await self._kube.call("GET", own))["items"] or time.monotonic() > end:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _queues(self) -> None:
        """A queue of Kueue that admits everything at once."""
        kinds = {plural: kind for kind, plural, _ in _QUEUE_KINDS}
        version = await self._served(_KUEUE, _KUEUE_VERSIONS, kinds, "install Kueue's CRDs there")
        self._kueue = f"{_KUEUE}/{version}"
        quota = [{"name": name, "nominalQuota": amount} for name, amount in _AMPLE.items()]
        flavors = [{"name": QUEUE, "resources": quota}]
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": list(_AMPLE), "flavors": flavors}],
        }
        specs: dict[str, Json] = {
            "ResourceFlavor": {},
            "ClusterQueue": spec,
            "LocalQueue": {"clusterQueue": QUEUE},
        }
        for kind, plural, namespaced in _QUEUE_KINDS:
            path = f"/apis/{self._kueue}{NAMESPACE if namespaced else ''}/{plural}"
            await self.put(path, {"apiVersion": self._kueue, "kind": kind}, QUEUE, spec=specs[kind])

    async def _served(self, group: str, versions: tuple[str, ...], kinds: dict[str, str], enable: str) -> str:
        """The version in which the server has all of the kinds (plural -> kind)."""
        if not (found := await self._version(group, versions, kinds)) and self._synthetic:
            for plural, kind in kinds.items():
                await self._define(group, versions[0] if group == _KUEUE else "v1beta1", plural, kind)
            async with asyncio.timeout(_PATIENCE):
                while not (found := await self._version(group, versions, kinds)):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)  # discovery cannot be watched
        if not found:
            raise CannotMeasureError(f"the server does not serve {', '.join(kinds)} of {group}; {enable}")
        return found

    async def _version(self, group: str, versions: tuple[str, ...], kinds: dict[str, str]) -> str:
        for version in versions:
            with suppress(ApiError):
                served = orjson.loads(await self._kube.call("GET", f"/apis/{group}/{version}"))["resources"]
                if set(kinds) <= {each["name"] for each in served}:
                    return version
        return ""

    async def _define(self, group: str, version: str, plural: str, kind: str) -> None:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        one = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
        cluster_wide = any(plural == name and not namespaced for _, name, namespaced in _QUEUE_KINDS)
        spec = {
            "group": group,
            "scope": "Cluster" if cluster_wide else "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [one],
        }
        about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        await self.put(_DEFINITIONS, about, f"{plural}.{group}", spec=spec)


_QUEUE_KINDS = (
    ("ResourceFlavor", "resourceflavors", False),
    ("ClusterQueue", "clusterqueues", False),
    ("LocalQueue", "localqueues", True),
)
