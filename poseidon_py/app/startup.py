"""Startup: waits for the API server and the flow service, each for at most the startup timeout; the election; where
measured usage comes from."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from poseidon_py.config import loading
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import ContractError, EngineClient, EngineError
from poseidon_py.feed.transport.transport import why_unreachable
from poseidon_py.kube import credentials
from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    Kube,
    KubeError,
    LostAnswerError,
    MalformedAnswerError,
    UnreachableError,
)
from poseidon_py.kube.lease import REMEDY, Election
from poseidon_py.kube.requests.rate_limit import RateLimit
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.usage.collector import Source
from poseidon_py.usage.metrics_api import MetricsApi
from poseidon_py.usage.prometheus import Prometheus
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

T = TypeVar("T")


class StartError(Exception):
    """The bridge cannot start; the message is for the user."""


async def wait_for_server(kube: Kube, timeout: float) -> None:
    """Returns once the API server answers. `timeout`: seconds. Raises StartError."""
    try:
        version = await _retry(
            kube.server_version, timeout, BusyError, UnreachableError, LostAnswerError, MalformedAnswerError
        )
    except ApiError as error:
        if error.code in (401, 403):
            raise StartError(
                f"the API server at {kube.url} rejected our credentials ({error.code}): check the token or client "
                f"certificate; it says: {error.message}"
            ) from error
        raise StartError(
            f"{kube.url} does not answer like an API server: {error}; check the server in the kubeconfig"
        ) from error
    except KubeError as error:
        tried = f"tried for {timeout:g} s"
        raise StartError(f"{error}; {tried}; check that it is running and that the kubeconfig is correct") from error
    log.info("API server %s, version %s", kube.url, version)


async def wait_for_engine(engine: EngineClient, address: str, timeout: float) -> None:
    """Returns once the flow service at a configured address answers. `timeout`: seconds. Raises StartError."""
    details: list[str] = []

    async def hello() -> flow_pb2.HelloReply:
        try:
            return await _hello(engine)
        except EngineError as error:
            details.append(error.details)
            raise

    try:
        await _retry(hello, timeout, EngineError)
    except EngineError as error:
        why = why_unreachable(details) or error.code
        raise StartError(
            f"no flow service at {address}: {why}; tried for {timeout:g} s; "
            "start one with `firmament serve`, or omit --firmament-address"
        ) from error


async def first_hello(engine: EngineClient, timeout: float) -> flow_pb2.HelloReply:
    """What the flow service says about itself and its policy. `timeout`: seconds. Raises StartError."""
    try:
        return await _retry(lambda: _hello(engine), timeout, EngineError)
    except EngineError as error:
        raise StartError(f"the flow service does not answer: {error}") from error


async def _hello(engine: EngineClient) -> flow_pb2.HelloReply:
    """Raises StartError if waiting cannot help."""
    try:
        return await engine.hello()
    except ContractError as error:
        raise StartError(f"{error.details} ({engine.address})") from error


def new_election(
    kube: Kube,
    settings: Settings,
    identity: str,
    started: Callable[[], None],
    stopped: Callable[[], None],
    metrics: ProcessMetrics,
    description: Mapping[str, str] | None = None,
) -> Election:
    """An election for the lease of the settings, in which this process takes part unless they say otherwise. `started`,
    `stopped`: called when it leads, and no longer. `description`: annotations of the lease."""
    return Election(
        kube,
        name=settings.lease_name,
        namespace=settings.lease_namespace,
        identity=identity,
        started=started,
        stopped=stopped,
        changed=lambda leads, cause: _count_change(metrics, leads, cause),
        takes_part=settings.leader_elect,
        description=description,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )


def _count_change(metrics: ProcessMetrics, leads: bool, cause: str) -> None:
    metrics.leadership_changes.labels("leader" if leads else "standby", cause).inc()
    if not leads:
        metrics.lease_losses.labels(cause).inc()


async def check_alone(election: Election, settings: Settings) -> None:
    """Without an election nothing but this keeps two processes from the same work. Raises StartError if another one
    holds the lease, or that cannot be found out."""
    if settings.leader_elect:
        return
    try:
        rival = await _retry(election.rival, settings.startup_timeout, BusyError, UnreachableError, LostAnswerError)
    except KubeError as error:
        where = f"{settings.lease_namespace}/{settings.lease_name}"
        raise StartError(
            f"cannot find out whether another process holds lease {where}: {error}; allow get on leases in the Role "
            "(docs/rbac.md)"
        ) from error
    if rival:
        raise StartError(f"--no-leader-elect: {rival}: {REMEDY}")


async def _retry(ask: Callable[[], Awaitable[T]], timeout: float, *errors: type[Exception]) -> T:
    """The first answer. After `timeout` seconds of these errors, raises the last one."""
    backoff, loop = Backoff(0.2, 5.0), asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        try:
            return await ask()
        except errors as error:
            if loop.time() >= deadline:
                raise
            log.warning("%s", error)
        await asyncio.sleep(min(backoff.next(), max(0.05, deadline - loop.time())))


@dataclass(frozen=True, slots=True)
class UsageSources:
    """interval: seconds between polls, 0: never; None: as the flow service needs it. prometheus: its client, which the
    bridge closes at the end."""

    interval: float | None
    all: list[Source]
    prometheus: Kube | None = None


def rate_limit(settings: Settings) -> RateLimit | None:
    """That of requests to the API server; None: there is none."""
    return RateLimit(settings.kube_api_qps, settings.kube_api_burst) if settings.kube_api_qps > 0 else None


async def usage_sources(settings: Settings, kube: Kube) -> UsageSources:
    """Those of the settings, connected."""
    interval, sources = loading.usage_interval(settings), list[Source]([MetricsApi(kube)])
    if interval == 0 or not settings.prometheus_url:
        return UsageSources(interval, sources)
    tls = credentials.trusting(settings.prometheus_ca) if settings.prometheus_ca else None
    access = credentials.at(settings.prometheus_url, tls=tls)
    client = Kube(access)
    await client.start()
    queries = settings.prometheus_queries or {}
    sources.append(Prometheus(client, access, queries, settings.prometheus_token_file))
    return UsageSources(interval, sources, client)
