"""The components for gangs: their objects, their binding as a unit, their statuses."""

import time
from collections.abc import Awaitable, Callable, Mapping

from poseidon_py.app.gang_reports import GangReports
from poseidon_py.app.gang_requests import GangRequests
from poseidon_py.app.jobs.suspensions import Suspensions, admits_workloads
from poseidon_py.bind.gang_binder import GangBinder, Placed, PodBinder
from poseidon_py.bind.unwinding import Unwinder
from poseidon_py.config.loading import gang_owners
from poseidon_py.config.settings import Settings
from poseidon_py.kube.client import Kube
from poseidon_py.kube.informers.informers import Informers
from poseidon_py.report.events import Reporter
from poseidon_py.report.pod_groups import StatusWriter
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES, VOLCANO
from poseidon_py.state.gangs.decode import preemption_of
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.state.records import PodRecord, Reject
from poseidon_py.state.store import Store


class Gangs(GangListener):
    """`binder_for` the pod binder; `run` in a separate task; `lead`, `stand_by`; `stop`."""

    def __init__(
        self,
        kube: Kube,
        informers: Informers,
        store: Store,
        reporter: Reporter,
        leadership: Leadership,
        holds_lease: Callable[[], bool],
        settings: Settings,
        suspensions: Suspensions,
        finish: Callable[[Group], None],
        free: Callable[[], Awaitable[Mapping[str, int]]],
    ) -> None:
        """`holds_lease`: whether, by the clock, no other replica can be the leader. `finish` deletes the rest of a gang
        whose bound members are all victims of preemption. `free`: resource -> amount that is free in the cluster; may
        raise an error of the flow service."""
        self._store = store
        self._finish = finish
        self._settings = settings
        self._leadership = leadership
        self._requests = GangRequests(kube, store, suspensions.suspender, holds_lease)
        registry = store.gangs

        def changed(resource: Resource, owner_or_group: OwnerOrGroup, *, gone: bool = False) -> None:
            registry.changed(resource, owner_or_group, gone=gone)
            if resource == VOLCANO and gone:
                self._status.enqueuer.gone(owner_or_group.uid)
            elif resource == VOLCANO:
                self._status.enqueuer.note(owner_or_group)
            if resource == PRIORITY_CLASSES and gone:
                store.priority_classes.drop(owner_or_group.name)
            elif resource == PRIORITY_CLASSES:
                store.priority_classes.put(owner_or_group.name, preemption_of(owner_or_group))
            store.queues.object_changed(resource, owner_or_group)
            self.reports.object_changed(resource, owner_or_group, gone=gone)
            suspensions.observed(owner_or_group, gone=gone)

        def resolved(what: str) -> None:
            registry.resolved(what)
            if what == PRIORITY_CLASSES.label:
                store.priority_classes.set_read(self._objects.is_known(PRIORITY_CLASSES))
                store.priority_classes.known.set()

        store.priority_classes.set_read(False)
        registry.form_gangs_from(
            gang_owners(settings), lambda: admits_workloads(settings, store), store.queues.has_default
        )
        store.queues.selected = registry.reconsider
        store.queues.by_workload = settings.queue_unit == "workload"
        self._objects = ObjectCache(kube, informers, changed, resolved, metrics=store.metrics)
        self._status = StatusWriter(
            kube, registry, self._objects, lambda: leadership.leads, settings.scheduler_name, free
        )
        self.reports = GangReports(store, reporter, self._status, leadership, self._objects.kind_of)
        self._binder: GangBinder | None = None
        registry.objects = self._objects
        suspensions.follow(self._objects)
        self._objects.follow((PRIORITY_CLASSES,))
        registry.listener = self

    def binder_for(self, binder: PodBinder, reject: Reject, ahead: Callable[[Placed], None]) -> GangBinder:
        """The gang binder, which binds gangs as units through the pod binder. `ahead`: as in GangBinder."""
        self._binder = gang_binder = GangBinder(
            self._store.gangs,
            binder,
            reject,
            Unwinder(
                evict=self._requests.evict,
                suspend=self._requests.suspend,
                bound_since=self._requests.bound_since,
                remark=self.reports.remark,
                unwind=self._settings.gang_unwind,
                metrics=self._store.metrics,
            ),
            timeout=self._settings.gang_timeout,
            now_us=lambda: time.time_ns() // 1000,
            metrics=self._store.metrics,
            ahead=ahead,
        )
        return gang_binder

    @property
    def binder(self) -> GangBinder:
        """Created by `binder_for`, together with the pod binder."""
        assert self._binder is not None
        return self._binder

    def gang_blocked(self, known: PodRecord, why: str) -> None:
        self.reports.gang_blocked(known, why)

    def gang_invalid(self, known: PodRecord, problem: str) -> None:
        self.reports.invalid(known, problem)

    def owner_unreadable(self, known: PodRecord, problem: str) -> None:
        self.reports.remark(known, "OwnerUnreadable", problem)

    def below_minimum(self, group: Group) -> None:
        self.reports.below_minimum(group)

    def gang_changed(self, group: Group) -> None:
        self._status.note(group)

    def half_bound(self, group: Group) -> None:
        if self._binder is not None and self._leadership.leads:
            self._binder.found_half(group)

    def preempted(self, group: Group) -> None:
        if self._leadership.leads:
            self._finish(group)

    async def run(self) -> None:
        """Ends lookups when it is cancelled. Never returns."""
        await self._objects.run()

    def lead(self) -> None:
        """Takes over the gangs that another replica left partly bound or partly preempted, and reports on all gangs."""
        self.reports.lead()
        self._status.enqueuer.lead()
        for group in list(self._store.gangs.groups.values()):
            self._status.note(group)
            if group.preempted:
                self._finish(group)
            if group.bound and (group.broken or not group.started):
                self.binder.found_half(group)

    def stand_by(self) -> None:
        self.binder.clear()

    async def stop(self) -> None:
        await self.binder.stop()
        await self._status.stop()
