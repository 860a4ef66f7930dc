"""The gRPC server: both schedulers' services, the statistics service and standard health service on one port."""

import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from firmament_py.engine.engine import Engine
from firmament_py.service.firmament_service import WireService
from firmament_py.service.flow_service import FlowService
from firmament_py.service.stats_service import StatsService
from protos.gen import firmament_pb2_grpc, flow_pb2_grpc, stats_pb2_grpc

_SERVICES = ("", "firmament.FirmamentScheduler", "firmament.FlowScheduler", "stats.PoseidonStats")
_MAX_MESSAGE_BYTES = 1 << 30
_THREADS = 512  # made as needed: calls wait for the engine's lock in their threads, health checks need a free one


class CannotListenError(OSError):
    """The address cannot be listened on; the message says which and what to do."""


class CertificateError(ValueError):
    """A file for TLS cannot be used; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. With `client_ca` clients must present a certificate that it signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Raises CertificateError; gRPC only says that it cannot listen."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")  # whether a key is long enough is left to gRPC
        for flag, file in (("--tls-cert", self.certificate), ("--tls-client-ca", self.client_ca)):
            try:
                context.load_verify_locations(file or self.certificate)
            except OSError as error:  # of which SSLError is one
                raise CertificateError(f"{flag} {file} cannot be used; give a PEM certificate") from error
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:
            if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
                raise CertificateError(
                    f"--tls-key {self.key} is not the key of --tls-cert {self.certificate}"
                ) from error
            raise CertificateError(f"--tls-key {self.key} cannot be used; give a PEM key without a password") from error


class Server:
    """Serves an engine. `port` is known once it exists; `start`, then `stop`."""

    def __init__(self, engine: Engine, address: str, tls: Tls | None = None) -> None:
        self._grpc = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="call"),
            options=[
                ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),  # a second service on the port is an error, not a lottery
            ],
        )
        flow_pb2_grpc.add_FlowSchedulerServicer_to_server(FlowService(engine), self._grpc)  # type: ignore[no-untyped-call]
        firmament_pb2_grpc.add_FirmamentSchedulerServicer_to_server(WireService(engine), self._grpc)  # type: ignore[no-untyped-call]
        stats_pb2_grpc.add_PoseidonStatsServicer_to_server(StatsService(engine), self._grpc)  # type: ignore[no-untyped-call]
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        try:
            self.port = (
                self._grpc.add_secure_port(address, _credentials(tls)) if tls else self._grpc.add_insecure_port(address)
            )
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise CannotListenError(f"cannot listen on {address}: in use, or not an address of this machine")

    def start(self) -> None:
        self._grpc.start()
        for service in _SERVICES:
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace_seconds: float) -> None:
        """Takes no more calls and lets running ones end within the grace."""
        for service in _SERVICES:
            self._health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)
        self._grpc.stop(grace_seconds).wait()


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    client_ca = tls.client_ca.read_bytes() if tls.client_ca else None
    pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], client_ca, require_client_auth=client_ca is not None)
