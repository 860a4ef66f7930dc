"""One connection for direct calls, read frame by frame."""

import socket
from collections.abc import Callable, Iterator
from typing import BinaryIO

from firmament_py.service.calls.caller import BrokenStream
from protos import frames


class MalformedCall(Exception):
    """What was read is no call; nothing after it can be read."""


class DirectCaller:
    """Who called on a connection. stopping: whether the server has ended what comes from the caller by itself."""

    def __init__(self, connection: socket.socket, stopping: Callable[[], bool]) -> None:
        self._connection = connection
        self._stopping = stopping

    def is_active(self) -> bool:
        try:
            return self._stopping() or bool(self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False


class IncomingCall:
    """A call whose messages come. Iterates over their bodies; raises BrokenStream, MalformedCall."""

    def __init__(self, method: str, stream: BinaryIO) -> None:
        self.method = method
        self._stream = stream
        self._ended = False

    @classmethod
    def following(cls, stream: BinaryIO) -> "IncomingCall | None":
        """The next call of a connection; None: there is none. Raises BrokenStream, MalformedCall."""
        head = _read(stream, frames.HEAD.size)
        if not head:
            return None
        kind, body = _rest_of_frame(stream, head)
        if kind != frames.CALL:
            raise MalformedCall(f"a frame of kind {kind} begins it")
        return cls(body.decode(errors="replace"), stream)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._ended:
            raise StopIteration
        kind, body = _rest_of_frame(self._stream, _read(self._stream, frames.HEAD.size))
        if kind == frames.END:
            self._ended = True
            raise StopIteration
        if kind != frames.MESSAGE:
            raise MalformedCall(f"it has a frame of kind {kind}")
        return body

    def skip(self) -> None:
        """Reads what is left of it. Raises BrokenStream, MalformedCall."""
        for _ in self:
            pass


def _rest_of_frame(stream: BinaryIO, head: bytes) -> tuple[int, bytes]:
    """The kind and the body of a frame. Raises BrokenStream, MalformedCall."""
    if len(head) < frames.HEAD.size:
        raise BrokenStream
    length, kind = frames.HEAD.unpack(head)
    if length > frames.MAX_BYTES:
        raise MalformedCall(f"a frame of it has {length} bytes; the limit is {frames.MAX_BYTES}")
    body = _read(stream, length)
    if len(body) < length:
        raise BrokenStream
    return kind, body


def _read(stream: BinaryIO, size: int) -> bytes:
    """Less at the end of the stream. Raises BrokenStream."""
    try:
        return stream.read(size)
    except OSError as error:
        raise BrokenStream(str(error)) from error
