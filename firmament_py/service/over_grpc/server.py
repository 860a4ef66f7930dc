"""The server of calls over gRPC: services and the standard health service at one address."""

import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from firmament_py.service.calls.caller import BrokenStream, FailedCall
from firmament_py.service.calls.registry import Method, Service
from firmament_py.service.over_grpc.renewed_credentials import RenewedCredentials
from firmament_py.service.tls_files import Tls
from protos import frames
from protos.addresses import UNIX

log = logging.getLogger(__name__)

_AGE = (("grpc.max_connection_age_ms", 600_000),)
"""Of connections with TLS: who lost the right to connect keeps none. Calls in flight end on the old connection."""


class GrpcServer:
    """Answers the calls of services: `start`, then `stop`. `port` is the actual port, 0 for a unix socket."""

    def __init__(self, services: Sequence[Service], address: str, threads: int, tls: Tls | None = None) -> None:
        """`threads` are created on demand: calls hold one while they wait for the lock, and health checks need a free
        one. Raises OSError, whose message says why it cannot listen, and PemFileError."""
        self._health = health.HealthServicer()
        self._names = ("", *(each.name for each in services))
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="call"),
            options=[
                ("grpc.max_receive_message_length", frames.MAX_BYTES),
                ("grpc.max_send_message_length", frames.MAX_BYTES),
                ("grpc.so_reuseport", 0),  # a second server on the port is an error, instead of sharing its connections
                *(_AGE if tls is not None else ()),
            ],
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for service in services:
            handlers = {name: _rpc_handler(method) for name, method in service.methods.items()}
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self.port = _listen(self._server, address, tls)

    def start(self) -> None:
        # before the server takes calls, so that no health check gets a wrong reply
        for name in self._names:
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self._server.start()

    def stop(self, grace_seconds: float) -> Callable[[], None]:
        """Takes no further calls. Running ones can end within the grace period, for which the result waits."""
        for name in self._names:
            self._health.set(name, health_pb2.HealthCheckResponse.NOT_SERVING)
        ended = self._server.stop(grace_seconds)

        def wait() -> None:
            ended.wait()

        return wait


def _rpc_handler(method: Method) -> "grpc.RpcMethodHandler[Any, Any]":
    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    behavior = _streaming(method) if method.gives_stream else _answering(method)
    return kinds[method.takes_stream, method.gives_stream](
        behavior,
        request_deserializer=method.message.FromString,
        response_serializer=method.reply.SerializeToString,
    )


def _answering(method: Method) -> Callable[[Any, grpc.ServicerContext], Any]:
    def answer(argument: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method.handle(_argument(method, argument), context)
        except FailedCall as error:
            context.abort(grpc.StatusCode[error.status], str(error))
        except BrokenStream as error:
            raise _cause(error)  # noqa: B904 - gRPC knows its own error

    return answer


def _streaming(method: Method) -> Callable[[Any, grpc.ServicerContext], Iterator[Any]]:
    def answers(argument: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            yield from method.handle(_argument(method, argument), context)
        except FailedCall as error:
            context.abort(grpc.StatusCode[error.status], str(error))
        except BrokenStream as error:
            raise _cause(error)  # noqa: B904 - gRPC knows its own error

    return answers


def _argument(method: Method, argument: Any) -> Any:
    return _messages(argument) if method.takes_stream else argument


def _messages(requests: Iterator[Any]) -> Iterator[Any]:
    """Raises BrokenStream where gRPC raises an error of its own."""
    try:
        yield from requests
    except grpc.RpcError as error:
        raise BrokenStream from error


def _cause(error: BrokenStream) -> BaseException:
    return error.__cause__ or error


def _listen(server: grpc.Server, address: str, tls: Tls | None) -> int:
    """Makes the server listen; its port, 0 for a unix socket. Raises OSError."""
    unix = address.startswith(UNIX)
    try:
        port = (
            server.add_secure_port(address, RenewedCredentials(tls).credentials)
            if tls
            else server.add_insecure_port(address)
        )
    except RuntimeError:
        port = 0
    if not port:
        raise OSError("not a path where a socket can be created" if unix else _why_not(address))
    return 0 if unix else port


def _why_not(address: str) -> str:
    """Why a port cannot be had, which gRPC does not say."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, where in {(each[0], each[4]) for each in found}:
            socket.create_server(where, family=family).close()
    except OSError as error:
        reasons = {errno.EADDRINUSE: "in use", errno.EACCES: "ports below 1024 need privileges"}
        return reasons.get(error.errno or 0, "not an address of this machine")
    return "in use"
