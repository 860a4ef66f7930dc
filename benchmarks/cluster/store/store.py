"""The state of the cluster: the objects, one version counter, and a bounded history of changes.

No I/O and no Kubernetes rules: the store takes complete objects and has these invariants:

- Every write takes the next version; versions are unique and total over all kinds.
- A `Record` never changes. It holds the object as JSON bytes, so that a list is a concatenation and one
  serialisation serves every watcher; only what selectors need is kept beside the bytes.
- Each kind's history holds its latest changes without gaps. `changes_since(v)` either gives every change
  after v or reports that v is compacted; it never skips one.
- Subscribers receive each change once, in order, before the write returns. They must not write from within the
  call, because others would then receive changes out of order.
"""

from __future__ import annotations

import bisect
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from benchmarks.cluster.store.errors import expired
from benchmarks.cluster.store.kinds import Kind
from benchmarks.cluster.store.selectors import FieldTerm, LabelTest

log = logging.getLogger(__name__)

Json = dict[str, Any]
NO_LABELS: dict[str, str] = {}


class Record:
    """One version of one object."""

    __slots__ = ("deleting", "fields", "key", "labels", "name", "namespace", "owners", "raw", "uid", "version")

    def __init__(
        self,
        key: str,
        namespace: str,
        name: str,
        uid: str,
        version: int,
        raw: bytes,
        labels: dict[str, str],
        fields: tuple[str, ...],
        owners: tuple[str, ...],
        deleting: bool,
    ) -> None:
        self.key = key
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.version = version
        self.raw = raw
        self.labels = labels
        self.fields = fields
        self.owners = owners  # UIDs of the owner references
        self.deleting = deleting  # deletionTimestamp is set

    def parse(self) -> Json:
        """A fresh copy of the object; the caller may change it."""
        obj: Json = orjson.loads(self.raw)
        return obj


class Change:
    """One write: type is ADDED, MODIFIED or DELETED; `before` is the version it replaced."""

    __slots__ = ("before", "record", "type", "version")

    def __init__(self, type_: str, record: Record, before: Record | None) -> None:
        self.type = type_
        self.record = record
        self.before = before
        self.version = record.version


@dataclass(frozen=True)
class Selection:
    """The records of a list or watch; the empty selection is all of them."""

    namespace: str = ""
    labels: LabelTest | None = None
    fields: tuple[FieldTerm, ...] = ()

    @property
    def narrow(self) -> bool:
        """Whether labels or fields restrict it (a namespace alone does not count)."""
        return self.labels is not None or bool(self.fields)

    def holds(self, record: Record) -> bool:
        """Whether the record is selected."""
        if self.namespace and record.namespace != self.namespace:
            return False
        for term in self.fields:
            if term.position >= 0:
                value = record.fields[term.position]
            else:
                value = record.name if term.position == -1 else record.namespace
            if (value == term.value) is not term.equal:
                return False
        return self.labels is None or self.labels(record.labels)


Subscriber = Callable[[Change], None]


class Collection:
    """All objects of one kind, with their history and subscribers."""

    def __init__(self, kind: Kind, history: int) -> None:
        self.kind = kind
        self.objects: dict[str, Record] = {}
        self.changes: deque[Change] = deque()
        self.compacted = 0
        """Changes up to and including this version may be gone from the history."""
        self.changed = 0
        """Version of the latest change of this kind."""
        self.subscribers: list[Subscriber] = []
        self.on_end: list[Callable[[], None]] = []
        """What to call if the kind is dropped."""
        self.deaf = 0
        """Subscribers that raised; anything but 0 is a defect."""
        self._history = history
        self._order: list[str] = []
        self._fresh: list[str] = []
        self._listed: set[str] = set()

    def add(self, change: Change) -> None:
        """Apply one change to the objects, the order and the history, and notify the subscribers."""
        record = change.record
        if change.type == "DELETED":
            del self.objects[record.key]
        else:
            self.objects[record.key] = record
            if change.type == "ADDED" and record.key not in self._listed:
                self._listed.add(record.key)
                self._fresh.append(record.key)
        self.changed = change.version
        self.changes.append(change)
        if len(self.changes) > self._history:
            self.compacted = self.changes.popleft().version
        for subscriber in self.subscribers:
            try:
                subscriber(change)
            except Exception:
                # The write has happened: the others are notified even if one subscriber raises.
                self.deaf += 1
                log.exception("a subscriber to %s failed", self.kind.plural)

    def keys(self) -> list[str]:
        """Keys in order; some may have been deleted since. Do not change the list."""
        if self._fresh:
            self._order += self._fresh
            self._order.sort()  # two sorted runs at worst: close to linear
            self._fresh = []
        if len(self._order) > 2 * len(self.objects) + 64:
            self._order = [key for key in self._order if key in self.objects]
            self._listed = set(self._order)
        return self._order

    def records(self, namespace: str = "") -> Iterator[Record]:
        """The objects in key order."""
        keys = self.keys()
        if namespace and self.kind.namespaced:
            start = bisect.bisect_left(keys, namespace + "/")
            end = bisect.bisect_left(keys, namespace + "0")  # "0" follows "/"
            keys = keys[start:end]
        get = self.objects.get
        return (record for key in keys if (record := get(key)) is not None)

    def changes_since(self, version: int) -> list[Change] | None:
        """Every change after `version`, or None if some of them may be gone."""
        if version < self.compacted:
            return None
        if version >= self.changed:
            return []
        newer = 0
        for change in reversed(self.changes):
            if change.version <= version:
                break
            newer += 1
        return list(islice(self.changes, len(self.changes) - newer, None))

    def compact(self, version: int) -> None:
        """Drop the history up to and including `version`."""
        while self.changes and self.changes[0].version <= version:
            self.changes.popleft()
        self.compacted = max(self.compacted, version)

    def at(self, version: int) -> dict[str, Record] | None:
        """The objects as they were at `version`, or None if that is compacted."""
        newer = self.changes_since(version)
        if newer is None:
            return None
        objects = dict(self.objects)
        for change in reversed(newer):
            if change.before is None:
                objects.pop(change.record.key, None)
            else:
                objects[change.record.key] = change.before
        return objects


