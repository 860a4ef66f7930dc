"""Decodes request bodies in Kubernetes' protobuf encoding to JSON objects.

Recent Go clients always send built-in kinds this way; answers are always JSON, which they accept. `protobuf_fields` has
the numbers of the fields, the schema their types. A field in neither is refused with 415, which asks for JSON, rather
than lost.

The encoding writes unset strings and times like empty ones, so empty ones are dropped; numbers and booleans
are kept as sent, except where 0 means unset.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from benchmarks.cluster.api.schema import Type, fields_of, model_of
from benchmarks.cluster.http.protobuf_fields import MESSAGES
from benchmarks.cluster.store.errors import ApiError, bad_request

Json = dict[str, Any]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_ZERO_IS_UNSET = frozenset(("generation", "healthCheckNodePort", "hostPort", "nodePort"))
_SCALARS = frozenset(("boolean", "integer", "number or string", "quantity", "string", "time"))
_EMPTY = memoryview(b"")


class _Field(NamedTuple):
    """The field of one number."""

    name: str
    mark: str = ""
    """bytes or micro; "/" for an inlined message, "~" for an ignored field, "-" for a refused one."""
    type: Type | None = None


def decode(body: bytes, subresource: str = "") -> Json:
    """The object in an envelope; 400 if there is none, 415 if it has unsupported fields."""
    if not body.startswith(_MAGIC):
        raise bad_request("couldn't decode the request body as protobuf: it has no envelope")
    try:
        envelope = _split(memoryview(body)[len(_MAGIC) :])
        about = {number: _text(value) for number, value in _split(_part(envelope, 1))}
        api_version, kind = about.get(1, ""), about.get(2, "")
        if not kind:
            raise ValueError("it names no kind")
        model = model_of(api_version, kind)
        if model not in MESSAGES:
            raise _refused(f"{kind} of {api_version}")
        if subresource == "status":
            raise _refused(f"the status of a {kind}")
        obj = _message(model, _part(envelope, 2))
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(f"couldn't decode the request body as protobuf: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **obj}


def _refused(what: str) -> ApiError:
    message = f"{what} is not read from {MEDIA_TYPE}; send the object as application/json"
    return ApiError(415, "UnsupportedMediaType", message)


def _part(parts: list[tuple[int, Any]], number: int) -> memoryview:
    """The bytes of one field of the envelope."""
    return next((value for found, value in parts if found == number), _EMPTY)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint is too long")


def _split(data: memoryview) -> list[tuple[int, Any]]:
    """Field number and value: an integer, or the bytes of anything else."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                found.append((tag >> 3, value))
                continue
            case 1:
                length = 8
            case 2:
                length, at = _varint(data, at)
            case 5:
                length = 4
            case _:
                raise ValueError("unknown wire type")
        if at + length > len(data):
            raise ValueError("a field is longer than its message")
        found.append((tag >> 3, data[at : at + length]))
        at += length
    return found


@cache
def _numbers(message: str) -> dict[int, _Field]:
    types = fields_of(message.partition("/")[0])
    return {number: _field(token, types) for number, token in enumerate(MESSAGES[message].split(), 1)}


def _field(token: str, types: dict[str, Type]) -> _Field:
    if token[0] in "~/-":
        return _Field(token[1:], token[0])
    name, _, mark = token.partition(":")
    type_ = types.get(name)
    if type_ is None or not _readable(type_.of or type_):  # the installed client has no such field
        return _Field(name, "-")
    return _Field(name, mark, type_)


def _readable(type_: Type) -> bool:
    return type_.name in _SCALARS or type_.name in MESSAGES


def _message(message: str, data: memoryview) -> Json:
    numbers = _numbers(message)
    obj: Json = {}
    for number, raw in _split(data):
        name, mark, type_ = numbers.get(number) or _Field("", "" if raw in (0, b"") else "-")
        if mark == "-":
            raise _refused(f"field {number} of {message.removeprefix('V1').partition('/')[0]}")
        if mark == "/":
            obj.update(_message(f"{message}/{name}", raw))
        elif mark == "~" or type_ is None:
            continue
        elif type_.name == "map" and type_.of is not None:
            entry = dict(_split(raw))
            key = _text(entry.get(1, _EMPTY))
            obj.setdefault(name, {})[key] = _value(type_.of, mark, entry.get(2, _EMPTY))
        elif type_.name == "list" and type_.of is not None:
            obj.setdefault(name, []).append(_value(type_.of, mark, raw))
        else:
            value = _value(type_, mark, raw)
            if value not in ("", None) and not (value == 0 and name in _ZERO_IS_UNSET):
                obj[name] = value
    return obj


def _value(type_: Type, mark: str, raw: Any) -> Any:
    match mark or type_.name:
        case "integer":
            return _signed(raw)
        case "boolean":
            return _signed(raw) != 0
        case "string":
            return _text(raw)
        case "bytes":
            return base64.b64encode(raw).decode()
        case "quantity":
            return _text(dict(_split(raw)).get(1, _EMPTY)) or "0"
        case "time" | "micro":
            return _time(dict(_split(raw)), micro=mark == "micro")
        case "number or string":
            parts = dict(_split(raw))
            return _text(parts.get(3, _EMPTY)) if parts.get(1) else _signed(parts.get(2, 0))
    return _message(type_.name, raw)


def _text(raw: Any) -> str:
    return str(raw, "utf-8")


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >> 63 else raw


def _time(parts: dict[int, Any], *, micro: bool) -> str | None:
    if not parts:
        return None
    moment = datetime.fromtimestamp(_signed(parts.get(1, 0)), UTC).replace(microsecond=parts.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")
