"""The garbage collector: deletes, orphans or waits for dependents, as the deletion of their owner requests."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.deletion import FOREGROUND, ORPHAN, delete
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import Kind
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]


class Garbage:
    """Follows owner references through all kinds."""

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self._api = api
        self._agenda = agenda
        self._present: set[str] = set()  # UIDs of all objects
        self._dependents: dict[str, dict[tuple[Kind, str], str]] = {}  # owner's UID to (kind, key) to UID
        self._unmet: set[tuple[Kind, str]] = set()
        api.store.on_collection(self._hear)

    def _hear(self, kind: Kind) -> None:
        for record in self._api.store.collection(kind).objects.values():
            self._present.add(record.uid)
        self._api.store.subscribe(kind, lambda change: self._changed(kind, change))

    def _changed(self, kind: Kind, change: Change) -> None:
        record, before = change.record, change.before
        if change.type == "DELETED":
            self._present.discard(record.uid)
            for owner in record.owners:
                self._unlink(owner, kind, record.key)
            if record.uid in self._dependents:
                self._agenda.call_soon(lambda: self._collect(record.uid))
            return
        if change.type == "ADDED":
            self._present.add(record.uid)
        if before is None or before.owners != record.owners:
            for owner in before.owners if before is not None else ():
                self._unlink(owner, kind, record.key)
            for owner in record.owners:
                self._dependents.setdefault(owner, {})[kind, record.key] = record.uid
                if owner not in self._present:
                    self._agenda.call_soon(lambda owner=owner: self._collect(owner))  # type: ignore[misc]
        if record.deleting and (before is None or before.raw != record.raw):
            if b'"foregroundDeletion"' in record.raw:
                self._agenda.call_soon(lambda: self._foreground(kind, record.key))
            elif b'"orphan"' in record.raw:
                self._agenda.call_soon(lambda: self._orphan(kind, record.key))

    def _unlink(self, owner: str, kind: Kind, key: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is None:
            return
        dependents.pop((kind, key), None)
        if not dependents:
            del self._dependents[owner]
            place = self._waiting_for(owner)
            if place is not None:
                self._agenda.call_soon(lambda: self._foreground(*place))

    def _waiting_for(self, owner: str) -> tuple[Kind, str] | None:
        """The owner, if it is being deleted in the foreground and now has no dependents."""
        for kind, key in list(self._unmet):
            record = self._api.store.collection(kind).objects.get(key)
            if record is None:
                self._unmet.discard((kind, key))
            elif record.uid == owner:
                return kind, key
        return None

    def _of(self, owner: str) -> list[tuple[Kind, Record]]:
        found: list[tuple[Kind, Record]] = []
        for (kind, key), uid in list(self._dependents.get(owner, {}).items()):
            record = self._api.store.collection(kind).objects.get(key)
            if record is not None and record.uid == uid:
                found.append((kind, record))
        return found

    def _collect(self, owner: str) -> None:
        """The owner is deleted: delete dependents without another owner, remove the reference from the others."""
        if owner in self._present:
            return
        for kind, record in self._of(owner):
            if any(other in self._present for other in record.owners):
                self._disown(kind, record, owner)
            elif not record.deleting:
                self._delete(kind, record, "Background")

    def _foreground(self, kind: Kind, key: str) -> None:
        """Foreground deletion: delete the dependents first, then remove the owner's finalizer."""
        record = self._api.store.collection(kind).objects.get(key)
        if record is None or not record.deleting:
            return
        obj = record.parse()
        if FOREGROUND not in (obj["metadata"].get("finalizers") or ()):
            return
        blocking = self._of(record.uid)
        if not blocking:
            self._unmet.discard((kind, key))
            self._finish(kind, record, obj, FOREGROUND)
            return
        self._unmet.add((kind, key))
        for dependent_kind, dependent in blocking:
            if not dependent.deleting:
                self._delete(dependent_kind, dependent, "Foreground" if dependent_kind.generation else None)

    def _orphan(self, kind: Kind, key: str) -> None:
        record = self._api.store.collection(kind).objects.get(key)
        if record is None or not record.deleting:
            return
        obj = record.parse()
        if ORPHAN not in (obj["metadata"].get("finalizers") or ()):
            return
        for dependent_kind, dependent in self._of(record.uid):
            self._disown(dependent_kind, dependent, record.uid)
        self._finish(kind, record, obj, ORPHAN)

    def _finish(self, kind: Kind, record: Record, obj: Json, finalizer: str) -> None:
        remaining = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
        if remaining:
            obj["metadata"]["finalizers"] = remaining
        else:
            del obj["metadata"]["finalizers"]
        self._api.write(kind, record, obj)

    def _disown(self, kind: Kind, record: Record, owner: str) -> None:
        obj = record.parse()
        remaining = [one for one in obj["metadata"].get("ownerReferences") or () if one.get("uid") != owner]
        if remaining:
            obj["metadata"]["ownerReferences"] = remaining
        else:
            obj["metadata"].pop("ownerReferences", None)
        self._api.store.put(kind, obj, record)

    def _delete(self, kind: Kind, record: Record, policy: str | None) -> None:
        options = {"preconditions": {"uid": record.uid}, **({"propagationPolicy": policy} if policy else {})}
        try:
            delete(self._api, kind, record.namespace, record.name, options)
        except ApiError:
            return  # gone already
