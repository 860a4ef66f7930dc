"""The kinds of patch that clients send, on plain JSON values.

All functions take the current object and return a new one; the current one is not changed. The table below has the
lists that a strategic merge patch merges, and their keys, because the Kubernetes client for Python does not
ship the `x-kubernetes-patch-merge-key` of the OpenAPI document. Every other list is replaced completely.
"""

from __future__ import annotations

import copy
from typing import Any

import orjson
from jsonpatch import InvalidJsonPatch, JsonPatch, JsonPatchException, JsonPatchTestFailed
from jsonpointer import JsonPointerException, resolve_pointer

from benchmarks.cluster.store.errors import ApiError, bad_request, unsupported_media_type

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCHES = ("application/apply-patch+yaml", "application/apply-patch+cbor")
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCHES[0])

MERGE_KEYS: dict[str, str] = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "reservedFor": "uid",
    "resourceClaims": "name",
    "resourceClaimStatuses": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""List field to the field that identifies an element, where a strategic merge patch merges."""
# `ports` is keyed by containerPort in containers and by port in services, whichever the element has.
PORT_KEYS = ("containerPort", "port")
DEVICE_STATUS_KEYS = ("driver", "pool", "device", "shareID")
"""The keys of `devices` in a claim's status, which server-side apply merges; a slice's devices are replaced."""
MERGED_SETS = frozenset(("finalizers", "podCIDRs"))
"""Lists of plain values that are merged as sets."""

MAX_OPERATIONS = 10_000
"""Operations of one JSON patch, as in the API server."""
MAX_COPIED_BYTES = 3 * 2**20
"""Bytes that the copy operations of one JSON patch may add, as in the API server."""

_DIRECTIVE = "$patch"
_ORDER = "$setElementOrder/"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"


def patched(current: Json, patch: Any, patch_type: str, *, custom: bool) -> Any:
    """The object after a patch of that media type; 415 for others, and for strategic patches of custom resources."""
    if patch_type == JSON_PATCH:
        return json_patch(current, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    if patch_type == MERGE_PATCH:
        return merge_patch(current, patch)
    if patch_type == STRATEGIC_PATCH and not custom:
        return strategic_merge_patch(current, patch)
    if patch_type in APPLY_PATCHES:
        if isinstance(patch.get("metadata"), dict):
            patch["metadata"].pop("managedFields", None)
        return apply_merge(current, patch)
    raise unsupported_media_type(patch_type, ", ".join(PATCH_TYPES))


def merge_patch(current: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def apply_merge(current: Any, applied: Any, field: str = "") -> Any:
    """Server-side apply as a merge: maps merge, keyed lists merge by key, other values replace."""
    if isinstance(applied, dict):
        merged = dict(current) if isinstance(current, dict) else {}
        for key, value in applied.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = apply_merge(merged.get(key), value, key)
        return merged
    if isinstance(applied, list) and isinstance(current, list):
        if field in MERGED_SETS:
            return current + [value for value in applied if value not in current]
        merge_key = _merge_key(field, applied)
        if merge_key is not None:
            return _merge_elements(current, applied, merge_key, apply_merge)
        if field == "devices" and all(isinstance(one, dict) and "pool" in one for one in applied):
            return _apply_device_status(current, applied)
    return applied


def _apply_device_status(current: list[Json], applied: list[Json]) -> list[Json]:
    merged = {tuple(one.get(key) for key in DEVICE_STATUS_KEYS): one for one in current}
    for one in applied:
        key = tuple(one.get(key) for key in DEVICE_STATUS_KEYS)
        merged[key] = apply_merge(merged.get(key), one)
    return list(merged.values())


def _merge_key(field: str, elements: list[Any]) -> str | None:
    if not elements or not all(isinstance(element, dict) for element in elements):
        return None
    if field == "ports":
        return next((key for key in PORT_KEYS if all(key in element for element in elements)), None)
    key = MERGE_KEYS.get(field)
    if key is None or not all(key in element for element in elements if element.get(_DIRECTIVE) != "replace"):
        return None
    return key


def _merge_elements(current: list[Any], patch: list[Any], key: str, merge: Any) -> list[Any]:
    result = list(current)
    for element in patch:
        identity = element.get(key)
        at = next((i for i, old in enumerate(result) if isinstance(old, dict) and old.get(key) == identity), None)
        if element.get(_DIRECTIVE) == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(merge({}, element))
        else:
            result[at] = merge(result[at], element)
    return result


def strategic_merge_patch(current: Any, patch: Any) -> Any:
    """Kubernetes' strategic merge: like a merge patch, but the lists of `MERGE_KEYS` merge by element."""
    if not isinstance(patch, dict):
        return patch
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch type {directive!r} in the patch's $patch directive")
    merged = dict(current) if isinstance(current, dict) else {}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            merged[field] = [old for old in merged.get(field) or () if old not in value]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = strategic_merge_patch(merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = _strategic_list(key, merged.get(key) or [], value)
        else:
            merged[key] = value
    for key, order in patch.items():
        if key.startswith(_ORDER) and isinstance(merged.get(key.removeprefix(_ORDER)), list):
            field = key.removeprefix(_ORDER)
            merged[field] = _ordered(field, merged[field], order)
    return merged


def _strategic_list(field: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if field in MERGED_SETS:
        return current + [value for value in patch if value not in current]
    elements = [element for element in patch if not _is_replace(element)]
    if len(elements) != len(patch):  # an element {"$patch": "replace"}: the others are the complete list
        return list(elements)
    key = _merge_key(field, patch)
    return patch if key is None else _merge_elements(current, patch, key, strategic_merge_patch)


def _is_replace(element: Any) -> bool:
    return isinstance(element, dict) and element.get(_DIRECTIVE) == "replace"


def _ordered(field: str, elements: list[Any], order: list[Any]) -> list[Any]:
    """Sorts elements named in `order` by it; the others stay behind their predecessor."""
    key = _merge_key(field, [element for element in order if isinstance(element, dict)])

    def rank(element: Any) -> int | None:
        for at, expected in enumerate(order):
            same = element.get(key) == expected.get(key) if key and isinstance(expected, dict) else element == expected
            if same:
                return at
        return None

    last = -1
    ranked: list[tuple[int, int, Any]] = []
    for position, element in enumerate(elements):
        place = rank(element)
        if place is not None:
            last = place
        ranked.append((last if place is None else place, position, element))
    ranked.sort(key=lambda entry: entry[:2])
    return [element for _, _, element in ranked]


def json_patch(current: Any, operations: Any) -> Any:
    """RFC 6902. An invalid patch is a 400, one that is too large a 413, one that does not apply a 422."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise _too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    document = copy.deepcopy(current)
    copied = 0
    for at, operation in enumerate(operations):
        copied += _copied_bytes(document, operation)
        if copied > MAX_COPIED_BYTES:
            raise _too_large(f"the copy operations of the JSON patch exceed the limit of {MAX_COPIED_BYTES} bytes")
        document = _apply_operation(document, operation, at)
    return document


def _apply_operation(document: Any, operation: Any, at: int) -> Any:
    place = f"operation {at} of the JSON patch"
    if not isinstance(operation, dict):
        raise bad_request(f"{place} must be an object")
    if operation.get("op") == "test" and operation.get("value", "") is None and _is_missing(document, operation):
        return document  # the library of the API server takes what is missing for null
    try:
        patch = JsonPatch([operation])
    except (JsonPatchException, JsonPointerException, TypeError) as error:
        raise bad_request(f"{place} is not valid: {error}") from error
    try:
        return patch.apply(document, in_place=True)
    except InvalidJsonPatch as error:
        raise bad_request(f"{place} is not valid: {error}") from error
    except JsonPatchTestFailed as error:
        raise _refuse(f"testing value {operation['path']} failed") from error
    except (JsonPatchException, JsonPointerException, TypeError) as error:
        raise _refuse(f"{operation['op']} operation does not apply at {operation['path']}: {error}") from error


def _is_missing(document: Any, operation: Json) -> bool:
    """Whether the object at the path's parent exists and has no such field."""
    parent, _, field = str(operation.get("path")).rpartition("/")
    try:
        holder = resolve_pointer(document, parent)
    except JsonPointerException:
        return False
    return isinstance(holder, dict) and holder.get(field.replace("~1", "/").replace("~0", "~")) is None


def _copied_bytes(document: Any, operation: Any) -> int:
    """Bytes that a copy operation adds: copies of copies grow exponentially and could exhaust the memory."""
    source = operation.get("from") if isinstance(operation, dict) and operation.get("op") == "copy" else None
    if not isinstance(source, str):
        return 0
    try:
        return len(orjson.dumps(resolve_pointer(document, source)))
    except (JsonPointerException, TypeError):  # refused when it is applied
        return 0


def _refuse(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiError(422, "Invalid", message, details={})


def _too_large(why: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
