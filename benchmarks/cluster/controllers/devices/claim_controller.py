"""The resourceclaim controller: makes claims from templates, and frees the devices of claims that nobody uses.

A claim loses its allocation when the last pod that it is reserved for has gone or has ended, in the same write as that
entry; one that was never reserved keeps it. Then the finalizer goes. Generated claims go when their pod has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.device_rules.allocation_rules import MAX_CONSUMERS
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.controllers.workload import owner_reference
from benchmarks.cluster.nodes.claim_names import (
    GROUPS,
    claims_of,
    extended_claim_of,
    group_of,
    is_owned_by,
    is_reserved_for,
    may_have_claims,
    owner_of,
    will_not_run,
)
from benchmarks.cluster.nodes.pod_events import record_event
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.device_kinds import CLAIM_TEMPLATES, FINALIZER, POD_CLAIM_ANNOTATION, RESOURCE_CLAIMS
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import POD_NODE, PODS, Kind
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

_LONGEST_PREFIX = 57
"""Characters of generateName, so that the name has at most 63."""
_RETRY_SECONDS = (0.005, 1000.0)
"""The first and the longest pause before a pod is tried again, which doubles."""
_COMPONENT = "resource_claim"


class ClaimController:
    """Watches pods, templates and claims."""

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self._api = api
        self._agenda = agenda
        self._queued: set[tuple[str, str]] = set()
        self._users: dict[str, set[str]] = {}  # key of a claim to the keys of the pods that name it
        self._owned: dict[str, set[str]] = {}  # UID of a pod to the keys of the claims that name it as owner
        self._failures: dict[str, int] = {}  # key of a pod to its failures in a row
        api.store.subscribe(PODS, self._pod_changed)
        api.store.subscribe(RESOURCE_CLAIMS, self._claim_changed)
        api.store.subscribe(CLAIM_TEMPLATES, self._template_changed)

    # what has changed

    def _queue(self, what: str, key: str, work: Callable[[str], None]) -> None:
        if (what, key) not in self._queued:
            self._queued.add((what, key))
            self._agenda.call_soon(lambda: self._run(what, key, work))

    def _run(self, what: str, key: str, work: Callable[[str], None]) -> None:
        self._queued.discard((what, key))
        work(key)

    def _pod_changed(self, change: Change) -> None:
        pod = change.record
        if not may_have_claims(pod):
            return
        obj = pod.parse()
        names = [one.name for one in claims_of(obj) if one.name] + [extended_claim_of(obj)]
        for key in (f"{pod.namespace}/{name}" for name in names if name):
            _note(self._users, key, pod.key, change.type != "DELETED")
            if change.type == "DELETED" or will_not_run(pod):
                self._queue("claim", key, self._sync_claim)
        if change.type == "DELETED":
            self._failures.pop(pod.key, None)
        elif not pod.deleting:
            self._queue("pod", pod.key, self._sync_pod)

    def _claim_changed(self, change: Change) -> None:
        key = change.record.key
        for owner in change.record.owners:
            _note(self._owned, owner, key, change.type != "DELETED")
        if change.type != "DELETED":
            self._queue("claim", key, self._sync_claim)
        for pod in self._users.get(key, ()):
            self._queue("pod", pod, self._sync_pod)

    def _template_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        template = change.record
        for pod in self._api.store.collection(PODS).records(template.namespace):
            if may_have_claims(pod) and any(one.template == template.name for one in claims_of(pod.parse())):
                self._queue("pod", pod.key, self._sync_pod)

    # pods

    def _sync_pod(self, key: str) -> None:
        pod = self._api.store.collection(PODS).objects.get(key)
        if pod is None or pod.deleting or will_not_run(pod):
            return
        try:
            self._serve(pod)
        except ApiError as error:
            failures = self._failures[key] = self._failures.get(key, -1) + 1
            record_event(self._api, pod, "FailedResourceClaimCreation", error.message, _COMPONENT)
            first, longest = _RETRY_SECONDS
            self._agenda.after(min(first * 2**failures, longest), lambda: self._queue("pod", key, self._sync_pod))
        else:
            self._failures.pop(key, None)

    def _serve(self, pod: Record) -> None:
        """Make the claims that a pod lacks, and reserve those of a pod that has been bound without a scheduler."""
        obj = pod.parse()
        made: dict[str, str] = {}
        of_group = self._of_group(pod, obj)
        for one in claims_of(obj):
            claim = self._api.store.get(RESOURCE_CLAIMS, pod.namespace, one.name) if one.name else None
            owner = of_group.get(one.entry, (PODS, pod))
            if not one.template or not one.needed or (claim is not None and _controls(*owner, claim.parse())):
                continue
            made[one.entry] = self._generated(*owner, one.entry) or self._make(*owner, one.entry, one.template)
        if made:
            statuses = {each["name"]: each for each in obj["status"].get("resourceClaimStatuses") or ()}
            for entry, name in made.items():
                statuses[entry] = {"name": entry, "resourceClaimName": name}
            obj["status"]["resourceClaimStatuses"] = list(statuses.values())
            self._api.replace(PODS, pod, obj, "status")
        elif pod.fields[POD_NODE]:
            for one in claims_of(obj):
                if one.name and one.entry not in of_group:
                    self._reserve(pod, one.name, owned=bool(one.template))

    def _of_group(self, pod: Record, obj: Json) -> dict[str, tuple[Kind, Record]]:
        """The entries of a pod that equal one of its PodGroup, with the group: its claims are theirs."""
        name, kind = group_of(obj), self._group_kind()
        group = self._api.store.get(kind, pod.namespace, name) if name and kind is not None else None
        if group is None or kind is None:
            return {}
        stated = group.parse()["spec"].get("resourceClaims") or ()
        return {one["name"]: (kind, group) for one in obj["spec"].get("resourceClaims") or () if one in stated}

    def _group_kind(self) -> Kind | None:
        kinds = (each.kind for each in self._api.store.collections())
        return next((kind for kind in kinds if (kind.group, kind.plural) == (GROUPS, "podgroups")), None)

    def _generated(self, kind: Kind, owner: Record, entry: str) -> str:
        """The claim that was made for this entry of a pod or group before, if the pod's status does not name it."""
        for key in self._owned.get(owner.uid, ()):
            claim = self._api.store.collection(RESOURCE_CLAIMS).objects[key]
            obj = claim.parse()
            noted = (obj["metadata"].get("annotations") or {}).get(POD_CLAIM_ANNOTATION)
            if noted == entry and _controls(kind, owner, obj):
                return claim.name
        return ""

    def _make(self, kind: Kind, pod: Record, entry: str, template_name: str) -> str:
        """The claim of an entry of a pod, or of its group."""
        try:
            found = self._api.store.get(CLAIM_TEMPLATES, pod.namespace, template_name)
            if found is None:
                missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
                raise ApiError(404, "NotFound", f'resource claim template "{template_name}": {missing}')
            template = found.parse()["spec"]
            stated = template.get("metadata") or {}
            reference = owner_reference(kind, pod)
            del reference["blockOwnerDeletion"]
            metadata = {
                "generateName": _prefix(pod.name, entry),
                "ownerReferences": [reference],
                "annotations": {**(stated.get("annotations") or {}), POD_CLAIM_ANNOTATION: entry},
                **({"labels": stated["labels"]} if stated.get("labels") else {}),
            }
            claim = {"metadata": metadata, "spec": template.get("spec") or {}}
            return self._api.create(RESOURCE_CLAIMS, pod.namespace, claim).name
        except ApiError as error:
            message = f"PodResourceClaim {entry}: {error.message}"
            raise ApiError(error.code, error.reason, message) from error

    def _reserve(self, pod: Record, name: str, *, owned: bool) -> None:
        record = self._api.store.get(RESOURCE_CLAIMS, pod.namespace, name)
        if record is None:
            return
        claim = record.parse()
        status = claim.get("status") or {}
        consumers = status.get("reservedFor") or []
        if (
            status.get("allocation") is None
            or is_reserved_for(claim, pod.uid)
            or len(consumers) >= MAX_CONSUMERS
            or (owned and not is_owned_by(claim, pod))
        ):
            return
        status["reservedFor"] = [*consumers, {"resource": "pods", "name": pod.name, "uid": pod.uid}]
        self._api.replace(RESOURCE_CLAIMS, record, claim, "status")

    # claims

    def _sync_claim(self, key: str) -> None:
        record = self._api.store.collection(RESOURCE_CLAIMS).objects.get(key)
        if record is None:
            return
        claim = record.parse()
        consumers = (claim.get("status") or {}).get("reservedFor") or []
        remaining = [one for one in consumers if not self._has_ended(record.namespace, one)]
        if len(remaining) < len(consumers):
            self._release(record, claim, remaining)
        elif record.deleting and not remaining and FINALIZER in (claim["metadata"].get("finalizers") or ()):
            self._release(record, claim, [])
        if not remaining:
            self._drop_generated(key)

    def _has_ended(self, namespace: str, consumer: Json) -> bool:
        kind = self._group_kind()
        if kind is not None and (consumer.get("apiGroup"), consumer.get("resource")) == (GROUPS, "podgroups"):
            group = self._api.store.get(kind, namespace, consumer["name"])
            return group is None or group.uid != consumer["uid"]
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return False  # nothing is known of what else may use a claim
        pod = self._api.store.get(PODS, namespace, consumer["name"])
        return pod is None or pod.uid != consumer["uid"] or will_not_run(pod)

    def _release(self, record: Record, claim: Json, remaining: list[Json]) -> None:
        status = claim.setdefault("status", {})
        finalizers = claim["metadata"].get("finalizers") or []
        if remaining:
            status["reservedFor"] = remaining
        else:
            status.pop("reservedFor", None)
            if FINALIZER in finalizers:
                status.pop("allocation", None)
        record = self._api.replace(RESOURCE_CLAIMS, record, claim, "status")
        if FINALIZER in finalizers and "allocation" not in status:
            claim = record.parse()
            claim["metadata"]["finalizers"] = [one for one in finalizers if one != FINALIZER]
            self._api.replace(RESOURCE_CLAIMS, record, claim)

    def _drop_generated(self, key: str) -> None:
        """Delete a claim whose pod has ended or has been replaced; the garbage collector has those of pods that are
        gone."""
        record = self._api.store.collection(RESOURCE_CLAIMS).objects.get(key)
        if record is None or record.deleting:
            return
        name, uid = owner_of(record.parse())
        pod = self._api.store.get(PODS, record.namespace, name) if name else None
        if pod is not None and (pod.uid != uid or will_not_run(pod)):
            delete(self._api, RESOURCE_CLAIMS, record.namespace, record.name)


def _controls(kind: Kind, owner: Record, claim: Json) -> bool:
    """Whether a pod or group is the controller of a claim."""
    references = claim["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and (one["kind"], one["uid"]) == (kind.kind, owner.uid) for one in references)


def _note(index: dict[str, set[str]], key: str, value: str, there: bool) -> None:
    """Add a value to the set of a key, or remove it."""
    if there:
        index.setdefault(key, set()).add(value)
    elif key in index:
        index[key].discard(value)
        if not index[key]:
            del index[key]


def _prefix(pod: str, entry: str) -> str:
    """generateName; both parts are shortened in proportion if they are too long."""
    whole = f"{pod}-{entry}-"
    length = len(whole)
    if length <= _LONGEST_PREFIX:
        return whole
    return f"{pod[: len(pod) * _LONGEST_PREFIX // length]}-{entry[: len(entry) * _LONGEST_PREFIX // length]}"
