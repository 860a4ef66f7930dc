"""The append-only history of pods, for tests of invariants. Entries are written in the same step as the change, so
their sequence is the API server's order: replaying it gives the pods bound to each node at every instant."""

from __future__ import annotations

import time
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One event in the life of a pod."""

    time: float  # Unix seconds
    version: int  # resourceVersion of the change
    what: str  # bind, evict, delete (asked for), gone, finish, reject
    namespace: str
    name: str
    uid: str
    node: str
    detail: str = ""

    def json(self) -> dict[str, Any]:
        """The entry as JSON, for GET /_audit."""
        return self._asdict()


class Audit:
    """All entries, oldest first, and how many there are of each kind."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.counts: dict[str, int] = {}

    def add(self, version: int, what: str, namespace: str, name: str, uid: str, node: str, detail: str = "") -> None:
        """Append one entry, stamped now."""
        self.entries.append(Entry(time.time(), version, what, namespace, name, uid, node, detail))
        self.counts[what] = self.counts.get(what, 0) + 1

    def of(self, what: str) -> list[Entry]:
        """The entries of one kind."""
        return [entry for entry in self.entries if entry.what == what]
