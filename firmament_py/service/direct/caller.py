"""The caller of a direct call, as the service sees it."""

import socket
from collections.abc import Callable
from typing import NoReturn

import grpc


class FailedCall(Exception):
    """What a call ends with instead of a reply."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self.code = code


class Caller:
    """What the service asks of the context of a call: the part of grpc.ServicerContext that Apply and Round use.

    stopping: whether the server has ended what comes from the caller by itself.
    """

    def __init__(self, connection: socket.socket, stopping: Callable[[], bool]) -> None:
        self._connection = connection
        self._stopping = stopping

    def is_active(self) -> bool:
        """Whether the caller still waits."""
        try:
            return self._stopping() or bool(self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise FailedCall(code.name, details)
