"""The verbs of the API on whole objects, with the API server's rules and no I/O.

The HTTP layer, the simulated controllers and in-process callers all write through `Api`, so they all meet the
same defaults, checks, conflicts and deletion rules. Every method either writes once and returns the record
that results, or raises `ApiError` and changes nothing.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import orjson

from benchmarks.cluster.api.audit import Audit
from benchmarks.cluster.api.defaults import quality_of_service
from benchmarks.cluster.api.kind_rules import admit_change, admit_new
from benchmarks.cluster.api.patches import APPLY_PATCHES, patched
from benchmarks.cluster.api.schema import check_depth, conform
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.errors import (
    STALE,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    forbidden_field,
    invalid,
    invalid_value,
    not_found,
    required,
)
from benchmarks.cluster.store.kinds import NAMESPACES, POD_NODE, PODS, Kind
from benchmarks.cluster.store.store import Record, Store

Json = dict[str, Any]

SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names: no vowels, so that they form no words."""
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def _unchanged(obj: Json) -> Json:
    return obj


class Api:
    """Creates, reads and changes objects; deletion and the pod subresources are in separate modules."""

    def __init__(self, store: Store, seed: int = 0) -> None:
        self.store = store
        self.audit = Audit()
        self.random = random.Random(seed)

    # reading

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        """The current record, or 404."""
        record = self.store.get(kind, namespace, name)
        if record is None:
            raise not_found(kind.plural, kind.group, name)
        return record

    # creating

    def create(self, kind: Kind, namespace: str, obj: Json, *, dry_run: bool = False) -> Record:
        """Create an object; takes ownership of `obj`."""
        conform(kind.api_version, kind.kind, obj)
        metadata = self._own_metadata(kind, namespace, obj)
        name = metadata["name"]
        if self.store.get(kind, namespace, name) is not None:
            raise already_exists(kind.plural, kind.group, name)
        if kind.namespaced:
            self._check_namespace(kind, namespace, name)
        metadata["uid"] = self.new_uid()
        metadata["creationTimestamp"] = now_text()
        if kind.generation or (kind.custom and kind.has_status):
            metadata["generation"] = 1
        if kind.has_status and kind.custom:
            obj.pop("status", None)
        admit_new(self.store, kind, obj)
        if dry_run:
            return self._preview(kind, obj)
        return self._add(kind, obj)

    def create_many(self, kind: Kind, namespace: str, template: Json, names: list[str]) -> list[Record]:
        """Create objects that differ only in name, defaulting and checking the template once."""
        if not names:
            return []
        obj = copy.deepcopy(template)
        obj.setdefault("metadata", {})["name"] = names[0]
        first = self.create(kind, namespace, obj)
        records = [first]
        shared = first.parse()
        metadata = shared["metadata"]
        for name in names[1:]:
            if self.store.get(kind, namespace, name) is not None:
                raise already_exists(kind.plural, kind.group, name)
            own = {**metadata, "name": name, "uid": self.new_uid(), "creationTimestamp": now_text()}
            records.append(self._add(kind, {**shared, "metadata": own}))
        return records

    def _add(self, kind: Kind, obj: Json) -> Record:
        record = self.store.put(kind, obj, None)
        if kind is PODS and record.fields[POD_NODE]:
            node = record.fields[POD_NODE]
            self.audit.add(record.version, "bind", record.namespace, record.name, record.uid, node, "created")
        return record

    def new_uid(self) -> str:
        """A version-4 UUID from the seeded generator."""
        bits = self.random.getrandbits(122)
        digits = f"{bits:032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{'89ab'[bits & 3]}{digits[17:20]}-{digits[20:]}"

    def new_suffix(self) -> str:
        """Five letters for generateName."""
        return "".join(self.random.choices(SAFE_LETTERS, k=5))

    def _own_metadata(self, kind: Kind, namespace: str, obj: Json) -> Json:
        stated_kind, stated_version = obj.get("kind"), obj.get("apiVersion")
        if stated_kind not in (None, "", kind.kind) or stated_version not in (None, "", kind.api_version):
            raise bad_request(
                f"the object provided ({stated_version}, Kind={stated_kind}) does not match the resource of "
                f"the path ({kind.api_version}, Kind={kind.kind})"
            )
        given = obj.get("metadata")
        if given is not None and not isinstance(given, dict):
            raise bad_request("metadata must be an object")
        metadata: Json = given or {}
        ordered = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        others = {key: value for key, value in obj.items() if key not in ordered}
        obj.clear()
        obj.update(ordered, **others)
        for key in _SERVER_OWNED:
            metadata.pop(key, None)
        if metadata.pop("resourceVersion", ""):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if kind.namespaced:
            if metadata.get("namespace") not in (None, "", namespace):
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            metadata["namespace"] = namespace
        elif metadata.pop("namespace", ""):
            raise bad_request("namespace must not be set on cluster-scoped objects")
        if not metadata.get("name"):
            prefix = metadata.get("generateName")
            if not prefix:
                raise invalid(
                    kind.kind, kind.group, "", [required("metadata.name", "name or generateName is required")]
                )
            name = prefix[:58] + self.new_suffix()
            while self.store.get(kind, namespace, name) is not None:
                name = prefix[:58] + self.new_suffix()
            metadata["name"] = name
        return metadata

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        home = self.store.get(NAMESPACES, "", namespace)
        if home is None:
            raise not_found("namespaces", "", namespace)
        if home.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(kind.plural, kind.group, name, why)

    # changing

    def update(
        self, kind: Kind, namespace: str, name: str, obj: Json, subresource: str = "", *, dry_run: bool = False
    ) -> Record:
        """Replace an object, or one subresource of it; takes ownership of `obj`."""
        before = self.get(kind, namespace, name)
        conform(kind.api_version, kind.kind, obj)
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            raise bad_request("metadata must be an object")
        if metadata.get("name") not in (None, "", name):
            raise bad_request(
                f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            )
        uid = metadata.get("uid")
        if uid not in (None, "", before.uid):
            raise conflict(kind.plural, kind.group, name, _uid_differs(uid, before.uid))
        if metadata.get("resourceVersion") not in (None, "", "0", str(before.version)):
            raise conflict(kind.plural, kind.group, name, STALE)
        return self.replace(kind, before, obj, subresource, dry_run=dry_run)

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: str,
        subresource: str = "",
        *,
        dry_run: bool = False,
        shown: Callable[[Json], Json] = _unchanged,
        read: Callable[[Json], Json] = _unchanged,
    ) -> tuple[Record, bool]:
        """Patch an object; the flag says whether server-side apply created it. `shown` and `read` convert an object to
        the version that the client patches, and back."""
        applied = patch_type in APPLY_PATCHES
        current = self.store.get(kind, namespace, name)
        if current is None:
            if not applied or subresource:
                raise not_found(kind.plural, kind.group, name)
            patch = read(patch)
            conform(kind.api_version, kind.kind, patch)
            patch.setdefault("metadata", {}).setdefault("name", name)
            return self.create(kind, namespace, patch, dry_run=dry_run), True
        before = current.parse()
        try:
            after = read(patched(shown(before), patch, patch_type, custom=kind.custom))
            check_depth(after)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise bad_request(f"the patch does not fit the object: {error}") from error
        conform(kind.api_version, kind.kind, after)
        metadata = after.get("metadata")
        if not isinstance(metadata, dict):
            raise bad_request("the patch leaves no metadata")
        if metadata.get("resourceVersion") not in (None, "", str(current.version)):
            raise conflict(kind.plural, kind.group, name, STALE)
        if metadata.get("uid") not in (None, "", current.uid):  # of an update it is a precondition, of a patch a field
            causes = [invalid_value("metadata.uid", metadata["uid"], "field is immutable")]
            raise invalid(kind.kind, kind.group, name, causes)
        if metadata.get("name") != name:
            raise bad_request("the name of an object cannot be changed by a patch")
        return self.replace(kind, current, after, subresource, dry_run=dry_run), False

    def replace(self, kind: Kind, before: Record, obj: Json, subresource: str = "", *, dry_run: bool = False) -> Record:
        """Write `obj` over `before` by the rules of updates. An update without a change writes nothing."""
        old = before.parse()
        new = self._updated(kind, old, obj, subresource)
        admit_change(self.store, kind, new, old, subresource)
        if new == old:
            return before
        if dry_run:
            return self._preview(kind, new)
        return self.write(kind, before, new)

    def write(self, kind: Kind, before: Record, new: Json) -> Record:
        """Store a changed object, or remove it if the change removed the last finalizer of a deleted object."""
        metadata = new["metadata"]
        if (
            before.deleting
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
            and not (kind is NAMESPACES and new["spec"].get("finalizers"))
        ):
            return self.remove(kind, before, new)
        return self.store.put(kind, new, before)

    def remove(self, kind: Kind, before: Record, last: Json | None = None) -> Record:
        """Remove an object from the store, whatever its finalizers."""
        record = self.store.remove(kind, before, last)
        if kind is PODS:
            self.audit.add(record.version, "gone", before.namespace, before.name, before.uid, before.fields[POD_NODE])
        return record

    def _updated(self, kind: Kind, old: Json, obj: Json, subresource: str) -> Json:
        """The object after an update: fields that a client may not change come from `old`."""
        given, had = obj.get("metadata") or {}, old["metadata"]
        metadata = dict(had)
        for key in ("labels", "annotations", "finalizers", "ownerReferences"):
            if subresource and (kind.custom or kind.status_alone or key == "ownerReferences"):
                continue
            if given.get(key):
                metadata[key] = given[key]
            else:
                metadata.pop(key, None)
        if "deletionTimestamp" in had:
            added = set(metadata.get("finalizers") or ()) - set(had.get("finalizers") or ())
            if added:
                listed = ", ".join(f'"{one}"' for one in sorted(added))
                why = (
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{listed}}}"
                )
                causes = [forbidden_field("metadata.finalizers", why)]
                raise invalid(kind.kind, kind.group, had["name"], causes)
        new: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        if subresource == "status":
            new.update({k: v for k, v in old.items() if k not in new and k != "status"})
            if obj.get("status") is not None or not kind.custom:
                new["status"] = obj.get("status") or {}
        else:
            new.update({k: v for k, v in obj.items() if k not in new})
            if kind.has_status:
                new.pop("status", None)
                if "status" in old:
                    new["status"] = old["status"]
        if kind is PODS:
            if not subresource and not isinstance(new.get("spec"), dict):
                raise invalid("Pod", "", had["name"], [required("spec")])
            if isinstance(new.get("status"), dict):
                new["status"].setdefault("qosClass", quality_of_service(new["spec"]))
        if "generation" in had and new.get("spec") != old.get("spec"):
            metadata["generation"] = had["generation"] + 1
        return new

    def _preview(self, kind: Kind, obj: Json) -> Record:
        metadata = obj["metadata"]
        metadata.setdefault("resourceVersion", "")
        raw = orjson.dumps(obj)
        namespace, name, uid = metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")
        return Record("", namespace, name, uid, 0, raw, {}, (), (), False)


def _uid_differs(expected: Any, actual: str) -> str:
    return f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"


def check_preconditions(kind: Kind, record: Record, preconditions: Json | None) -> None:
    """409 unless UID and resourceVersion, where given, are those of the record."""
    if not preconditions:
        return
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if uid and uid != record.uid:
        raise conflict(kind.plural, kind.group, record.name, _uid_differs(uid, record.uid))
    if version and version != str(record.version):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {record.version}"
        )
        raise conflict(kind.plural, kind.group, record.name, why)
