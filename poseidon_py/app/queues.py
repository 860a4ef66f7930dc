"""The components for queues: the watches of the objects that declare them, and the status of these."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from poseidon_py.config.settings import Settings
from poseidon_py.kube.client import Kube
from poseidon_py.kube.informers.informers import Informers
from poseidon_py.kube.lease import Election
from poseidon_py.report.paced_queue import Binds
from poseidon_py.report.past_use import PastUseStore
from poseidon_py.report.queue_ownership import QueueOwnership
from poseidon_py.report.queue_status import QueueStatusWriter
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.report.takeovers import TakeoverEvents
from poseidon_py.state.queues.watches import QueueWatches
from poseidon_py.state.store import Store

_LAST_WRITE = 2.0
"""Seconds for which the end of the process waits for the last write."""


class Queues:
    """`run` in a separate task; `lead`; `note` the use that the engine reports."""

    def __init__(
        self,
        kube: Kube,
        informers: Informers,
        store: Store,
        binds: Binds,
        leads: Callable[[], bool],
        *,
        settings: Settings,
    ) -> None:
        registry, self._leads = store.queues, leads
        component, namespace = settings.scheduler_name[0], settings.lease_namespace
        file, grace = settings.yunikorn_queues, settings.queue_takeover_after
        self._registry = registry
        self._watches = QueueWatches(kube, informers, registry, store.metrics, file=file, grace=grace)
        self._ownership = QueueOwnership(lambda lease: self._election(kube, settings, lease), self._writes)
        owns = self._ownership.holds
        self._status = QueueStatusWriter(kube, registry, self._watches.path_of, binds, owns, component=component)
        self._past_use = PastUseStore(kube, registry, owns, namespace=namespace)
        self._in_use = bool(registry.kinds.sources)
        registry.reported = self._changed
        self._takeovers = TakeoverEvents(kube, leads, namespace, settings.lease_name, component=component)
        self._count_takeover = store.metrics.queue_takeovers.labels
        registry.taken_over = self._note_takeover
        self.listed = self._watches.listed
        """Set once the queues that exist at the start are known."""

    def _election(self, kube: Kube, settings: Settings, lease: str) -> Election:
        """For the lease of whoever writes about queues of a kind; the holder is a set of scheduler names."""
        return Election(
            kube,
            name=lease,
            namespace=settings.lease_namespace,
            identity=",".join(sorted(settings.scheduler_name)),
            started=self._own,
            stopped=lambda: None,
            role="writer of statuses of queues",
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
        )

    def _own(self) -> None:
        self._status.changed()

    def _writes(self) -> str:
        """The kind of queues about which there is something to write that no controller of theirs writes, if no other
        scheduler does; empty: none."""
        active = self._registry.active
        if active is None or not self._leads() or not any(True for _ in self._registry.declared()):
            return ""
        return active.kind

    def _changed(self) -> None:
        self._status.changed()
        self._ownership.changed()

    async def known(self) -> None:
        """Returns once the queues that exist at the start are known, and what they used in the past."""
        await self.listed.wait()
        if self._in_use:
            await self._past_use.load()

    def note(self, uses: Mapping[int, QueueUse]) -> None:
        """The use of all queues, by id."""
        self._status.note(uses)

    def lead(self) -> None:
        """Writes what was observed while another replica was the leader."""
        self._changed()

    def stand_by(self) -> None:
        """Another replica is, or may be, the leader."""
        self._ownership.changed()

    def summary(self) -> dict[str, object]:
        """What the status of the scheduler shows of the watches, and who else writes statuses of queues."""
        return {"unsupported": self._watches.unsupported, "written_by": self._ownership.other}

    def _note_takeover(self, kind: str, name: str) -> None:
        self._count_takeover(kind).inc()
        self._takeovers.add(kind, name)

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watches.run())
            group.create_task(self._status.run())
            group.create_task(self._ownership.run())
            group.create_task(self._takeovers.run())
            group.create_task(self._past_use.run())

    async def stop(self) -> None:
        """Stores what has not been stored, if that takes no longer than a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WRITE):
                await self._past_use.save()
