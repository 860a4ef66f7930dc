"""Lists and watches one kind of object, and lists again when the history is lost.

    list in pages --observe(each)--> listed(all of them) --> watch --observe / removed(each)--+
         ^                                                     |   ^                          |
         |             410: our version is compacted           |   +--- ended or broke: again +
         +-----------------------------------------------------+        from the last version

A handler may rely on this: between two `listed` calls it gets every change in order; `listed` names all objects that
exist, invalid ones, too, so an object that the handler knows and the list does not contain is gone, however long the
gap was. An invalid object is passed to `invalid`; it neither ends the watch nor hides the others. A line in which not
even the object can be identified is dropped, and the objects are listed again when the watch ends.

A watch can die silently, when a firewall drops its connection. That looks like a kind whose objects do not change,
since servers send bookmarks only for new versions. So a watch that was silent for a while is started again, which is
cheap, and the server is asked to end each watch after some minutes anyway.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from poseidon_py.kube import salvage
from poseidon_py.kube.client import (
    ApiError,
    GoneError,
    KubeError,
    MalformedAnswerError,
    QuietError,
    TooLargeError,
    UnreachableError,
    api_error,
)
from poseidon_py.kube.lines import Lines
from poseidon_py.kube.objects import ListMetadata, Metadata, ObjectList, Status, WatchEvent
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.decoding import Decoder, MalformedError, decode_json
from poseidon_py.util.retries import Retries

log = logging.getLogger(__name__)

_GONE = 410
_BAD_REQUEST = 400
_FORBIDDEN = 403
_NOT_FOUND = 404
_SHORT = 5.0
"""Seconds; a watch that ends earlier without an event is retried with growing delays."""
_UNREACHED, _ANSWERED, _COMPACTED = "unreached", "answered", "compacted"
LONGEST = {_UNREACHED: 5.0, _ANSWERED: 30.0, _COMPACTED: 30.0}
"""Maximum of seconds before a request is repeated. Those to a server that is not reached cost it nothing."""
_RELIST = 60.0
"""Minimum of seconds between two lists that are due to undecodable events."""
_EMPTY_PAGES = 20
"""Consecutive pages of a list without a new object after which the list is given up."""


class _Object(Protocol):
    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=_Object)
Item = TypeVar("Item", contravariant=True)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of object: its path in the API, its type, a field selector and a label selector."""

    name: str
    path: str
    item: type[T]
    selector: str = ""
    without: str = ""
    """The consequence if it is not served, or may not be read; then it counts as listed. Empty: it is required."""
    labels: str = ""
    patience: float = math.inf
    """Seconds after which an optional kind counts as one that may not be read, whatever error the server answers each
    list with."""

    @property
    def selectors(self) -> dict[str, str]:
        """The parameters of requests that select objects."""
        found = {"fieldSelector": self.selector, "labelSelector": self.labels}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True)
class WatchOptions:
    """The parameters of list and watch requests."""

    page_size: int = 2000
    """Maximum number of objects per page of a list."""
    timeout: float = 300.0
    """Seconds, varied up to double, after which the server is asked to end a watch."""
    silence: float = 150.0
    """Seconds without a byte after which a watch is started again."""


class Handler(Protocol[Item]):
    """Receives the changes. Called in order, never concurrently; must not block."""

    def observe(self, item: Item) -> None: ...
    def removed(self, item: Item) -> None: ...
    def listed(self, uids: set[str]) -> None: ...
    def invalid(self, metadata: Metadata, problem: str) -> None: ...


