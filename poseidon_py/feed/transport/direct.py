"""Direct calls of a flow service on this machine, on a unix socket, without gRPC.

gRPC takes some 15 MB in each of both processes, and hands a call over between four sleeping threads, which takes a
millisecond if pods arrive one by one, several times what the call itself takes. protos/frames.py has the format. A call
takes an idle connection or opens one.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from google.protobuf.message import DecodeError, Message

from poseidon_py.feed.transport.transport import CallError, Reply
from poseidon_py.util.tasks import end_tasks
from protos import frames

_CLOSED = "the connection was closed during the call"
_LOST = "the flow service closed the connection"
_IDLE = 8
"""Connections that are not closed after a call: each has a thread of the service."""


class _Connection(asyncio.Protocol):
    """One connection, with one call at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._reply: asyncio.Future[bytes] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def waits(self) -> bool:
        """Whether the reply to a call has not come yet."""
        return self._reply is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def begin(self, sent: bytes) -> "asyncio.Future[bytes]":
        """Begins a call. Returns the body of the reply to come."""
        self._reply = reply = asyncio.get_running_loop().create_future()
        if self.usable:
            self.send(sent)
        else:
            self._fail("UNAVAILABLE", _LOST)
        return reply

    def send(self, sent: bytes) -> None:
        if self._transport is not None:
            self._transport.write(sent)

    async def writable(self) -> None:
        """Returns once the service has taken most of what was sent, or the connection has ended."""
        await asyncio.sleep(0)  # else the reply to an endless stream that is taken fast would never be read
        await self._can_write.wait()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if len(received) < frames.HEAD.size:
            return
        length, kind = frames.HEAD.unpack_from(received)
        end = frames.HEAD.size + length
        if kind not in (frames.FAILED, frames.DONE) or length > frames.MAX_BYTES or len(received) > end:
            self._malformed()
        elif len(received) == end:
            reply, self._reply = self._reply, None
            if reply is None:
                self._malformed()
                return
            body = bytes(received[frames.HEAD.size :])
            received.clear()
            if reply.done():
                return
            if kind == frames.DONE:
                reply.set_result(body)
            else:
                reply.set_exception(CallError(*frames.failure_of(body)))

    def _malformed(self) -> None:
        self.close("INTERNAL", "the flow service sent a malformed reply")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._fail("UNAVAILABLE", str(error) if error else _LOST)
        self._can_write.set()

    def close(self, code: str, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._fail(code, why)

    def _fail(self, code: str, why: str) -> None:
        reply, self._reply = self._reply, None
        if reply is not None and not reply.done():
            reply.set_exception(CallError(code, why))


class DirectTransport:
    """Connections to the flow service at one socket."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False

    async def call(
        self, method: str, argument: Message | AsyncIterator[Message], reply: type[Reply], timeout: float
    ) -> Reply:
        try:
            async with asyncio.timeout(timeout):
                body = await self._exchange(method, argument)
        except TimeoutError as error:
            raise CallError("DEADLINE_EXCEEDED", f"no reply within {timeout:g} s") from error
        try:
            return reply.FromString(body)
        except DecodeError as error:
            raise CallError("INTERNAL", f"cannot decode the reply: {error}") from error

    async def close(self) -> None:
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.close("CLOSED", _CLOSED)
        self._idle.clear()

    async def _exchange(self, method: str, argument: Message | AsyncIterator[Message]) -> bytes:
        """The body of the reply. Raises CallError."""
        begun = frames.unary(method, _body(argument)) if isinstance(argument, Message) else frames.call(method)
        connection = await self._connect()
        self._busy.add(connection)
        reply = connection.begin(begun)
        sending = None if isinstance(argument, Message) else asyncio.create_task(_send_messages(connection, argument))
        try:
            if sending is not None:
                either: set[asyncio.Future[Any]] = {sending, reply}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
            return await reply
        finally:
            sent = sending is None or (sending.done() and not sending.cancelled() and sending.exception() is None)
            self._busy.discard(connection)
            self._put_back(connection, ended=sent and not connection.waits)
            if sending is not None:
                await end_tasks(sending)
            if reply.done() and not reply.cancelled():
                reply.exception()  # is not lost where sending has failed before it was awaited

    async def _connect(self) -> _Connection:
        """An idle connection or a new one. Raises CallError."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        if not self._closed:
            try:
                _, connection = await asyncio.get_running_loop().create_unix_connection(_Connection, self._path)
            except (OSError, ValueError) as error:  # ValueError: a path that is too long
                why = getattr(error, "strerror", None) or str(error)
                raise CallError("UNAVAILABLE", f"cannot connect to {self._path}: {why}") from error
            if not self._closed:
                return connection
            connection.close("CLOSED", _CLOSED)
        raise CallError("CLOSED", _CLOSED)

    def _put_back(self, connection: _Connection, *, ended: bool) -> None:
        """For further calls. ended: all of the last one was sent, and its reply has come; else the service learns from
        the end of the connection that the caller no longer waits."""
        if ended and connection.usable and len(self._idle) < _IDLE and not self._closed:
            self._idle.append(connection)
        else:
            connection.close("CLOSED", _CLOSED)


async def _send_messages(connection: _Connection, messages: AsyncIterator[Message]) -> None:
    """Sends the messages of a call and their end. Raises CallError."""
    async for message in messages:
        connection.send(frames.frame(frames.MESSAGE, _body(message)))
        await connection.writable()
    connection.send(frames.frame(frames.END))


def _body(message: Message) -> bytes:
    """Raises CallError."""
    body = message.SerializeToString()
    if len(body) > frames.MAX_BYTES:
        raise CallError("RESOURCE_EXHAUSTED", f"the message has {len(body)} bytes; the limit is {frames.MAX_BYTES}")
    return body
