"""What the holder of a lease says about itself, in an annotation of the lease: who it is, and where it answers.

The annotation stays on the lease when another process takes it, which may know nothing of it (kube-scheduler). So a
record counts only while its identity is that of the holder.
"""

from collections.abc import Mapping

import msgspec

from poseidon_py.util.decoding import MalformedError, decode_json

LEADER = "poseidon.io/leader"
"""Annotation of a lease."""


class LeaderRecord(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """`identity`: the holderIdentity that it belongs to."""

    identity: str
    version: str = ""
    host: str = ""
    """Host name."""
    pod: str = ""
    """NAMESPACE/NAME; empty: it runs outside of the cluster."""
    health: str = ""
    """ADDRESS:PORT that the health port is bound to; empty: there is none."""
    secure: str = ""
    """Likewise, of the secure port."""

    @property
    def where(self) -> str:
        """Where it runs, for messages."""
        return f"pod {self.pod}" if self.pod else f"a process on {self.host}"

    def annotation(self) -> str:
        return msgspec.json.encode(self).decode()


def record_of(annotations: Mapping[str, str] | None, holder: str) -> LeaderRecord | None:
    """The record of the holder of a lease; None: it has none, or a malformed one, or one of a former holder."""
    text = (annotations or {}).get(LEADER)
    if not text:
        return None
    try:
        record: LeaderRecord = decode_json(text.encode(), LeaderRecord, LEADER)
    except MalformedError:
        return None
    return record if record.identity == holder else None
