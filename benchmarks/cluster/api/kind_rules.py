"""What the API server sets and refuses when an object is created or changed, by its kind.

Both functions change `obj` or `new` in place, and raise ApiError: 400 for values that cannot be decoded, 403 for what
admission refuses, 422 for what is not valid.
"""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.defaults import DEFAULTS
from benchmarks.cluster.api.device_rules.rule_tables import (
    DEVICE_DEFAULTS,
    FIXED_SPECS,
    PREPARE,
    WITH_EMPTY_STATUS,
    refused_admin_access,
)
from benchmarks.cluster.api.kind_validation import CHECKS, STATUS_CHECKS, UPDATE_CHECKS
from benchmarks.cluster.api.validation import Causes
from benchmarks.cluster.api.validation import metadata as check_metadata
from benchmarks.cluster.store.errors import ApiError, bad_request, forbidden, invalid
from benchmarks.cluster.store.kinds import NAMESPACES, PODS, PRIORITY_CLASSES, Kind
from benchmarks.cluster.store.store import Store

Json = dict[str, Any]


def admit_new(store: Store, kind: Kind, obj: Json) -> None:
    """Set the defaults of a new object, and check it."""
    what = (kind.group, kind.kind)
    try:
        if kind is PODS:
            _admit_pod(store, obj)
        default = DEFAULTS.get(what) or DEVICE_DEFAULTS.get(what)
        if default is not None:
            default(obj)
        if what in WITH_EMPTY_STATUS:
            obj["status"] = {}
        causes = check_metadata(obj["metadata"])
        if what in FIXED_SPECS:
            causes += refused_admin_access(what, obj, None, _namespace_labels(store, obj))
        check = CHECKS.get(what)
        if check is not None:
            causes += check(obj)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        # A list instead of a map or the like, which the real server fails to decode.
        raise _undecodable(kind, error) from error
    if causes:
        raise invalid(kind.kind, kind.group, obj["metadata"]["name"], causes)


def admit_change(store: Store, kind: Kind, new: Json, old: Json, subresource: str) -> None:
    """Check a changed object, and set what the server sets in it."""
    what = (kind.group, kind.kind)
    causes: Causes = []
    try:
        if what in DEVICE_DEFAULTS and not subresource:
            DEVICE_DEFAULTS[what](new)
        prepare = PREPARE.get((what, subresource))
        if prepare is not None:
            prepare(new, old)
        if not subresource:
            causes = check_metadata(new["metadata"])
            update_check, check = UPDATE_CHECKS.get(what), CHECKS.get(what)
            if update_check is not None:
                causes += update_check(new, old)
            if check is not None and kind is not PODS and what not in FIXED_SPECS:
                causes += check(new)
        elif subresource == "status":
            status_check = STATUS_CHECKS.get(what)
            if status_check is not None:
                causes += status_check(new, old)
            if what in FIXED_SPECS:
                causes += refused_admin_access(what, new, old, _namespace_labels(store, new))
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise _undecodable(kind, error) from error
    if causes:
        raise invalid(kind.kind, kind.group, old["metadata"]["name"], causes)


def _undecodable(kind: Kind, error: Exception) -> ApiError:
    return bad_request(f"{kind.kind} in version {kind.version!r} cannot be handled: {error}")


def _namespace_labels(store: Store, obj: Json) -> dict[str, str]:
    home = store.get(NAMESPACES, "", obj["metadata"].get("namespace", ""))
    return home.labels if home is not None else {}


def _admit_pod(store: Store, obj: Json) -> None:
    """Priority admission: a class name becomes a number; without one, the global default or 0."""
    spec = obj.setdefault("spec", {})
    name = spec.get("priorityClassName")
    if name:
        found = store.get(PRIORITY_CLASSES, "", name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", "", obj["metadata"]["name"], why)
        chosen = found.parse()
    else:
        classes = store.collection(PRIORITY_CLASSES).records()
        defaults = [one.parse() for one in classes if b'"globalDefault":true' in one.raw]
        chosen = max(defaults, key=lambda one: one.get("value", 0), default={})
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    value = chosen.get("value", 0)
    if spec.get("priority") not in (None, value):
        why = (
            "the integer value of priority must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("pods", "", obj["metadata"]["name"], why)
    spec["priority"] = value
    if chosen.get("preemptionPolicy"):
        spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"])
