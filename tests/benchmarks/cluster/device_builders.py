"""Builders of device objects for tests, in the form of resource.k8s.io/v1."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.cluster.builders import pod

Json = dict[str, Any]

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"


def _object(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def request(name: str = "gpu", device_class: str = "gpu", **exactly: Any) -> Json:
    """A request of a claim for devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def claim_spec(*requests: Json, **devices: Any) -> Json:
    """The specification of a claim; without requests, for one device of the class gpu."""
    return {"devices": {"requests": list(requests) or [request()], **devices}}


def claim(name: str = "c", *requests: Json, finalizers: tuple[str, ...] = (), **devices: Any) -> Json:
    """A ResourceClaim manifest."""
    given = {"finalizers": list(finalizers)} if finalizers else {}
    return _object("ResourceClaim", name, claim_spec(*requests, **devices), **given)


def claim_template(name: str = "t", *requests: Json, metadata: Json | None = None) -> Json:
    """A ResourceClaimTemplate manifest; `metadata` is that of its claims."""
    return _object("ResourceClaimTemplate", name, {"metadata": metadata or {}, "spec": claim_spec(*requests)})


def device_class(name: str = "gpu", **spec: Any) -> Json:
    """A DeviceClass manifest."""
    return _object("DeviceClass", name, spec)


def device(name: str = "gpu-0", **fields: Any) -> Json:
    """A device of a slice."""
    return {"name": name, **fields}


def resource_slice(
    name: str = "s",
    *devices: Json,
    pool: str = "pool",
    node: str = "",
    count: int = 1,
    generation: int = 1,
    **spec: Any,
) -> Json:
    """A ResourceSlice manifest; for all nodes, unless it has another way to say where."""
    where: Json = {"nodeName": node} if node else {}
    if not where and not {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys():
        where = {"allNodes": True}
    about = {"name": pool, "generation": generation, "resourceSliceCount": count}
    listed = {"devices": list(devices)} if devices else {}
    return _object("ResourceSlice", name, {"driver": DRIVER, "pool": about, **where, **listed, **spec})


def taint_rule(name: str = "r", effect: str = "NoExecute", **selector: str) -> Json:
    """A DeviceTaintRule manifest for the devices of the selector."""
    spec = {"deviceSelector": selector, "taint": {"key": "example.com/broken", "effect": effect}}
    return _object("DeviceTaintRule", name, spec)


def result(device_name: str = "gpu-0", **fields: Any) -> Json:
    """A device that a claim has been given."""
    return {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": device_name, **fields}


def allocation(*results: Json, node: str = "", **fields: Any) -> Json:
    """An allocation; on one node, if that is why."""
    found: Json = {"devices": {"results": list(results) or [result()]}, **fields}
    if node:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        found["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    return found


def consumer(name: str = "p", uid: str = "u") -> Json:
    """An entry of reservedFor."""
    return {"resource": "pods", "name": name, "uid": uid}


def pod_with_claim(
    name: str = "p", *, claim_name: str = "", template: str = "", entry: str = "gpu", **spec: Any
) -> Json:
    """A pod with one claim, which is that of its container too."""
    source = {"resourceClaimName": claim_name} if claim_name else {"resourceClaimTemplateName": template}
    resources = {"claims": [{"name": entry}]}
    return pod(name, resources=resources, resourceClaims=[{"name": entry, **source}], **spec)
