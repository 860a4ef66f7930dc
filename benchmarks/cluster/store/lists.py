"""Lists: their version and their pages.

All pages of one list show the same version: the rest of a list is stored for some time under the continue token. Once
it is dropped (after too many later lists, or by compaction), the client gets 410 and a token with which it may continue
from the same key at the current version.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from benchmarks.cluster.store.errors import bad_request, expired, forbidden_field, invalid, too_large_resource_version
from benchmarks.cluster.store.kinds import Kind
from benchmarks.cluster.store.store import Record, Selection, Store

_MAX_STORED_LISTS = 128
_PRESENT = -1


@dataclass(frozen=True)
class ListOptions:
    """The parameters of a list request."""

    selection: Selection
    limit: int = 0
    token: str = ""
    resource_version: str = ""
    match: str = ""


@dataclass(frozen=True)
class Page:
    """One page of a list."""

    records: Sequence[Record]
    version: int
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, object]:
        """The list's ListMeta."""
        meta: dict[str, object] = {"resourceVersion": str(self.version)}
        if self.token:
            meta["continue"] = self.token
        if self.remaining is not None:
            meta["remainingItemCount"] = self.remaining
        return meta


class Lists:
    """Answers lists from a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stored: OrderedDict[str, tuple[int, list[Record]]] = OrderedDict()
        self._count = 0

    def answer(self, kind: Kind, options: ListOptions) -> Page:
        """The requested page, or 400, 410, 422 or 504."""
        if options.token:
            return self._go_on(kind, options)
        records, version = self._start(kind, options)
        return self._page(kind, options, records, version)

    def forget(self) -> None:
        """Drop the remaining pages of all lists, as compaction does."""
        self._stored.clear()

    def _start(self, kind: Kind, options: ListOptions) -> tuple[list[Record], int]:
        requested = parse_version(options.resource_version)
        match = options.match
        if match:
            problem = ""
            if not options.resource_version:
                problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            elif match not in ("Exact", "NotOlderThan"):
                problem = 'supported values are "Exact", "NotOlderThan", ""'
            elif match == "Exact" and requested == 0:
                problem = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
            if problem:
                raise invalid("ListOptions", "meta.k8s.io", "", [forbidden_field("resourceVersionMatch", problem)])
        store = self._store
        if requested > store.version:
            raise too_large_resource_version(requested, store.version)
        exact = match == "Exact" or (not match and requested > 0 and options.limit > 0)
        collection = store.collection(kind)
        if exact and requested < collection.changed:
            objects = collection.at(requested)
            if objects is None:
                raise expired("The resourceVersion for the provided list is too old.")
            keys = sorted(objects)
            return [objects[key] for key in keys if options.selection.holds(objects[key])], requested
        return list(store.select(kind, options.selection)), requested if exact else store.version

    def _page(self, kind: Kind, options: ListOptions, records: list[Record], version: int) -> Page:
        limit = options.limit
        if limit <= 0 or len(records) <= limit:
            return Page(records, version)
        page, remaining = records[:limit], records[limit:]
        self._count += 1
        token = _encode({"rv": version, "start": page[-1].key, "id": self._count})
        self._stored[token] = (version, remaining)
        if len(self._stored) > _MAX_STORED_LISTS:
            self._stored.popitem(last=False)
        return Page(page, version, token, None if options.selection.narrow else len(remaining))

    def _go_on(self, kind: Kind, options: ListOptions) -> Page:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _decode(options.token)
        stored = self._stored.get(options.token)
        if stored is not None:
            return self._page(kind, options, stored[1], stored[0])
        start, version = str(token["start"]), token["rv"]
        store = self._store
        if version != _PRESENT and store.collection(kind).changed > int(version):
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You can start "
                "a new list without the continue parameter, or use the continue token in this response to "
                "retrieve the remainder of the results. Continuing with the provided token results in an "
                "inconsistent list - objects that were created, modified, or deleted between the time the first "
                "chunk was returned and now may show up in the list.",
                continue_token=_encode({"rv": _PRESENT, "start": start}),
                resource_version=store.version,
            )
        remaining = [record for record in store.select(kind, options.selection) if record.key > start]
        return self._page(kind, options, remaining, store.version)


def parse_version(text: str) -> int:
    """A resourceVersion as a number; empty means 0."""
    if not text:
        return 0
    if not is_number(text):
        causes = [forbidden_field("resourceVersion", f"invalid resource version {text[:40]!r}")]
        raise invalid("ListOptions", "meta.k8s.io", "", causes)
    return int(text)


def is_number(text: str) -> bool:
    """Whether a text is a plain non-negative number of at most 18 digits, and so of 64 bits."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def _encode(token: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", **token})).decode().rstrip("=")


def _decode(text: str) -> dict[str, int | str]:
    try:
        token: dict[str, int | str] = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not isinstance(token["start"], str) or not isinstance(token["rv"], int):
            raise ValueError(text)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("continue key is not valid: use the metadata.continue of a list as it is") from error
    return token
