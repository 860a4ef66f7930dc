"""UUIDs that are the same in every run."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.UUID("6f3a2c52-2f6e-4d5b-9b0e-6c3f7f1d9a10")


def stable_uuid(*parts: object) -> str:
    """The UUID of what these parts name."""
    return str(uuid.uuid5(_NAMESPACE, "/".join(map(str, parts))))
