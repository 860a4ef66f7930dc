"""The components for queues: the watches of the objects that declare them, and the status of these."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from poseidon_py.kube.client import Kube
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.report.paced_queue import Binds
from poseidon_py.report.past_use import PastUseStore
from poseidon_py.report.queue_status import QueueStatusWriter
from poseidon_py.report.takeovers import TakeoverEvents
from poseidon_py.state.queues.others import GRACE
from poseidon_py.state.queues.use import QueueUse
from poseidon_py.state.queues.watches import QueueWatches
from poseidon_py.state.store import Store

_LAST_WRITE = 2.0
"""Seconds for which the end of the process waits for the last write."""


class Queues:
    """`run` in a separate task; `lead`; `note` the use that the engine reports."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        binds: Binds,
        leads: Callable[[], bool],
        watching: WatchOptions,
        *,
        component: str,
        namespace: str,
        lease: str,
        file: Path | None = None,
        grace: float = GRACE,
    ) -> None:
        """`namespace`: where past use is stored, and the lease that events are about. `file`: YuniKorn's queues.yaml in
        place of its ConfigMap. `grace`: seconds for which a controller that is gone keeps its queues."""
        registry = store.queues
        self._watches = QueueWatches(kube, registry, watching, store.metrics, file=file, grace=grace)
        self._status = QueueStatusWriter(kube, registry, self._watches.path_of, binds, leads, component=component)
        self._past_use = PastUseStore(kube, registry, leads, namespace=namespace)
        self._in_use = bool(registry.kinds.sources)
        registry.reported = self._status.changed
        self._takeovers = TakeoverEvents(kube, leads, namespace, lease, component=component)
        self._count_takeover = store.metrics.queue_takeovers.labels
        registry.taken_over = self._note_takeover
        self.listed = self._watches.listed
        """Set once the queues that exist at the start are known."""

    async def known(self) -> None:
        """Returns once the queues that exist at the start are known, and what they used in the past."""
        if self._in_use:
            await self._past_use.load()
        await self.listed.wait()

    def note(self, uses: Mapping[int, QueueUse]) -> None:
        """The use of all queues, by id."""
        self._status.note(uses)

    def lead(self) -> None:
        """Writes what was observed while another replica was the leader."""
        self._status.changed()

    def summary(self) -> dict[str, object]:
        """What the status of the scheduler shows of the watches."""
        return {"unsupported": self._watches.unsupported}

    def _note_takeover(self, kind: str, name: str) -> None:
        self._count_takeover(kind).inc()
        self._takeovers.add(kind, name)

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watches.run())
            group.create_task(self._status.run())
            group.create_task(self._takeovers.run())
            group.create_task(self._past_use.run())

    async def stop(self) -> None:
        """Stores what has not been stored, if that takes no longer than a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WRITE):
                await self._past_use.save()
