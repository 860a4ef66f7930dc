"""A small HTTP/1.1 client for many short requests to one server: binds, events, condition patches.

Why not the general client for these: a bind is some hundred bytes out and an answer that nobody reads in, and
the general client's per-request machinery (URL objects, header multi-dicts, timers, hooks) costs several times
what the rest of the bridge spends on a pod. This one knows keep-alive, Content-Length and chunked bodies, and
nothing else; lists and watches go through the general one.

What went wrong is told apart by what may have happened at the server:

- NotSentError: nothing; the request may be sent again.
- LostAnswerError: anything; whoever asked must find out.

A Pool keeps at most `limit` connections, hands out the one used last (so that the others can die of age), and
looks for requests that are overdue once in a while instead of holding a timer for each.
"""

import asyncio
import ssl
from collections import deque
from typing import NamedTuple, cast

_SWEEP_SECONDS = 0.5


class NotSentError(ConnectionError):
    """No connection, or it broke before the request left."""


class LostAnswerError(ConnectionError):
    """The connection broke, or time ran out, after the request had left."""


class Answer(NamedTuple):
    """`head` is the status line and headers in lower case, `body` decoded from its transfer encoding."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of a header; `name` in lower case."""
        at = self.head.find(b"\r\n" + name + b":")
        if at < 0:
            return None
        start = at + len(name) + 3
        end = self.head.find(b"\r\n", start)
        return self.head[start : end if end >= 0 else None].strip()


class _Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._data = b""
        self.deadline = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, deadline: float) -> "asyncio.Future[Answer]":
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self.deadline = deadline
        self._transport.write(request)
        return self._waiter

    def data_received(self, data: bytes) -> None:
        if self._data:
            data = self._data + data
        try:
            answer, rest = parse(data)
        except ValueError:
            self.close(LostAnswerError("the server's answer is not HTTP"))
            return
        if answer is None:
            self._data = data
            return
        self._data = b""
        waiter, self._waiter = self._waiter, None
        self.deadline = 0.0
        if rest or waiter is None or answer.header(b"connection") == b"close" or answer.head.startswith(b"http/1.0"):
            self.close()
        else:
            self._pool._release(self)
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._fail(LostAnswerError(str(error) if error else "the server closed the connection"))
        self._pool._forget(self)

    def close(self, error: Exception | None = None) -> None:
        if self._transport is not None:
            self._transport.abort()
        if error is not None:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        waiter, self._waiter = self._waiter, None
        self.deadline = 0.0
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


class Pool:
    """Connections to one server."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, limit: int, tls_name: str | None = None
    ) -> None:
        """`tls_name` is the name that the server's certificate has, if that is not `host`."""
        self._address = (host, port)
        self._tls = tls
        self._tls_name = (tls_name or host) if tls is not None else None
        self._limit = limit
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None

    async def request(self, request: bytes, timeout: float) -> Answer:
        """Sends a whole request and returns its answer, whatever its status.

        Waits while all connections are in use. `timeout` is in seconds, counted from when one is free.
        Raises NotSentError or LostAnswerError.
        """
        connection = await self._take(timeout)
        loop = asyncio.get_running_loop()
        if self._sweeper is None:
            self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)
        try:
            return await connection.send(request, loop.time() + timeout)
        except asyncio.CancelledError:
            connection.close()  # its answer would be taken for that of the next request
            raise

    def close(self) -> None:
        """Breaks all connections; requests in flight get LostAnswerError."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._all):
            connection.close(LostAnswerError("the client is closing"))

    async def _take(self, timeout: float) -> _Connection:
        while True:
            while self._idle:
                connection = self._idle.pop()
                if connection.usable:
                    return connection
            if len(self._all) + self._opening < self._limit:
                return await self._open(timeout)
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake_one()  # the turn was given to us: pass it on
                raise

    async def _open(self, timeout: float) -> _Connection:
        self._opening += 1
        try:
            loop = asyncio.get_running_loop()
            host, port = self._address
            async with asyncio.timeout(timeout):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self), host, port, ssl=self._tls, server_hostname=self._tls_name
                )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self._wake_one()
            raise NotSentError(str(error) or "connecting took too long") from error
        finally:
            self._opening -= 1
        self._all.add(connection)
        return connection

    def _release(self, connection: _Connection) -> None:
        self._idle.append(connection)
        self._wake_one()

    def _forget(self, connection: _Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [c for c in self._all if c.deadline and c.deadline < now]:
            connection.close(LostAnswerError("no answer in time"))
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep) if self._all else None


def parse(data: bytes) -> tuple[Answer | None, bytes]:
    """The first answer in `data` and what follows it; (None, data) if it is not complete. ValueError: not HTTP."""
    while True:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > 65536 or not b"HTTP/1.".startswith(data[:7]):
                raise ValueError("no end of headers")
            return None, data
        if not data.startswith(b"HTTP/1."):
            raise ValueError("not HTTP/1")
        status, head = int(data[9:12]), data[:end].lower()
        if status >= 200:
            break
        data = data[end + 4 :]  # 1xx: the answer proper follows
    answer = Answer(status, head, b"")
    start = end + 4
    length = answer.header(b"content-length")
    if length is not None:
        stop = start + int(length)
        if len(data) < stop:
            return None, data
        return Answer(status, head, data[start:stop]), data[stop:]
    if (answer.header(b"transfer-encoding") or b"").endswith(b"chunked"):
        body, stop = _chunks(data, start)
        return (Answer(status, head, body), data[stop:]) if stop else (None, data)
    if status in (204, 304):
        return answer, data[start:]
    raise ValueError("a body of unknown length")


def _chunks(data: bytes, at: int) -> tuple[bytes, int]:
    """The body of a chunked answer and where it ends; end 0 if it is not complete."""
    parts: list[bytes] = []
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return b"", 0
        size = int(data[at:line].split(b";")[0], 16)
        at = line + 2
        if size == 0:
            # trailers, if any, end with an empty line
            end = at if data.startswith(b"\r\n", at) else data.find(b"\r\n\r\n", at) + 2
            return (b"".join(parts), end + 2) if end >= at and len(data) >= end + 2 else (b"", 0)
        if len(data) < at + size + 2:
            return b"", 0
        parts.append(data[at : at + size])
        at += size + 2
