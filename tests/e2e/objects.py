"""Manifests of nodes and pods, and independent arithmetic on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

Json = dict[str, Any]

_UNITS = {
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
}


def node(name: str, *, labels: Mapping[str, str] = {}, taints: Iterable[Json] = (), **resources: str | int) -> Json:
    """A ready node; resources by name, with "_" for "-" and "gpu" for an extended one."""
    offered = {"cpu": "4", "memory": "8Gi", "pods": "20", "ephemeral_storage": "10Gi"} | resources
    amounts = {_resource(key): str(value) for key, value in offered.items()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", **_times()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def _times() -> Json:
    return {"lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _resource(key: str) -> str:
    return {"gpu": "example.com/gpu"}.get(key, key.replace("_", "-"))


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def container(name: str = "main", **resources: str | int) -> Json:
    """A container with these requests; extended resources are limits, too."""
    requests = {_resource(key): str(value) for key, value in resources.items()}
    limits = {key: value for key, value in requests.items() if "/" in key}
    return {
        "name": name,
        "image": "example.com/image:1",
        "resources": ({"requests": requests} if requests else {}) | ({"limits": limits} if limits else {}),
    }


def pod(name: str, *, scheduler: str | None = "poseidon", metadata: Json | None = None, **spec: Any) -> Json:
    """A pod; resources `cpu`, `memory`, `gpu`, ... make its one container, everything else is spec."""
    requests = {key: spec.pop(key) for key in ("cpu", "memory", "gpu", "ephemeral_storage") if key in spec}
    spec.setdefault("containers", [container(**(requests or {"cpu": "100m", "memory": "16Mi"}))])
    if scheduler is not None:
        spec["schedulerName"] = scheduler
    spec.setdefault("terminationGracePeriodSeconds", 0)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


def required(*terms: Json) -> Json:
    """A required node affinity of these terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str, field: bool = False) -> Json:
    """A term of one expression."""
    found: Json = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    return {"matchFields" if field else "matchExpressions": [found]}


def amount(text: Any) -> Fraction:
    """A quantity."""
    digits = str(text).rstrip("mkMGiK")
    return Fraction(digits) * _UNITS[str(text)[len(digits) :]]


def requests(item: Json) -> dict[str, Fraction]:
    """The requests of a pod: the larger of containers and init containers, sidecars, pod level, overhead."""
    spec = item["spec"]
    total: dict[str, Fraction] = {}
    for one in spec["containers"]:
        _add(total, _requested(one))
    sidecars: dict[str, Fraction] = {}
    maximum: dict[str, Fraction] = {}
    for one in spec.get("initContainers", ()):
        mine = _requested(one)
        if one.get("restartPolicy") == "Always":
            _add(sidecars, mine)
            mine = dict(sidecars)
        else:
            _add(mine, sidecars)
        maximum = {key: max(maximum.get(key, Fraction(0)), mine.get(key, Fraction(0))) for key in {*maximum, *mine}}
    _add(total, sidecars)
    total = {key: max(total.get(key, Fraction(0)), maximum.get(key, Fraction(0))) for key in {*total, *maximum}}
    total |= {key: amount(value) for key, value in spec.get("resources", {}).get("requests", {}).items()}
    _add(total, {key: amount(value) for key, value in spec.get("overhead", {}).items()})
    return total | {"pods": Fraction(1)}


def _requested(one: Json) -> dict[str, Fraction]:
    return {key: amount(value) for key, value in one.get("resources", {}).get("requests", {}).items()}


def _add(total: dict[str, Fraction], extra: Mapping[str, Fraction]) -> None:
    for key, value in extra.items():
        total[key] = total.get(key, Fraction(0)) + value


SERVED_BY_DEVICES = "devices.example.com/gpu"
"""An extended resource that nodes have in their slices, not in their status."""


def overcommitted(pods: Iterable[Json], nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Over-committed resources, given the bound pods and the capacity of existing nodes."""
    used: dict[str, dict[str, Fraction]] = {}
    for item in pods:
        if item["status"].get("phase") not in ("Succeeded", "Failed"):
            _add(used.setdefault(item["spec"]["nodeName"], {}), requests(item))
    return [
        f"{name}: {key} {float(value)} of {nodes[name].get(key, '0')}"
        for name, sums in used.items()
        if name in nodes
        for key, value in sums.items()
        if key != SERVED_BY_DEVICES and value > amount(nodes[name].get(key, "0"))
    ]


def condition(item: Json, kind: str = "PodScheduled") -> Json:
    """A condition of a pod; empty: it has none."""
    found: Json = next((c for c in item.get("status", {}).get("conditions", []) if c["type"] == kind), {})
    return found
