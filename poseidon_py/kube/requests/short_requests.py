"""A small HTTP/1.1 client for many short requests to one server: binds, events, condition patches.

The general client is too slow for these: a bind is a few hundred bytes and an answer that is not read, and the general
client's work per request (URL objects, header multi-dicts, timers, hooks) costs several times what the rest of the
bridge spends on a pod. This one parses answers with llhttp and keeps connections open, nothing else; lists and watches
use the general client.

Errors are distinguished by the possible effect on the server:

- NotSentError: none; the request may be sent again.
- LostAnswerError: unknown; the caller must read the object. An answer that is not HTTP, or too large, counts as lost.

A Pool keeps at most `limit` connections, reuses the most recent one first (so that idle ones can time out), and checks
for overdue requests periodically instead of holding a timer for each.
"""

import asyncio
import ssl
from typing import NamedTuple, cast

import httptools

from poseidon_py.util.waiters import Waiters

_SWEEP_SECONDS = 0.5

MAX_ANSWER = 8 << 20
"""Bytes of one answer, with head and framing. An API server takes objects of at most 3 MiB."""
_MAX_HEAD = 64 << 10


class NotSentError(ConnectionError):
    """No connection, or it broke before the request left."""


class LostAnswerError(ConnectionError):
    """The connection broke, the time ran out, or the answer was malformed after the request was sent."""


class Answer(NamedTuple):
    """`headers` as received, `body` decoded from its transfer encoding."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of a header; `name` in lower case."""
        return next((value.strip() for key, value in self.headers.items() if key.lower() == name), None)


class AnswerParser:
    """Parses the stream of one connection, one answer at a time.

    llhttp calls the public methods without a docstring.
    """

    def __init__(self, limit: int = MAX_ANSWER) -> None:
        """`limit`: maximum size of one answer in bytes."""
        self._limit = limit
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._head: dict[bytes, bytes] | None = None  # of the final answer, once it is complete
        self._status = 0
        self._body: list[bytes] = []
        self._answer: Answer | None = None
        self._received = 0
        self._refusal = ""
        self.reusable = True
        """Whether the connection can be used again after the answer."""

    def feed(self, data: bytes) -> Answer | None:
        """Parse the next piece of the stream, cut anywhere. Returns the answer once it is complete.

        Bytes after an answer in the same piece are dropped, and the connection is not `reusable`.
        Raises ValueError if the stream is not HTTP, has a body of unknown length, or exceeds the limit.
        """
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            if self._answer is None:
                raise ValueError(self._refusal or f"is not HTTP: {error}") from error
        answer = self._answer
        if answer is not None:
            self._answer, self._received = None, 0
        elif self._received > self._limit:
            raise ValueError(f"has more than {self._limit} bytes")
        elif self._head is None and self._received > _MAX_HEAD:
            raise ValueError(f"has a head of more than {_MAX_HEAD} bytes")
        return answer

    def on_message_begin(self) -> None:
        if self._answer is not None:
            self._refuse("is followed by another answer")
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status >= 200:
            self._head = self._headers
            if not self._parser.should_keep_alive() and not self._has_end(self._head):
                self._refuse("has a body of unknown length")
        elif self._status < 100 or self._status == 101:
            self._refuse(f"has status {self._status}")
        self._headers = {}  # trailers are not headers

    def on_body(self, piece: bytes) -> None:
        self._body.append(piece)

    def on_message_complete(self) -> None:
        if self._head is None:
            return  # 1xx: the final answer follows
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._answer = Answer(self._status, self._head, body)
        self.reusable = self._parser.should_keep_alive()
        self._head = None
        self._body.clear()

    def _has_end(self, head: dict[bytes, bytes]) -> bool:
        """Whether the length of the body is known; an answer that keeps the connection open always has one."""
        if self._status in (204, 304):
            return True
        framing = {name.lower(): value for name, value in head.items()}
        return b"content-length" in framing or framing.get(b"transfer-encoding", b"").lower().endswith(b"chunked")

    def _refuse(self, what: str) -> None:
        self._refusal = what
        raise ValueError(what)


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._parser = AnswerParser()
        self.deadline = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass

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
        if self._waiter is None:
            self.close()  # unsolicited: it would be taken for the answer to the next request
            return
        try:
            answer = self._parser.feed(data)
        except ValueError as error:
            self.close(LostAnswerError(f"the server's answer {error}"))
            return
        if answer is None:
            return
        waiter, self._waiter = self._waiter, None
        self.deadline = 0.0
        if self._parser.reusable:
            self._pool._release(self)
        else:
            self.close()
        if not waiter.done():
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
        """`tls_name`: the name in the server's certificate, if it is not `host`."""
        self._address = (host, port)
        self._tls = tls
        self._tls_name = (tls_name or host) if tls is not None else None
        self._limit = limit
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._opening = 0
        self._waiting = Waiters()
        self._sweeper: asyncio.TimerHandle | None = None

    async def request(self, request: bytes, timeout: float) -> Answer:
        """Send a request and return its answer, whatever its status.

        Waits while all connections are in use. `timeout`: seconds from when a connection is free.
        Raises NotSentError or LostAnswerError.
        """
        connection = await self._take(timeout)
        loop = asyncio.get_running_loop()
        if self._sweeper is None:
            self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)
        try:
            return await connection.send(request, loop.time() + timeout)
        except asyncio.CancelledError:
            connection.close()  # its answer would be taken for the answer to the next request
            raise

    def close(self) -> None:
        """Close all connections; requests in flight raise LostAnswerError."""
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
            await self._waiting.wait()

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
            self._waiting.wake_one()
            raise NotSentError(str(error) or "the connection attempt timed out") from error
        finally:
            self._opening -= 1
        self._all.add(connection)
        return connection

    def _release(self, connection: _Connection) -> None:
        self._idle.append(connection)
        self._waiting.wake_one()

    def _forget(self, connection: _Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._waiting.wake_one()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [c for c in self._all if c.deadline and c.deadline < now]:
            connection.close(LostAnswerError("no answer in time"))
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep) if self._all else None
