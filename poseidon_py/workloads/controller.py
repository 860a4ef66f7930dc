"""Resumes suspended workloads when their turn comes, and ends those that run for too long, while this process leads.

    suspended by this scheduler ──its pods are gone, and its turn has come──► resumed
    created suspended, with a queue label of Kueue's, ──its turn has come──► resumed

What is to be done follows from the objects alone, so that a new leader goes on with it. The turns are in turns.py.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poseidon_py.describe.queues.model import Stop
from poseidon_py.kube.workload_objects import LIMIT, RESUME, SUSPENDED
from poseidon_py.state.gangs.model import OwnerOrGroup
from poseidon_py.state.gangs.owner_kinds import KIND_OF
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import Workloads
from poseidon_py.state.workloads.standing import Standing
from poseidon_py.util.backoff import Backoff
from poseidon_py.workloads.suspender import WorkloadEvents, WorkloadSuspender
from poseidon_py.workloads.turns import PendingPods, SuspendedWorkload, turns
from poseidon_py.workloads.writer import Ending, WorkloadWriter

log = logging.getLogger(__name__)

PERIOD = 1.0
"""Seconds between two looks at what is suspended."""
STUCK = 30.0
"""Seconds after which the pods of a suspended workload are deleted that its controller has not deleted."""
_ARRIVE = 60.0
"""Seconds within which the pods of a resumed workload are expected."""
_AGAIN_FIRST, _AGAIN_MAX = 5.0, 300.0
_LEAVING = "its pods are being deleted"

Json = dict[str, Any]


@dataclass(slots=True)
class _Entry:
    """A suspended workload."""

    workload: OwnerOrGroup
    pods: PodRecord
    """Stands for the pods that it would have."""
    since: float
    """Monotonic seconds at which it was first seen suspended."""
    backoff: Backoff
    not_before: float = 0.0
    why: str = ""
    """Why it is not resumed; empty: it is not for this scheduler to resume."""
    reported: str = ""
    """That, as the last event on it says."""


@dataclass(slots=True)
class _Arriving:
    """A resumed workload whose pods are expected."""

    queue: int
    priority: int
    pods: int
    until: float
    """Monotonic seconds."""


class WorkloadController:
    """`run` in a separate task; `observed` with each change of an owner."""

    def __init__(
        self,
        store: Store,
        lookup: Workloads,
        standing: Standing,
        suspender: WorkloadSuspender,
        writer: WorkloadWriter,
        events: WorkloadEvents,
        delete: Callable[[PodRecord], Awaitable[bool]],
        *,
        leads: Callable[[], bool],
        limit: int = 1000,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`delete`: deletes a pod that the controller of its workload has not deleted. `leads`: whether this process is
        the leader, and by the clock no other replica can be. `limit`: pods of a queue that are pending at a time."""
        self._store = store
        self._lookup = lookup
        self._standing = standing
        self._suspender = suspender
        self._writer = writer
        self._events = events
        self._delete = delete
        self._outcomes = store.metrics.resumptions
        self._leads = leads
        self._limit = limit
        self._sleep = sleep
        self._monotonic = monotonic
        self._rng = rng
        self._suspended: dict[str, _Entry] = {}
        """By UID, as everything below."""
        self._limited: dict[str, OwnerOrGroup] = {}
        """Those that run, with a limit of their time."""
        self._outdated: dict[str, OwnerOrGroup] = {}
        """Those that somebody else has resumed."""
        self._arriving: dict[str, _Arriving] = {}
        self._not_before: dict[str, float] = {}
        """Of those that run for too long and cannot be suspended."""
        self._reported: dict[str, str] = {}
        """What events say of limits that have no effect."""

    def observed(self, workload: OwnerOrGroup, *, gone: bool) -> None:
        """An owner of pods has changed, or is gone."""
        uid, suspension = workload.uid, workload.suspension
        limited = bool(workload.time_limit) and not (gone or workload.suspended)
        self._keep(self._limited, workload, limited)
        self._keep(self._outdated, workload, not gone and suspension is not None and self._is_outdated(workload))
        if gone:
            for known in (self._arriving, self._not_before, self._reported):
                known.pop(uid, None)
        entry = self._suspended.get(uid)
        if not workload.suspended or gone:
            self._drop(uid)
        elif entry is not None:
            entry.workload = workload
        else:
            backoff = Backoff(_AGAIN_FIRST, _AGAIN_MAX, self._rng)
            self._suspended[uid] = _Entry(workload, self._standing.stand_in(workload), self._monotonic(), backoff)

    def _drop(self, uid: str) -> None:
        """It is not suspended any more."""
        entry = self._suspended.pop(uid, None)
        if entry is not None:
            self._standing.forget(entry.pods)

    @staticmethod
    def _keep(known: dict[str, OwnerOrGroup], workload: OwnerOrGroup, keeps: bool) -> None:
        if keeps:
            known[workload.uid] = workload
        else:
            known.pop(workload.uid, None)

    @staticmethod
    def _is_outdated(workload: OwnerOrGroup) -> bool:
        return workload.suspension is not None and bool(workload.suspension.note) and not workload.suspended

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._sleep(PERIOD)
            try:
                await self.step()
            except Exception:
                log.exception("resuming workloads failed")

    async def step(self) -> None:
        """Does what is due."""
        if not self._leads():
            return
        if self._suspended:
            await self._resume_those_in_turn()
        for workload in list(self._limited.values()):
            await self._check_limit(workload)
        for workload in list(self._outdated.values()):
            del self._outdated[workload.uid]
            await self._writer.write(workload, False, {SUSPENDED: None})

    # -- what is resumed --------------------------------------------------------------------------------------

    async def _resume_those_in_turn(self) -> None:
        stops = {queue.key: queue.stop for queue in self._store.queues.tree.queues}
        ready: dict[str, SuspendedWorkload] = {}
        for uid, entry in list(self._suspended.items()):
            before, entry.why = entry.why, ""
            if self._concerns_us(entry.workload) and await self._has_left(entry):
                entry.why = self._obstacle(entry, stops)
                if entry.why:
                    self._say(entry, before)
                else:
                    ready[uid] = self._waiting(entry)
        pending = self._pending() if ready else {}
        chosen = turns(ready.values(), pending, self._limit)
        for uid in ready.keys() - {each.uid for each in chosen}:
            entry = self._suspended[uid]
            name = self._standing.queue_of(entry.pods).name
            entry.why = f"waits for its turn: enough other pods of queue {name} are pending"
        for each in chosen:
            if each.uid in self._suspended and self._leads():
                await self._resume(self._suspended[each.uid], each)

    def _concerns_us(self, workload: OwnerOrGroup) -> bool:
        """Whether this scheduler is to resume it at some time."""
        suspension, above = workload.suspension, workload.owner
        if suspension is None or (above is not None and self._lookup.above(above.uid) is not None):
            return False  # its own owner decides
        return bool(suspension.note) or self._standing.is_admitted_here(workload)

    async def _has_left(self, entry: _Entry) -> bool:
        """Whether the pods are gone that it had when this scheduler suspended it."""
        left = [known for known in self._lookup.pods_of(entry.workload.uid) if known.node]
        if not left:
            return True
        entry.why = _LEAVING
        suspension = entry.workload.suspension
        if suspension is not None and suspension.note and self._monotonic() >= entry.since + STUCK:
            for known in left:
                if not known.observed.deleting and self._leads() and await self._delete(known):
                    log.warning("deleted %s: its workload is suspended, and its controller left it", known.full_name)
        return False

    def _obstacle(self, entry: _Entry, stops: Mapping[str, Stop]) -> str:
        """Why it is not resumed, whosever turn it is; empty: nothing prevents it."""
        suspension = entry.workload.suspension
        if suspension is not None and suspension.refused:
            return suspension.refused
        if suspension is not None and suspension.stays:
            return f'annotation {RESUME} is "false"; remove it, and the workload is resumed'
        if self._standing.is_kueues(entry.workload):
            return "Kueue's controller decides when it is resumed"
        if problem := self._standing.problem_of(entry.pods):
            return problem
        found = self._standing.queue_of(entry.pods)
        if stops.get(found.key, Stop.NONE) is not Stop.NONE:
            return f"queue {found.name} is stopped; it is resumed once the queue is open again"
        return entry.reported if self._monotonic() < entry.not_before else ""

    def _say(self, entry: _Entry, before: str) -> None:
        """An event, unless that is new: queues that were created together with it may not be known yet."""
        if entry.why == before and entry.why != entry.reported:
            entry.reported = entry.why
            self._events.on_workload(entry.workload, "NotResumed", f"stays suspended: {entry.why}", warning=True)

    def _waiting(self, entry: _Entry) -> SuspendedWorkload:
        workload = entry.workload
        priority = self._standing.priority_of(workload, entry.pods)
        size = workload.counts.size or 1
        return SuspendedWorkload(workload.uid, entry.pods.queue.id, priority, workload.created_us, size)

    def _pending(self) -> dict[int, PendingPods]:
        """The pending pods of each queue, with those that resumed workloads are about to have."""
        found: dict[int, PendingPods] = {}

        def add(queue: int, count: int, priority: int) -> None:
            before = found.get(queue, PendingPods())
            found[queue] = PendingPods(before.pods + count, max(before.priority, priority))

        for known in self._store.waiting():
            if known.queue.id and not known.assumed:
                own = known.queue.priority
                add(known.queue.id, 1, known.described.priority if own is None else own)
        for uid, each in list(self._arriving.items()):
            missing = each.pods - sum(1 for _ in self._lookup.pods_of(uid))
            if missing <= 0 or self._monotonic() >= each.until:
                del self._arriving[uid]
            else:
                add(each.queue, missing, each.priority)
        return found

    async def _resume(self, entry: _Entry, waiting: SuspendedWorkload) -> None:
        workload = entry.workload
        written = await self._writer.write(workload, False, {SUSPENDED: None})
        self._outcomes.labels(written.ending.value).inc()
        if written.holds:
            log.info("resumed %s %s/%s", workload.resource.label, workload.namespace, workload.name)
            if written.ending is Ending.WRITTEN:
                until = self._monotonic() + _ARRIVE
                self._arriving[workload.uid] = _Arriving(waiting.queue, waiting.priority, waiting.pods, until)
                self._events.on_workload(workload, "Resumed", self._why_resumed(entry), warning=False)
            self._drop(workload.uid)
            return
        entry.not_before = self._monotonic() + entry.backoff.next()
        entry.why = f"cannot be resumed: {written.why}"
        if written.ending is Ending.REFUSED and entry.reported != entry.why:
            log.warning("%s %s/%s %s", workload.resource.label, workload.namespace, workload.name, entry.why)
            self._events.on_workload(workload, "NotResumed", entry.why, warning=True)
        entry.reported = entry.why

    def _why_resumed(self, entry: _Entry) -> str:
        name = self._standing.queue_of(entry.pods).name
        return f"resumed: its pods wait in queue {name}" if name else "resumed: the pods that it had are gone"

    # -- how long they may run --------------------------------------------------------------------------------

    async def _check_limit(self, workload: OwnerOrGroup) -> None:
        if workload.counts.verdict or not self._standing.is_admitted_here(workload, whoever_schedules=True):
            return
        if problem := _limit_problem(workload):
            if self._reported.get(workload.uid) != problem:
                self._reported[workload.uid] = problem
                self._events.on_workload(workload, "InvalidLabel", problem, warning=True)
            return
        ran, now = self._suspender.ran(workload), self._monotonic()
        if ran < int(workload.time_limit) or now < self._not_before.get(workload.uid, 0.0):
            return
        message = (
            f"its pods have run for {int(ran)} s, longer than label {LIMIT} permits: it stays suspended until "
            f"annotation {RESUME} is removed"
        )
        if not await self._suspender.end(workload, "MaximumExecutionTimeExceeded", message):
            self._not_before[workload.uid] = now + _AGAIN_MAX

    # -- what others see ---------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """Number of workloads that are resumed within seconds, as far as it is known."""
        if not self._leads():
            return 0
        return sum(each.why in ("", _LEAVING) and self._concerns_us(each.workload) for each in self._suspended.values())

    def listed(self) -> Iterator[Json]:
        """The suspended workloads that this scheduler is to resume, the oldest first."""
        for entry in sorted(self._suspended.values(), key=lambda each: (each.workload.created_us, each.workload.uid)):
            if entry.why:
                workload = entry.workload
                yield {
                    "name": f"{workload.namespace}/{workload.name}",
                    "kind": KIND_OF[workload.resource],
                    "queue": self._standing.queue_of(entry.pods).name,
                    "why": entry.why,
                }


def _limit_problem(workload: OwnerOrGroup) -> str:
    """Why the limit has no effect, and the remedy; empty: it has."""
    if workload.suspension is None:
        return f"label {LIMIT} has no effect: its kind cannot be suspended; use activeDeadlineSeconds of pods"
    if workload.suspension.refused:
        return f"label {LIMIT} has no effect: {workload.suspension.refused}"
    text = workload.time_limit
    if text.isascii() and text.isdigit() and 0 < len(text) <= 10 and int(text):
        return ""
    return f"label {LIMIT}: {text!r} is not valid; give a whole number of seconds from 1"
