"""Request bodies in Kubernetes' protobuf encoding, as the JSON objects that they mean.

Go clients of recent versions send built-in kinds this way and cannot be told otherwise; answers are always
JSON, which they accept.

The encoding writes unset strings and times like empty ones, so empty ones are dropped; numbers and booleans
are kept as sent, but for ports, where 0 is none.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import orjson

from poseidon_py.cluster.errors import bad_request
from poseidon_py.cluster.schema import INLINE, message_of, table

Json = dict[str, Any]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_ZERO_IS_UNSET = frozenset(("hostPort", "nodePort"))


def decode(body: bytes) -> Json:
    """The object in an envelope, or 400."""
    if not body.startswith(_MAGIC):
        raise bad_request("couldn't decode the request body as protobuf: it has no envelope")
    try:
        envelope = _split(memoryview(body)[len(_MAGIC) :])
        about = {number: bytes(value).decode() for number, value in _split(_part(envelope, 1))}
        api_version, kind = about.get(1, ""), about.get(2, "")
        message = _message_of(api_version, kind)
        obj = _message(message, _part(envelope, 2))
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(f"couldn't decode the request body as protobuf: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **obj}


def _part(parts: list[tuple[int, Any]], number: int) -> memoryview:
    """The bytes of one field of the envelope."""
    return next((value for found, value in parts if found == number), memoryview(b""))


def _message_of(api_version: str, kind: str) -> str:
    message = message_of(api_version, kind)
    if message is None:
        raise bad_request(f"{kind} of {api_version} is not known in protobuf; send it as application/json")
    return message


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
    """Field number and value: an integer, or the bytes of anything with a length."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                found.append((tag >> 3, value))
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise ValueError("a field is longer than its message")
                found.append((tag >> 3, data[at : at + length]))
                at += length
            case 1 | 5 as wire:
                at += 8 if wire == 1 else 4
            case _:
                raise ValueError("unknown wire type")
    return found


def _message(message: str, data: memoryview) -> Json:
    fields = table()[message]
    obj: Json = {}
    for number, raw in _split(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.mark == "%":
            entry = dict(_split(raw))
            key = bytes(entry.get(1, b"")).decode()
            obj.setdefault(field.name, {})[key] = _value(field.type, entry.get(2, memoryview(b"")))
            continue
        value = _value(field.type, raw)
        if field.mark == "*":
            obj.setdefault(field.name, []).append(value)
        elif field.name in INLINE:
            obj.update(value)
        elif value not in ("", None) and not (value == 0 and field.name in _ZERO_IS_UNSET):
            obj[field.name] = value
    return obj


def _value(type_: str, raw: Any) -> Any:
    match type_:
        case "int":
            return raw - (1 << 64) if raw >> 63 else raw
        case "bool":
            return bool(raw)
        case "string":
            return bytes(raw).decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "quantity":
            return bytes(dict(_split(raw)).get(1, b"")).decode() or "0"
        case "time" | "microtime":
            return _time(dict(_split(raw)), micro=type_ == "microtime")
        case "intorstring":
            parts = dict(_split(raw))
            return bytes(parts.get(3, b"")).decode() if parts.get(1) else _value("int", parts.get(2, 0))
        case "raw":
            inner = bytes(dict(_split(raw)).get(1, b""))
            return orjson.loads(inner) if inner else None
    value = _message(type_, raw)
    if type_.endswith(".ExtraValue"):
        return value.get("items", [])
    return value


def _time(parts: dict[int, Any], *, micro: bool) -> str | None:
    if not parts:
        return None
    seconds = _value("int", parts.get(1, 0))
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=parts.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")
