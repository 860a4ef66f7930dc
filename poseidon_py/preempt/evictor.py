"""Deletes the victims of preemption concurrently, each to a definite outcome.

    deleted   the API server has accepted the deletion: the pod leaves within its grace period
    gone      it is deleted, or being deleted, by another client; or another pod has its name
    dropped   the deletion was not sent: its preemptor does not need it any more, it may not be preempted any more, or
              another replica leads
    refused   the API server does not delete it

The members of a gang that is preempted entirely are deleted once all of them have their condition, and from then on
even if their preemptors no longer need it (gang_eviction.py).

A victim is `preempting` from the decision on, and stays so unless its deletion is dropped or refused. Temporary
failures are retried with growing delays, which occupy no slot: no connection, 429 (not before Retry-After), 5xx, lost
answers. `halt` takes effect at once: only requests that are already in flight complete.

The eviction of some victims is announced: the pod gets the state WillEvicted, and is deleted at the announced time.
Until then it keeps running, and whether its preemptor still needs it to leave is checked again and again; if not, its
state is retracted.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from poseidon_py.describe.annotations.preemption_terms import Announcement, PreemptionState
from poseidon_py.preempt.announcements import Retractor
from poseidon_py.preempt.attempt import Outcome, PreemptApi, Result, announce, delete, mark
from poseidon_py.preempt.gang_eviction import GangEviction
from poseidon_py.preempt.permission import Permission
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

_RETRY_FIRST, _RETRY_MAX = 0.1, 10.0
_WAITS = Outcome(Result.RETRY)
"""Of a pod whose deletion waits for the rest of its gang."""
_ANNOUNCED = Outcome(Result.RETRY)
"""Of a pod whose deletion waits for its announced time."""
_CHECK = 1.0
"""Seconds between the checks whether such a pod is still needed."""


class AnnouncementReporter(Protocol):
    """Publishes that evictions are announced, and called off."""

    def announced(self, known: PodRecord, announcement: Announcement) -> None: ...
    def retracted(self, known: PodRecord) -> None: ...


@dataclass(slots=True, eq=False)
class Eviction:
    """The deletion of one victim."""

    known: PodRecord
    preemptor: PodRecord | None
    """None: an earlier leader decided on it."""
    node: str
    """Name of the victim's node."""
    marked: bool = False
    """Whether the pod has its condition."""
    announcement: Announcement | None = None
    """None: it is deleted at once."""
    announced: bool = False
    """Whether the pod has the announcement."""
    for_quota: bool = False
    """Whether its preemptor is nominated on another node, and needs its quota alone."""
    gang: GangEviction | None = None
    sending: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def decided(self) -> bool:
        """Whether it is carried out even if its preemptor no longer needs it."""
        return self.gang is not None and self.gang.decided


