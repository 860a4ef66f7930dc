"""Builds the components of a bridge, in the order of their dependencies.

watches -> store -> queues -> feed -> (session) engine -> loop -> binder -> API server
                                                      |       \\-> reporter -> API server
                                                      \\-> preemptor -> API server
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from poseidon_py.app.devices.declarations import DeclarationReports
from poseidon_py.app.devices.devices import Devices
from poseidon_py.app.gangs import Gangs
from poseidon_py.app.jobs.hook_terms import HookTerms
from poseidon_py.app.jobs.observed_jobs import ObservedJobs
from poseidon_py.app.jobs.suspensions import Suspensions
from poseidon_py.app.pod_problems import ProblemReports
from poseidon_py.app.queue_poll import QueuePoll
from poseidon_py.app.queues import Queues
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.status import reasons_json, unfinished_json
from poseidon_py.bind.binder import Binder
from poseidon_py.bind.preparing import Preparation
from poseidon_py.bind.slots import BindSlots
from poseidon_py.bind.volumes import VolumeBinder
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import Engine
from poseidon_py.feed.resync import Session
from poseidon_py.feed.workers import Feed
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.storage.of_lease import store_of_lease
from poseidon_py.kube.client import Kube
from poseidon_py.kube.informers.informers import Informers
from poseidon_py.kube.list_watch import Watch, WatchOptions
from poseidon_py.preempt.drainer import Drainer
from poseidon_py.preempt.preemptor import Preemptor
from poseidon_py.report.events import Reporter
from poseidon_py.report.eviction_events import EvictionEvents
from poseidon_py.report.unscheduled import UnscheduledReports
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.rounds.listener import RoundListener
from poseidon_py.rounds.loop import Loop
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.state.store import Store
from poseidon_py.state.watch_set import first_watches

_HOOKS = "scheduler"
"""The name of the store of the hooks."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The components of a running bridge."""

    kube: Kube
    watches: list[Watch[Any]]
    """No round begins before all have listed; the bridge may add some before it starts the session."""
    session: Session
    feed: Feed
    slots: BindSlots
    binder: Binder
    preemptor: Preemptor
    reporter: Reporter
    problems: ProblemReports
    gangs: Gangs
    leadership: Leadership
    loop: Loop
    rebalancer: Rebalancer
    informers: Informers
    queues: Queues
    devices: Devices
    queue_poll: QueuePoll
    drainer: Drainer
    suspensions: Suspensions
    jobs: ObservedJobs

    def work(self, store: Store) -> dict[str, Any]:
        """Why pods wait; what is left to do; seconds until the next round without a change, None if there will be none;
        the newest resource version that each watch has handled."""
        return {
            "reasons": reasons_json(store, self.reporter.conditions),
            "unfinished": unfinished_json(store, rounds=self.loop.due, reports=self.reporter.unsent)
            | {"resumptions": self.suspensions.due},
            "next_round_seconds": self.loop.next_seconds,
            "versions": {watch.name: watch.version for watch in self.watches},
        }

    def lead(self) -> None:
        """This process becomes the leader: rounds and binds are allowed, and pending problems are reported."""
        self.binder.resume()
        self.preemptor.resume()
        self.loop.lead()
        self.gangs.lead()
        self.problems.lead()
        self.devices.declarations.lead()
        self.queues.lead()
        self.queue_poll.wake()
        self.jobs.lead()

    def stand_by(self) -> None:
        """Another replica is, or may be, the leader."""
        self.loop.stand_by()
        self.binder.halt()
        self.preemptor.halt()
        self.gangs.stand_by()
        self.queues.stand_by()
        self.rebalancer.stand_by()
        self.queue_poll.wake()
        self.jobs.stand_by()


