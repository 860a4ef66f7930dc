"""The forms in which a stored object can be shown: as it is, as its metadata only, or as another API group's.

`events` exist in the core group and in events.k8s.io with different field names; they are stored in the core
form and translated on the way in and out. Versions of a custom resource differ in apiVersion only; kinds whose versions
differ in more say how they are converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from benchmarks.cluster.store.errors import bad_request
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
    """An object as a client of `kind` sends it, in the form in which it is stored. Raises ApiError 400."""
    if kind.stored_as is None or not isinstance(obj, dict):
        return obj
    if obj.get("apiVersion") not in (None, "", kind.api_version):
        raise bad_request(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if kind is EVENTS_NEW:
        return _renamed(obj, _EVENT_FIELDS_BACK, EVENTS.api_version)
    stored = {**obj, "apiVersion": kind.stored_as.api_version}
    return stored if kind.to_stored is None else kind.to_stored({"kind": kind.kind, **stored})


def shown_form(kind: Kind, obj: Json) -> Json:
    """A stored object as a client of `kind` sees it."""
    if kind is EVENTS_NEW:
        return _renamed(obj, _EVENT_FIELDS, kind.api_version)
    if kind.stored_as is None:
        return obj
    shown = {**obj, "apiVersion": kind.api_version}
    return shown if kind.from_stored is None else kind.from_stored(shown)


def view_of(kind: Kind) -> View | None:
    """The conversion of records of the kind's collection for `kind`; None if they are shown unchanged."""
    if kind.stored_as is None:
        return None
    return lambda record: orjson.dumps(shown_form(kind, record.parse()))


def metadata_only(record: Record) -> bytes:
    """PartialObjectMetadata."""
    obj = record.parse()
    return orjson.dumps({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]})
