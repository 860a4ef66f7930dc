"""The schema of the built-in kinds: their fields and types.

It comes from the Kubernetes Python client, whose model classes map each attribute to a JSON name and a type. They are
read at the first use of a kind, into one table per class; no model is instantiated. Kinds that the installed client
does not have, such as custom resources, are not checked.

`conform` corresponds to decoding into typed structs in the real server: a value of the wrong type is a 400,
null means unset, unknown fields are kept.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from benchmarks.cluster.store.device_kinds import DEVICE_KINDS
from benchmarks.cluster.store.errors import ApiError, bad_request
from benchmarks.cluster.store.kinds import BUILT_IN

Json = dict[str, Any]

_OTHER_NAMES = {
    ("v1", "Event"): "CoreV1Event",
    ("events.k8s.io/v1", "Event"): "EventsV1Event",
    ("resource.k8s.io/v1", "ResourceClaim"): "ResourceV1ResourceClaim",
}
_MODELS = {
    (api_version, kind): _OTHER_NAMES.get((api_version, kind), "V1" + kind)
    for api_version, kind in [
        *((kind.api_version, kind.kind) for kind in (*BUILT_IN, *DEVICE_KINDS) if kind.version == "v1"),
        ("v1", "Binding"),
        ("policy/v1", "Eviction"),
        ("autoscaling/v1", "Scale"),
    ]
}

# The client's type is str, but a number is accepted too.
_QUANTITIES = frozenset(
    (
        *("limits", "requests", "overhead", "capacity", "allocatable", "allocatedResources", "sizeLimit", "divisor"),
        *("hard", "used", "min", "max", "default", "defaultRequest", "maxLimitRequestRatio", "maximumVolumeSize"),
        *("step", "validValues", "consumedCapacity"),
    )
)
_VALUES_OF_QUANTITY = frozenset(("V1Counter", "V1DeviceCapacity"))
"""Models whose `value` is a quantity too; elsewhere it is a text."""
# The client's type is object, as for fields that may hold anything.
_NUMBER_OR_STRING = frozenset(("port", "targetPort", "minAvailable", "maxUnavailable", "maxSurge"))

_LIST = re.compile(r"list\[(.+)\]", re.IGNORECASE)
_MAP = re.compile(r"dict[\[(]str, (.+)[\])]", re.IGNORECASE)
_LIMIT = 2**63
MAX_DEPTH = 100
"""Maximum depth of an object: more than any manifest has, less than Python's recursion limit allows."""


class Type(NamedTuple):
    """The type of a field."""

    name: str
    """string, integer, boolean, number, time, quantity, number or string, anything, list, map, or a model class."""
    accepts: tuple[type, ...]
    """The Python types that it may have after decoding."""
    of: Type | None = None
    """The type of the elements of a list or map."""


_STRING = Type("string", (str,))
_QUANTITY = Type("quantity", (str, int, float))
_EITHER = Type("number or string", (str, int))
_SCALARS = {
    "str": _STRING,
    "bytes": _STRING,
    "bytearray": _STRING,
    "datetime": Type("time", (str,)),
    "int": Type("integer", (int,)),
    "bool": Type("boolean", (bool,)),
    "float": Type("number", (int, float)),
    "object": Type("anything", (object, bool)),
}
_OBJECT = (dict,)
_ONLY_METADATA = {"metadata": Type("V1ObjectMeta", _OBJECT)}


class _Mismatch(Exception):
    """A value of the wrong type; callers add the path on the way up."""

    def __init__(self, expected: str, value: Any) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.path = ""


def model_of(api_version: str, kind: str) -> str | None:
    """The client's class for a built-in kind, if it has one."""
    model = "V1DeleteOptions" if kind == "DeleteOptions" else _MODELS.get((api_version, kind))
    return model if model is not None and fields_of(model) else None


@cache
def fields_of(model: str) -> dict[str, Type]:
    """JSON name to type of the fields of a model class; empty if the installed client has no such class."""
    from kubernetes.client import models  # a slow import, so only when needed

    cls: Any = getattr(models, model, None)
    if cls is None:
        return {}
    names: dict[str, str] = cls.attribute_map
    found = {names[attribute]: _type(names[attribute], stated) for attribute, stated in cls.openapi_types.items()}
    return found | {"value": _QUANTITY} if model in _VALUES_OF_QUANTITY else found


def _type(name: str, stated: str) -> Type:
    if many := _LIST.fullmatch(stated):
        return Type("list", (list,), _type(name, many[1]))
    if entries := _MAP.fullmatch(stated):
        return Type("map", (dict,), _type(name, entries[1]))
    if stated == "str" and name in _QUANTITIES:
        return _QUANTITY
    if stated == "object" and name in _NUMBER_OR_STRING:
        return _EITHER
    return _SCALARS.get(stated) or Type(stated, _OBJECT)


def check_depth(value: Any) -> None:
    """400 if objects and lists are nested more than `MAX_DEPTH` levels deep."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    if level:
        raise too_deep()


def too_deep() -> ApiError:
    """400 for an object that is nested too deep."""
    return bad_request(f"the object exceeds the maximum depth of {MAX_DEPTH} levels")


def conform(api_version: str, kind: str, obj: Any) -> None:
    """Refuse an object with fields of the wrong type; remove nulls from it and add what is missing and required."""
    model = model_of(api_version, kind)
    try:
        if not isinstance(obj, dict):
            raise _Mismatch("an object", obj)
        fields = _ONLY_METADATA if model is None else fields_of(model)
        _walk(fields, obj)
    except _Mismatch as found:
        raise _refused(kind, found) from None
    if "spec" in fields:
        obj.setdefault("spec", {})
    if "status" in fields:
        _add_empty_texts(obj.get("status"))


def _add_empty_texts(status: Json | None) -> None:
    """An API server stores required texts of conditions and addresses that are missing as empty ones."""
    for name, required in (("conditions", ("type", "status")), ("addresses", ("type", "address"))):
        for entry in (status or {}).get(name) or ():
            for field in required:
                entry.setdefault(field, "")


def _walk(fields: dict[str, Type], obj: Json) -> None:
    nulls: list[str] = []
    for name, value in obj.items():
        expected = fields.get(name)
        if expected is None or (expected is _STRING and value.__class__ is str):  # most fields
            continue
        if value is None:
            nulls.append(name)
            continue
        try:
            _check(expected, value)
        except _Mismatch as found:
            found.path = f".{name}{found.path}"
            raise
    for name in nulls:
        del obj[name]


def _check(expected: Type, value: Any) -> None:
    fits = isinstance(value, expected.accepts)
    if not fits or (value.__class__ is bool and bool not in expected.accepts):
        raise _Mismatch("an object" if expected.accepts is _OBJECT else expected.name, value)
    if expected.of is not None:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            try:
                _check(expected.of, one)
            except _Mismatch as found:
                found.path = f"[{key}]{found.path}"
                raise
    elif expected.accepts is _OBJECT:
        _walk(fields_of(expected.name), value)
    elif value.__class__ is int and not -_LIMIT <= value < _LIMIT:
        raise _Mismatch("a 64-bit integer", value)


def _refused(kind: str, found: _Mismatch) -> ApiError:
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    got = names.get(type(found.value), "number")
    place = f"field {found.path[1:]}" if found.path else "the body"
    return bad_request(
        f"{kind} cannot be handled as a {kind}: cannot decode {got} into {place}, which is {found.expected}"
    )
