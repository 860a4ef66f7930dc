"""What serves an engine: both scheduler services and the statistics service over gRPC at one address; or, at an address
direct:PATH, what the bridge uses, without gRPC, which is not loaded then. The statistics service can have a second
address, for senders that must not reach the scheduler services."""

import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import InThread
from firmament_py.service.calls.registry import Service, service_of
from firmament_py.service.direct.server import DirectServer
from firmament_py.service.flow_service import FlowService
from firmament_py.service.tls_files import Tls
from protos.addresses import DIRECT, socket_path
from protos.gen import flow_pb2

_THREADS = 512
_STATS_THREADS = 64  # one per stream; a sender has two streams
_SOCKET_PATH_BYTES = 107
"""Bytes of the longest path of a unix socket on Linux."""
_PORT = re.compile(r".*:([0-9]{1,5})")


class CannotListenError(OSError):
    """The server cannot listen on `address`; the message says why."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"cannot listen on {address}: {why}")
        self.address = address


def wrong_address(address: str) -> str:
    """The error in the form of an address to listen on; empty if there is none."""
    path = socket_path(address)
    if path is not None:
        length = len(os.fsencode(path))
        if 0 < length <= _SOCKET_PATH_BYTES:
            return ""
        return f"has a path of {length} bytes; a unix socket can have 1 to {_SOCKET_PATH_BYTES}: give another path"
    port = _PORT.fullmatch(address)
    if port is None or int(port[1]) >= 2**16:
        return "is not HOST:PORT with a port from 0 to 65535, nor unix:PATH, nor direct:PATH"
    return ""


class _Listener(Protocol):
    """Serves at one address."""

    def start(self) -> None: ...
    def stop(self, grace_seconds: float) -> Callable[[], None]: ...


class Server:
    """Serves an engine. `port` is the actual port, 0 for a unix socket; call `start`, then `stop`."""

    def __init__(self, engine: Engine, address: str, tls: Tls | None = None, stats_address: str = "") -> None:
        """Addresses are HOST:PORT, unix:PATH or direct:PATH, the last without TLS; `stats_address` serves only
        statistics, over gRPC without TLS; empty: none. Raises CannotListenError; PemFileError, which names the file
        that cannot be used."""
        self.port = self.stats_port = 0
        self._listeners: list[_Listener] = []
        flow = service_of(
            flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"], FlowService(engine, InThread("forecast"))
        )
        if address.startswith(DIRECT):
            self._listeners.append(_direct(flow, address))
        else:
            services = [flow, _original(engine), _statistics(engine)]
            self.port = self._add_grpc(services, address, _THREADS, tls)
        if stats_address:
            self.stats_port = self._add_grpc([_statistics(engine)], stats_address, _STATS_THREADS)

    def _add_grpc(self, services: Sequence[Service], address: str, threads: int, tls: Tls | None = None) -> int:
        """The port. Raises CannotListenError, PemFileError."""
        from firmament_py.service.over_grpc.server import GrpcServer

        _check_unused(address)  # gRPC would replace the socket of the listening process
        try:
            server = GrpcServer(services, address, threads, tls)
        except OSError as error:
            raise CannotListenError(address, str(error)) from error
        self._listeners.append(server)
        return server.port

    def start(self) -> None:
        for each in self._listeners:
            each.start()

    def stop(self, grace_seconds: float) -> None:
        """Stops taking calls; running calls can end within the grace period."""
        for wait in [each.stop(grace_seconds) for each in self._listeners]:
            wait()


def _original(engine: Engine) -> Service:
    """The service of the original contract."""
    from firmament_py.service.firmament_service import FirmamentService
    from protos.gen import firmament_pb2

    return service_of(firmament_pb2.DESCRIPTOR.services_by_name["FirmamentScheduler"], FirmamentService(engine))


def _statistics(engine: Engine) -> Service:
    from firmament_py.service.stats_service import StatsService
    from protos.gen import stats_pb2

    return service_of(stats_pb2.DESCRIPTOR.services_by_name["PoseidonStats"], StatsService(engine))


def _direct(flow: Service, address: str) -> DirectServer:
    """Raises CannotListenError."""
    _check_unused(address)
    try:
        return DirectServer(flow, address.removeprefix(DIRECT))
    except OSError as error:
        raise CannotListenError(address, "not a path where a socket can be created") from error


def _check_unused(address: str) -> None:
    """Raises CannotListenError if a process listens on a unix socket; a stale socket file is replaced."""
    path = socket_path(address)
    if path is None:
        return
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError:
            return
    raise CannotListenError(address, "in use")
