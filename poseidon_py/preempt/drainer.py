"""Evicts the running pods of queues that drain, at a bounded rate, as long as this process leads.

What is to be done follows from the queues and the pods alone, so that a new leader goes on with it, and nothing more is
evicted once a queue is started again. Disruption budgets hold: a pod that its budgets protect is tried again after a
growing delay. A gang is not begun before its budgets permit the eviction of all members; one that has lost members is
drained to the end. A workload that can be suspended leaves by that, if its budgets permit the eviction of all pods.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from poseidon_py.preempt.attempt import PreemptApi, Result, evict
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import NoSuspension, Suspender
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

PERIOD = 1.0
"""Seconds between two looks at what runs."""
_AGAIN_FIRST, _AGAIN_MAX = 5.0, 300.0


class DrainReporter(Protocol):
    """Publishes the outcomes of drains."""

    def drained(self, known: PodRecord, queue: str) -> None: ...
    def remark(self, known: PodRecord, reason: str, message: str) -> None: ...


class Drainer:
    """`run` in a separate task."""

    def __init__(
        self,
        api: PreemptApi,
        store: Store,
        reporter: DrainReporter,
        *,
        suspender: Suspender | None = None,
        leads: Callable[[], bool],
        rate: float = 10.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`suspender`: None: no workload is suspended. `leads`: whether, by the clock, no other replica can be the
        leader; called before each request. `rate`: pods that are evicted in a second at most."""
        self._api = api
        self._store = store
        self._reporter = reporter
        self._suspender = suspender or NoSuspension()
        self._outcomes = store.metrics.drains
        self._leads = leads
        self._pause = 1.0 / rate
        self._sleep = sleep
        self._monotonic = monotonic
        self._rng = rng
        self._backoffs: dict[str, Backoff] = {}
        """By `_key_of` a unit of which a pod was refused."""
        self._not_before: dict[str, float] = {}
        self._evicted: set[str] = set()
        """UIDs of pods that the API server has accepted the eviction of, until they are gone."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._sleep(PERIOD)
            try:
                await self.step()
            except Exception:
                log.exception("draining queues failed")

    async def step(self) -> None:
        """Evicts what may be evicted now."""
        if not self._store.queues.draining:
            self._backoffs.clear()
            self._not_before.clear()
            self._evicted.clear()
            return
        await self._suspend_workloads()
        units = {_key_of(unit): unit for unit in self._units()}
        for key, unit in units.items():
            if self._monotonic() >= self._not_before.get(key, 0.0):
                await self._drain(key, unit)
        for key in self._backoffs.keys() - units:
            del self._backoffs[key], self._not_before[key]
        self._evicted.intersection_update(self._store.pods)

    async def _suspend_workloads(self) -> None:
        """Suspends the workloads that leave as a whole, as far as their budgets permit that."""
        draining = [known for known in self._store.pods.values() if self._drains(known)]
        workloads = sorted(self._suspender.leaving(draining), key=lambda pods: _order(pods[0]))
        for pods in workloads:
            name = self._name_of(pods[0])
            if not (all(map(self._drains, pods)) and self._leads()) or self._protected(pods):
                continue
            if await self._suspender.suspend(pods, "QueueDrained", f"queue {name} drains"):
                for known in pods:
                    self._has_left(known, "suspended")
                await self._sleep(self._pause * len(pods))

    def _units(self) -> Iterator[list[PodRecord]]:
        """Gangs, and single pods: the least important first, then the newest."""
        gangs: dict[int, list[PodRecord]] = {}
        units: list[list[PodRecord]] = []
        for known in self._store.pods.values():
            if not self._drains(known):
                continue
            if known.gang.id in gangs:
                gangs[known.gang.id].append(known)
                continue
            unit = [known]
            units.append(unit)
            if known.gang.id:
                gangs[known.gang.id] = unit
        yield from sorted(units, key=lambda unit: _order(unit[0]))

    def _drains(self, known: PodRecord) -> bool:
        if known.queue.running_id not in self._store.queues.draining or known.state is not PodState.BOUND:
            return False
        stays = known.described.unevictable or known.described.daemon or known.queue.only_counts
        return not (stays or known.leaving or known.uid in self._evicted)

    async def _drain(self, key: str, unit: list[PodRecord]) -> None:
        if len(unit) > 1 and not self._is_begun(unit[0]) and (why := self._protected(unit)):
            self._refused(unit[0], why)
            self._later(key)
            return
        refused = False
        for known in unit:
            if not (self._drains(known) and self._leads()):
                continue  # meanwhile the queue was started again, the pod has ended, or another replica leads
            refused |= not await self._evict(known)
            await self._sleep(self._pause)
        if refused:
            self._later(key)

    async def _evict(self, known: PodRecord) -> bool:
        """Returns whether it leaves."""
        outcome = await evict(self._api, known)
        if outcome.result is Result.DONE:
            log.info("evicted %s from %s: queue %s drains", known.full_name, known.node, self._name_of(known))
            self._has_left(known, "evicted")
        elif outcome.result is Result.GONE:
            self._outcomes.labels("gone").inc()
        else:
            self._refused(known, str(outcome.error))
            return False
        return True

    def _has_left(self, known: PodRecord, outcome: str) -> None:
        self._outcomes.labels(outcome).inc()
        self._evicted.add(known.uid)
        self._reporter.drained(known, self._name_of(known))

    def _name_of(self, known: PodRecord) -> str:
        """Of the draining queue of a pod."""
        return self._store.queues.draining.get(known.queue.running_id, "")

    def _later(self, key: str) -> None:
        delay = self._backoffs.setdefault(key, Backoff(_AGAIN_FIRST, _AGAIN_MAX, self._rng)).next()
        self._not_before[key] = self._monotonic() + delay

    def _refused(self, known: PodRecord, why: str) -> None:
        self._outcomes.labels("refused").inc()
        log.info("%s cannot be evicted from its draining queue yet: %s", known.full_name, why)
        stays = f"queue {self._name_of(known)} drains, but the pod stays for now: {why}"
        self._reporter.remark(known, "DrainDelayed", stays)

    def _is_begun(self, known: PodRecord) -> bool:
        """Whether the gang of a pod has lost members."""
        group = self._store.gangs.group_of(known)
        return group is not None and (group.disrupted or group.short(group.bound))

    def _protected(self, unit: list[PodRecord]) -> str:
        """Why the budgets do not permit the eviction of all of these pods; empty: they do."""
        return self._store.budgets.forbid(self._store.profiles.get(known.described.profile) for known in unit)


def _order(known: PodRecord) -> tuple[int, int, str]:
    """The order in which pods leave: the least important first, then the newest."""
    return known.described.priority, -known.created_us, known.uid


def _key_of(unit: list[PodRecord]) -> str:
    """Stays the same while members of a gang leave."""
    return f"gang {unit[0].gang.id}" if unit[0].gang.id else unit[0].uid
