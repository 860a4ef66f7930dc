"""The server of direct calls: a service on a unix socket, without gRPC.

gRPC takes some 15 MB in each of both processes, and a call through it wakes two threads of the server and two of the
client, one after the other, which takes longer than a round for one task. Here a connection is a thread that reads,
calls the service and writes. protos/frames.py has the format.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, cast

from google.protobuf.message import DecodeError

from firmament_py.service.calls.caller import BrokenStream, FailedCall, Status
from firmament_py.service.calls.registry import Method, Service
from firmament_py.service.direct.connection import DirectCaller, IncomingCall, MalformedCall
from protos import frames

log = logging.getLogger(__name__)

_BACKLOG = 64


class DirectServer:
    """Answers the calls of a service at a socket: `start`, then `stop`."""

    def __init__(self, service: Service, path: str) -> None:
        """Listens at `path`, where nothing may listen already. Raises OSError."""
        self._methods = service.methods
        self._path = path
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._stopped = False
        self._lock = threading.Lock()  # for the two above
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)  # of a process that was killed
            self._listener.bind(path)
            self._listener.listen(_BACKLOG)
        except OSError:
            self._listener.close()
            raise

    def start(self) -> None:
        threading.Thread(target=self._accept, name="direct calls", daemon=True).start()

    def stop(self, grace_seconds: float) -> Callable[[], None]:
        """Takes no further calls. Running ones can end within the grace period, for which the result waits."""
        with self._lock:
            self._stopped = True
            threads = [*self._connections.values()]
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)  # the thread ends after its call
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for connections
        self._listener.close()
        with suppress(OSError):
            os.unlink(self._path)
        deadline = time.monotonic() + grace_seconds

        def wait() -> None:
            for thread in threads:
                thread.join(max(deadline - time.monotonic(), 0.0))

        return wait

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._stopped:
                    return
                log.warning("cannot take a connection for direct calls: %s", error)  # too many open files
                time.sleep(0.1)
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), name="direct call", daemon=True)
            with self._lock:
                if self._stopped:
                    connection.close()
                    return
                self._connections[connection] = thread
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answers the calls of a connection until it ends."""
        caller = DirectCaller(connection, lambda: self._stopped)
        try:
            with connection, connection.makefile("rb", 1 << 16) as stream:
                self._answer_all(connection, cast(BinaryIO, stream), caller)
        except (OSError, BrokenStream):
            pass  # the caller has left
        finally:
            with self._lock:
                del self._connections[connection]

    def _answer_all(self, connection: socket.socket, stream: BinaryIO, caller: DirectCaller) -> None:
        """Raises OSError, BrokenStream."""
        try:
            while (call := IncomingCall.following(stream)) is not None:
                connection.sendall(self._answer(call, caller))
                call.skip()  # else the caller would not read why it has failed, but that the connection was closed
        except MalformedCall as error:
            log.warning("direct call refused: %s", error)

    def _answer(self, call: IncomingCall, caller: DirectCaller) -> bytes:
        """The reply to a call, as a frame. Raises BrokenStream, MalformedCall."""
        try:
            method = self._methods.get(call.method)
            if method is None or method.gives_stream:
                return _failed(Status.UNIMPLEMENTED, f"there is no direct call {call.method}")
            reply = method.handle(_argument(method, call), caller).SerializeToString()
        except FailedCall as error:
            return _failed(error.status, str(error))
        except DecodeError as error:
            return _failed(Status.INTERNAL, f"cannot decode the message: {error}")
        except (BrokenStream, MalformedCall):
            raise
        except Exception as error:
            log.exception("%s failed: a defect", call.method)
            return _failed(Status.UNKNOWN, f"{type(error).__name__}: {error}")
        if len(reply) > frames.MAX_BYTES:
            return _failed(Status.RESOURCE_EXHAUSTED, f"the reply has {len(reply)} bytes")
        return frames.frame(frames.DONE, reply)


def _argument(method: Method, call: IncomingCall) -> Any:
    """What the handler is called with. Raises DecodeError, FailedCall, BrokenStream, MalformedCall."""
    messages = map(method.message.FromString, call)
    if method.takes_stream:
        return messages
    one = next(messages, None)
    if one is None or next(call, None) is not None:
        raise FailedCall(Status.INTERNAL, "the call does not have one message")
    return one


def _failed(status: Status, details: str) -> bytes:
    return frames.frame(frames.FAILED, frames.failure(status, details))
