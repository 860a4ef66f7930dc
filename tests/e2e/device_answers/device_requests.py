"""Requests to resource.k8s.io and what a real API server (1.36) answers to them: a code, and a part of its message.

Each row starts from the objects of `PREPARED`: the claims `free`, `taken` (allocated and reserved) and `going`
(allocated, with a finalizer, being deleted), a class, a template, a slice, and a pod with claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.api import MERGE, Json

V1, BETA2, BETA1 = (f"/apis/resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1"))
CLAIMS = f"{V1}/namespaces/default/resourceclaims"
TEMPLATES = f"{V1}/namespaces/default/resourceclaimtemplates"
SLICES, CLASSES, RULES = f"{V1}/resourceslices", f"{V1}/deviceclasses", f"{BETA2}/devicetaintrules"
PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
FINALIZER = "resource.kubernetes.io/delete-protection"
DRIVER = "gpu.example.com"
SHARE = "11111111-2222-4333-8444-555555555555"


@dataclass(frozen=True)
class Exchange:
    """A request and its answer."""

    name: str
    method: str
    path: str
    body: Any
    code: int
    message: str = ""
    """A part of the message of a refusal."""
    kind: str = ""


def request(name: str = "gpu", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def several(*alternatives: Json, name: str = "gpu") -> Json:
    return {"name": name, "firstAvailable": list(alternatives)}


def alternative(name: str, **fields: Any) -> Json:
    return {"name": name, "deviceClassName": "gpu", **fields}


def claim(name: str, *requests: Json, version: str = "v1", **devices: Any) -> Json:
    spec = {"devices": {"requests": list(requests) or [request()], **devices}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def template(name: str, *requests: Json) -> Json:
    spec = {"spec": {"devices": {"requests": list(requests) or [request()]}}}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
    return about | {"spec": spec}


def device_class(name: str, **spec: Any) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(name: str, *devices: Json, **spec: Any) -> Json:
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}}
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    listed = {"devices": list(devices)} if devices else {}
    places = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"}
    where = {} if places & spec.keys() else {"allNodes": True}
    return about | {"spec": {"driver": DRIVER, "pool": pool, **where, **listed, **spec}}


def rule(name: str, **taint: Any) -> Json:
    spec = {
        "deviceSelector": {"driver": DRIVER},
        "taint": {"key": "example.com/broken", "effect": "NoExecute", **taint},
    }
    about = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": name}}
    return about | {"spec": spec}


def device(name: str = "gpu-0", **fields: Any) -> Json:
    return {"name": name, **fields}


def result(name: str = "gpu-0", **fields: Any) -> Json:
    return {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": name, **fields}


def allocation(*results: Json, config: list[Json] | None = None, **fields: Any) -> Json:
    devices = {"results": list(results) or [result()]} | ({"config": config} if config else {})
    return {"devices": devices, **fields}


def consumer(name: str = "p", uid: str = "u") -> Json:
    """A consumer that is no pod, so that no controller knows that it is gone."""
    return {"resource": "things", "name": name, "uid": uid}


def pod(name: str, claims: list[Json], used: list[Json] | None = None) -> Json:
    container = {"name": "main", "image": "x", "resources": {"claims": used or []}}
    spec = {"containers": [container], "resourceClaims": claims}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


NAMED = [{"name": "gpu", "resourceClaimTemplateName": "t"}, {"name": "own", "resourceClaimName": "free"}]
PREPARED: list[tuple[str, str, Json]] = [
    ("POST", CLASSES, device_class("gpu")),
    ("POST", TEMPLATES, template("t")),
    ("POST", SLICES, resource_slice("s", device(), nodeName="n")),
    ("POST", RULES, rule("r", effect="NoSchedule")),
    ("POST", CLAIMS, claim("free")),
    ("POST", CLAIMS, claim("taken", request(count=2))),
    ("POST", CLAIMS, claim("going") | {"metadata": {"name": "going", "finalizers": [FINALIZER]}}),
    ("PATCH", f"{CLAIMS}/taken/status", {"status": {"allocation": allocation(result(), result("gpu-1"))}}),
    ("PATCH", f"{CLAIMS}/taken/status", {"status": {"reservedFor": [consumer("p", "u1"), consumer("q", "u2")]}}),
    (
        "PATCH",
        f"{CLAIMS}/going/status",
        {"status": {"allocation": allocation(), "reservedFor": [{"resource": "things", "name": "t", "uid": "u3"}]}},
    ),
    ("DELETE", f"{CLAIMS}/going", {}),
    ("POST", PODS, pod("p", NAMED, [{"name": "gpu"}])),
]


def creating(name: str, manifest: Json, code: int, message: str = "") -> Exchange:
    """A row that creates an object."""
    paths = {
        "ResourceClaim": CLAIMS,
        "ResourceClaimTemplate": TEMPLATES,
        "ResourceSlice": SLICES,
        "DeviceClass": CLASSES,
        "DeviceTaintRule": RULES,
        "Pod": PODS,
    }
    return Exchange(name, "POST", paths[manifest["kind"]], manifest, code, message)


def accepted(name: str, manifest: Json) -> Exchange:
    """A row that creates an object."""
    return creating(name, manifest, 201)


def refused(name: str, manifest: Json, message: str) -> Exchange:
    """A row that cannot create an object."""
    return creating(name, manifest, 422, message)


def status(name: str, claim_name: str, new: Json, code: int, message: str = "", kind: str = MERGE) -> Exchange:
    """A row that writes a claim's status."""
    return Exchange(name, "PATCH", f"{CLAIMS}/{claim_name}/status", {"status": new}, code, message, kind)


def tolerating(**toleration: Any) -> Json:
    return claim("x", request(tolerations=[toleration]))


def expression(text: str) -> list[Json]:
    return [{"cel": {"expression": text}}]


def shared(**policy: Any) -> Json:
    capacity = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    return resource_slice("x", device(allowMultipleAllocations=True, capacity=capacity))


def counters(name: str = "c", count: int = 1) -> Json:
    return {"name": name, "counters": {f"m{at}": {"value": "1"} for at in range(count)}}


def consuming(*names: str) -> list[Json]:
    return [{"counterSet": name, "counters": {"m0": {"value": "1"}}} for name in names]


def tainted(**taint: Any) -> Json:
    return device(taints=[{"key": "example.com/broken", "effect": "NoSchedule", **taint}])


def attributes(**given: Any) -> Json:
    return resource_slice("x", device(attributes=given))


def opaque(**fields: Any) -> Json:
    return {"opaque": {"driver": DRIVER, "parameters": {"a": 1}, **fields}}


ONE_TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
REPORT = {"driver": DRIVER, "pool": "pool", "device": "gpu-0"}
NO_NAME = "must be the name of a request in the claim"
