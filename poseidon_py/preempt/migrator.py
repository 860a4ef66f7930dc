"""Evicts pods that go to other nodes, each to a definite outcome.

    evicted   the API server has accepted the eviction: the pod leaves within its grace period
    gone      it is deleted, or being deleted, by somebody else; or another pod has its name
    dropped   the eviction was not sent: the pod may not be moved any more, its target is gone, or another replica leads
    refused   the API server does not evict it now, mostly because of a disruption budget

A pod is `migrating` from the decision on, and stays so unless its eviction is dropped or refused. The successor that
its controller creates is placed like any pending pod. Temporary failures are retried with growing delays, which occupy
no slot: no connection, 5xx, lost answers. A refusal is not: a budget may allow no eviction for hours. `halt` takes
effect at once: only requests that are already in flight complete.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from poseidon_py.preempt.attempt import Outcome, PreemptApi, Result, evict
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.refusals import Refusals
from poseidon_py.preempt.retries import Retries
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.timers import Timer

log = logging.getLogger(__name__)

_RETRY_FIRST = 0.1


@dataclass(slots=True, eq=False)
class Migration:
    """The eviction of one pod."""

    known: PodRecord
    node: str
    """Name of the pod's node."""
    target: str
    """Name of the node that it goes to."""
    needed_by: str
    """See MigratingPod."""
    sending: bool = False
    task: asyncio.Task[None] | None = None


class Migrator:
    """`migrate` any number; `settled`, `halt`, `stop`."""

    def __init__(
        self,
        api: PreemptApi,
        store: Store,
        permission: Permission,
        *,
        evicted: Callable[[PodRecord, str, str, str], None],
        patience: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`evicted` is called with a pod, the name of its node, that of the other one, and MigratingPod.needed_by.
        `patience`: seconds for all attempts to evict one pod."""
        self._api = api
        self._store = store
        self._outcomes = store.metrics.migrations
        self._permission = permission
        self._evicted = evicted
        self._patience = patience
        self._sleep = sleep
        self._monotonic = monotonic
        self._rng = rng
        self._migrations: dict[str, Migration] = {}
        """By UID, until they have ended."""
        self._refusals = Refusals(store, _set_refused, call_later=call_later, rng=rng)

    def migrate(self, known: PodRecord, target: str, needed_by: str = "") -> None:
        """The engine has decided that a bound pod goes to another node, which has this name. needed_by: see
        MigratingPod."""
        if known.leaving:
            return  # decided before
        migration = self._migrations[known.uid] = Migration(known, known.node, target, needed_by)
        known.migrating = True
        self._store.resend_pod(known.uid)
        migration.task = asyncio.create_task(self._carry_out(migration), name=f"migrate {known.full_name}")

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted."""
        if known.node and not known.observed.deleting:
            known.migrating = False  # the API server's data was restored, and the pod is bound again
            return
        migration = self._migrations.get(known.uid)
        if migration is not None and not migration.sending:
            self._end(migration, "gone")
        self._refusals.forget(known.uid)

    def halt(self) -> None:
        for migration in list(self._migrations.values()):
            if not migration.sending:
                self._drop(migration)

    def stop(self) -> None:
        self._refusals.stop()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [migration.task for migration in self._migrations.values() if migration.task is not None]

    # -- one pod ----------------------------------------------------------------------------------------------

    async def _carry_out(self, migration: Migration) -> None:
        known = migration.known
        retries = Retries(_RETRY_FIRST, self._patience, self._monotonic, self._rng)
        try:
            while True:
                async with self._permission.slots:
                    outcome = await self._attempt(migration)
                if outcome is None:
                    self._drop(migration)
                elif outcome.result is Result.GONE:
                    self._end(migration, "gone")
                elif outcome.result is Result.DONE:
                    self._end(migration, "evicted")
                    why = f"{migration.needed_by} fits then" if migration.needed_by else "it costs less there"
                    why = known.planned or why
                    log.info("evicted %s from %s for %s: %s", known.full_name, migration.node, migration.target, why)
                    self._evicted(known, migration.node, migration.target, migration.needed_by)
                elif self._is_obsolete(migration):
                    self._drop(migration)
                else:
                    delay = retries.delay(outcome)
                    if delay is not None:
                        log.debug("evicting %s: %s; retry in %.1f s", known.full_name, outcome.error, delay)
                        await self._sleep(delay)
                        continue
                    log.info("%s stays on %s: %s", known.full_name, migration.node, outcome.error)
                    known.refusal = str(outcome.error)
                    self._refuse(migration)
                return
        except Exception:
            log.exception("evicting %s failed", known.full_name)
            self._refuse(migration)

    def _is_obsolete(self, migration: Migration) -> bool:
        """Whether the pod should stay, or this process may not evict it."""
        known, store = migration.known, self._store
        if self._permission.halted or known.preempting or migration.target not in store.nodes:
            return True
        return known.state is not PodState.BOUND or not (known.migrating and store.is_movable(known))

    async def _attempt(self, migration: Migration) -> Outcome | None:
        """None: the eviction must not be sent."""
        known = migration.known
        if known.state is PodState.GONE or known.observed.deleting:
            return Outcome(Result.GONE)
        if not self._permission.may_write() or self._is_obsolete(migration):
            return None
        migration.sending = True
        try:
            return await evict(self._api, known)
        finally:
            migration.sending = False

    def _drop(self, migration: Migration) -> None:
        self._release(migration.known)
        self._end(migration, "dropped")

    def _refuse(self, migration: Migration) -> None:
        self._release(migration.known)
        self._end(migration, "refused")
        self._refusals.add(migration.known)

    def _release(self, known: PodRecord) -> None:
        known.migrating = False
        self._store.resend_pod(known.uid)

    def _end(self, migration: Migration, outcome: str) -> None:
        if self._migrations.get(migration.known.uid) is not migration:
            return
        del self._migrations[migration.known.uid]
        self._outcomes.labels(outcome).inc()
        if migration.task is not None and migration.task is not asyncio.current_task():
            migration.task.cancel()


def _set_refused(known: PodRecord, refused: bool) -> None:
    known.migration_refused = refused
