"""Deletes the victims of preemption concurrently, each to a definite outcome.

    deleted   the API server has accepted the deletion: the pod leaves within its grace period
    suspended its workload is suspended, whose controller deletes the pod
    gone      it is deleted, or being deleted, by another client; or another pod has its name
    dropped   the deletion was not sent: its preemptor does not need it any more, it may not be preempted any more, or
              another replica leads
    refused   the API server does not delete it

The members of a gang that is preempted entirely are deleted once all of them have their condition, and from then on
even if their preemptors no longer need it (eviction.py). Victims that are all pods of a workload leave by its
suspension; if that cannot be, they are deleted.

A victim is `preempting` from the decision on, and stays so unless its deletion is dropped or refused, or the pod is
bound again. Temporary failures are retried with growing delays, which occupy no slot: no connection, 429 (not before
Retry-After), 5xx, lost answers. `halt` takes effect at once: only requests that are already in flight complete.

The eviction of some victims is announced: the pod gets the state WillEvicted, and is deleted at the announced time.
Until then it keeps running, and whether its preemptor still needs it to leave is checked again and again; if not, its
state is retracted.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from poseidon_py.describe.annotations.preemption_terms import Announcement, PreemptionState
from poseidon_py.preempt.announcements import Retractor
from poseidon_py.preempt.attempt import Outcome, PreemptApi, Result, announce, delete, mark
from poseidon_py.preempt.eviction import Eviction, GangEviction
from poseidon_py.preempt.need import Need
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.retries import Retries
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import Suspender

log = logging.getLogger(__name__)

_Request = Callable[[Eviction], Awaitable[Outcome]]

_RETRY_FIRST = 0.1
_CHECK = 1.0
"""Seconds between the checks whether an announced eviction is still needed."""


class AnnouncementReporter(Protocol):
    """Publishes that evictions are announced, and called off."""

    def announced(self, known: PodRecord, announcement: Announcement) -> None: ...
    def retracted(self, known: PodRecord) -> None: ...


class _End(Exception):
    """An eviction ends without a deletion."""


class _Gone(_End):
    """The pod is gone, or leaves by another client."""


class _Dropped(_End):
    """It must not be carried out any more."""


class _Refused(_End):
    """The API server does not do it, or has given no answer for too long."""


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
        suspender: Suspender,
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
        self._need = Need(store, permission)
        self._deleted = deleted
        self._refused = refused
        self._retractor = retractor
        self._reporter = reporter
        self._suspender = suspender
        self._suspensions: set[asyncio.Task[bool]] = set()
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
        if gang is not None:
            gang.evictions.append(eviction)
        known.preempting = True
        self._store.resend_pod(known.uid)
        eviction.task = asyncio.create_task(self._carry_out(eviction), name=f"evict {known.full_name}")

    def withdraw(self, preemptor: PodRecord) -> None:
        """Drops the deletions for a pod that does not need them any more, unless another pod waits for their node."""
        for uid in list(self._of_preemptor.get(preemptor.uid, ())):
            eviction = self._evictions.get(uid)
            if eviction is None or eviction.sending or eviction.decided:
                continue  # the first: it was dropped together with another one
            if not any(self._need.is_awaited(each, without=preemptor) for each in eviction.together):
                self._drop(eviction)

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted."""
        eviction = self._evictions.get(known.uid)
        if eviction is not None and eviction.known is not known:
            eviction = None
        if known.node and not known.observed.deleting:
            known.preempting = False  # the API server's data was restored, and the pod is bound again
            if eviction is not None:
                self._drop(eviction)
        elif eviction is not None and not eviction.sending:
            self._end(eviction, "gone")
        self.withdraw(known)

    def halt(self) -> None:
        for eviction in list(self._evictions.values()):
            if not eviction.sending:
                self._drop(eviction)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        evictions = [eviction.task for eviction in self._evictions.values() if eviction.task is not None]
        return [*evictions, *self._suspensions]

    # -- one victim -------------------------------------------------------------------------------------------

    async def _carry_out(self, eviction: Eviction) -> None:
        try:
            await self._evict(eviction)
        except _Gone:
            self._end(eviction, "gone")
        except _Dropped:
            self._drop(eviction)
        except _Refused as refused:
            self._refuse(eviction, str(refused))
        except Exception:
            log.exception("preempting %s failed", eviction.known.full_name)
            self._refuse(eviction, "internal error")

    async def _evict(self, eviction: Eviction) -> None:
        """Gives notice if that is due, sets the condition, waits for the rest of the gang, deletes the pod."""
        known, preemptor = eviction.known, eviction.preemptor
        if eviction.announcement is not None and not eviction.marked:
            await self._give_notice(eviction, eviction.announcement)
        retries = self._retries()
        if eviction.gang is not None:
            await self._retried(eviction, self._mark, retries)
            eviction.gang.marked(known.uid)
            await eviction.gang.wait()
        if eviction.gang is not None and await self._leaves_with_its_workload(eviction, eviction.gang):
            self._end(eviction, "suspended")
        else:
            await self._retried(eviction, self._delete, retries)
            self._end(eviction, "deleted")
        for_pod = preemptor.full_name if preemptor is not None else "an earlier decision"
        log.info("preempted %s on %s for %s", known.full_name, eviction.node, for_pod)
        self._deleted(known, preemptor, eviction.node)

    async def _give_notice(self, eviction: Eviction, announcement: Announcement) -> None:
        """Until the announced time; longer while its preemptor is being bound."""
        if not eviction.announced:
            await self._retractor.written(eviction.known)
            await self._retried(eviction, self._announce, self._retries())
            eviction.announced = True
            self._reporter.announced(eviction.known, announcement)
        while (left := announcement.eviction_us / 1e6 - self._now()) > 0 or self._need.is_served(eviction):
            await self._sleep(min(left, _CHECK) if left > 0 else _CHECK)
            if self._need.is_over(eviction):
                raise _Dropped

    async def _leaves_with_its_workload(self, eviction: Eviction, gang: GangEviction) -> bool:
        """Whether its workload is suspended; the first of its victims has that done."""
        leaving = gang.workloads.get(eviction.known.uid)
        if leaving is None:
            return False
        self._check(eviction)
        if leaving.suspension is None:
            why = self._why(eviction)
            work = self._suspender.suspend(leaving.pods, "Preempted", why)
            leaving.suspension = asyncio.create_task(work, name=f"suspend the workload of {eviction.known.full_name}")
            self._suspensions.add(leaving.suspension)
            leaving.suspension.add_done_callback(self._suspensions.discard)
        eviction.sending = True
        try:
            return await asyncio.shield(leaving.suspension)
        finally:
            eviction.sending = False

    def _why(self, eviction: Eviction) -> str:
        """Why the pod is preempted, in the words of its condition."""
        known, preemptor = eviction.known, eviction.preemptor
        if preemptor is not None and known.queue.running_id not in (0, preemptor.queue.id):
            return f"reclaiming capacity for queue {self._store.queues.resolution_of(preemptor).name}"
        return "preempting to accommodate a higher priority pod"

    def _retries(self) -> Retries:
        return Retries(_RETRY_FIRST, self._patience, self._monotonic, self._rng)

    async def _retried(self, eviction: Eviction, request: _Request, retries: Retries) -> None:
        """Until the request is done; raises if it is not."""
        retries.reset()
        while True:
            async with self._permission.slots:
                outcome = await request(eviction)
            if outcome.result is Result.DONE:
                return
            if outcome.result is Result.GONE:
                raise _Gone
            if self._need.is_over(eviction):
                raise _Dropped
            delay = retries.delay(outcome)
            if delay is None:
                raise _Refused(str(outcome.error))
            log.debug("preempting %s: %s; retry in %.1f s", eviction.known.full_name, outcome.error, delay)
            await self._sleep(delay)

    async def _send(self, eviction: Eviction, request: Awaitable[Outcome]) -> Outcome:
        eviction.sending = True
        try:
            return await request
        finally:
            eviction.sending = False

    def _check(self, eviction: Eviction) -> None:
        """Raises if there is nothing to send."""
        known = eviction.known
        if known.state is PodState.GONE or known.observed.deleting:
            raise _Gone
        if known.state is not PodState.BOUND or not known.preempting:
            raise _Dropped  # the API server's data was restored
        if not self._permission.may_write() or self._need.is_over(eviction):
            raise _Dropped

    async def _announce(self, eviction: Eviction) -> Outcome:
        self._check(eviction)
        assert eviction.announcement is not None
        of = self._api, eviction.known, eviction.announcement, self._scheduler, self._now()
        return await self._send(eviction, announce(*of))

    async def _mark(self, eviction: Eviction) -> Outcome:
        if eviction.marked:
            return Outcome(Result.DONE)
        self._check(eviction)
        message = f"{self._scheduler}: {self._why(eviction)}"
        outcome = await self._send(eviction, mark(self._api, eviction.known, message, self._now()))
        eviction.marked = outcome.result is Result.DONE
        return outcome

    async def _delete(self, eviction: Eviction) -> Outcome:
        outcome = await self._mark(eviction)
        if outcome.result is not Result.DONE:
            return outcome
        self._check(eviction)
        return await self._send(eviction, delete(self._api, eviction.known))

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
        return eviction.together

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
            eviction.gang.evictions.remove(eviction)
            eviction.gang.marked(eviction.known.uid)
        self._outcomes.labels(outcome).inc()
        if eviction.task is not None and eviction.task is not asyncio.current_task():
            eviction.task.cancel()
