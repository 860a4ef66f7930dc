"""The base of the workload controllers: a queue of keys, and pods from templates.

A controller queues the keys of changed objects and reconciles them one by one. A key is queued at most once at a time.
"""

from __future__ import annotations

import copy
from typing import Any

import orjson
import xxhash

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.verbs import SAFE_LETTERS, Api
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import POD_PHASE, PODS, Kind
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

_PASSED_ON = ("labels", "annotations", "finalizers")


class Controller:
    """Base of a controller for one kind whose objects own other objects."""

    kind: Kind
    owned: Kind = PODS

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self.api = api
        self.agenda = agenda
        self._queued: set[str] = set()
        self._by_uid: dict[str, str] = {}  # own objects: UID to key
        self._dependents: dict[str, dict[str, str]] = {}  # owner's UID to owned objects: key to UID
        api.store.subscribe(self.kind, self._own_changed)
        api.store.subscribe(self.owned, self._owned_changed)

    def reconcile(self, record: Record, obj: Json) -> None:
        """Reconcile one object with its specification."""
        raise NotImplementedError

    def queue(self, key: str) -> None:
        """Queue an object for reconciliation."""
        if key not in self._queued:
            self._queued.add(key)
            self.agenda.call_soon(lambda: self._reconcile(key))

    def owned_by(self, uid: str) -> list[Record]:
        """The existing objects that name this UID as owner."""
        objects = self.api.store.collection(self.owned).objects
        found = (objects.get(key) for key in self._dependents.get(uid, ()))
        return [record for record in found if record is not None]

    def _own_changed(self, change: Change) -> None:
        record = change.record
        if change.type == "DELETED":
            self._by_uid.pop(record.uid, None)
        else:
            self._by_uid[record.uid] = record.key
            self.queue(record.key)

    def _owned_changed(self, change: Change) -> None:
        record = change.record
        for uid in record.owners:
            if change.type == "DELETED":
                dependents = self._dependents.get(uid)
                if dependents is not None:
                    dependents.pop(record.key, None)
                    if not dependents:
                        del self._dependents[uid]
            elif change.type == "ADDED":
                self._dependents.setdefault(uid, {})[record.key] = record.uid
            key = self._by_uid.get(uid)
            if key is not None:
                self.queue(key)

    def _reconcile(self, key: str) -> None:
        self._queued.discard(key)
        record = self.api.store.collection(self.kind).objects.get(key)
        if record is None:
            return
        try:
            self.reconcile(record, record.parse())
        except ApiError:
            # a conflict, or a namespace that is being deleted: try again after a delay
            self.agenda.after(1.0, lambda: self.queue(key))

    def put_status(self, record: Record, obj: Json, status: Json) -> Record:
        """Write a status if it differs."""
        if (obj.get("status") or {}) == status:
            return record
        obj["status"] = status
        return self.api.store.put(self.kind, obj, record)

    def make_pod(self, owner: Record, template: Json, name: str = "", changes: Json | None = None) -> Record:
        """Create one pod from an owner's template; its name is generated unless given. Of the template's metadata,
        labels, annotations and finalizers count, as with `GetPodFromTemplate` of the real controllers; a name there
        would make all replicas one pod."""
        pod = copy.deepcopy(template)
        stated = pod.get("metadata") or {}
        metadata = pod["metadata"] = {key: stated[key] for key in _PASSED_ON if stated.get(key)}
        if name:
            metadata["name"] = name
        else:
            metadata["generateName"] = f"{owner.name}-"
        metadata["ownerReferences"] = [owner_reference(self.kind, owner)]
        for key, value in (changes or {}).items():
            if isinstance(value, dict):
                metadata[key] = {**(metadata.get(key) or {}), **value}
            else:
                metadata[key] = value
        return self.api.create(PODS, owner.namespace, pod)

    def drop_pod(self, record: Record) -> None:
        """Delete one pod."""
        delete(self.api, PODS, record.namespace, record.name)


def owner_reference(kind: Kind, owner: Record) -> Json:
    """The controller reference to an owner."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_active(record: Record) -> bool:
    """Whether a pod has neither ended nor been deleted."""
    return not record.deleting and record.fields[POD_PHASE] not in ("Succeeded", "Failed")


def is_ready(record: Record) -> bool:
    """Whether a pod's Ready condition is true; running simulated pods are ready."""
    return record.fields[POD_PHASE] == "Running" and not record.deleting


def surplus_order(record: Record) -> tuple[bool, bool, int]:
    """The order in which surplus pods are deleted: unassigned, then not running, then the youngest."""
    return bool(record.fields[0]), record.fields[POD_PHASE] == "Running", -record.version


def template_hash(template: Json) -> str:
    """A short name for a pod template; equal templates have equal names."""
    digest = xxhash.xxh64_intdigest(orjson.dumps(template, option=orjson.OPT_SORT_KEYS))
    letters = ""
    for _ in range(9):
        digest, remainder = divmod(digest, len(SAFE_LETTERS))
        letters += SAFE_LETTERS[remainder]
    return letters