class Evictor:
    """`evict` any number; `withdraw`, `settled`, `halt`."""

    def __init__(
        self,
        api: PreemptApi,
        store: Store,
        permission: Permission,
        *,
        deleted: Callable[[PodRecord, PodRecord | None, str], None],
        refused: Callable[[PodRecord, list[PodRecord], str], None],
        retractor: Retractor,
        reporter: AnnouncementReporter,
        scheduler: str,
        patience: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`deleted` is called with a victim, its preemptor and the name of its node; `refused` with a victim, the
        preemptors that cannot have their victims because of it, and the reason. `scheduler`: the name in conditions.
        `patience`: seconds for all attempts to delete one victim."""
        self._api = api
        self._store = store
        self._outcomes = store.metrics.victims
        self._permission = permission
        self._deleted = deleted
        self._refused = refused
        self._retractor = retractor
        self._reporter = reporter
        self._scheduler = scheduler
        self._patience = patience
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._rng = rng
        self._evictions: dict[str, Eviction] = {}
        """By UID of the victim, until they have ended."""
        self._of_preemptor: dict[str, dict[str, None]] = {}
        """UID of a preemptor -> UIDs of its victims in `_evictions`."""

    def __len__(self) -> int:
        """Victims whose deletion has no outcome yet."""
        return len(self._evictions)

    def evict(
        self,
        known: PodRecord,
        preemptor: PodRecord | None,
        gang: GangEviction | None = None,
        announcement: Announcement | None = None,
    ) -> None:
        """A bound pod is a victim of a pending one, or, without that, of a decision of an earlier leader; at once, or
        after an announcement, which the pod may have already."""
        if known.preempting:
            return  # decided before
        eviction = Eviction(
            known, preemptor, known.node, known.observed.disrupted, announcement=announcement, gang=gang
        )
        if announcement is not None:
            eviction.announced, known.announced = known.announced == announcement, announcement
            eviction.for_quota = preemptor is not None and preemptor.nominated not in ("", known.node)
        self._evictions[known.uid] = eviction
        if preemptor is not None:
            self._of_preemptor.setdefault(preemptor.uid, {})[known.uid] = None
        known.preempting = True
        self._store.resend_pod(known.uid)
        eviction.task = asyncio.create_task(self._carry_out(eviction), name=f"evict {known.full_name}")

    def withdraw(self, preemptor: PodRecord) -> None:
        """Drops the deletions for a pod that does not need them any more, unless another pod waits for their node."""
        for uid in list(self._of_preemptor.get(preemptor.uid, ())):
            eviction = self._evictions.get(uid)
            if eviction is None or eviction.sending or eviction.decided:
                continue  # the first: it was dropped together with another one
            if not any(self._is_awaited(each, without=preemptor) for each in self._of_gang(eviction)):
                self._drop(eviction)

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted."""
        eviction = self._evictions.get(known.uid)
        if eviction is not None and eviction.known is known and not eviction.sending:
            self._end(eviction, "gone")
        self.withdraw(known)

    def halt(self) -> None:
        for eviction in list(self._evictions.values()):
            if not eviction.sending:
                self._drop(eviction)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [eviction.task for eviction in self._evictions.values() if eviction.task is not None]

    # -- one victim -------------------------------------------------------------------------------------------

    async def _carry_out(self, eviction: Eviction) -> None:
        known = eviction.known
        backoff, give_up = Backoff(_RETRY_FIRST, _RETRY_MAX, self._rng), self._monotonic() + self._patience
        try:
            while True:
                async with self._permission.slots:
                    outcome = await self._attempt(eviction)
                if outcome is _WAITS and eviction.gang is not None:
                    await eviction.gang.wait()
                elif outcome is _ANNOUNCED and eviction.announcement is not None:
                    left = eviction.announcement.eviction_us / 1e6 - self._now()
                    await self._sleep(min(max(left, 0.0), _CHECK))
                    if self._is_obsolete(eviction):
                        return self._drop(eviction)
                    give_up = self._monotonic() + self._patience
                elif outcome is None:
                    return self._drop(eviction)
                elif outcome.result is Result.GONE:
                    return self._end(eviction, "gone")
                elif outcome.result is Result.DONE:
                    self._end(eviction, "deleted")
                    preemptor = (
                        eviction.preemptor.full_name if eviction.preemptor is not None else "an earlier decision"
                    )
                    log.info("preempted %s on %s for %s", known.full_name, eviction.node, preemptor)
                    return self._deleted(known, eviction.preemptor, eviction.node)
                elif self._is_obsolete(eviction):
                    return self._drop(eviction)
                else:
                    delay = max(backoff.next(), outcome.retry_after)
                    if outcome.result is not Result.RETRY or self._monotonic() + delay > give_up:
                        return self._refuse(eviction, str(outcome.error))
                    log.debug("preempting %s: %s; retry in %.1f s", known.full_name, outcome.error, delay)
                    await self._sleep(delay)
        except Exception:
            log.exception("preempting %s failed", known.full_name)
            self._refuse(eviction, "internal error")

    def _is_obsolete(self, eviction: Eviction) -> bool:
        """Whether no pod needs it any more, or this process may not carry it out."""
        if self._permission.halted or (eviction.gang is not None and eviction.gang.dropped):
            return True
        if eviction.announcement is not None and not self._store.preemption_rules.preemptible(eviction.known):
            return not eviction.decided
        return not (eviction.decided or any(self._is_awaited(each) for each in self._of_gang(eviction)))

    def _is_awaited(self, eviction: Eviction, without: PodRecord | None = None) -> bool:
        """Whether its preemptor, unless it is `without`, or another pod waits for the node."""
        preemptor, nominations = eviction.preemptor, self._store.nominations
        pending = preemptor is not None and preemptor is not without and preemptor.schedulable
        pending = pending and preemptor is not None and preemptor.state in (PodState.WAITING, PodState.ASSUMED)
        if eviction.announcement is not None:  # the nomination may have ended long ago
            on_node = nominations.others_on(eviction.node, without)
            return on_node or (eviction.for_quota and pending and preemptor is not None and bool(preemptor.nominated))
        return preemptor is None or pending or nominations.others_on(eviction.node, preemptor)

    def _of_gang(self, eviction: Eviction) -> Iterator[Eviction]:
        """The eviction, and those of its gang."""
        yield eviction
        if eviction.gang is not None:
            for each in list(self._evictions.values()):
                if each.gang is eviction.gang and each is not eviction:
                    yield each

    async def _attempt(self, eviction: Eviction) -> Outcome | None:
        """Announces the eviction, if that comes first, sets the condition, then deletes the pod. None: it must not be
        sent. _ANNOUNCED: its time has not come; _WAITS: the rest of its gang has no condition yet."""
        if eviction.announcement is not None and not eviction.marked:
            if not eviction.announced:
                outcome = await self._send(eviction, self._announce)
                if outcome is None or outcome.result is not Result.DONE:
                    return outcome
                eviction.announced = True
                self._reporter.announced(eviction.known, eviction.announcement)
            if self._now() * 1e6 < eviction.announcement.eviction_us or self._is_served(eviction):
                return _ANNOUNCED
        outcome = await self._send(eviction, self._mark) if not eviction.marked else Outcome(Result.DONE)
        if outcome is None or outcome.result is not Result.DONE:
            return outcome
        eviction.marked = True
        if eviction.gang is not None:
            eviction.gang.marked(eviction.known.uid)
            if not (eviction.decided or eviction.gang.dropped):
                return _WAITS
        return await self._send(eviction, self._delete)

    async def _send(self, eviction: Eviction, request: Callable[[PodRecord], Awaitable[Outcome]]) -> Outcome | None:
        known = eviction.known
        if known.state is not PodState.BOUND or known.observed.deleting:
            return Outcome(Result.GONE)
        if not self._permission.may_write() or self._is_obsolete(eviction):
            return None
        eviction.sending = True
        try:
            return await request(known)
        finally:
            eviction.sending = False

    def _is_served(self, eviction: Eviction) -> bool:
        """Whether its preemptor is being bound, without the victim having left."""
        return eviction.preemptor is not None and eviction.preemptor.state is PodState.ASSUMED

    async def _announce(self, known: PodRecord) -> Outcome:
        assert known.announced is not None
        await self._retractor.written(known)
        return await announce(self._api, known, known.announced, self._scheduler, self._now())

    def _mark(self, known: PodRecord) -> Awaitable[Outcome]:
        return mark(self._api, known, self._scheduler, self._now())

    def _delete(self, known: PodRecord) -> Awaitable[Outcome]:
        return delete(self._api, known)

    def _drop(self, eviction: Eviction) -> None:
        for each in self._inseparable(eviction):
            self._give_up(each, "dropped")

    def _refuse(self, eviction: Eviction, why: str) -> None:
        inseparable = self._inseparable(eviction)
        for each in inseparable:
            self._give_up(each, "refused" if each is eviction else "dropped")
        preemptors = {each.preemptor.uid: each.preemptor for each in inseparable if each.preemptor is not None}
        self._refused(eviction.known, list(preemptors.values()), why)

    def _inseparable(self, eviction: Eviction) -> list[Eviction]:
        """The evictions that end with this one: as long as its gang is not decided, those of the whole gang."""
        if eviction.gang is None or eviction.decided:
            return [eviction]
        eviction.gang.drop()
        return list(self._of_gang(eviction))

    def _give_up(self, eviction: Eviction, outcome: str) -> None:
        if not eviction.sending:  # otherwise its task ends it after the response
            self._release(eviction)
            self._end(eviction, outcome)

    def _release(self, eviction: Eviction) -> None:
        known = eviction.known
        known.preempting = False
        self._store.resend_pod(known.uid)
        if eviction.announcement is None:
            return
        if eviction.announced and not self._permission.may_write():
            return  # the next leader takes it over
        known.announced = None
        if eviction.announced:
            why = "it is not needed for another pod any more"
            self._retractor.retract(known, PreemptionState.WILL_EVICTED, "Cancelled", why)
            self._reporter.retracted(known)

    def _end(self, eviction: Eviction, outcome: str) -> None:
        if self._evictions.get(eviction.known.uid) is not eviction:
            return
        del self._evictions[eviction.known.uid]
        if eviction.preemptor is not None:
            victims = self._of_preemptor[eviction.preemptor.uid]
            del victims[eviction.known.uid]
            if not victims:
                del self._of_preemptor[eviction.preemptor.uid]
        if eviction.gang is not None:
            eviction.gang.marked(eviction.known.uid)
        self._outcomes.labels(outcome).inc()
        if eviction.task is not None and eviction.task is not asyncio.current_task():
            eviction.task.cancel()
