"""Suspends workloads all of whose pods are to leave: deletions of these would count as failures of the workload.

What the patch records (annotation poseidon.io/suspended) lets every leader resume them.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from poseidon_py.kube.workload_objects import RAN, RESUME, SUSPENDED
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.model import OwnerOrGroup
from poseidon_py.state.records import PodRecord
from poseidon_py.state.workloads.lookup import Workloads
from poseidon_py.util.timestamps import timestamp
from poseidon_py.workloads.writer import Annotations, Ending, WorkloadWriter

log = logging.getLogger(__name__)

_REFUSED_FOR = 60.0


class WorkloadEvents(Protocol):
    """Publishes events on workloads."""

    def on_workload(self, workload: OwnerOrGroup, reason: str, message: str, *, warning: bool) -> None: ...


class WorkloadSuspender:
    """A Suspender."""

    def __init__(
        self,
        lookup: Workloads,
        writer: WorkloadWriter,
        events: WorkloadEvents,
        metrics: Metrics,
        *,
        is_kueues: Callable[[OwnerOrGroup], bool],
        now: Callable[[], float],
    ) -> None:
        """`is_kueues`: whether Kueue's controller decides whether an object is suspended. `now`: seconds since the
        epoch."""
        self._lookup = lookup
        self._writer = writer
        self._events = events
        self._outcomes = metrics.suspensions
        self._is_kueues = is_kueues
        self._now = now
        self._reported: set[str] = set()
        """Why patches were refused, as it was logged."""
        self._refused: dict[str, float] = {}
        """By UID, workloads whose suspension was refused: until when that is not tried again."""

    def leaving(self, pods: Iterable[PodRecord]) -> Iterator[list[PodRecord]]:
        for workload, leaving in self._lookup.whole(pods):
            if self._may_suspend(workload):
                yield leaving

    def _may_suspend(self, workload: OwnerOrGroup) -> bool:
        now = self._now()
        self._refused = {uid: until for uid, until in self._refused.items() if until > now} if self._refused else {}
        return workload.uid not in self._refused and not self._is_kueues(workload)

    async def suspend(self, pods: Collection[PodRecord], reason: str, why: str) -> bool:
        found = next(self._lookup.whole(pods), None)
        if found is None or len(found[1]) < len(pods) or not self._may_suspend(found[0]):
            return False
        workload, _ = found
        count = f"{len(pods)} pods" if len(pods) > 1 else "1 pod"
        message = f"{why}: {count} leave together, and it is resumed when its turn comes"
        return await self._write(workload, reason, message, self._annotations(workload, reason))

    async def end(self, workload: OwnerOrGroup, reason: str, message: str) -> bool:
        """Suspends a workload for good."""
        annotations = self._annotations(workload, reason) | {RAN: None, RESUME: "false"}
        return await self._write(workload, reason, message, annotations)

    def _annotations(self, workload: OwnerOrGroup, reason: str) -> dict[str, str | None]:
        """The annotations of a workload that is suspended now."""
        annotations: dict[str, str | None] = {
            SUSPENDED: json.dumps({"reason": reason, "since": timestamp(self._now())})
        }
        if workload.time_limit:
            annotations[RAN] = str(int(self.ran(workload)))
        return annotations

    def ran(self, workload: OwnerOrGroup) -> float:
        """Seconds for which the pods of a workload have run, with those before it was suspended."""
        started = [known.described.started_us for known in self._lookup.pods_of(workload.uid) if known.node]
        since = min((each for each in started if each), default=0)
        before = workload.suspension.ran if workload.suspension is not None else 0.0
        return before + (max(self._now() - since / 1e6, 0.0) if since else 0.0)

    async def _write(self, workload: OwnerOrGroup, reason: str, message: str, annotations: Annotations) -> bool:
        """Returns whether the workload is suspended, or gone."""
        written = await self._writer.write(workload, True, annotations)
        self._outcomes.labels(reason, written.ending.value).inc()
        full = f"{workload.resource.label} {workload.namespace}/{workload.name}"
        if written.ending is Ending.WRITTEN:
            log.info("suspended %s: %s", full, message)
            self._events.on_workload(workload, "Suspended", f"{reason}: {message}", warning=False)
        elif not written.holds:
            self._refused[workload.uid] = self._now() + _REFUSED_FOR
            if written.why not in self._reported:
                self._reported.add(written.why)
                log.warning("cannot suspend %s, so its pods are deleted: %s", full, written.why)
            if written.ending is Ending.REFUSED:
                problem = f"cannot be suspended, so its pods are deleted one by one, and count as failed: {written.why}"
                self._events.on_workload(workload, "SuspendFailed", problem, warning=True)
        return written.holds
