"""One bridge: starts what app/runtime.py builds, supervises its tasks, stops them in reverse order, answers queries."""

import asyncio
import logging
import math
import os
import time
import uuid
from collections.abc import Coroutine
from typing import Any

from poseidon_py.app import status
from poseidon_py.app.devices.answers import devices_answer
from poseidon_py.app.engine_process import Supervisor
from poseidon_py.app.pending_pods import count_pods
from poseidon_py.app.queries.answers import gangs_answer, jobs_answer, queue_answer, queues_answer
from poseidon_py.app.queries.fit_answer import fits_answer
from poseidon_py.app.queries.pod_answer import pod_answer
from poseidon_py.app.queries.round_network import network_json, network_request
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.runtime import Runtime, build_runtime, watch_options
from poseidon_py.app.serving.http_endpoints import Pages, first_problem
from poseidon_py.app.serving.self_description import identity_json, leader_annotations
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.app.startup import (
    UsageSources,
    check_alone,
    first_hello,
    new_election,
    rate_limit,
    usage_sources,
    wait_for_engine,
    wait_for_server,
)
from poseidon_py.config import loading
from poseidon_py.config.settings import Settings
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.devices.objects import DeviceClaimSpec
from poseidon_py.feed.client import EngineClient
from poseidon_py.feed.transport.transport import Tls
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from poseidon_py.kube.credentials import Access
from poseidon_py.kube.lease import Election
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.report.unscheduled import terms_of
from poseidon_py.rounds.listener import RoundListener
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.watch_set import service_watch, storage_watches
from poseidon_py.tracking.tracker import Tracker
from poseidon_py.usage.collector import DEFAULT_STALE, Collector
from poseidon_py.util.process.instance import instance_name
from poseidon_py.util.tasks import end_tasks, together

log = logging.getLogger(__name__)
_COMPONENTS = ("informers", "gangs", "queues", "queue_poll", "drainer", "suspensions", "jobs", "loop", "rebalancer")
"""Components of the runtime that run until the end."""


