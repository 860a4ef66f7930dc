"""The client of the flow service: one method for each call of the contract, deadlines, typed failures.

One attempt per call: callers decide on retries. No answer of the service terminates the process. The frequent calls go
without gRPC to a service on this machine that takes them so (feed/direct.py).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from poseidon_py.feed.direct import DirectCalls, DirectError
from poseidon_py.metrics.metrics import Metrics
from protos.addresses import UNIX
from protos.contract import shown, unknown_to
from protos.gen import flow_pb2, flow_pb2_grpc
from protos.pem_files import PemFileError, check_certificates, check_pair, states

log = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=Message)

_MAX_MESSAGE_BYTES = 1 << 30
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),  # despite its name, the maximum duration of an attempt, with its handshake
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 30000),
    ("grpc.enable_http_proxy", 0),  # proxies are for traffic that leaves the cluster
    ("grpc.client_idle_timeout_ms", (1 << 31) - 1),  # never: a socket's file may be removed while in use
)
_STARTING = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 5000),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.enable_http_proxy", 0),
)
"""Options while a service starts: connect often."""
_CHECK_SECONDS = 0.1


_METHODS = tuple(flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"].methods_by_name)

_PLAN_SECONDS = 60.0
"""Timeout of PlanMoves and WouldFit at least: a plan or a trial may take some seconds."""


class EngineError(Exception):
    """A call of the service failed. `code`: the name of gRPC's status, or CLOSED if the channel was closed."""

    def __init__(self, method: str, code: str, details: str) -> None:
        super().__init__(f"{method}: {code}: {details}")
        self.code = code
        self.details = details


class ContractError(EngineError):
    """The service does not know all that this version sends, so that it would skip constraints."""

    def __init__(self, version: str, problem: str) -> None:
        details = f"the flow service is of version {version} and {problem}: upgrade it first"
        super().__init__("Hello", "FAILED_PRECONDITION", details)


_UNKNOWN_AUTHORITY = "its certificate is not signed by the authority in firmament-ca-file"
_KNOWN_FAILURES = (
    ("CERTIFICATE_VERIFY_FAILED", _UNKNOWN_AUTHORITY),
    ("certificate signature failure", _UNKNOWN_AUTHORITY),  # which has the same name, and another key
    (
        "WRONG_VERSION_NUMBER",
        "it does not use TLS: omit firmament-ca-file, or start it with --tls-cert-file and --tls-private-key-file",
    ),
    ("Hostname Verification", "its certificate is for another name: use a name that the certificate contains"),
    (
        "Socket closed",
        "it closes the connection: it may require TLS (firmament-ca-file) or a client certificate "
        "(firmament-cert-file)",
    ),
)


def why_unreachable(details: Sequence[str]) -> str:
    """The cause of an error, from gRPC's details of several attempts, oldest first.

    All attempts are searched, because for a name with several addresses gRPC reports only one, and a refused connection
    to the next address hides the answer of the first.
    """
    for mark, why in _KNOWN_FAILURES:
        if any(mark in each for each in details):
            return why
    return details[-1].removesuffix(": OK").rsplit(": ", 1)[-1] if details else ""


