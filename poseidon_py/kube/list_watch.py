"""Follows one kind of object: list, LISTED mark, watch, and over again when the thread is lost.

    list in pages --observe(each)--> listed(all of them) --> watch --observe / removed(each)--+
         ^                                                     |   ^                          |
         |             410: our version is forgotten           |   +--- ended or broke: again +
         +-----------------------------------------------------+        from the last version

What a follower may rely on: between two `listed` calls it is told every change in order; `listed` names all that
exist, so what it knows and the list does not is gone, however long the gap was. One object that makes no sense
is told as `nonsense`; it neither ends the watch nor hides the others.

A watch can die without a sound: a connection that a firewall dropped. So silence for longer than bookmarks take
counts as death, and the server is asked to end each watch after some minutes anyway.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from poseidon_py.kube.client import ApiError, GoneError, KubeError, api_error
from poseidon_py.kube.objects import (
    Identity,
    Metadata,
    Node,
    NodeEvent,
    NodeList,
    Pod,
    PodEvent,
    PodList,
    RawEvent,
    RawList,
)
from poseidon_py.kube.storage_objects import (
    Capacity,
    Claim,
    CsiDriver,
    CsiNode,
    Event,
    Listing,
    Namespace,
    StorageClass,
    Volume,
)
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.metrics import METRICS

log = logging.getLogger(__name__)

_GONE = 410


class _Object(Protocol):
    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=_Object)
Told = TypeVar("Told", contravariant=True)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """How to ask for a kind and how to understand the answers."""

    name: str
    path: str
    selector: str
    item: type[T]
    event: Any
    listing: Any


PODS = Kind("pods", "/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed", Pod, PodEvent, PodList)
NODES = Kind("nodes", "/api/v1/nodes", "", Node, NodeEvent, NodeList)


def _kind(name: str, path: str, item: type[T]) -> Kind[T]:
    return Kind(name, path, "", item, Event[item], Listing[item])  # type: ignore[valid-type]


_STORAGE = "/apis/storage.k8s.io/v1"
NAMESPACES = _kind("namespaces", "/api/v1/namespaces", Namespace)
CLAIMS = _kind("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", Claim)
VOLUMES = _kind("persistentvolumes", "/api/v1/persistentvolumes", Volume)
STORAGE_CLASSES = _kind("storageclasses", f"{_STORAGE}/storageclasses", StorageClass)
CSI_NODES = _kind("csinodes", f"{_STORAGE}/csinodes", CsiNode)
CSI_DRIVERS = _kind("csidrivers", f"{_STORAGE}/csidrivers", CsiDriver)
CAPACITIES = _kind("csistoragecapacities", f"{_STORAGE}/csistoragecapacities", Capacity)


class Follower(Protocol[Told]):
    """Who wants to know. Called in order, never concurrently; must not block."""

    def observe(self, item: Told) -> None: ...
    def removed(self, item: Told) -> None: ...
    def listed(self, uids: set[str]) -> None: ...
    def invalid(self, who: Metadata, what: str) -> None: ...


class Source(Protocol):
    """What a watch needs of kube.Kube."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class Watch(Generic[T]):
    """`run` until cancelled."""

    def __init__(
        self,
        source: Source,
        kind: Kind[T],
        follower: Follower[T],
        *,
        page_size: int = 2000,
        timeout: float = 300.0,
        silence: float = 150.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        self._kind: Kind[T] = kind
        self._follower: Follower[T] = follower
        self._page_size = page_size
        self._timeout = timeout
        self._silence = silence
        self._sleep = sleep
        self._rng = rng
        self._backoff = Backoff(0.5, 30.0, rng)
        self._event = msgspec.json.Decoder(kind.event)
        self._listing = msgspec.json.Decoder(kind.listing)
        self._version = ""
        kinds_of_event = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
        self._counters = {what: METRICS.watch_events.labels(kind.name, what) for what in kinds_of_event}
        self.listed = asyncio.Event()
        """Set when everything has been told once."""

    @property
    def name(self) -> str:
        """Of the kind, in the plural."""
        return self._kind.name

    async def run(self) -> None:
        """Never returns; errors are logged and retried with growing delays."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except GoneError:
                # normal after a long gap; without the delay a server that keeps saying so would be hammered
                log.info("the history of %s was compacted, listing again", self._kind.name)
                METRICS.watch_restarts.labels(self._kind.name, "gone").inc()
                self._version = ""
                if self._backoff.attempts:
                    await self._sleep(self._backoff.next())
                self._backoff.attempts += 1
            except KubeError as error:
                delay = self._backoff.next()
                denied = isinstance(error, ApiError) and error.code == 403
                remedy = "; allow to list and watch it (deploy/poseidon.yaml: ClusterRole)" if denied else ""
                log.warning("the watch of %s broke: %s; again in %.1f s%s", self._kind.name, error, delay, remedy)
                METRICS.watch_restarts.labels(self._kind.name, "error").inc()
                await self._sleep(delay)

    # -- list -------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        parameters = {"limit": str(self._page_size)}
        if self._kind.selector:
            parameters["fieldSelector"] = self._kind.selector
        uids: set[str] = set()
        while True:
            metadata, items = self._decode_page(await self._source.page(self._kind.path, parameters))
            for item in items:
                uids.add(item.metadata.uid)
                self._follower.observe(item)
            if not metadata.next_page:
                break
            parameters["continue"] = metadata.next_page
            await self._sleep(0)  # a page is some milliseconds of work: let binds in between
        self._follower.listed(uids)
        self._version = metadata.resource_version
        self.listed.set()
        log.info("listed %d %s at version %s", len(uids), self._kind.name, self._version)

    def _decode_page(self, body: bytes) -> tuple[Any, list[T]]:
        try:
            page = self._listing.decode(body)
            return page.metadata, page.items or []
        except msgspec.DecodeError:
            pass  # one bad item, or all of it bad: look closer
        try:
            raw = msgspec.json.decode(body, type=RawList)
        except msgspec.DecodeError as error:
            raise KubeError(f"the list of {self._kind.name} makes no sense: {error}") from error
        items = []
        for each in raw.items or []:
            try:
                items.append(msgspec.json.decode(bytes(each), type=self._kind.item))
            except msgspec.DecodeError as error:
                self._nonsense(bytes(each), error)
        return raw.metadata, items

    # -- watch ------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        parameters = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(self._timeout * (1 + self._rng()))),
        }
        if self._kind.selector:
            parameters["fieldSelector"] = self._kind.selector
        rest, heard = b"", False
        async for piece in self._source.watch(self._kind.path, parameters, self._silence):
            if not heard:
                heard = True
                self._backoff.reset()
            end = piece.rfind(b"\n") + 1
            if not end:
                rest += piece
                continue
            lines, rest = rest + piece[:end], piece[end:]
            self._take(lines)
        METRICS.watch_restarts.labels(self._kind.name, "ended").inc()
        if not heard:
            await self._sleep(self._backoff.next())  # a server that ends watches at once

    def _take(self, lines: bytes) -> None:
        try:
            events = self._event.decode_lines(lines)
        except msgspec.DecodeError:
            for line in lines.split(b"\n"):
                if line:
                    self._take_odd(line)
            return
        counts: dict[str, int] = {}
        try:
            for event in events:
                self._tell(event.type, event.object)
                counts[event.type] = counts.get(event.type, 0) + 1
        finally:
            for what, count in counts.items():
                self._counters[what].inc(count)

    def _take_odd(self, line: bytes) -> None:
        """A line of a batch that holds one that makes no sense: an error of the server's, or a bad object."""
        try:
            event = self._event.decode(line)
        except msgspec.DecodeError as error:
            try:
                raw = msgspec.json.decode(line, type=RawEvent)
            except msgspec.DecodeError:
                raise KubeError(f"the watch of {self._kind.name} makes no sense: {error}") from error
            if raw.type == "ERROR":
                failure = api_error(0, bytes(raw.object))
                code = _code(bytes(raw.object))
                raise api_error(code, bytes(raw.object)) if code else failure from None
            self._nonsense(bytes(raw.object), error, gone=raw.type == "DELETED")
            return
        self._tell(event.type, event.object)
        self._counters[event.type].inc()

    def _tell(self, what: str, item: T) -> None:
        if what == "ADDED" or what == "MODIFIED":
            self._follower.observe(item)
        elif what == "DELETED":
            self._follower.removed(item)
        elif what == "ERROR":  # a Status so bare that it passes for an object: listing again is never wrong
            raise GoneError(_GONE, "", "the server ended the watch with an error")
        elif what != "BOOKMARK":
            raise KubeError(f"the watch of {self._kind.name} sent an event of unknown type {what!r}")
        self._version = item.metadata.resource_version or self._version

    def _nonsense(self, raw: bytes, error: Exception, *, gone: bool = False) -> None:
        try:
            who = msgspec.json.decode(raw, type=Identity).metadata
        except msgspec.DecodeError:
            who = Metadata(name="?")
        self._version = who.resource_version or self._version
        if gone:
            self._follower.removed(self._kind.item(metadata=who))  # type: ignore[call-arg]
        else:
            self._follower.invalid(who, str(error))


def _code(raw: bytes) -> int:
    try:
        status = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return 0
    code = status.get("code", 0) if isinstance(status, dict) else 0
    return code if isinstance(code, int) else 0