def build_runtime(
    settings: Settings,
    store: Store,
    engine: Engine,
    kube: Kube,
    holds_lease: Callable[[], bool],
    hooks: HookConfig | None = None,
    identity: str = "",
    listeners: Sequence[RoundListener] = (),
) -> Runtime:
    """`holds_lease` is called before each write: whether, by the clock, no other replica can be the leader. `hooks`:
    get the transitions of jobs. `identity`: of this process. `listeners`: of rounds."""
    changed, leadership, slots = asyncio.Event(), Leadership(), BindSlots()
    jobs = ObservedJobs(settings, store, _hook_terms(settings, store, kube, hooks, identity))
    watches = [*first_watches(kube, store, watch_options(settings), [jobs.pods])]
    informers = Informers(kube, watching=watch_options(settings), metrics=store.metrics)
    queues = Queues(kube, informers, store, slots, lambda: leadership.leads, settings=settings)
    reporter = Reporter(
        kube,
        store,
        slots,
        component=settings.scheduler_name[0],
        rate=settings.event_rate,
        concurrency=settings.event_concurrency,
    )
    devices = Devices(
        kube, informers, store, settings, DeclarationReports(reporter.remark_on_object, leadership), holds_lease
    )

    async def listed() -> None:
        for watch in watches:
            await watch.listed.wait()
        await queues.known()
        await devices.known()
        await store.priority_classes.known.wait()

    session = Session(engine, store, listed, on_ready=changed.set)
    feed = Feed(store, engine, session, changed.set, settings.batch_size)
    evictions = EvictionEvents(reporter)
    suspensions = Suspensions(kube, store, reporter, _both(leadership, holds_lease), settings)
    preemptor = Preemptor(
        kube,
        store,
        feed.reject,
        evictions,
        withdraw=lambda uids: binder.withdraw(uids, ""),
        suspender=suspensions.suspender,
        leads=holds_lease,
        scheduler=settings.scheduler_name[0],
        patience=settings.bind_patience,
    )

    async def free() -> dict[str, int]:
        status = await engine.status()
        return {name: amount - status.used.get(name, 0) for name, amount in status.allocatable.items()}

    gangs = Gangs(
        kube,
        informers,
        store,
        reporter,
        leadership,
        holds_lease,
        settings,
        suspensions,
        preemptor.finish,
        free,
    )
    binder = Binder(
        kube,
        store,
        feed.reject,
        reporter,
        slots=slots,
        prepare=Preparation(
            VolumeBinder(
                kube, store.storage, store.volumes, store.labels_of_node, settings.volume_timeout, leads=holds_lease
            ),
            devices.binder,
        ).prepare,
        leads=holds_lease,
        gate=lambda binder: gangs.binder_for(binder, feed.reject, devices.chooser.choose_together),
        concurrency=settings.bind_concurrency,
        timeout=settings.bind_timeout,
        patience=settings.bind_patience,
    )
    loop = Loop(
        store,
        engine,
        session,
        gangs.binder.place,
        feed.reject,
        UnscheduledReports(
            store,
            reporter.unschedulable,
            gangs.reports.waits_for_gang,
            reporter.waits_for_quota,
            reporter.waits_for_queue,
        ).report,
        preempt=preemptor.take,
        listeners=listeners,
        changed=changed,
        leadership=leadership,
        pacer=Pacer(settings.batch_window, settings.batch_window_max),
    )
    feed.round_with = loop.attached
    problems = ProblemReports(store, reporter, leadership)
    store.pod_queue.extend_deferral = lambda: slots.saturated
    store.subscribe(binder, preemptor, reporter, devices.binder)
    store.announced.on_list = preemptor.take_over
    store.problems.subscribe(problems)
    queue_poll = QueuePoll(engine, session, store.queues, lambda: leadership.leads, queues.note, store.metrics)
    store.queues.delivered = queue_poll.wake
    drainer = Drainer(
        kube,
        store,
        evictions,
        suspender=suspensions.suspender,
        leads=_both(leadership, holds_lease),
        rate=settings.queue_drain_rate,
    )
    rebalancer = Rebalancer(store, engine, session, leadership, changed.set)
    return Runtime(
        kube,
        watches,
        session,
        feed,
        slots,
        binder,
        preemptor,
        reporter,
        problems,
        gangs,
        leadership,
        loop,
        rebalancer,
        informers,
        queues,
        devices,
        queue_poll,
        drainer,
        suspensions,
        jobs,
    )


def _both(leadership: Leadership, holds_lease: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: leadership.leads and holds_lease()


def _hook_terms(
    settings: Settings, store: Store, kube: Kube, config: HookConfig | None, identity: str
) -> HookTerms | None:
    """Those of each term store deliveries under a name of their own."""
    if config is None:
        return None
    metrics, terms = HookMetrics(store.metrics.registry), itertools.count(1)
    lease, default = settings.lease_name, Settings().lease_name

    def of_term() -> Hooks:
        holder = f"{identity}_{next(terms)}"
        found = store_of_lease(kube, config, _HOOKS, lease, settings.lease_namespace, holder, default_lease=default)
        return Hooks(config, found, metrics=metrics)

    return HookTerms(of_term)


def watch_options(settings: Settings) -> WatchOptions:
    return WatchOptions(settings.list_page, settings.watch_timeout, settings.watch_silence)
