"""/dashboard/api/stream: server-sent events, one a second at most, with what has changed as sums.

All readers get the same bytes, which are made once a tick, and only while somebody reads. A reader that is slow misses
ticks, and one that takes nothing at all is dropped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from poseidon_py.app.serving.access_review import Refused
from poseidon_py.dashboard.assets import HEADERS
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

READERS = 16
"""At once; a quarter of the connections of a port."""
PERIOD = 1.0
_QUIET_SECONDS = 15.0
"""After which a comment shows that the connection lives."""
_SLOW_SECONDS = 10.0
"""For which a reader may take nothing."""
_LONGEST = 3600.0
"""Seconds after which a reader has to come back, and show its token again."""
_COMMENT = b": quiet\n\n"


class Stream:
    """`serve` a reader until it goes; `stop`."""

    def __init__(
        self,
        tick: Callable[[], Awaitable[bytes]],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        limit: int = READERS,
    ) -> None:
        """`tick`: the body of an event, JSON on one line."""
        self._tick = tick
        self._sleep = sleep
        self._limit = limit
        self._readers: set[asyncio.Event] = set()
        self._newest = b""
        self._ticking: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def readers(self) -> int:
        return len(self._readers)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Raises Refused if there are too many."""
        if self._stopped or len(self._readers) >= self._limit:
            raise Refused(503, f"{self._limit} pages read the stream already; close one, or try again later")
        new = asyncio.Event()
        self._readers.add(new)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._run(), name="dashboard ticks")
        try:
            headers = {**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            async with asyncio.timeout(_LONGEST):
                await self._send(response, new)
        except (TimeoutError, ConnectionError):
            pass  # it is slow, has gone, or has to come back
        finally:
            self._readers.discard(new)
        return response

    async def _send(self, response: web.StreamResponse, new: asyncio.Event) -> None:
        if self._newest:
            new.set()
        while not self._stopped:
            message = _COMMENT
            try:
                async with asyncio.timeout(_QUIET_SECONDS):
                    await new.wait()
                new.clear()
                message = self._newest
            except TimeoutError:
                pass
            if not self._stopped:
                async with asyncio.timeout(_SLOW_SECONDS):
                    await response.write(message)

    async def _run(self) -> None:
        try:
            while self._readers:
                await self._publish()
                await self._sleep(PERIOD)
        finally:
            self._ticking = None

    async def _publish(self) -> None:
        try:
            message = b"data: " + await self._tick() + b"\n\n"
        except Exception:  # the readers keep what they have
            log.exception("cannot tell pages what has changed")
            return
        if message != self._newest:
            self._newest = message
            for reader in self._readers:
                reader.set()

    async def stop(self) -> None:
        """Ends all readers."""
        self._stopped = True
        for reader in self._readers:
            reader.set()
        if self._ticking is not None:
            await end_tasks(self._ticking)
