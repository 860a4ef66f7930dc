"""Direct calls: the frequent calls of the scheduler service on a unix socket of their own, without gRPC.

Between two calls of a cluster where pods arrive one by one all threads sleep. A call through gRPC wakes two threads of
the server and two of the client, one after the other, which takes longer than a round for one task; here a connection
is a thread that reads, calls the service and writes. protos/frames.py has the format.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError, Message

from firmament_py.service.direct.caller import Caller, FailedCall
from firmament_py.service.flow_service import FlowService
from protos import frames
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

_BACKLOG = 64


class DirectServer:
    """Answers direct calls at a socket: `start`, then `stop`."""

    def __init__(self, service: FlowService, path: str) -> None:
        """Listens at `path`, where nothing may listen already. Raises OSError."""
        self._calls: dict[str, tuple[type[Message], Callable[[Any, grpc.ServicerContext], Message]]] = {
            "Apply": (flow_pb2.Update, service.Apply),
            "Round": (flow_pb2.RoundRequest, service.Round),
        }
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

    def stop(self, grace_seconds: float) -> None:
        """Takes no further calls; running ones can end within the grace period."""
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
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

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
        caller = Caller(connection, lambda: self._stopped)
        try:
            with connection, connection.makefile("rb", 1 << 16) as calls:
                while len(head := calls.read(frames.HEAD.size)) == frames.HEAD.size:
                    length, method = frames.HEAD.unpack(head)
                    if length > frames.MAX_BYTES or method >= len(frames.METHODS):
                        log.warning("direct call refused: method %d, %d bytes", method, length)
                        return
                    body = calls.read(length)
                    if len(body) < length:
                        return
                    connection.sendall(self._answer(frames.METHODS[method], body, caller))
        except OSError:
            pass  # the caller has left
        finally:
            with self._lock:
                del self._connections[connection]

    def _answer(self, method: str, body: bytes, caller: Caller) -> bytes:
        """The reply to a call, as a frame."""
        message, handler = self._calls[method]
        try:
            reply = handler(message.FromString(body), cast(grpc.ServicerContext, caller))
            return frames.frame(frames.DONE, reply.SerializeToString())
        except FailedCall as error:
            return frames.frame(frames.FAILED, frames.failure(error.code, str(error)))
        except DecodeError as error:
            return frames.frame(frames.FAILED, frames.failure("INTERNAL", f"cannot decode the message: {error}"))
        except Exception as error:
            log.exception("%s failed: a defect", method)
            return frames.frame(frames.FAILED, frames.failure("UNKNOWN", f"{type(error).__name__}: {error}"))