async def wait_until_serving(address: str, timeout: float) -> None:
    """Waits until the flow service at an address answers its health check.

    Raises EngineError if it does not within `timeout` seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    request = health_pb2.HealthCheckRequest(service="firmament.FlowScheduler")
    async with grpc.aio.insecure_channel(address, options=_STARTING) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while True:
            try:
                await stub.Check(request, timeout=max(deadline - loop.time(), 0.0), wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                if loop.time() >= deadline or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise EngineError("Check", error.code().name, error.details() or "") from error
            else:
                return
            await asyncio.sleep(_CHECK_SECONDS)  # it answered and has exited again: do not retry in a tight loop


class Engine(Protocol):
    """A flow service as the bridge uses it. Every method may raise EngineError."""

    async def hello(self) -> flow_pb2.HelloReply: ...
    async def resync(self, updates: AsyncIterator[flow_pb2.Update]) -> flow_pb2.UpdateReply: ...
    async def apply(self, update: flow_pb2.Update) -> flow_pb2.UpdateReply: ...
    async def round(self, request: flow_pb2.RoundRequest) -> flow_pb2.RoundReply: ...
    async def report_usage(self, report: flow_pb2.UsageReport) -> flow_pb2.UsageReply: ...
    async def explain(self, task: int) -> flow_pb2.ExplainReply: ...
    async def list_queues(self) -> flow_pb2.QueuesReply: ...
    async def status(self) -> flow_pb2.StatusReply: ...
    async def list_gangs(self) -> flow_pb2.GangsReply: ...
    async def network(self, request: flow_pb2.NetworkRequest) -> flow_pb2.NetworkReply: ...
    async def would_fit(self, request: flow_pb2.FitRequest) -> flow_pb2.FitReply: ...
    async def plan_moves(self, request: flow_pb2.PlanRequest) -> flow_pb2.MovePlan: ...
    async def carry_out(self, request: flow_pb2.CarryOutRequest) -> flow_pb2.PlanProgress: ...
    async def progress(self, request: flow_pb2.ProgressRequest) -> flow_pb2.PlanProgress: ...


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the authority of the service's certificate, and for mutual TLS our certificate and its key."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Raises PemFileError."""
        check_certificates("firmament-ca-file", self.authority)
        check_pair("firmament-cert-file", self.certificate, "firmament-key-file", self.key)

    def state(self) -> tuple[object, ...]:
        """Equal while none of the files was written."""
        return states((self.authority, self.certificate, self.key))

    def credentials(self) -> grpc.ChannelCredentials:
        """Raises OSError if a file cannot be read."""
        return grpc.ssl_channel_credentials(
            self.authority.read_bytes(),
            self.key.read_bytes() if self.key else None,
            self.certificate.read_bytes() if self.certificate else None,
        )