class Source(Protocol):
    """The part of kube.Kube that a watch uses."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class Watch(Generic[T]):
    """`run` until cancelled."""

    def __init__(
        self,
        source: Source,
        kind: Kind[T],
        handler: Handler[T],
        options: WatchOptions = WatchOptions(),
        *,
        metrics: ProcessMetrics | None = None,
        changed: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`changed`: called when `listed` or `unreadable` changes."""
        self._source = source
        self._kind: Kind[T] = kind
        self._handler: Handler[T] = handler
        self._options = options
        self._metrics = metrics if metrics is not None else ProcessMetrics()
        self._changed = changed
        self._page_size = options.page_size
        self._sleep = sleep
        self._monotonic = monotonic
        self._rng = rng
        self._retries = Retries(0.5, LONGEST, rng)
        item: Any = kind.item
        self._event: Decoder[WatchEvent[T]] = Decoder(WatchEvent[item], "event")
        self._list_of: Decoder[ObjectList[T]] = Decoder(ObjectList[item], "list")
        self._version = ""
        self._listed_at = 0.0
        self._dropped = 0
        """Number of dropped lines since the last list."""
        self._known = False
        """Whether the objects were listed once."""
        self._absent = False
        """Whether the last request found that the kind is not served, or may not be read."""
        self._failing_since: float | None = None
        """When the server began to answer the first list with errors."""
        self.unreadable = ""
        """Why no object is known, and the remedy; empty: they were listed once, or have not been asked for yet."""
        kinds_of_event = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "malformed")
        self._counters = {what: self._metrics.watch_events.labels(kind.name, what) for what in kinds_of_event}
        self.listed = asyncio.Event()
        """Set after the first complete list, and when an optional kind turns out to be absent."""

    @property
    def name(self) -> str:
        """The plural name of the kind."""
        return self._kind.name

    @property
    def version(self) -> str:
        """The newest resource version that was handled; empty before the first list."""
        return self._version

    async def run(self) -> None:
        """Never returns; errors are logged and retried with growing delays. Raises what the handler raises: a further
        run lists first, since the handler may have missed something."""
        self._version = ""
        while True:
            try:
                if not self._version or (self._dropped and self._monotonic() - self._listed_at >= _RELIST):
                    await self._list()
                await self._watch()
            except GoneError:
                # normal after a long gap; the delay protects a server that keeps answering so
                log.info("the history of %s was compacted, listing again", self._kind.name)
                self._metrics.watch_restarts.labels(self._kind.name, "gone").inc()
                self._version = ""
                if delay := self._retries.delay(_COMPACTED, first_at_once=True):
                    await self._sleep(delay)
            except KubeError as error:
                delay = self._retries.delay(_UNREACHED if isinstance(error, UnreachableError) else _ANSWERED)
                code = error.code if isinstance(error, ApiError) else 0
                if code == _BAD_REQUEST:
                    self._version = ""  # the version may be invalid
                remedy = "; allow list and watch in the ClusterRole (docs/rbac.md)" if code == 403 else ""
                fails = code in (_FORBIDDEN, _NOT_FOUND) or self._fails_for_long(error)
                fails = fails and not self._known  # what was listed stays known: a server that starts has no roles yet
                if fails:
                    self._note(f"cannot watch {self._kind.name}: {error}{remedy}", listed=bool(self._kind.without))
                if fails and self._kind.without:
                    self._go_without(error, remedy)
                else:
                    level = logging.WARNING if self._retries.news((type(error), code)) else logging.DEBUG
                    log.log(level, "the watch of %s broke: %s; retrying in %.1f s%s", self.name, error, delay, remedy)
                self._metrics.watch_restarts.labels(self._kind.name, "error").inc()
                await self._sleep(delay)

    def _fails_for_long(self, error: KubeError) -> bool:
        """Whether the server has answered each list with an error for as long as the kind has patience: what cannot be
        reached, and so nothing else either, is waited for."""
        if self._known or not isinstance(error, (ApiError, MalformedAnswerError, TooLargeError)):
            self._failing_since = None
            return False
        if self._failing_since is None:
            self._failing_since = self._monotonic()
        return self._monotonic() - self._failing_since >= self._kind.patience

    def _go_without(self, error: KubeError, remedy: str) -> None:
        """An optional kind cannot be listed; it is tried again, without further warnings."""
        if not self._absent:
            log.warning("cannot watch %s, so %s: %s%s", self._kind.name, self._kind.without, error, remedy)
        self._absent = True

    def _note(self, unreadable: str, *, listed: bool) -> None:
        news = (listed and not self.listed.is_set()) or bool(unreadable) != bool(self.unreadable)
        self.unreadable = unreadable
        if listed:
            self.listed.set()
        if news:
            self._changed()

    # -- list -------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        parameters = {"limit": str(self._page_size), **self._kind.selectors}
        uids: set[str] = set()
        skipped: set[tuple[str, str]] = set()
        tokens: set[str] = set()
        empty = 0
        while True:
            before = len(uids) + len(skipped)
            metadata, items, bad = self._decode_page(await self._page(parameters))
            for identity, problem in bad:
                skipped.add((identity.uid, identity.name))
                self._handler.invalid(identity, problem)
            for item in items:
                uids.add(item.metadata.uid)
                self._handler.observe(item)
            token = metadata.next_page
            if not token:
                break
            empty = empty + 1 if len(uids) + len(skipped) == before else 0
            if token in tokens or empty >= _EMPTY_PAGES:
                raise MalformedAnswerError(f"the list of {self._kind.name} does not end: its pages repeat themselves")
            tokens.add(token)
            parameters["continue"] = token
            await self._sleep(0)  # a page takes some milliseconds: let binds proceed
        self._handler.listed(uids | {uid for uid, _ in skipped})  # those keep their last valid state
        self._version = metadata.resource_version
        self._dropped, self._listed_at = 0, self._monotonic()
        self._absent, self._failing_since = False, None
        self._known = True
        self._note("", listed=True)
        log.info("listed %d %s at version %s", len(uids), self._kind.name, self._version)

    async def _page(self, parameters: Mapping[str, str]) -> bytes:
        try:
            return await self._source.page(self._kind.path, parameters)
        except TooLargeError:
            self._page_size = max(self._page_size // 4, 1)
            raise

    def _decode_page(self, body: bytes) -> tuple[ListMetadata, list[T], list[tuple[Metadata, str]]]:
        """The valid items, and the metadata and problem of each invalid one."""
        try:
            page = self._list_of.decode(body)
            return page.metadata, page.items or [], []
        except MalformedError:
            pass  # some item, or the whole page, is invalid
        try:
            metadata, raw = salvage.items(body, f"the list of {self._kind.name}")
        except MalformedError as error:
            raise MalformedAnswerError(str(error)) from error
        items, bad = [], []
        for each in raw:
            try:
                items.append(salvage.item(each, self._kind.item, "object"))
            except MalformedError as error:
                bad.append((salvage.identity(each), error.reason))
        return metadata, items, bad

    # -- watch ------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        parameters = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(self._options.timeout * (1 + self._rng()))),
            **self._kind.selectors,
        }
        began, version = self._monotonic(), self._version
        lines, too_long = Lines(), 0
        end = "ended"
        try:
            async for piece in self._source.watch(self._kind.path, parameters, self._options.silence):
                self._take(lines.feed(piece))
                if lines.skipped > too_long:
                    too_long = lines.skipped
                    self._drop("it is too long")
                if self._version != version:
                    self._retries.succeed()
        except QuietError:
            end = "quiet"
        self._metrics.watch_restarts.labels(self._kind.name, end).inc()
        if self._version != version or self._monotonic() - began >= _SHORT:
            self._retries.succeed()
        else:
            await self._sleep(self._retries.delay(_ANSWERED))  # the server ended the watch at once

    def _take(self, lines: bytes) -> None:
        try:
            events = self._event.decode_lines(lines)
        except MalformedError:
            for line in lines.split(b"\n"):
                if line:
                    self._take_alone(line)
            return
        counts: dict[str, int] = {}
        try:
            for event in events:
                self._dispatch(event)
                counts[event.type] = counts.get(event.type, 0) + 1
        finally:
            for what, count in counts.items():
                self._count(what, count)

    def _take_alone(self, line: bytes) -> None:
        """Handle one line of a batch that contains an invalid one."""
        try:
            event = self._event.decode(line)
        except MalformedError as error:
            self._take_malformed(line, error)
            return
        self._dispatch(event)
        self._count(event.type)

    def _take_malformed(self, line: bytes, error: MalformedError) -> None:
        """Handle a line that is a server error, an event with an invalid object, or no event."""
        event = salvage.event(line)
        if event is None:
            self._drop(error.reason)
            return
        raw = bytes(event.object)
        if event.type == "ERROR":
            raise api_error(_code(raw), raw)
        self._count("malformed")
        identity = salvage.identity(raw)
        self._version = identity.resource_version or self._version
        if event.type == "DELETED":
            self._handler.removed(self._kind.item(metadata=identity))  # type: ignore[call-arg]
        elif event.type != "BOOKMARK":
            self._handler.invalid(identity, error.reason)

    def _dispatch(self, event: WatchEvent[T]) -> None:
        what, item = event.type, event.object
        if what == "ADDED" or what == "MODIFIED":
            self._handler.observe(item)
        elif what == "DELETED":
            self._handler.removed(item)
        elif what == "ERROR":  # a Status without fields decodes as an object: list again
            raise GoneError(_GONE, "", "the server ended the watch with an error")
        elif what != "BOOKMARK":
            self._drop(f"it has the unknown type {what!r}")
            return
        self._version = item.metadata.resource_version or self._version

    def _count(self, what: str, events: int = 1) -> None:
        counter = self._counters.get(what)
        if counter is not None:
            counter.inc(events)

    def _drop(self, why: str) -> None:
        """Drop a line in which no object can be identified."""
        self._count("malformed")
        if not self._dropped:
            log.warning("dropping an event of the watch of %s, listing again when it ends: %s", self._kind.name, why)
        self._dropped += 1


def _code(raw: bytes) -> int:
    """The code of a Status; without one 410, which leads to a new list."""
    try:
        status: Status = decode_json(raw, Status, "status")
    except MalformedError:
        return _GONE
    return status.code or _GONE
