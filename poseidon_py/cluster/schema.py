"""The shape of the built-in kinds: which fields they have, of what type, under what number in protobuf.

The table is protobuf_fields.yaml, read when it is first needed. `conform` does what decoding into typed
structs does in the real server: a value of the wrong type is a 400, null means unset, unknown fields stay.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from poseidon_py.cluster.errors import ApiError, bad_request

Json = dict[str, Any]

# Structs that are embedded in Go: a message of their own on the wire, their fields directly in JSON.
INLINE = frozenset(
    ("ephemeralContainerCommon", "handler", "localObjectReference", "persistentVolumeSource", "volumeSource")
)
_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (str,),
    "time": (str,),
    "microtime": (str,),
    "int": (int,),
    "bool": (bool,),
    "double": (int, float),
    "quantity": (str, int, float),
    "intorstring": (str, int),
}
_LIMIT = 2**63


class Field(NamedTuple):
    """One field of a message."""

    name: str
    type: str  # a scalar, or a message if there is a dot in it
    mark: str  # "" one, "*" repeated, "%" map


@cache
def table() -> dict[str, dict[int, Field]]:
    """Message to number to field."""
    text = (files("poseidon_py.cluster") / "protobuf_fields.yaml").read_text()
    loaded: dict[str, str] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found: dict[str, dict[int, Field]] = {}
    for message, described in loaded.items():
        fields = found[message] = {}
        for one in described.split():
            name, _, rest = one.partition("=")
            number, _, type_ = rest.partition(":")
            mark = type_[0] if type_[0] in "*%" else ""
            fields[int(number)] = Field(name, type_.removeprefix(mark) if mark else type_, mark)
    return found


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind, if it is in the table."""
    group, _, version = api_version.rpartition("/")
    message = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    if kind == "DeleteOptions":
        message = f"meta.v1.{kind}"
    return message if message in table() else None


@cache
def _shape(message: str) -> dict[str, Field]:
    shape: dict[str, Field] = {}
    for field in table()[message].values():
        if field.name in INLINE:
            shape.update(_shape(field.type))
        else:
            shape[field.name] = field
    return shape


def conform(api_version: str, kind: str, obj: Any) -> None:
    """Refuse an object whose fields have the wrong type; takes nulls out of it, and sees that it has a spec."""
    if not isinstance(obj, dict):
        raise _refused(kind, "", "an object", obj)
    message = message_of(api_version, kind)
    if message is None:
        metadata = obj.get("metadata")
        if metadata is not None:
            _check("meta.v1.ObjectMeta", "", metadata, kind, "metadata")
        return
    _walk(message, obj, kind, "")
    if "spec" in _shape(message):
        obj.setdefault("spec", {})


def _walk(message: str, obj: Json, kind: str, path: str) -> None:
    shape = _shape(message)
    nulls: list[str] = []
    for name, value in obj.items():
        if value is None:
            nulls.append(name)
            continue
        field = shape.get(name)
        if field is not None:
            _check(field.type, field.mark, value, kind, f"{path}.{name}" if path else name)
    for name in nulls:
        if name in shape:
            del obj[name]


def _check(type_: str, mark: str, value: Any, kind: str, path: str) -> None:
    if mark == "*":
        if not isinstance(value, list):
            raise _refused(kind, path, "a list", value)
        for at, one in enumerate(value):
            _check(type_, "", one, kind, f"{path}[{at}]")
    elif mark == "%":
        if not isinstance(value, dict):
            raise _refused(kind, path, "a map", value)
        for key, one in value.items():
            if one is not None or "." in type_:
                _check(type_, "", one, kind, f"{path}[{key}]")
            else:
                raise _refused(kind, f"{path}[{key}]", type_, one)
    elif type_ == "raw":
        return
    elif "." in type_:
        if type_.endswith(".ExtraValue"):
            _check("string", "*", value, kind, path)
        elif not isinstance(value, dict):
            raise _refused(kind, path, "an object", value)
        else:
            _walk(type_, value, kind, path)
    else:
        wanted = _SCALARS[type_]
        if not isinstance(value, wanted) or (isinstance(value, bool) and type_ != "bool"):
            raise _refused(kind, path, type_, value)
        if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
            raise _refused(kind, path, "a 64-bit integer", value)


def _refused(kind: str, path: str, wanted: str, value: Any) -> ApiError:
    got = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")
    place = f"field {path}" if path else "the body"
    return bad_request(f"{kind} cannot be handled as a {kind}: cannot decode {got} into {place}, which is {wanted}")
