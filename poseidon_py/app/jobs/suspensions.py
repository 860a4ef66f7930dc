"""The components that suspend and resume workloads, if they are not switched off."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from poseidon_py.config.settings import Settings
from poseidon_py.kube.client import Kube, KubeError, NotFoundError
from poseidon_py.report.events import Reporter
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.model import OwnerOrGroup
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.state.gangs.owner_kinds import SUSPENDABLE
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import NoSuspension, Suspender, Workloads
from poseidon_py.state.workloads.standing import Standing
from poseidon_py.workloads.controller import WorkloadController
from poseidon_py.workloads.suspender import WorkloadSuspender
from poseidon_py.workloads.writer import WorkloadWriter


def admits_workloads(settings: Settings, store: Store) -> bool:
    """Whether workloads in Kueue's queues are admitted by this scheduler, as a whole."""
    return settings.queue_unit == "workload" and store.queues.kinds.admits_workloads


class Suspensions:
    """`follow` the objects; `run` in a separate task; `suspender` for evictions."""

    def __init__(
        self, kube: Kube, store: Store, reporter: Reporter, leads: Callable[[], bool], settings: Settings
    ) -> None:
        """`leads`: whether this process is the leader, and by the clock no other replica can be."""
        self._kube = kube
        self._reporter = reporter
        self._objects: ObjectCache | None = None
        self._controller: WorkloadController | None = None
        self.suspender: Suspender = NoSuspension()
        if settings.suspend_workloads == "off":
            return
        lookup = Workloads(store.pods, store.owned, lambda: store.gangs.objects)
        standing = Standing(
            store.queues,
            self._priority_classes,
            frozenset(settings.scheduler_name),
            lambda: admits_workloads(settings, store),
            lookup.owners_of,
        )
        writer = WorkloadWriter(kube, self._path_of, leads)
        self.suspender = suspender = WorkloadSuspender(
            lookup, writer, self, store.metrics, is_kueues=standing.is_kueues, now=time.time
        )
        self._controller = WorkloadController(
            store,
            lookup,
            standing,
            suspender,
            writer,
            self,
            self._delete,
            leads=leads,
            limit=settings.resumed_pods,
        )

    def follow(self, objects: ObjectCache) -> None:
        """Watches all kinds that can be suspended, also without a pod that asks for its owner."""
        self._objects = objects
        if self._controller is not None:
            objects.follow((*SUSPENDABLE, PRIORITY_CLASSES))

    def observed(self, owner: OwnerOrGroup, *, gone: bool) -> None:
        """An owner of pods or a group has changed, or is gone."""
        if self._controller is not None and (owner.suspension is not None or owner.time_limit):
            self._controller.observed(owner, gone=gone)

    def on_workload(self, workload: OwnerOrGroup, reason: str, message: str, *, warning: bool) -> None:
        """An event on a workload."""
        kind = self._objects.kind_of(workload.resource) if self._objects is not None else ("", "")
        named = workload.namespace, workload.name, workload.uid
        self._reporter.on_object(kind, named, reason, message, action="Suspending", warning=warning)

    @property
    def due(self) -> int:
        """Number of workloads that are resumed within seconds, as far as it is known."""
        return self._controller.due if self._controller is not None else 0

    def listed(self) -> list[dict[str, Any]]:
        """The suspended workloads that wait to be resumed, the oldest first, as the leader knows them."""
        return list(self._controller.listed()) if self._controller is not None else []

    async def run(self) -> None:
        """Never returns."""
        if self._controller is None:
            await asyncio.Event().wait()  # a supervised task does not end
        else:
            await self._controller.run()

    def _priority_classes(self) -> Iterable[OwnerOrGroup]:
        return self._objects.all_of(PRIORITY_CLASSES) if self._objects is not None else ()

    def _path_of(self, workload: OwnerOrGroup) -> str:
        return self._objects.path_of(workload.resource, workload) if self._objects is not None else ""

    async def _delete(self, known: PodRecord) -> bool:
        try:
            await self._kube.delete_pod(known.namespace, known.name, known.uid)
        except NotFoundError:
            return True
        except KubeError:
            return False
        return True
