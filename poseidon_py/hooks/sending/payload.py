"""The JSON message of a delivery. Its first five fields are those of OpenI's hook message."""

from datetime import UTC, datetime

import msgspec

from poseidon_py.hooks.records import Record


class _Payload(msgspec.Struct, rename="camel"):
    id: str
    user_id: str = msgspec.field(name="userID")
    namespace: str
    current_state: str
    current_time: str
    machine: str
    name: str
    job: str
    previous_state: str
    delivery_id: str = msgspec.field(name="deliveryID")
    attempt: int
    sequence: int
    details: dict[str, str]


def payload(record: Record) -> bytes:
    """The body of the next attempt."""
    it = record.transition
    return msgspec.json.encode(
        _Payload(
            it.id,
            it.user_id,
            it.namespace,
            it.after,
            timestamp(it.at),
            it.machine,
            it.name,
            it.job,
            it.before,
            record.id,
            record.attempts + 1,
            record.sequence,
            dict(it.details),
        )
    )


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
