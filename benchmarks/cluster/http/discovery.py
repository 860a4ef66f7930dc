"""Discovery: version, groups, resources, and a minimal OpenAPI. The OpenAPI documents describe no fields, which makes
kubectl leave validation to the server."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from benchmarks.cluster.store.kinds import Kind, Kinds

Json = dict[str, Any]

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+synthetic",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_KINDS: dict[str, tuple[str, str, str]] = {  # group, version, kind
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
_SUBRESOURCE_VERBS: dict[str, list[str]] = {
    "binding": ["create"],
    "eviction": ["create"],
    "token": ["create"],
    "log": ["get"],
    "portforward": ["create", "get"],
    "finalize": ["update"],
}


def _group_of(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def api_versions() -> Json:
    """GET /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(kinds: Kinds) -> Json:
    """GET /apis."""
    listed = [_group_of(group, versions) for group, versions in kinds.groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(kinds: Kinds, name: str) -> Json | None:
    """GET /apis/GROUP."""
    versions = kinds.groups().get(name)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_of(name, versions)}


def resources(kinds: Kinds, group_name: str, version: str) -> Json | None:
    """GET /api/v1 and /apis/GROUP/VERSION."""
    listed: list[Json] = []
    for kind in kinds:
        if (kind.group, kind.version) != (group_name, version):
            continue
        entry: Json = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(kind.verbs),
        }
        if kind.short:
            entry["shortNames"] = list(kind.short)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        listed.append(entry)
        listed += [_subresource(kind, name) for name in kind.subresources]
    if not listed:
        return None
    if not group_name:
        listed.append(
            {"name": "bindings", "singularName": "binding", "namespaced": True, "kind": "Binding", "verbs": ["create"]}
        )
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _subresource(kind: Kind, name: str) -> Json:
    entry: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"]),
    }
    if name in _SUBRESOURCE_KINDS:
        entry["group"], entry["version"], entry["kind"] = _SUBRESOURCE_KINDS[name]
    return entry


def aggregated(kinds: Kinds, *, core: bool) -> Json:
    """GET /api or /apis in the aggregated form: every resource in one answer."""
    found: dict[str, dict[str, list[Json]]] = {}
    for kind in kinds:
        if (kind.group == "") is core:
            found.setdefault(kind.group, {}).setdefault(kind.version, []).append(_aggregated_resource(kind))
    if core:
        found[""]["v1"].append(
            {
                "resource": "bindings",
                "responseKind": {"group": "", "version": "v1", "kind": "Binding"},
                "scope": "Namespaced",
                "singularResource": "binding",
                "verbs": ["create"],
            }
        )
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {"version": version, "resources": listed, "freshness": "Current"}
                for version, listed in versions.items()
            ],
        }
        for name, versions in found.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(kind: Kind) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": dict(
                    zip(
                        ("group", "version", "kind"),
                        _SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.kind)),
                        strict=True,
                    )
                ),
                "verbs": _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"]),
            }
            for name in kind.subresources
        ]
    return entry


def openapi_v2(kinds: Kinds) -> Json:
    """GET /openapi/v2: names the kinds, describes nothing."""
    definitions = {_schema_name(kind): _schema(kind) for kind in kinds}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {},
        "definitions": definitions,
    }


def openapi_v3_index(kinds: Kinds) -> Json:
    """GET /openapi/v3: one document per group and version."""
    found = {(kind.group, kind.version) for kind in kinds}
    paths: Json = {}
    for group_name, version in sorted(found):
        place = f"apis/{group_name}/{version}" if group_name else f"api/{version}"
        digest = hashlib.sha256(orjson.dumps(openapi_v3(kinds, group_name, version))).hexdigest()[:16].upper()
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
    return {"paths": paths}


def openapi_v3(kinds: Kinds, group_name: str, version: str) -> Json | None:
    """GET /openapi/v3/apis/GROUP/VERSION."""
    mine = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    if not mine:
        return None
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    paths: Json = {}
    root = f"/apis/{group_name}/{version}" if group_name else f"/api/{version}"
    for kind in mine:
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        kind_named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        operations: Json = {}
        for method, action in (("get", "get"), ("put", "put"), ("patch", "patch")):
            operations[method] = {
                "operationId": f"{action}{kind.kind}",
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": kind_named,
            }
        paths[f"{root}{scope}/{kind.plural}/{{name}}"] = operations
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": {_schema_name(kind): _schema(kind) for kind in mine}},
    }


def _schema_name(kind: Kind) -> str:
    group_name = kind.group.split(".")[0] or "core"
    return f"io.k8s.api.{group_name}.{kind.version}.{kind.kind}"


def _schema(kind: Kind) -> Json:
    return {
        "description": f"{kind.kind} as this server stores it; fields are not described.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.kind}],
    }
