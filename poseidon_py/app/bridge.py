"""Builds the bridge from its parts, starts them in order, and stops them in reverse.

watches -> store -> queues -> feed -> (session) engine -> loop -> binder -> API server
                                                              \\-> reporter -> API server
"""

import asyncio
import logging
import math
import os
import socket
import ssl
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from poseidon_py.app import status
from poseidon_py.app.engine_process import Supervisor
from poseidon_py.app.gangs import Gangs
from poseidon_py.app.http_endpoints import Health
from poseidon_py.bind.binder import Binder
from poseidon_py.bind.volumes import VolumeBinder
from poseidon_py.config import loading
from poseidon_py.config.settings import Settings
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.feed.client import EngineError, GrpcEngine, Tls, why_unreachable
from poseidon_py.feed.resync import Session
from poseidon_py.feed.workers import Feed
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
from poseidon_py.kube.credentials import Access
from poseidon_py.kube.lease import Election
from poseidon_py.kube.list_watch import Watch, WatchOptions
from poseidon_py.report import messages
from poseidon_py.report.events import Reporter
from poseidon_py.rounds.loop import Loop
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.watch_set import first_watches, storage_watches
from poseidon_py.usage.collector import Collector, Source
from poseidon_py.usage.metrics_api import MetricsApi
from poseidon_py.usage.prometheus import Prometheus
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T")


class StartError(Exception):
    """The bridge cannot start; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What exists once the bridge runs."""

    kube: Kube
    watches: tuple[Watch[Any], ...]
    session: Session
    feed: Feed
    binder: Binder
    reporter: Reporter
    loop: Loop