class GrpcEngine:
    """A flow service at an address, which changes when a supervised service is restarted; with TLS, of certificates
    that may be renewed at any time."""

    def __init__(self, address: str, timeout: float, tls: Tls | None = None, metrics: Metrics | None = None) -> None:
        self._metrics = metrics if metrics is not None else Metrics()
        self._durations = {method: self._metrics.rpc.labels(method) for method in _METHODS}
        self._timeout = timeout
        self._tls = tls
        self._seen: tuple[object, ...] = ()
        """The state of the files that are in use, and of those of which the log says that they cannot be."""
        self._refused: tuple[object, ...] = ()
        self._channel: grpc.aio.Channel | None = None
        self._former: dict[asyncio.Task[None], grpc.aio.Channel] = {}
        """Channels whose calls come to an end, by the task that waits for these."""
        self._stub: Any = None
        self._direct: DirectCalls | None = None
        self.address = address
        if address:
            self._open(address)

    def _open(self, address: str) -> None:
        self.address = address
        if self._tls is not None:
            self._seen = self._tls.state()
            self._channel = grpc.aio.secure_channel(address, self._tls.credentials(), options=_OPTIONS)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
            if address.startswith(UNIX):
                self._direct = DirectCalls(address.removeprefix(UNIX))
        self._stub = flow_pb2_grpc.FlowSchedulerStub(self._channel)  # type: ignore[no-untyped-call]

    async def move(self, address: str) -> None:
        """Sets a new address of the service. Calls in flight fail."""
        await self.close()
        self._open(address)

    def _renew(self) -> None:
        """Connects anew if the certificates were renewed. Calls in flight end on the former connection."""
        tls, former = self._tls, self._channel
        if tls is None or former is None or (found := tls.state()) in (self._seen, self._refused):
            return
        try:
            tls.check()
            if tls.state() == found:  # else they are being written: the next call finds them whole
                self._open(self.address)
        except (PemFileError, OSError) as error:
            self._refused = found
            log.warning("the connection to the flow service keeps the former certificates: %s", error)
            return
        if self._channel is not former:
            log.info("the certificates for the flow service were renewed: it is connected anew")
            task = asyncio.create_task(former.close(max(self._timeout, _PLAN_SECONDS)), name="former connection")
            self._former[task] = former
            task.add_done_callback(self._former.pop)

    async def close(self) -> None:
        for task, former in list(self._former.items()):
            await former.close()
            await task
        if self._direct is not None:
            self._direct.close()
            self._direct = None
        if self._channel is not None:
            channel, self._channel, self._stub = self._channel, None, None
            await channel.close()

    async def hello(self) -> flow_pb2.HelloReply:
        """Raises ContractError, too."""
        found = await self._call("Hello", flow_pb2.HelloRequest(), flow_pb2.HelloReply)
        if found.description:  # else it is older than the field: then nothing else has been added yet
            try:
                missing = unknown_to(found.description)
            except ValueError as error:
                raise ContractError(found.version, str(error)) from error
            if missing:
                raise ContractError(found.version, f"does not know {shown(missing)}")
        return found

    async def resync(self, updates: AsyncIterator[flow_pb2.Update]) -> flow_pb2.UpdateReply:
        return await self._call("Resync", updates, flow_pb2.UpdateReply)

    async def apply(self, update: flow_pb2.Update) -> flow_pb2.UpdateReply:
        return await self._frequent("Apply", update, flow_pb2.UpdateReply)

    async def round(self, request: flow_pb2.RoundRequest) -> flow_pb2.RoundReply:
        return await self._frequent("Round", request, flow_pb2.RoundReply)

    async def report_usage(self, report: flow_pb2.UsageReport) -> flow_pb2.UsageReply:
        return await self._call("ReportUsage", report, flow_pb2.UsageReply)

    async def explain(self, task: int) -> flow_pb2.ExplainReply:
        return await self._call("Explain", flow_pb2.ExplainRequest(task_uid=task), flow_pb2.ExplainReply)

    async def status(self) -> flow_pb2.StatusReply:
        return await self._call("GetStatus", flow_pb2.StatusRequest(), flow_pb2.StatusReply)

    async def list_gangs(self) -> flow_pb2.GangsReply:
        return await self._call("GetGangs", flow_pb2.GangsRequest(), flow_pb2.GangsReply)

    async def network(self, request: flow_pb2.NetworkRequest) -> flow_pb2.NetworkReply:
        return await self._call("GetNetwork", request, flow_pb2.NetworkReply)

    async def list_queues(self) -> flow_pb2.QueuesReply:
        return await self._call("GetQueues", flow_pb2.QueuesRequest(), flow_pb2.QueuesReply)

    async def would_fit(self, request: flow_pb2.FitRequest) -> flow_pb2.FitReply:
        return await self._call("WouldFit", request, flow_pb2.FitReply, max(self._timeout, _PLAN_SECONDS))

    async def plan_moves(self, request: flow_pb2.PlanRequest) -> flow_pb2.MovePlan:
        return await self._call("PlanMoves", request, flow_pb2.MovePlan, max(self._timeout, _PLAN_SECONDS))

    async def carry_out(self, request: flow_pb2.CarryOutRequest) -> flow_pb2.PlanProgress:
        return await self._call("CarryOut", request, flow_pb2.PlanProgress)

    async def progress(self, request: flow_pb2.ProgressRequest) -> flow_pb2.PlanProgress:
        return await self._call("GetProgress", request, flow_pb2.PlanProgress)

    async def _frequent(self, method: str, message: Message, reply: type[Reply]) -> Reply:
        """Like `_call`, without gRPC if the service takes direct calls."""
        if self._direct is None:
            return await self._call(method, message, reply)
        started = time.monotonic()
        try:
            body = await self._direct.call(method, message.SerializeToString(), self._timeout)
            found = reply.FromString(body) if body is not None else None
        except (DirectError, DecodeError) as error:
            code = error.code if isinstance(error, DirectError) else "INTERNAL"
            self._metrics.rpc_errors.labels(method, code).inc()
            self._durations[method].observe(time.monotonic() - started)
            raise EngineError(method, code, str(error)) from error
        if found is None:
            return await self._call(method, message, reply)
        self._durations[method].observe(time.monotonic() - started)
        return found

    async def _call(self, method: str, argument: object, reply: type[Reply], timeout: float | None = None) -> Reply:
        """`reply`: the type of the answer; `timeout`: seconds, None: that of all calls."""
        if self._stub is None:
            raise EngineError(method, "UNAVAILABLE", "the flow service is not running")
        self._renew()
        started = time.monotonic()
        try:
            found = await getattr(self._stub, method)(argument, timeout=timeout or self._timeout)
            return cast(Reply, found)
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            self._metrics.rpc_errors.labels(method, code).inc()
            raise EngineError(method, code, error.details() or "") from error
        except (grpc.aio.UsageError, grpc.aio.InternalError) as error:  # the channel was closed during the call
            self._metrics.rpc_errors.labels(method, "CLOSED").inc()
            raise EngineError(method, "CLOSED", str(error)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # the task is not being cancelled: closing the channel cancels its calls in flight
            self._metrics.rpc_errors.labels(method, "CLOSED").inc()
            raise EngineError(method, "CLOSED", "the channel was closed during the call") from error
        finally:
            self._durations[method].observe(time.monotonic() - started)
