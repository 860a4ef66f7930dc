"""Connects what knows of gangs to the rest of the bridge."""

import logging
import time
from collections.abc import Callable

import msgspec

from poseidon_py.bind.binder import Binder
from poseidon_py.bind.gang_units import GangBinder
from poseidon_py.config.settings import Settings
from poseidon_py.kube.client import Kube, KubeError, decode_answer, pod_path
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.kube.objects import InvalidField, micros
from poseidon_py.report.events import Reporter
from poseidon_py.report.pod_groups import StatusWriter
from poseidon_py.rounds.loop import Loop
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.state.gangs.registry import LOOKUP_PENDING
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store

log = logging.getLogger(__name__)


class _Condition(msgspec.Struct):
    type: str = ""
    since: str | None = msgspec.field(default=None, name="lastTransitionTime")


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class Gangs:
    """`run` in a task of its own; `lead` when we begin to, `stand_by` when somebody else does; `stop`."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        binder: Binder,
        loop: Loop,
        reporter: Reporter,
        reject: Callable[[PodRecord, str, int], None],
        settings: Settings,
    ) -> None:
        self._kube = kube
        self._store = store
        self._loop = loop
        self._reporter = reporter
        registry = store.gangs
        self.object_cache = ObjectCache(
            kube,
            registry.changed,
            registry.resolved,
            watching=WatchOptions(settings.list_page, settings.watch_timeout, settings.watch_silence),
            metrics=store.metrics,
        )
        self.units = GangBinder(
            registry,
            binder,
            reject,
            evict=self._evict,
            bound_since=self._bound_since,
            say=self._say,
            timeout=settings.gang_timeout,
            unwind=settings.gang_unwind,
            now_us=lambda: time.time_ns() // 1000,
            metrics=store.metrics,
        )
        self.status = StatusWriter(kube, registry, self.object_cache, lambda: loop.leads)
        registry.objects = self.object_cache
        registry.on_gang_blocked = self._gang_blocked
        registry.on_invalid = lambda known, what: self._say(known, "GangInvalid", what)
        registry.on_below = self._below
        registry.on_half = self._half
        registry.on_changed = self.status.note
        self._binder = binder
        binder.may_send = self.units.may_send
        binder.on_ended = self.units.ended
        loop.place = self.units.place
        loop.waits_for_gang = self._incomplete

    async def run(self) -> None:
        """Finds and watches what conventions ask for, and keeps PodGroups' status. Never returns."""
        await self.object_cache.run()

    def lead(self) -> None:
        for known in list(self._store.waiting()):
            if known.gang.blocked:
                self._gang_blocked(known, known.gang.blocked)
        for group in list(self._store.gangs.groups.values()):
            self.status.note(group)
            if group.bound and (group.broken or not group.started):
                self._half(group)

    def stand_by(self) -> None:
        self.units.clear()

    async def stop(self) -> None:
        await self.units.stop()
        await self.status.stop()

    # -- telling people ---------------------------------------------------------------------------------------

    def _gang_blocked(self, known: PodRecord, why: str) -> None:
        if self._loop.leads and not why.startswith(LOOKUP_PENDING):
            self._reporter.waits_for_gang(known, why)

    def _incomplete(self, known: PodRecord, message: str) -> None:
        self._reporter.waits_for_gang(known, message)
        group = self._store.gangs.group_of(known)
        if group is not None:
            self.status.note(group)

    def _say(self, known: PodRecord, reason: str, message: str) -> None:
        if self._loop.leads:
            self._reporter.remark(known, reason, message)

    def _below(self, group: Group) -> None:
        there = len(group.bound)
        what = f"pod group {group.name}: only {there} of at least {group.minimum} members are left"
        if there:
            log.warning("%s", what)
        for uid in group.bound:
            known = self._store.pods.get(uid)
            if known is not None:
                self._say(known, "GangBelowMinimum", what)

    def _half(self, group: Group) -> None:
        if self._loop.leads:
            self.units.found_half(group)

    # -- the API ----------------------------------------------------------------------------------------------

    async def _evict(self, known: PodRecord) -> None:
        if not self._binder.leads():
            raise KubeError("the lease has run out and is not renewed yet")
        await self._kube.evict_pod(known.namespace, known.name, known.uid)

    async def _bound_since(self, known: PodRecord) -> int:
        """When the pod was bound, microseconds. Raises KubeError."""
        body = await self._kube.call("GET", pod_path(known.namespace, known.name))
        conditions = decode_answer(body, _Pod, f"pod {known.full_name}").status.conditions or ()
        try:
            return max((micros(c.since) for c in conditions if c.type == "PodScheduled"), default=0)
        except InvalidField as error:
            raise KubeError(f"the status of {known.full_name} makes no sense: {error}") from error
