"""What can be told from a list, or an event of a watch, of which something cannot be decoded.

One object that makes no sense must not hide the others, and whose it is should be known: its owner is told, and what
was known of it before is kept.
"""

from typing import Any

from msgspec import Raw, Struct

from poseidon_py.kube.objects import ListMetadata, Metadata, ObjectList, WatchEvent
from poseidon_py.util.decoding import MalformedError, decode_json, is_whole, readable


class _Identified(Struct):
    metadata: dict[str, Any]


def event(line: bytes) -> WatchEvent[Raw] | None:
    """The event, its object undecoded; None if it is not even an event."""
    try:
        found: WatchEvent[Raw] = decode_json(readable(line), WatchEvent[Raw], "event")
    except MalformedError:
        return None
    return found


def items(body: bytes, place: str) -> tuple[ListMetadata, list[bytes]]:
    """The metadata of a list and its items, undecoded. Raises MalformedError."""
    try:
        raw: ObjectList[Raw] = decode_json(body, ObjectList[Raw], place)
    except MalformedError:
        raw = decode_json(readable(body), ObjectList[Raw], place)
    return raw.metadata, [bytes(item) for item in raw.items or ()]


def item(data: bytes, kind: Any, place: str) -> Any:
    """One of them, decoded. Raises MalformedError."""
    if not is_whole(data):
        raise MalformedError(place, "is nested too deeply")
    return decode_json(data, kind, place)


def identity(data: bytes) -> Metadata:
    """Whose object it is, as far as that can be told; with the name "?" if it cannot."""
    try:
        said = decode_json(readable(data), _Identified, "metadata").metadata
    except MalformedError:
        said = {}
    name, namespace, uid, version = (
        value if isinstance(value := said.get(key), str) else ""
        for key in ("name", "namespace", "uid", "resourceVersion")
    )
    return Metadata(name=name or "?", namespace=namespace, uid=uid, resource_version=version)
