"""Watches: from a change in the store to a line on a client's connection.

The store notifies a stream of each change; the stream adds the line to its buffer and wakes its writer, which sends
the buffer in one write: at once after a pause, then every few milliseconds, because a system call takes as long as
ten lines. A stream whose client does not read is ended, so that its buffer stays bounded; the client lists again, as
with a real API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from benchmarks.cluster.http.faults import Faults
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import Kind
from benchmarks.cluster.store.store import Change, Record, Selection, Store
from benchmarks.cluster.views.forms import View

_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_MAX_BACKLOG_BYTES = 512 * 2**20
_SLICE = 500
_WRITE_INTERVAL = 0.005
"""Minimum time between two writes to one stream."""
_PREFIX = {type_: f'{{"type":"{type_}","object":'.encode() for type_ in ("ADDED", "MODIFIED", "DELETED")}
_END = b"}\n"


@dataclass(frozen=True)
class WatchOptions:
    """The parameters of a watch request."""

    selection: Selection
    from_version: int = 0
    """Changes after this one; 0 with `initial` means from the present."""
    initial: bool = False
    """Send the existing objects first, as ADDED."""
    mark_initial_end: bool = False
    """Send the bookmark that ends the initial events (watch-list)."""
    bookmarks: bool = False
    timeout_s: float = 1800.0
    bookmark_every_s: float = 60.0


class Watch:
    """One client's stream."""

    def __init__(self, store: Store, kind: Kind, options: WatchOptions, view: View | None) -> None:
        self._store = store
        self._kind = kind
        self._options = options
        self._view = view
        self._everything = not options.selection.narrow and not options.selection.namespace
        self._buffer: list[bytes] = []
        self._backlog = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._request: web.BaseRequest | None = None

    def take(self, change: Change) -> None:
        """A change in the store: buffer its line if it concerns this watch."""
        if self._everything:
            type_, record = change.type, change.record
        else:
            selection, before = self._options.selection, change.before
            was = before is not None and selection.holds(before)
            now = change.type != "DELETED" and selection.holds(change.record)
            if now:
                type_, record = ("MODIFIED" if was else "ADDED"), change.record
            elif was and before is not None:
                # it left the selection: DELETED, with the last selected state and the new version
                type_, record = "DELETED", change.record
                if change.type != "DELETED":
                    record = _with_version(before, change.version)
            else:
                return
        self._line(type_, record)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _line(self, type_: str, record: Record) -> None:
        raw = record.raw if self._view is None else self._view(record)
        self._buffer += (_PREFIX[type_], raw, _END)
        self._backlog += len(raw)
        if self._backlog > _MAX_BACKLOG_BYTES:
            self._ended = True

    def drain(self) -> bytes:
        """Return and clear the buffered lines."""
        lines, self._buffer, self._backlog = self._buffer, [], 0
        return b"".join(lines)

    def end(self) -> None:
        """End the stream in order: the client sees its regular end."""
        self._ended = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def abort(self) -> None:
        """Break the connection."""
        if self._request is not None and self._request.transport is not None:
            self._request.transport.abort()
        self.end()

    def _bookmark(self) -> None:
        metadata: dict[str, Any] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        self._buffer += (b'{"type":"BOOKMARK","object":', self._empty_object(metadata), _END)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def run(self, request: web.BaseRequest, faults: Faults) -> web.StreamResponse:
        """Serve the stream until its timeout, the client's disconnection or a fault."""
        options = self._options
        initial: list[Record] = []
        gone: ApiError | None = None
        try:
            if options.initial:
                initial = list(self._store.select(self._kind, options.selection))
            else:
                for change in self._store.since(self._kind, options.from_version):
                    self.take(change)
        except ApiError as error:
            if faults.watch.gone_as_status:
                raise
            gone = error
        # No await since the snapshot: together with the subscription it is gapless.
        version = self._store.version
        cancel = self._store.subscribe(self._kind, self.take, self.end)
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(options.timeout_s, self._timed_out)]
        life = faults.watch_life_s()
        if life < options.timeout_s:
            timers.append(loop.call_later(life, self.abort))
        ticking: list[asyncio.TimerHandle] = []
        self._request = request
        response = web.StreamResponse(headers=_HEADERS)
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            if gone is not None:
                await response.write(b'{"type":"ERROR","object":' + gone.body() + _END)
                return response
            await self._send_initial(response, initial, version)
            if options.bookmarks:
                self._tick(loop, ticking)
            await self._pump(response, faults)
            await response.write_eof()
        except ConnectionError:
            pass  # the client disconnected, or a fault broke the connection: no end is sent
        finally:
            cancel()
            for timer in (*timers, *ticking):
                timer.cancel()
        return response

    async def _send_initial(self, response: web.StreamResponse, records: list[Record], version: int) -> None:
        """Send the objects that existed when the watch began; later changes wait in the buffer."""
        view = self._view
        for start in range(0, len(records), _SLICE):
            lines: list[bytes] = []
            for record in records[start : start + _SLICE]:
                lines += (_PREFIX["ADDED"], record.raw if view is None else view(record), _END)
            await response.write(b"".join(lines))
        if self._options.mark_initial_end and self._options.bookmarks:
            metadata = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
            await response.write(b'{"type":"BOOKMARK","object":' + self._empty_object(metadata) + _END)

    def _empty_object(self, metadata: dict[str, Any]) -> bytes:
        return orjson.dumps({"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata})

    def _tick(self, loop: asyncio.AbstractEventLoop, ticking: list[asyncio.TimerHandle]) -> None:
        def tick() -> None:
            self._bookmark()
            ticking[0] = loop.call_later(self._options.bookmark_every_s, tick)

        ticking.append(loop.call_later(self._options.bookmark_every_s, tick))

    def _timed_out(self) -> None:
        if self._options.bookmarks:
            self._bookmark()  # so that the client resumes from here, not from its last change
        self.end()

    async def _pump(self, response: web.StreamResponse, faults: Faults) -> None:
        loop = asyncio.get_running_loop()
        next_write = 0.0
        while True:
            if not self._buffer:
                if self._ended:
                    return
                self._wake = loop.create_future()
                await self._wake
                self._wake = None
                if faults.watch.delay_ms:
                    await asyncio.sleep(faults.watch.delay_ms / 1000)
            if (delay := next_write - loop.time()) > 0 and not self._ended:
                await asyncio.sleep(delay)
            lines = self.drain()
            if lines:
                await response.write(lines)
                next_write = loop.time() + _WRITE_INTERVAL


def _with_version(record: Record, version: int) -> Record:
    obj = record.parse()
    obj["metadata"]["resourceVersion"] = str(version)
    return Record(
        record.key, record.namespace, record.name, record.uid, version, orjson.dumps(obj),
        record.labels, record.fields, record.owners, record.deleting,
    )  # fmt: skip


class Watches:
    """The open streams."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: set[Watch] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def serve(
        self,
        request: web.BaseRequest,
        kind: Kind,
        options: WatchOptions,
        view: View | None,
        faults: Faults,
    ) -> web.StreamResponse:
        """Run one stream to its end."""
        watch = Watch(self._store, kind, options, view)
        self._open.add(watch)
        try:
            return await watch.run(request, faults)
        finally:
            self._open.discard(watch)

    def drop(self, abort: Callable[[Watch], None] = Watch.abort) -> int:
        """Break every open stream; returns their number."""
        for watch in list(self._open):
            abort(watch)
        return len(self._open)

    def end(self) -> None:
        """End every open stream in order."""
        self.drop(Watch.end)
