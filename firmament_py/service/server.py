"""The gRPC server: both scheduler services, the statistics service and the standard health service at one address.

Beside a unix socket, the frequent calls are answered without gRPC, too (service/direct/). The statistics service can
have a second address, for senders that must not reach the scheduler services.
"""

import errno
import logging
import os
import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import InThread
from firmament_py.service.direct.server import DirectServer
from firmament_py.service.firmament_service import FirmamentService
from firmament_py.service.flow_service import FlowService
from firmament_py.service.stats_service import StatsService
from firmament_py.service.tls.renewed_credentials import RenewedCredentials, Tls
from protos import frames
from protos.addresses import UNIX
from protos.gen import firmament_pb2_grpc, flow_pb2_grpc, stats_pb2_grpc

log = logging.getLogger(__name__)

_SERVICES = ("", "firmament.FirmamentScheduler", "firmament.FlowScheduler", "stats.PoseidonStats")
_MAX_MESSAGE_BYTES = 1 << 30
_THREADS = 512  # created on demand: calls hold a thread while they wait for the lock, and health checks need a free one


_STATS_THREADS = 64  # one per stream; a sender has two streams
_UNIX_PATH_BYTES = 107
"""Bytes of the longest path of a unix socket on Linux."""
_AGE = (("grpc.max_connection_age_ms", 600_000),)
"""Of connections with TLS: who lost the right to connect keeps none. Calls in flight end on the old connection."""
_PORT = re.compile(r".*:([0-9]{1,5})")


class CannotListenError(OSError):
    """The server cannot listen on `address`; the message says why."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"cannot listen on {address}: {why}")
        self.address = address


def wrong_address(address: str) -> str:
    """The error in the form of an address to listen on; empty if there is none."""
    if address.startswith(UNIX):
        length = len(os.fsencode(address.removeprefix(UNIX)))
        if 0 < length <= _UNIX_PATH_BYTES:
            return ""
        return f"has a path of {length} bytes; a unix socket can have 1 to {_UNIX_PATH_BYTES}: give another path"
    port = _PORT.fullmatch(address)
    if port is None or int(port[1]) >= 2**16:
        return "is not HOST:PORT with a port from 0 to 65535, nor unix:PATH"
    return ""


class Server:
    """Serves an engine. `port` is the actual port, 0 for a unix socket; call `start`, then `stop`."""

    def __init__(self, engine: Engine, address: str, tls: Tls | None = None, stats_address: str = "") -> None:
        """Addresses are HOST:PORT or unix:PATH; `stats_address` serves only statistics, without TLS; empty: none.
        Raises CannotListenError; PemFileError, which names the file that cannot be used."""
        self._health = health.HealthServicer()
        self._grpc = self._server(_THREADS, _AGE if tls is not None else ())
        flow = FlowService(engine, InThread("forecast"))
        flow_pb2_grpc.add_FlowSchedulerServicer_to_server(flow, self._grpc)  # type: ignore[no-untyped-call]
        firmament_pb2_grpc.add_FirmamentSchedulerServicer_to_server(FirmamentService(engine), self._grpc)  # type: ignore[no-untyped-call]
        stats_pb2_grpc.add_PoseidonStatsServicer_to_server(StatsService(engine), self._grpc)  # type: ignore[no-untyped-call]
        self.port = _listen(self._grpc, address, tls)
        self._direct = _direct(flow, address) if tls is None else None
        self._stats: grpc.Server | None = None
        self.stats_port = 0
        if stats_address:
            self._stats = self._server(_STATS_THREADS)
            stats_pb2_grpc.add_PoseidonStatsServicer_to_server(StatsService(engine), self._stats)  # type: ignore[no-untyped-call]
            self.stats_port = _listen(self._stats, stats_address, None)

    def _server(self, threads: int, options: Sequence[tuple[str, int]] = ()) -> grpc.Server:
        """A server with only the health service."""
        server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="call"),
            options=[
                ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),  # a second server on the port is an error, instead of sharing its connections
                *options,
            ],
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        return server

    def start(self) -> None:
        # before the server takes calls, so that no health check gets a wrong reply
        for service in _SERVICES:
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        self._grpc.start()
        if self._direct is not None:
            self._direct.start()
        if self._stats is not None:
            self._stats.start()

    def stop(self, grace_seconds: float) -> None:
        """Stops taking calls; running calls can end within the grace period."""
        for service in _SERVICES:
            self._health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)
        ended = [server.stop(grace_seconds) for server in (self._grpc, self._stats) if server is not None]
        if self._direct is not None:
            self._direct.stop(grace_seconds)
        for event in ended:
            event.wait()


def _listen(server: grpc.Server, address: str, tls: Tls | None) -> int:
    """Makes the server listen; its port, 0 for a unix socket. Raises CannotListenError."""
    unix = address.startswith(UNIX)
    if unix and _answers(address.removeprefix(UNIX)):
        raise CannotListenError(address, "in use")  # gRPC would replace the socket of the listening process
    try:
        port = (
            server.add_secure_port(address, RenewedCredentials(tls).credentials)
            if tls
            else server.add_insecure_port(address)
        )
    except RuntimeError:
        port = 0
    if not port:
        raise CannotListenError(address, "not a path where a socket can be created" if unix else _why_not(address))
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


def _direct(flow: FlowService, address: str) -> DirectServer | None:
    """Takes direct calls beside a unix socket; None: it is not one, or its path leaves no space for the suffix."""
    if not address.startswith(UNIX):
        return None
    try:
        return DirectServer(flow, address.removeprefix(UNIX) + frames.SUFFIX)
    except OSError as error:
        log.info("no direct calls, so clients use gRPC for all: %s", error)
        return None


def _answers(path: str) -> bool:
    """Whether a process listens on a unix socket; false for a stale socket file."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError:
            return False
    return True
