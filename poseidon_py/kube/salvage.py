"""Decodes what it can of a list, or of a watch event, that contains an invalid object.

An invalid object must not hide the others, and it should be identified: its owner gets an event, and its last valid
state is kept.
"""

from typing import Any

from msgspec import Raw, Struct

from poseidon_py.kube.objects import ListMetadata, Metadata, ObjectList, WatchEvent
from poseidon_py.util.decoding import MalformedError, decode_json, is_whole, readable


class _Identified(Struct):
    metadata: dict[str, Any]


def event(line: bytes) -> WatchEvent[Raw] | None:
    """The event with its object undecoded; None if the line is not an event."""
    try:
        found: WatchEvent[Raw] = decode_json(readable(line), WatchEvent[Raw], "event")
    except MalformedError:
        return None
    return found


def items(body: bytes, place: str) -> tuple[ListMetadata, list[bytes]]:
    """The metadata of a list, and its items undecoded. Raises MalformedError."""
    try:
        raw: ObjectList[Raw] = decode_json(body, ObjectList[Raw], place)
    except MalformedError:
        raw = decode_json(readable(body), ObjectList[Raw], place)
    return raw.metadata, [bytes(item) for item in raw.items or ()]


def item(data: bytes, kind: Any, place: str) -> Any:
    """An item of a list, decoded. Raises MalformedError."""
    if not is_whole(data):
        raise MalformedError(place, "is nested too deeply")
    return decode_json(data, kind, place)


def identity(data: bytes) -> Metadata:
    """The metadata of an invalid object, as far as it can be decoded; without a name, "?"."""
    try:
        metadata = decode_json(readable(data), _Identified, "metadata").metadata
    except MalformedError:
        metadata = {}
    name, namespace, uid, version = (
        value if isinstance(value := metadata.get(key), str) else ""
        for key in ("name", "namespace", "uid", "resourceVersion")
    )
    return Metadata(name=name or "?", namespace=namespace, uid=uid, resource_version=version)
