"""Deletion: grace periods, finalizers, preconditions and propagation policies.

A deleted object is either removed at once, or marked with a deletionTimestamp and removed when a pod's grace period is
over and its finalizers are gone.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.cluster.api.schema import conform
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import rfc3339
from benchmarks.cluster.store.errors import Json, bad_request, conflict, forbidden
from benchmarks.cluster.store.kinds import NAMESPACES, POD_NODE, POD_PHASE, PODS, Kind
from benchmarks.cluster.store.store import Record

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
KEPT_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))


def delete(
    api: Api, kind: Kind, namespace: str, name: str, options: Json | None = None, *, dry_run: bool = False
) -> tuple[Record, bool]:
    """Delete one object. Returns its last or marked state, and whether it has been removed already."""
    options = options or {}
    conform("v1", "DeleteOptions", options)
    record = api.get(kind, namespace, name)
    check_deletion(kind, record, options.get("preconditions") or {})
    if kind is NAMESPACES and name in KEPT_NAMESPACES:
        raise forbidden("namespaces", "", name, "this namespace may not be deleted")
    obj = record.parse()
    metadata: Json = obj["metadata"]
    grace = _grace_seconds(kind, record, obj, options)
    finalizers = _with_propagation(metadata.get("finalizers") or [], options)
    if kind is PODS and not dry_run and not record.deleting:
        detail = f"grace={grace}"
        api.audit.add(api.store.version, "delete", namespace, name, record.uid, record.fields[POD_NODE], detail)
    deferred = bool(finalizers) or grace > 0 or kind is NAMESPACES
    if not deferred:
        if dry_run:
            return record, True
        metadata.pop("finalizers", None)
        return api.remove(kind, record, obj), True
    already = metadata.get("deletionGracePeriodSeconds")
    if record.deleting and (already is None or grace >= already) and finalizers == metadata.get("finalizers", []):
        return record, False
    if not record.deleting or already is None or grace < already:
        metadata["deletionTimestamp"] = rfc3339(time.time() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
    if finalizers:
        metadata["finalizers"] = finalizers
    if kind is NAMESPACES:
        obj.setdefault("status", {})["phase"] = "Terminating"
    if "generation" in metadata and not record.deleting:
        metadata["generation"] += 1
    return (record if dry_run else api.store.put(kind, obj, record)), False


def check_deletion(kind: Kind, record: Record, preconditions: Json) -> None:
    """409 as deletions have it: the message names the kind instead of the resource."""
    for field, name, actual, happened in (
        ("uid", "UID", record.uid, "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", str(record.version), "modified"),
    ):
        asked = preconditions.get(field)
        if asked and asked != actual:
            why = (
                f"the {name} in the precondition ({asked}) does not match the {name} in record ({actual}). The object "
                f"might have been {happened}"
            )
            raise conflict(kind.kind, kind.group, record.name, why)


def _grace_seconds(kind: Kind, record: Record, obj: Json, options: Json) -> int:
    """The grace period of a pod; 0 for other kinds and for pods that no kubelet runs."""
    if kind is not PODS:
        return 0
    if not record.fields[POD_NODE] or record.fields[POD_PHASE] in ("Succeeded", "Failed"):
        return 0
    asked: Any = options.get("gracePeriodSeconds")
    if asked is None:
        asked = obj["spec"].get("terminationGracePeriodSeconds", 30)
    if not isinstance(asked, int):
        raise bad_request("gracePeriodSeconds must be an integer")
    return max(asked, 0)


def _with_propagation(finalizers: list[str], options: Json) -> list[str]:
    policy = options.get("propagationPolicy")
    if policy is None and "orphanDependents" in options:
        policy = "Orphan" if options["orphanDependents"] else "Background"
    if policy not in (None, "Foreground", "Background", "Orphan"):
        raise bad_request(f"invalid propagationPolicy {policy!r}: supported values are Foreground, Background, Orphan")
    if policy is None:
        return list(finalizers)
    remaining = [finalizer for finalizer in finalizers if finalizer not in (FOREGROUND, ORPHAN)]
    added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    return remaining + added