class Bridge:
    """`start`; `wait` until something ends it; `stop`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store = Store(
            settings.scheduler_name, added_affinity=loading.added_affinity(settings), metrics=self.metrics
        )
        tls = None
        if settings.firmament_ca is not None:
            tls = Tls(settings.firmament_ca, settings.firmament_cert, settings.firmament_key)
        self.engine = GrpcEngine(settings.firmament_address, settings.rpc_timeout, tls, self.metrics)
        self.parts: Runtime | None = None
        self.gangs: Gangs | None = None
        self.health: Health | None = None
        self.usage: Collector | None = None
        self._access: Access | None = None
        self._kube: Kube | None = None
        self._prometheus: Kube | None = None
        self.supervisor: Supervisor | None = None
        self.election: Election | None = None
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._broken: asyncio.Future[str] | None = None

    # -- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns when everything runs; the first round comes when all is listed.

        Raises StartError, CredentialsError, PortInUseError or FirmamentError.
        """
        settings = self.settings
        self._broken = asyncio.get_running_loop().create_future()
        access = self._access = await credentials.load(settings.kubeconfig, settings.context)
        self.health = Health(
            self.metrics,
            alive=self._alive,
            ready=self._ready,
            refresh=self._refresh,
            identity=self.serves,
            status=self.status,
            explain=self.explain,
        )
        if settings.health_port >= 0:
            await self.health.start(settings.health_address, settings.health_port)
            log.info("health and metrics on http://%s:%d", settings.health_address, self.health.port)
        await self._start_engine()
        await self._count_bandwidth()
        self._kube = Kube(access, settings.bind_concurrency)
        await self._kube.start()
        await self._wait_for_server(self._kube)
        self.parts = self._build(self._kube)
        self.usage = await self._build_collector(self._kube, self.parts.session)
        self._run(self.parts, access)

    async def _start_engine(self) -> None:
        settings = self.settings
        if not settings.firmament_address:
            self.supervisor = Supervisor(
                policy=settings.policy,
                policy_options=settings.policy_option,
                moved=self._engine_moved,
                more=loading.service_arguments(settings),
                log_level="warning" if settings.log_level == "info" else settings.log_level,
                log_format=settings.log_format,
                startup_timeout=settings.startup_timeout,
                metrics=self.metrics,
            )
            await self.supervisor.start()
            self._spawn("supervisor", self.supervisor.run())
            return
        said: list[str] = []

        async def hello() -> None:
            try:
                await self.engine.hello()
            except EngineError as error:
                said.append(error.details)
                raise

        try:
            await self._patiently(hello, EngineError)
        except EngineError as error:
            why = why_unreachable(said) or error.code
            raise StartError(
                f"no flow service at {settings.firmament_address}: {why}; tried for {settings.startup_timeout:g} s; "
                "start one with `firmament serve`, or leave --firmament-address out"
            ) from error

    async def _count_bandwidth(self) -> None:
        """What counts has to be known before the first pod is described: it is what the service says at start."""
        settings = self.settings
        counted = settings.bandwidth == "on"
        if settings.bandwidth == "auto":
            try:
                counted = (await self._patiently(self.engine.hello, EngineError)).counts_links
            except EngineError as error:
                raise StartError(f"the flow service does not answer: {error}") from error
        self.store.classes.bandwidth = Bandwidth(counted, loading.link_bandwidth(settings))
        if counted:
            log.info("bandwidth counts: kubernetes.io/ingress-bandwidth and egress-bandwidth of pods, links of nodes")

    async def _engine_moved(self, address: str) -> None:
        await self.engine.move(address)
        if self.parts is not None:
            self.parts.session.lost()

    async def _wait_for_server(self, kube: Kube) -> None:
        try:
            version = await self._patiently(
                kube.server_version, BusyError, UnreachableError, LostAnswerError, MalformedAnswerError
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
            tried = f"tried for {self.settings.startup_timeout:g} s"
            raise StartError(f"{error}; {tried}: is it running, and is the kubeconfig the right one?") from error
        log.info("API server %s, version %s", kube.url, version)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], *again: type[Exception]) -> T:
        """Asks until there is an answer; the last error after the time that a start may take."""
        backoff, loop = Backoff(0.2, 5.0), asyncio.get_running_loop()
        deadline = loop.time() + self.settings.startup_timeout
        while True:
            try:
                return await ask()
            except again as error:
                if loop.time() >= deadline:
                    raise
                log.warning("%s", error)
            await asyncio.sleep(min(backoff.next(), max(0.05, deadline - loop.time())))

    def _build(self, kube: Kube) -> Runtime:
        settings, store = self.settings, self.store
        watches = first_watches(kube, store, _watch_options(settings))

        async def listed() -> None:
            for watch in watches:
                await watch.listed.wait()

        session = Session(self.engine, store, listed)
        feed = Feed(store, self.engine, session, lambda: loop.wake(), settings.batch_size)
        binder = Binder(
            kube,
            store,
            feed.reject,
            concurrency=settings.bind_concurrency,
            timeout=settings.bind_timeout,
            patience=settings.bind_patience,
        )
        reporter = Reporter(
            kube,
            store,
            binder,
            component=settings.scheduler_name[0],
            rate=settings.event_rate,
            concurrency=settings.event_concurrency,
        )
        loop = Loop(
            store,
            self.engine,
            session,
            binder,
            feed.reject,
            reporter.unschedulable,
            window=settings.batch_window,
            window_max=settings.batch_window_max,
        )
        self.gangs = Gangs(kube, store, binder, loop, reporter, feed.reject, settings)
        volumes = VolumeBinder(
            kube,
            store.storage,
            store.volumes,
            store.labels_of_node,
            settings.volume_timeout,
            leads=lambda: binder.leads(),
        )
        store.pod_queue.extend_deferral = lambda: binder.saturated
        binder.prepare = volumes.prepare
        binder.on_bound = reporter.scheduled
        binder.on_failed = reporter.failed
        store.on_nonsense = self._nonsense
        session.on_ready = loop.wake

        def settled(known: PodRecord) -> None:
            binder.settled(known)
            reporter.settled(known)

        store.on_settled = settled
        store.on_blocked = self._blocked
        store.on_ignored = self._ignored
        store.volumes.on_first_claim = self._watch_storage
        return Runtime(kube, watches, session, feed, binder, reporter, loop)

    async def _build_collector(self, kube: Kube, session: Session) -> Collector | None:
        """None: usage is not polled, whoever wants it."""
        settings = self.settings
        interval = loading.usage_interval(settings)
        if interval == 0:
            return None
        sources: list[Source] = [MetricsApi(kube)]
        if settings.prometheus_url:
            tls = ssl.create_default_context(cafile=settings.prometheus_ca) if settings.prometheus_ca else None
            access = credentials.at(settings.prometheus_url, tls=tls)
            self._prometheus = Kube(access)
            await self._prometheus.start()
            queries = settings.prometheus_queries or {}
            sources.append(Prometheus(self._prometheus, access, queries, settings.prometheus_token_file))
        return Collector(self.store, self.engine, session, sources, interval)

    def _watch_storage(self) -> None:
        """From the first pod with a claim on."""
        assert self._kube is not None
        watches = storage_watches(self._kube, self.store, _watch_options(self.settings))
        for watch in watches:
            self._spawn(f"watch {watch.name}", watch.run())

        async def listed() -> None:
            for watch in watches:
                await watch.listed.wait()
            self.store.volumes.listed()
            await asyncio.Event().wait()

        self._spawn("storage listed", listed())

    def _blocked(self, known: PodRecord) -> None:
        """A pod cannot be placed because of its volumes; who leads says so."""
        if self.parts is None or not self.parts.loop.leads or not known.volumes.blocked:
            return
        self.metrics.attempts.labels("unschedulable").inc()
        nodes = len(self.store.nodes)
        self.parts.reporter.unschedulable(
            known, messages.blocked(nodes, known.volumes.blocked, known.volumes.blocked_anywhere)
        )

    def _nonsense(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """A pod cannot be understood; who leads says so, and sets the condition of one that is ours and waits."""
        if self.parts is None or not self.parts.loop.leads:
            return
        known = self.store.pods.get(uid)
        if known is not None and known.schedulable:
            self.parts.reporter.failed(known, messages.cannot_use(problem))
        else:
            self.parts.reporter.invalid(namespace, name, uid, problem)

    def _ignored(self, known: PodRecord) -> None:
        """A pod says something that makes no sense and can be done without; who leads says so."""
        if self.parts is not None and self.parts.loop.leads and known.schedulable and known.described.ignored:
            self.parts.reporter.remark(known, "InvalidAnnotation", known.described.ignored)

    def _run(self, parts: Runtime, access: Access) -> None:
        settings = self.settings
        parts.binder.start()
        parts.reporter.start()
        for watch in parts.watches:
            self._spawn(f"watch {watch.name}", watch.run())
        self._spawn("session", parts.session.run())
        for number in range(settings.pod_workers):
            self._spawn(f"pod worker {number}", parts.feed.pod_worker())
        for number in range(settings.node_workers):
            self._spawn(f"node worker {number}", parts.feed.node_worker())
        self._spawn("namespace worker", parts.feed.namespace_worker())
        self._spawn("gang worker", parts.feed.gang_worker())
        if self.gangs is not None:
            self._spawn("gangs", self.gangs.run())
        self._spawn("loop", parts.loop.run())
        if self.usage is not None:
            self._spawn("usage", self.usage.run())
        elect = settings.leader_elect if settings.leader_elect is not None else access.in_cluster
        if not elect:
            parts.loop.lead()
            return
        parts.binder.halt()

        def lead() -> None:
            parts.binder.resume()
            parts.loop.lead()
            if self.gangs is not None:
                self.gangs.lead()
            for uid, (namespace, name, problem) in list(self.store.invalid.items()):
                if uid not in self.store.pods or self.store.pods[uid].described.problem:
                    self._nonsense(namespace, name, uid, problem)
            for known in list(self.store.waiting()):
                self._ignored(known)
                if known.volumes.blocked:
                    self.store.touch_pod(known.uid)
                    self._blocked(known)

        def stand_by() -> None:
            parts.loop.stand_by()
            parts.binder.halt()
            if self.gangs is not None:
                self.gangs.stand_by()

        self.election = Election(
            parts.kube,
            name=settings.lease_name,
            namespace=settings.lease_namespace,
            identity=self.identity,
            started=lead,
            stopped=stand_by,
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
        )
        parts.binder.leads = self.election.holds
        self._spawn("election", self.election.run())

    def _spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        task = self._tasks[name] = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """None of the tasks ends by itself: one that does is a defect, and the process is of no use without it."""
        if self._broken is None or self._broken.done():
            return  # `stop` cancels them all
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        how = "ended" if error is None else f"failed: {error!r}"
        log.error("%s %s", task.get_name(), how, exc_info=error)
        self._broken.set_result(f"{task.get_name()} {how}")

    async def wait(self) -> str:
        """Waits until something ends the bridge from within; returns what."""
        assert self._broken is not None
        return await self._broken

    async def stop(self) -> None:
        """Stops rounds, lets binds end, says the last word on every pod, gives up the lease, ends the own service."""
        timeout, parts = self.settings.shutdown_timeout, self.parts
        if self._broken is not None and not self._broken.done():
            self._broken.cancel()
        if parts is not None:
            parts.loop.stop()
            if not await parts.binder.drain(timeout):
                log.warning("%d binds did not end in time", parts.binder.in_flight)
            if self.gangs is not None:
                await self.gangs.stop()
            await parts.reporter.flush(timeout)
            await parts.reporter.stop()
            # the lease last: whoever takes it must not meet binds of ours
            await parts.binder.stop()
        if self.election is not None:
            self._tasks["election"].cancel()
            await asyncio.gather(self._tasks["election"], return_exceptions=True)
            await self.election.release()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self.engine.close()
        if self.supervisor is not None:
            await self.supervisor.stop()
        for kube in (self._kube, self._prometheus):
            if kube is not None:
                await kube.close()
        if self.health is not None:
            await self.health.stop()

    # -- questions --------------------------------------------------------------------------------------------

    def _alive(self) -> str:
        return (
            self._broken.result()
            if self._broken is not None and self._broken.done() and not self._broken.cancelled()
            else ""
        )

    def _ready(self) -> str:
        if self.parts is None:
            return "starting"
        for watch in self.parts.watches:
            if not watch.listed.is_set():
                return f"{watch.name} are not listed yet"
        return "" if self.parts.session.ready else "the flow service is not synchronised"

    def _refresh(self) -> None:
        waiting = {"active": 0, "gated": 0, "invalid": 0}
        for known in self.store.waiting():
            waiting["gated" if known.observed.gated else "invalid" if known.described.problem else "active"] += 1
        for queue, count in waiting.items():
            self.metrics.pending.labels(queue).set(count)
        self.metrics.pods.set(len(self.store.pods))
        self.metrics.nodes.set(len(self.store.nodes))
        leads = self.parts is not None and (self.election is None or self.election.leading)
        self.metrics.leader.set(leads)
        self.metrics.usage_age.set(self.usage.age if self.usage is not None else math.nan)

    def serves(self) -> dict[str, Any]:
        """Which API server this is the scheduler of, of whose pods, and who it is among its replicas."""
        return {
            "server": self._access.url if self._access is not None else "",
            "in_cluster": self._access is not None and self._access.in_cluster,
            "scheduler_names": list(self.settings.scheduler_name),
            "identity": self.identity,
        }

    async def status(self) -> dict[str, Any]:
        """What the scheduler sees. Raises EngineError."""
        more = {
            **self.serves(),
            "leading": self.election.leading if self.election is not None else True,
            "leader": self.election.holder if self.election is not None else self.identity,
            "not_ready": self._ready(),
            "pid": os.getpid(),
            "firmament": {
                "address": self.engine.address,
                "pid": self.supervisor.pid if self.supervisor is not None else None,
            },
            "bound": self.parts.binder.bound if self.parts is not None else 0,
        }
        collector = self.usage.status() if self.usage is not None else {"polling": False}
        return status.status_json(self.store, await self.engine.status(), more, collector)

    async def explain(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Why a pod is where it is; None: it is not known. Raises EngineError."""
        known = self.store.pod_named(namespace, name)
        if known is None:
            return None
        return status.explain_json(known, await self.engine.explain(known.task), self.store.gangs.group_of(known))


def _watch_options(settings: Settings) -> WatchOptions:
    return WatchOptions(settings.list_page, settings.watch_timeout, settings.watch_silence)