class Store:
    """All collections and the version counter."""

    def __init__(self, history: int = 65536) -> None:
        self.version = 1
        self._history = history
        self._collections: dict[Kind, Collection] = {}
        self._on_collection: list[Callable[[Kind], None]] = []

    def on_collection(self, hear: Callable[[Kind], None]) -> None:
        """Call back for the kind of every collection, existing or created later."""
        self._on_collection.append(hear)
        for kind in list(self._collections):
            hear(kind)

    def collection(self, kind: Kind) -> Collection:
        """The collection of a kind, created at its first use."""
        kind = kind.stored_as or kind
        collection = self._collections.get(kind)
        if collection is None:
            collection = self._collections[kind] = Collection(kind, self._history)
            collection.compacted = collection.changed = self.version
            for hear in self._on_collection:
                hear(kind)
        return collection

    def collections(self) -> list[Collection]:
        """All collections."""
        return list(self._collections.values())

    def drop(self, kind: Kind) -> None:
        """Drop all objects of a kind, whose definition has been deleted; its subscribers are told that it ends."""
        collection = self._collections.pop(kind, None)
        for ended in collection.on_end if collection is not None else ():
            ended()

    def get(self, kind: Kind, namespace: str, name: str) -> Record | None:
        """The current record, or None."""
        return self.collection(kind).objects.get(kind.key(namespace, name))

    def put(self, kind: Kind, obj: Json, before: Record | None) -> Record:
        """Write an object: `before` is the record it replaces, None for a new one. Stamps the version."""
        collection = self.collection(kind)
        record = self._record(collection.kind, obj)
        collection.add(Change("ADDED" if before is None else "MODIFIED", record, before))
        return record

    def remove(self, kind: Kind, before: Record, obj: Json | None = None) -> Record:
        """Delete an object; the last record, with the version of the deletion, is returned."""
        collection = self.collection(kind)
        record = self._record(collection.kind, before.parse() if obj is None else obj)
        collection.add(Change("DELETED", record, before))
        return record

    def subscribe(
        self, kind: Kind, subscriber: Subscriber, ended: Callable[[], None] = lambda: None
    ) -> Callable[[], None]:
        """Call back for every later change of a kind, and when the kind ends; the returned function unsubscribes."""
        collection = self.collection(kind)
        subscribers, on_end = collection.subscribers, collection.on_end
        subscribers.append(subscriber)
        on_end.append(ended)

        def cancel() -> None:
            if subscriber in subscribers:
                subscribers.remove(subscriber)
                on_end.remove(ended)

        return cancel

    def select(self, kind: Kind, selection: Selection) -> Iterable[Record]:
        """The selected objects in key order."""
        records = self.collection(kind).records(selection.namespace)
        return filter(selection.holds, records) if selection.narrow else records

    def compact(self, version: int | None = None) -> int:
        """Compact all history up to `version` (default: now); older versions of lists and watches answer 410."""
        upto = self.version if version is None else min(version, self.version)
        for collection in self._collections.values():
            collection.compact(upto)
        return upto

    def since(self, kind: Kind, version: int) -> list[Change]:
        """Every change of a kind after `version`; raises 410 if some are compacted."""
        collection = self.collection(kind)
        changes = collection.changes_since(version)
        if changes is None:
            raise expired(f"too old resource version: {version} ({collection.compacted})")
        return changes

    def _record(self, kind: Kind, obj: Json) -> Record:
        self.version += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self.version)
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        name = metadata["name"]
        return Record(
            kind.key(namespace, name),
            namespace,
            name,
            metadata.get("uid", ""),
            self.version,
            _packed(obj),
            metadata.get("labels") or NO_LABELS,
            kind.fields(obj),
            tuple([ref["uid"] for ref in owners]) if (owners := metadata.get("ownerReferences")) else (),
            "deletionTimestamp" in metadata,
        )


def _packed(obj: Json) -> bytes:
    """A copy of the JSON: orjson's result keeps its work buffer, which is more than twice as large."""
    return bytes(memoryview(orjson.dumps(obj)))
