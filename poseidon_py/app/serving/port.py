"""A port of the HTTP server: where it listens, and which of its connections stay open.

aiohttp closes connections that send no request in time (keepalive_timeout). This module limits the rest: the time of
TLS handshakes, the time for which a response stays unread, and the number of connections. At the limit, a new one
replaces the one that has been idle longest, of the client address with the most connections: however many an address
holds open, the kubelet's probe, which comes from another one, is answered.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

LIMIT = 64
"""Connections of a port: several times what a kubelet, some Prometheus servers and users have, and far from the limit
of open files that the API server's connections need, too."""
_HANDSHAKE_SECONDS = 10.0
_STUCK_SECONDS = 30.0
"""How long a client may leave its answer unread."""
_BACKLOG = 128
_PAUSE_SECONDS = 1.0


class Port:
    """`listen` at an address, then `close`."""

    def __init__(
        self, new_handler: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None, *, limit: int = LIMIT
    ) -> None:
        """`new_handler`: a protocol that speaks HTTP on one connection. `limit`: on connections."""
        self._new_handler = new_handler
        self._tls = tls
        self._limit = limit
        self._listeners: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._open: dict[asyncio.BaseProtocol, _Connection] = {}
        """By handler."""

    async def listen(self, address: str, port: int) -> int:
        """The port that is bound, for all IP addresses of a host name. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        missing: OSError | None = None
        for family, where in dict.fromkeys((each[0], each[4]) for each in found):
            try:
                listener = socket.create_server((where[0], port, *where[2:]), family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:  # such as ::1 of localhost where there is no IPv6
                    missing = error
                    continue
                self._close_listeners()
                raise
            listener.setblocking(False)
            self._listeners.append(listener)
            port = port or listener.getsockname()[1]
        if not self._listeners:
            raise missing or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        self._accepting = [loop.create_task(self._accept(each), name="accept") for each in self._listeners]
        return port

    async def close(self) -> None:
        """Takes no connections any more. Those with a request are left to the server."""
        await end_tasks(*self._accepting)
        self._close_listeners()
        for connection in list(self._open.values()):
            if not connection.answering:
                connection.abort()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    @contextlib.contextmanager
    def answering(self, handler: asyncio.BaseProtocol) -> Iterator[None]:
        """While a request is answered, its connection does not give way. `handler`: that of the connection."""
        connection = self._open.get(handler)
        if connection is not None:
            connection.answering = True
        try:
            yield
        finally:
            if connection is not None:
                connection.answering = False
                connection.idle_since = asyncio.get_running_loop().time()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                opened, peer = await loop.sock_accept(listener)
            except OSError as error:  # there are no more open files
                log.warning("cannot take connections for %g s: %s", _PAUSE_SECONDS, error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if len(self._open) >= self._limit and not self._make_room():
                opened.close()
                continue
            handler = self._new_handler()
            connection = _Connection(handler, str(peer[0]), loop.time(), lambda closed: self._open.pop(closed, None))
            self._open[handler] = connection
            connection.start(opened, self._tls)

    def _make_room(self) -> bool:
        """Closes a connection, unless all are being answered."""
        of_address = Counter(each.address for each in self._open.values())
        idle = [each for each in self._open.values() if not each.answering]
        if not idle:
            return False
        max(idle, key=lambda each: (of_address[each.address], -each.idle_since)).abort()
        return True


class _Connection(asyncio.Protocol):
    """Passes all on to the handler."""

    def __init__(
        self, handler: asyncio.Protocol, address: str, now: float, closed: Callable[[asyncio.BaseProtocol], object]
    ) -> None:
        """`closed`: called once, with the handler."""
        self._handler = handler
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        """Until the event loop has it."""
        self.address = address
        self.answering = False
        self.idle_since = now

    def start(self, opened: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._socket = opened
        self._opening = asyncio.get_running_loop().create_task(self._open(opened, tls), name="connection")

    async def _open(self, opened: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._socket = None
        limit = None if tls is None else _HANDSHAKE_SECONDS
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self, opened, ssl=tls, ssl_handshake_timeout=limit
            )
        except OSError as error:  # of which SSLError is one
            log.debug("a connection from %s was not opened: %s", self.address, error)
            self._closed(self._handler)

    def abort(self) -> None:
        """Ends it at once."""
        self._closed(self._handler)
        if self._transport is not None:
            self._transport.abort()
        elif self._opening is not None:
            self._opening.cancel()
            if self._socket is not None:
                self._socket.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def pause_writing(self) -> None:
        assert self._transport is not None
        self._stuck = asyncio.get_running_loop().call_later(_STUCK_SECONDS, self._transport.abort)
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._unstuck()
        self._handler.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._unstuck()
        self._transport = None
        self._closed(self._handler)
        self._handler.connection_lost(error)

    def _unstuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
