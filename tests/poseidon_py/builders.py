"""Pods and nodes as the API server would send them, and the bridge's view of them."""

import itertools
import json
from typing import Any

import msgspec

from poseidon_py.kube.objects import Node, Pod

_numbers = itertools.count(1)


def pod_json(
    name: str = "pod",
    *,
    uid: str | None = None,
    namespace: str = "default",
    scheduler: str = "poseidon",
    node: str = "",
    cpu: str | None = "100m",
    memory: str | None = "1Mi",
    requests: dict[str, Any] | None = None,
    phase: str = "Pending",
    version: int | None = None,
    owner: str = "",
    gates: bool = False,
    deleting: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, Any] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    if requests is None:
        requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version or next(_numbers)),
        "creationTimestamp": created,
    }
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True, "kind": "Job", "name": "j"}]
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:01Z"
    body: dict[str, Any] = {
        "metadata": metadata,
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
            **(spec or {}),
        },
        "status": {"phase": phase, **(status or {})},
    }
    if node:
        body["spec"]["nodeName"] = node
    if gates:
        body["spec"]["schedulingGates"] = [{"name": "wait"}]
    return body


def pod(name: str = "pod", **fields: Any) -> Pod:
    return as_pod(pod_json(name, **fields))


def as_pod(body: dict[str, Any]) -> Pod:
    return msgspec.json.decode(json.dumps(body), type=Pod)


def node_json(
    name: str = "node",
    *,
    uid: str | None = None,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    allocatable: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    declared: list[str] | None = None,
    version: int | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version or next(_numbers)),
            "labels": labels or {},
        },
        "spec": {},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods} if allocatable is None else allocatable},
    }
    if taints:
        body["spec"]["taints"] = taints
    if unschedulable:
        body["spec"]["unschedulable"] = True
    if declared is not None:
        body["status"]["declaredFeatures"] = declared
    return body


def node(name: str = "node", **fields: Any) -> Node:
    return msgspec.json.decode(json.dumps(node_json(name, **fields)), type=Node)
