"""Direct calls of a flow service on this machine: its frequent calls on a unix socket, without gRPC.

gRPC hands a call over between four sleeping threads, which takes a millisecond if pods arrive one by one, several times
what the call itself takes. protos/frames.py has the format. A call takes an idle connection or opens one.
"""

import asyncio
from typing import cast

from protos import frames

_CLOSED = "the connection was closed during the call"
_LOST = "the flow service closed the connection"


class DirectError(Exception):
    """A call failed. `code`: the name of gRPC's status, or CLOSED if `close` ended it."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self.code = code


class _Connection(asyncio.Protocol):
    """One connection, with one call at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiter: asyncio.Future[bytes] | None = None

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def waits(self) -> bool:
        """Whether the reply to a call has not come yet."""
        return self._waiter is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass

    def ask(self, call: bytes) -> "asyncio.Future[bytes]":
        """Sends a frame; the body of the reply."""
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(call)
        return self._waiter

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if len(received) < frames.HEAD.size:
            return
        length, kind = frames.HEAD.unpack_from(received)
        end = frames.HEAD.size + length
        if len(received) < end:
            return
        body = bytes(received[frames.HEAD.size : end])
        waiter, self._waiter = self._waiter, None
        if waiter is None or len(received) > end or kind not in (frames.FAILED, frames.DONE):
            self._waiter = waiter
            self.close("INTERNAL", "the flow service sent a malformed reply")
            return
        received.clear()
        if waiter.done():
            return
        if kind == frames.DONE:
            waiter.set_result(body)
        else:
            waiter.set_exception(DirectError(*frames.failure_of(body)))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._fail("UNAVAILABLE", str(error) if error else _LOST)

    def close(self, code: str, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._fail(code, why)

    def _fail(self, code: str, why: str) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(DirectError(code, why))


class DirectCalls:
    """Connections to the flow service at one socket."""

    def __init__(self, path: str) -> None:
        """`path`: of the service's gRPC socket."""
        self._path = path + frames.SUFFIX
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False

    async def call(self, method: str, message: bytes, timeout: float) -> bytes | None:
        """The reply to a call; None: the service does not take direct calls. `timeout`: seconds.

        Raises DirectError; if the call was sent, it may have had its effect.
        """
        if len(message) > frames.MAX_BYTES:
            raise DirectError("RESOURCE_EXHAUSTED", f"the message has {len(message)} bytes")
        call = frames.frame(frames.METHODS.index(method), message)
        connection = await self._connect()
        if connection is None:
            return None
        self._busy.add(connection)
        try:
            async with asyncio.timeout(timeout):
                return await connection.ask(call)
        except TimeoutError as error:
            raise DirectError("DEADLINE_EXCEEDED", f"no reply within {timeout:g} s") from error
        finally:
            self._busy.discard(connection)
            self._put_back(connection)

    def close(self) -> None:
        """Calls in flight fail, further ones are not sent."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.close("CLOSED", _CLOSED)
        self._idle.clear()

    async def _connect(self) -> _Connection | None:
        """An idle connection or a new one; None: nothing listens, or this is closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        if self._closed:
            return None
        try:
            _, connection = await asyncio.get_running_loop().create_unix_connection(_Connection, self._path)
        except (OSError, ValueError):  # ValueError: a path that is too long
            return None
        if self._closed:
            connection.close("CLOSED", _CLOSED)
            return None
        return connection

    def _put_back(self, connection: _Connection) -> None:
        """Keeps a connection for further calls, unless its reply may still come: the service learns from its end that
        the caller no longer waits."""
        if self._closed or connection.waits:
            connection.close("CLOSED", _CLOSED)
        elif connection.usable:
            self._idle.append(connection)
