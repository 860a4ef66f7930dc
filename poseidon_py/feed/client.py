"""The client of the flow service: one method for each call of the contract, deadlines, typed failures.

One attempt per call: callers decide on retries. No answer of the service terminates the process. What carries the calls
is in feed/transport/.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from google.protobuf.message import Message

from poseidon_py.feed.transport.opening import transport_to
from poseidon_py.feed.transport.transport import CallError, Reply, Tls, Transport
from poseidon_py.metrics.metrics import Metrics
from protos.contract import shown, unknown_to
from protos.gen import flow_pb2

_METHODS = tuple(flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"].methods_by_name)

_PLAN_SECONDS = 60.0
"""Timeout of PlanMoves and WouldFit at least: a plan or a trial may take some seconds."""
_CHECK_SECONDS = 0.02


class EngineError(Exception):
    """A call of the service failed. `code`: the name of gRPC's status, or CLOSED if this process ended the call."""

    def __init__(self, method: str, code: str, details: str) -> None:
        super().__init__(f"{method}: {code}: {details}")
        self.code = code
        self.details = details


class ContractError(EngineError):
    """The service does not know all that this version sends, so that it would skip constraints."""

    def __init__(self, version: str, problem: str) -> None:
        details = f"the flow service is of version {version} and {problem}: upgrade it first"
        super().__init__("Hello", "FAILED_PRECONDITION", details)


async def wait_until_serving(address: str, timeout: float) -> None:
    """Waits until the flow service at an address answers.

    Raises EngineError if it does not within `timeout` seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    transport = transport_to(address, None, 0.0)
    try:
        while True:
            try:
                left = max(deadline - loop.time(), 0.0)
                await transport.call("Hello", flow_pb2.HelloRequest(), flow_pb2.HelloReply, left)
            except CallError as error:
                if loop.time() >= deadline or error.code == "DEADLINE_EXCEEDED":
                    raise EngineError("Hello", error.code, str(error)) from error
            else:
                return
            await asyncio.sleep(_CHECK_SECONDS)
    finally:
        await transport.close()


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
    async def starts(self, tasks: Iterable[int] = ()) -> flow_pb2.StartsReply: ...
    async def network(self, request: flow_pb2.NetworkRequest) -> flow_pb2.NetworkReply: ...
    async def would_fit(self, request: flow_pb2.FitRequest) -> flow_pb2.FitReply: ...
    async def plan_moves(self, request: flow_pb2.PlanRequest) -> flow_pb2.MovePlan: ...
    async def carry_out(self, request: flow_pb2.CarryOutRequest) -> flow_pb2.PlanProgress: ...
    async def progress(self, request: flow_pb2.ProgressRequest) -> flow_pb2.PlanProgress: ...


class EngineClient:
    """A flow service at an address, which changes when a supervised service is restarted."""

    def __init__(self, address: str, timeout: float, tls: Tls | None = None, metrics: Metrics | None = None) -> None:
        """`timeout`: seconds of each call. Raises OSError if a certificate cannot be read."""
        self._metrics = metrics if metrics is not None else Metrics()
        self._durations = {method: self._metrics.rpc.labels(method) for method in _METHODS}
        self._timeout = timeout
        self._tls = tls
        self._transport: Transport | None = None
        self.address = address
        if address:
            self._open(address)

    def _open(self, address: str) -> None:
        self.address = address
        self._transport = transport_to(address, self._tls, self._plan_timeout)

    @property
    def _plan_timeout(self) -> float:
        return max(self._timeout, _PLAN_SECONDS)

    async def move(self, address: str) -> None:
        """Sets a new address of the service. Calls in flight fail."""
        await self.close()
        self._open(address)

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

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
        return await self._call("Apply", update, flow_pb2.UpdateReply)

    async def round(self, request: flow_pb2.RoundRequest) -> flow_pb2.RoundReply:
        return await self._call("Round", request, flow_pb2.RoundReply)

    async def report_usage(self, report: flow_pb2.UsageReport) -> flow_pb2.UsageReply:
        return await self._call("ReportUsage", report, flow_pb2.UsageReply)

    async def explain(self, task: int) -> flow_pb2.ExplainReply:
        return await self._call("Explain", flow_pb2.ExplainRequest(task_uid=task), flow_pb2.ExplainReply)

    async def status(self) -> flow_pb2.StatusReply:
        return await self._call("GetStatus", flow_pb2.StatusRequest(), flow_pb2.StatusReply)

    async def list_gangs(self) -> flow_pb2.GangsReply:
        return await self._call("GetGangs", flow_pb2.GangsRequest(), flow_pb2.GangsReply)

    async def starts(self, tasks: Iterable[int] = ()) -> flow_pb2.StartsReply:
        """The last forecast of when these tasks start; without any, of all that wait."""
        return await self._call("GetStarts", flow_pb2.StartsRequest(uid=tasks), flow_pb2.StartsReply)

    async def network(self, request: flow_pb2.NetworkRequest) -> flow_pb2.NetworkReply:
        return await self._call("GetNetwork", request, flow_pb2.NetworkReply)

    async def list_queues(self) -> flow_pb2.QueuesReply:
        return await self._call("GetQueues", flow_pb2.QueuesRequest(), flow_pb2.QueuesReply)

    async def would_fit(self, request: flow_pb2.FitRequest) -> flow_pb2.FitReply:
        return await self._call("WouldFit", request, flow_pb2.FitReply, self._plan_timeout)

    async def plan_moves(self, request: flow_pb2.PlanRequest) -> flow_pb2.MovePlan:
        return await self._call("PlanMoves", request, flow_pb2.MovePlan, self._plan_timeout)

    async def carry_out(self, request: flow_pb2.CarryOutRequest) -> flow_pb2.PlanProgress:
        return await self._call("CarryOut", request, flow_pb2.PlanProgress)

    async def progress(self, request: flow_pb2.ProgressRequest) -> flow_pb2.PlanProgress:
        return await self._call("GetProgress", request, flow_pb2.PlanProgress)

    async def _call(
        self,
        method: str,
        argument: Message | AsyncIterator[Message],
        reply: type[Reply],
        timeout: float | None = None,
    ) -> Reply:
        """`reply`: the type of the answer; `timeout`: seconds, None: that of all calls."""
        if self._transport is None:
            raise EngineError(method, "UNAVAILABLE", "the flow service is not running")
        started = time.monotonic()
        try:
            return await self._transport.call(method, argument, reply, timeout or self._timeout)
        except CallError as error:
            self._metrics.rpc_errors.labels(method, error.code).inc()
            raise EngineError(method, error.code, str(error)) from error
        finally:
            self._durations[method].observe(time.monotonic() - started)
