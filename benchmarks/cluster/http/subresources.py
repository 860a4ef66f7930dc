"""Subresources that are not part of the object: binding, eviction, scale, log, namespace finalize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cluster.api.binding import bind, evict
from benchmarks.cluster.api.patches import json_patch, merge_patch
from benchmarks.cluster.api.schema import conform
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.http.paths import Target
from benchmarks.cluster.store.errors import STALE, Json, bad_request, conflict, method_not_allowed, no_such_path
from benchmarks.cluster.store.kinds import NAMESPACES, Kind
from benchmarks.cluster.store.store import Record


def serve(api: Api, verb: str, target: Target, body: Any, dry_run: bool) -> tuple[int, Json | None]:
    """Answer one request: the code, and the body (None for a plain Success)."""
    kind, namespace, name = target.kind, target.namespace, target.name
    match target.subresource, verb:
        case "binding", "create":
            bind(api, namespace, name or name_of(body), _object(body), dry_run=dry_run)
            return 201, None
        case "eviction", "create":
            evict(api, namespace, name, _object(body), dry_run=dry_run)
            return 201, None
        case "scale", "get":
            return 200, scale_of(api.get(kind, namespace, name))
        case "scale", ("update" | "patch"):
            return 200, _scale(api, target, verb, body, dry_run)
        case "ephemeralcontainers" | "resize", "get":
            return 200, api.get(kind, namespace, name).parse()
        case "finalize", "update":
            return 200, _finalize(api, target, _object(body))
        case (("log" | "ephemeralcontainers" | "resize"), _):
            raise no_such_path()
    raise method_not_allowed(f"{kind.plural}/{target.subresource}", kind.group, verb)


def review(kind: Kind, question: Any, of_accounts: Callable[[Kind, Json], Json]) -> Json:
    """Answer an access review: everything is allowed, but for ServiceAccounts, whose answers are `of_accounts`."""
    user = {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}
    answers: dict[str, Json] = {
        "SelfSubjectReview": {"userInfo": user},
        "SelfSubjectRulesReview": {
            "incomplete": False,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        },
    }
    status = answers.get(kind.kind) or of_accounts(kind, _object(question))
    return {**_object(question), "kind": kind.kind, "apiVersion": kind.api_version, "status": status}


def _object(body: Any) -> Json:
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    return body


def name_of(body: Any) -> str:
    """metadata.name of a body; 400 if it has none."""
    metadata = _object(body).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise bad_request("metadata.name must be provided")
    return name


def scale_of(record: Record) -> Json:
    """The Scale of a workload."""
    obj = record.parse()
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            key: metadata[key]
            for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if key in metadata
        },
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {
            "replicas": (obj.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def _scale(api: Api, target: Target, verb: str, body: Any, dry_run: bool) -> Json:
    before = api.get(target.kind, target.namespace, target.name)
    scale = scale_of(before)
    if verb == "update":
        scale = _object(body)
    else:
        scale = json_patch(scale, body) if isinstance(body, list) else merge_patch(scale, body)
    conform("autoscaling/v1", "Scale", scale)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version not in (None, "", str(before.version)):
        raise conflict(target.kind.plural, target.kind.group, target.name, STALE)
    replicas = scale["spec"].get("replicas", 0)
    obj = before.parse()
    obj["spec"]["replicas"] = replicas
    return scale_of(api.replace(target.kind, before, obj, dry_run=dry_run))


def _finalize(api: Api, target: Target, body: Json) -> Json:
    before = api.get(NAMESPACES, "", target.name)
    conform("v1", "Namespace", body)
    obj = before.parse()
    obj["spec"]["finalizers"] = body["spec"].get("finalizers", [])
    return api.write(NAMESPACES, before, obj).parse()
