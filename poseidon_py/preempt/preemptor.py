"""Takes the decisions of rounds on preemption and migration, and acts on them as long as this process leads.

A victim, a nomination or a migration that is decided again changes nothing. If the deletion of a victim is refused, its
preemptor's nomination ends, so that the engine decides anew: not before a growing delay for the preemptor, and without
that victim for a longer one.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from poseidon_py.preempt.attempt import PreemptApi
from poseidon_py.preempt.decisions import Decisions
from poseidon_py.preempt.evictor import Evictor
from poseidon_py.preempt.migrator import Migrator
from poseidon_py.preempt.nominator import Nominator
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.refusals import Refusals, Timer
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

_AGAIN_FIRST, _AGAIN_MAX = 1.0, 60.0
"""Seconds for which rounds leave out the preemptor of a refused victim."""

Reject = Callable[[PodRecord, str, int], None]
"""Pod, id of the node, earliest time of the next round for it (microseconds since the epoch)."""


class PreemptReporter(Protocol):
    """Publishes the outcomes of preemptions and migrations."""

    def preempted(self, known: PodRecord, preemptor: PodRecord, node: str) -> None: ...
    def migrated(self, known: PodRecord, node: str, target: str) -> None: ...
    def failed(self, known: PodRecord, message: str) -> None: ...


class Preemptor:
    """`take` the decisions of each round; `halt` or `resume`; `stop`."""

    def __init__(
        self,
        api: PreemptApi,
        store: Store,
        reject: Reject,
        reporter: PreemptReporter,
        *,
        leads: Callable[[], bool] = lambda: True,
        scheduler: str = "poseidon",
        concurrency: int = 20,
        patience: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`leads` is called before each write. `scheduler`: the name in conditions of victims. `concurrency`: maximum
        number of requests in flight. `patience`: seconds for all attempts to write one decision."""
        self._store = store
        self._attempts = store.metrics.preemptions
        self._reject = reject
        self._reporter = reporter
        self._now = now
        self._rng = rng
        self._permission = Permission(leads, concurrency)
        self.nominator = Nominator(
            api, store, self._permission, patience=patience, sleep=sleep, monotonic=monotonic, rng=rng
        )
        self.evictor = Evictor(
            api,
            store,
            self._permission,
            deleted=reporter.preempted,
            refused=self._refused,
            scheduler=scheduler,
            patience=patience,
            sleep=sleep,
            monotonic=monotonic,
            now=now,
            rng=rng,
        )
        self.migrator = Migrator(
            api,
            store,
            self._permission,
            evicted=reporter.migrated,
            patience=patience,
            sleep=sleep,
            monotonic=monotonic,
            call_later=call_later,
            rng=rng,
        )
        self._failures: dict[str, Backoff] = {}
        """By UID of a preemptor."""
        self._refusals = Refusals(store, _set_spared, call_later=call_later, rng=rng)

    def take(self, decisions: Decisions) -> None:
        """The decisions of one round."""
        for known in decisions.unnominated:
            self._nominate(known, "")
        for known, node in decisions.nominated:
            if known.nominated != node:
                self._attempts.inc()
            self._nominate(known, node)
        for known, preemptor in decisions.victims:
            self.evictor.evict(known, preemptor)
        for known, target in decisions.migrations:
            self.migrator.migrate(known, target)

    def _nominate(self, known: PodRecord, node: str) -> None:
        self._store.nominations.set(known, node)
        self.nominator.write(known)

    def settled(self, known: PodRecord) -> None:
        """The watch reports the pod bound or deleted."""
        self._failures.pop(known.uid, None)
        self.nominator.settled(known)
        self.evictor.settled(known)
        self.migrator.settled(known)
        if not known.node or known.observed.deleting:
            self._refusals.forget(known.uid)

    def resume(self) -> None:
        self._permission.halted = False

    def halt(self) -> None:
        """Sends nothing until `resume`; what was not sent is over."""
        self._permission.halted = True
        self.evictor.halt()
        self.migrator.halt()
        self.nominator.halt()

    async def stop(self, timeout: float = 0.0) -> None:
        """Waits up to `timeout` seconds for requests in flight; the outcome of the others stays unknown."""
        self.halt()
        self._refusals.stop()
        self.migrator.stop()
        tasks = [*self.evictor.tasks, *self.migrator.tasks, *self.nominator.tasks]
        if tasks and timeout:
            await asyncio.wait(tasks, timeout=timeout)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- refused deletions ------------------------------------------------------------------------------------

    def _refused(self, known: PodRecord, preemptor: PodRecord, why: str) -> None:
        self._refusals.add(known)
        backoff = self._failures.setdefault(preemptor.uid, Backoff(_AGAIN_FIRST, _AGAIN_MAX, self._rng))
        delay = backoff.next()
        message = f"preempting {known.full_name} on {known.node} failed: {why}"
        log.warning("%s: %s; decided anew after %.1f s", preemptor.full_name, message, delay)
        self._store.metrics.attempts.labels("error").inc()
        node = preemptor.nominated
        self._nominate(preemptor, "")
        self.evictor.withdraw(preemptor)
        if not preemptor.schedulable:
            return
        self._store.resend_pod(preemptor.uid)
        self._reporter.failed(preemptor, message)
        self._reject(preemptor, self._store.id_of_node(node or known.node), int((self._now() + delay) * 1_000_000))


def _set_spared(known: PodRecord, spared: bool) -> None:
    known.spared = spared
