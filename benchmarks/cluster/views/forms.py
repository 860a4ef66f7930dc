"""The forms in which a stored object can be shown: as it is, as its metadata only, or as another API group's.

`events` exist in the core group and in events.k8s.io with different field names; they are stored in the core
form and translated on the way in and out. Versions of a custom resource differ in apiVersion only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from benchmarks.cluster.store.kinds import EVENTS, EVENTS_NEW, Kind
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]
View = Callable[[Record], bytes]

_EVENT_FIELDS = {  # core name to events.k8s.io name
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_FIELDS_BACK = {new: core for core, new in _EVENT_FIELDS.items()}


def _renamed(obj: Json, names: dict[str, str], api_version: str) -> Json:
    shown = {names.get(key, key): value for key, value in obj.items()}
    shown["apiVersion"] = api_version
    return shown


def stored_form(kind: Kind, obj: Any) -> Any:
    """An object as a client of `kind` sends it, in the form in which it is stored."""
    if kind is EVENTS_NEW and isinstance(obj, dict):
        return _renamed(obj, _EVENT_FIELDS_BACK, EVENTS.api_version)
    if kind.stored_as is not None and isinstance(obj, dict) and obj.get("apiVersion") == kind.api_version:
        return {**obj, "apiVersion": kind.stored_as.api_version}
    return obj


def view_of(kind: Kind) -> View | None:
    """The conversion of records of the kind's collection for `kind`; None if they are shown unchanged."""
    if kind is EVENTS_NEW:
        return lambda record: orjson.dumps(_renamed(record.parse(), _EVENT_FIELDS, kind.api_version))
    if kind.stored_as is not None:
        return lambda record: orjson.dumps({**record.parse(), "apiVersion": kind.api_version})
    return None


def metadata_only(record: Record) -> bytes:
    """PartialObjectMetadata."""
    obj = record.parse()
    return orjson.dumps({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]})