class Bridge:
    """`start`; `wait` until a component fails; `stop`."""

    def __init__(self, settings: Settings, hooks: HookConfig | None = None) -> None:
        self.settings = settings
        self._hooks = hooks
        self.metrics = Metrics()
        self.store = Store(
            settings.scheduler_name,
            added_affinity=loading.added_affinity(settings),
            metrics=self.metrics,
            preemption=settings.preemption == "on",
            queues=settings.queues,
            preemption_rules=loading.preemption_rules(settings),
            past_use=PastUse(settings.queue_half_life, settings.queue_usage_weight),
        )
        ca = settings.firmament_ca_file
        tls = Tls(ca, settings.firmament_cert_file, settings.firmament_key_file) if ca is not None else None
        self.engine = EngineClient(settings.firmament_address, settings.rpc_timeout, tls, self.metrics)
        self.runtime: Runtime | None = None
        self.health: Health | None = None
        self.pages: Pages | None = None
        """Served beside the state; set before `start`, as the next one."""
        self.round_listeners: list[RoundListener] = []
        self.usage: Collector | None = None
        self._access: Access | None = None
        self.kube: Kube | None = None
        self._sources: UsageSources | None = None
        self.supervisor: Supervisor | None = None
        self.election: Election | None = None
        self.identity = f"{instance_name()}_{uuid.uuid4()}"
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._broken: asyncio.Future[str] | None = None

    # -- start and stop ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts all components; the first round begins once all objects are listed.

        Raises StartError, CredentialsError, HealthAddressError or FirmamentError.
        """
        settings = self.settings
        self._broken = asyncio.get_running_loop().create_future()
        access = self._access = await credentials.load(settings.kubeconfig, settings.context)
        self.health = Health(self, pages=self.pages)
        await self.health.start()
        kube = self.kube = Kube(access, settings.bind_concurrency, rate_limit(settings))
        await self.health.start_secure(access)
        await together(self._start_engine(), self._start_watches(kube))
        runtime = self.runtime
        assert runtime is not None
        if self.store.spreading.enabled:
            services = service_watch(kube, self.store, watch_options(settings))
            runtime.watches.append(services)
            self._spawn(f"watch {services.name}", services.run())
        sources = self._sources = await usage_sources(settings, kube)
        if sources.interval != 0:
            stale = settings.usage_stale or DEFAULT_STALE
            self.usage = Collector(self.store, self.engine, runtime.session, sources.all, sources.interval, stale)
        self._run(runtime)

    async def _start_watches(self, kube: Kube) -> None:
        """Begins to list what most of the time of a start goes to, while the flow service starts. Nothing is done with
        it before `_run`."""
        settings = self.settings
        await kube.start()
        await wait_for_server(kube, settings.startup_timeout)
        self.election = self._new_election(kube)
        await check_alone(self.election, settings)
        self.runtime = self._build(kube)
        for watch in self.runtime.watches:
            self._spawn(f"watch {watch.name}", watch.run())

    async def _start_engine(self) -> None:
        """And asks it what its policy needs."""
        await self._launch_engine()
        await self._ask_policy()

    async def _launch_engine(self) -> None:
        settings = self.settings
        if settings.firmament_address:
            await wait_for_engine(self.engine, settings.firmament_address, settings.startup_timeout)
            return
        self.supervisor = Supervisor(
            policy=settings.policy,
            policy_options=settings.policy_option,
            moved=self._engine_moved,
            extra_args=loading.service_arguments(settings),
            log_level="warning" if settings.log_level == "info" else settings.log_level,
            log_format=settings.log_format,
            startup_timeout=settings.startup_timeout,
            metrics=self.metrics,
        )
        self.metrics.follow_child(lambda: self.supervisor.pid if self.supervisor else None)
        await self.supervisor.start()
        self._spawn("supervisor", self.supervisor.run())

    async def _ask_policy(self) -> None:
        """Decides whether bandwidth counts and pods are spread by default, before the first pod is described; `auto` is
        as the flow service's policy needs it."""
        settings = self.settings
        counted, spread = settings.bandwidth == "on", settings.default_spreading == "system"
        if "auto" in (settings.bandwidth, settings.default_spreading):
            hello = await first_hello(self.engine, settings.startup_timeout)
            counted = hello.counts_links if settings.bandwidth == "auto" else counted
            spread = hello.spreads_tasks if settings.default_spreading == "auto" else spread
        self.store.spreading.enabled = spread
        self.store.classes.bandwidth = Bandwidth(counted, loading.link_bandwidth(settings))
        if counted:
            log.info("counting bandwidth: kubernetes.io/ingress-bandwidth and egress-bandwidth of pods, links of nodes")

    async def _engine_moved(self, address: str) -> None:
        await self.engine.move(address)
        if self.runtime is not None:
            self.runtime.session.lost()

    def _build(self, kube: Kube) -> Runtime:
        return build_runtime(
            self.settings,
            self.store,
            self.engine,
            kube,
            self._holds_lease,
            self._hooks,
            self.identity,
            self.round_listeners,
        )

    def _new_election(self, kube: Kube) -> Election:
        assert self._access is not None
        assert self.health is not None
        about = leader_annotations(self.settings, self.identity, self._access, self.health)
        return new_election(kube, self.settings, self.identity, self._lead, self._stand_by, self.metrics, about)

    def _holds_lease(self) -> bool:
        return self.election is not None and self.election.holds()

    async def _watch_storage(self) -> None:
        """Starts with the first pod with a claim: most clusters that run batch work never need these watches. Never
        returns."""
        assert self.kube is not None
        await self.store.volumes.in_use.wait()
        watches = storage_watches(self.kube, self.store, watch_options(self.settings))
        for watch in watches:
            self._spawn(f"watch {watch.name}", watch.run())
        for watch in watches:
            await watch.listed.wait()
        self.store.volumes.listed()
        await asyncio.Event().wait()  # a supervised task does not end

    def _run(self, runtime: Runtime) -> None:
        settings = self.settings
        runtime.binder.start()
        runtime.reporter.start()
        self._spawn("session", runtime.session.run())
        for number in range(settings.pod_workers):
            self._spawn(f"pod worker {number}", runtime.feed.pod_worker())
        for number in range(settings.node_workers):
            self._spawn(f"node worker {number}", runtime.feed.node_worker())
        for name in ("namespace", "budget", "gang", "queue"):
            self._spawn(f"{name} worker", getattr(runtime.feed, f"{name}_worker")())
        self._spawn("storage", self._watch_storage())
        for name in _COMPONENTS:
            self._spawn(name.replace("_", " "), getattr(runtime, name).run())
        if self.usage is not None:
            self._spawn("usage", self.usage.run())
        assert self.election is not None
        runtime.binder.halt()
        runtime.preemptor.halt()
        self._spawn("election", self.election.run())

    def _lead(self) -> None:
        if self.runtime is not None:
            self.runtime.lead()

    def _stand_by(self) -> None:
        if self.runtime is not None:
            self.runtime.stand_by()

    def _spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        task = self._tasks[name] = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Records that a supervised task has ended, which is a defect and stops the bridge."""
        if self._broken is None or self._broken.done():
            return  # by `stop`
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        how = "ended" if error is None else f"failed: {error!r}"
        log.error("%s has ended, and with it this process: %s", task.get_name(), how, exc_info=error)
        self._broken.set_result(f"{task.get_name()} {how}")

    async def wait(self) -> str:
        """Waits until a component fails. Returns its error."""
        assert self._broken is not None
        return await self._broken

    async def stop(self) -> None:
        """Stops rounds, drains binds, flushes reports, releases the lease, stops the supervised flow service."""
        timeout, runtime = self.settings.shutdown_timeout, self.runtime
        if self._broken is not None and not self._broken.done():
            self._broken.cancel()
        if runtime is not None:
            await runtime.queues.stop()  # while it leads
            runtime.loop.stop()
            if not await runtime.binder.drain(timeout):
                log.warning("%d binds did not end in time", runtime.binder.in_flight)
            await runtime.preemptor.stop(timeout)
            await runtime.gangs.stop()
            await runtime.jobs.stop()
            await runtime.reporter.flush(timeout)
            await runtime.reporter.stop()
            # before the lease is released: our binds must not overlap with those of the next leader
            await runtime.binder.stop()
            await runtime.devices.stop()
        if self.election is not None and "election" in self._tasks:
            await end_tasks(self._tasks["election"])
            await self.election.release()
        await end_tasks(*self._tasks.values())
        await self.engine.close()
        if self.supervisor is not None:
            await self.supervisor.stop()
        for kube in (self.kube, self._sources.prometheus if self._sources is not None else None):
            if kube is not None:
                await kube.close()
        if self.health is not None:
            await self.health.stop()

    # -- queries ----------------------------------------------------------------------------------------------

    def alive(self) -> str:
        """A problem that only a restart ends."""
        return (
            self._broken.result()
            if self._broken is not None and self._broken.done() and not self._broken.cancelled()
            else ""
        )

    def checks(self) -> dict[str, str]:
        """What has to be there for readiness -> what is missing, empty: nothing."""
        if self.runtime is None:
            return {"start": "starting"}
        listed = {watch.name: watch.listed for watch in self.runtime.watches} | {"queues": self.runtime.queues.listed}
        checks = {name: "" if each.is_set() else f"{name} are not listed yet" for name, each in listed.items()}
        return checks | {"flow service": "" if self.runtime.session.ready else "the flow service is not synchronised"}

    @property
    def leads(self) -> bool:
        return self.election is not None and self.election.leading

    def refresh(self) -> None:
        """Updates the gauges."""
        count_pods(self.store, self.metrics, time.time_ns() // 1000)
        self.metrics.leader.labels(self.settings.lease_name).set(self.leads)
        self.metrics.usage_age.set(self.usage.age if self.usage is not None else math.nan)

    @property
    def rebalancer(self) -> Rebalancer | None:
        """None while the bridge starts."""
        return self.runtime.rebalancer if self.runtime is not None else None

    def serves(self) -> dict[str, Any]:
        """The body of /identity."""
        return identity_json(self.settings, self.identity, self._access)

    async def status(self) -> dict[str, Any]:
        """The body of /status. Raises EngineError."""
        own = {
            **self.serves(),
            "leading": self.leads,
            "leader": self.identity if self.leads else self.election.holder if self.election is not None else "",
            "not_ready": first_problem(self.checks()),
            "pid": os.getpid(),
            "firmament": {
                "address": self.engine.address,
                "pid": self.supervisor.pid if self.supervisor is not None else None,
            },
            "bound": self.runtime.binder.bound if self.runtime is not None else 0,
            **(self.runtime.work(self.store) if self.runtime is not None else {}),
            "rebalance": self.runtime.rebalancer.summary() if self.runtime is not None else None,
            "queues": self.store.queues.summary() | (self.runtime.queues.summary() if self.runtime is not None else {}),
        }
        collector = self.usage.status() if self.usage is not None else {"polling": False}
        return status.status_json(self.store, await self.engine.status(), own, collector)

    async def explain(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The body of /explain; None: the pod does not exist. Raises EngineError, KubeError."""
        if self.kube is None:
            return None
        own_names = self.settings.scheduler_name
        engine = self._explain, self.engine.starts
        return await pod_answer(self.store, self.kube.pod, *engine, namespace, name, own_names=own_names)

    async def _explain(self, known: PodRecord) -> dict[str, Any]:
        queues, gang = self.store.queues, self.store.gangs.group_of(known)
        reply = await self.engine.explain(known.task)
        name, problem, covered = queues.resolution_of(known).name, queues.problem_of(known), queues.covered(known)
        return status.explain_json(known, reply, gang, terms_of(self.store, gang), name, problem, covered)

    async def queue(self, namespace: str, queue: str, order: str) -> dict[str, Any]:
        """The body of /queue. Raises EngineError, UnknownQueue."""
        return await queue_answer(self.store, self.engine, namespace, queue, order)

    async def gangs(self, name: str, namespace: str) -> dict[str, Any]:
        """The body of /gangs. Raises EngineError, UnknownGang."""
        return await gangs_answer(self.store, self.engine, name, namespace)

    async def devices(self, node: str) -> dict[str, Any]:
        return devices_answer(self.store, node)

    async def queues(self, name: str) -> dict[str, Any]:
        """The body of /queues. Raises EngineError, UnknownQueue."""
        return await queues_answer(self.store, self.engine, self.tracker, self._explain, self._suspended, name)

    async def network(self, **selection: str) -> dict[str, Any]:
        """The body of /network. Raises EngineError, InvalidField, UnknownNetwork."""
        return network_json(await self.engine.network(network_request(**selection)))

    async def jobs(self, **selection: str) -> dict[str, Any]:
        """The body of /jobs. Raises EngineError, UnknownJob."""
        return await jobs_answer(self.store, self.tracker, self._explain, self._suspended, **selection)

    @property
    def _suspended(self) -> list[dict[str, Any]]:
        return self.runtime.suspensions.listed() if self.runtime is not None else []

    @property
    def tracker(self) -> Tracker | None:
        return self.runtime.jobs.newest if self.runtime is not None else None

    async def fits(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to POST /fits. Raises EngineError, InvalidField, Unknown."""
        added = loading.added_affinity(self.settings)
        return await fits_answer(self.store, self.engine, added, body, self._template)

    async def _template(self, key: tuple[str, str]) -> DeviceClaimSpec | None:
        return await self.runtime.devices.template(key) if self.runtime is not None else None
