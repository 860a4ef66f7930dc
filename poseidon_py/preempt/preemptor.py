"""Takes the decisions of rounds on preemption and migration, and acts on them as long as this process leads.

A victim, a nomination or a migration that is decided again changes nothing. If the deletion of a victim is refused, its
preemptor's nomination ends, so that the engine decides anew: not before a growing delay for the preemptor, and without
that victim for a longer one. If the preemptor is in a gang, that applies to all members that wait for victims.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from poseidon_py.preempt.announcements import Retractor, announcements
from poseidon_py.preempt.attempt import PreemptApi
from poseidon_py.preempt.decisions import Decisions, VictimPod
from poseidon_py.preempt.eviction import GangEviction, gang_evictions
from poseidon_py.preempt.evictor import AnnouncementReporter, Evictor
from poseidon_py.preempt.migrator import Migrator
from poseidon_py.preempt.nominator import Nominator
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.refusals import Refusals
from poseidon_py.preempt.remainders import Remainders
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord, Reject
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import NoSuspension, Suspender
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.tasks import end_tasks
from poseidon_py.util.timers import Timer

log = logging.getLogger(__name__)

_AGAIN_FIRST, _AGAIN_MAX = 1.0, 60.0
"""Seconds for which rounds leave out the preemptor of a refused victim."""


class PreemptReporter(AnnouncementReporter, Protocol):
    """Publishes the outcomes of preemptions and migrations."""

    def preempted(self, known: PodRecord, preemptor: PodRecord | None, node: str) -> None: ...
    def migrated(self, known: PodRecord, node: str, target: str, needed_by: str) -> None: ...
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
        withdraw: Callable[[Iterable[str]], None] = lambda uids: None,
        suspender: Suspender | None = None,
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
        """`withdraw` gives back the placements of pods, by UID, whose binds were not sent. `suspender`: None: no
        workload is suspended. `leads` is called before each write. `scheduler`: the name in conditions of victims.
        `concurrency`: maximum number of requests in flight. `patience`: seconds for all attempts to write one
        decision."""
        self._store = store
        self._reject = reject
        self._reporter = reporter
        self._withdraw = withdraw
        self._suspender = suspender or NoSuspension()
        self._now = now
        self._rng = rng
        self._permission = Permission(leads, concurrency)
        self._retractor = Retractor(
            api, self._permission, patience=patience, sleep=sleep, monotonic=monotonic, now=now, rng=rng
        )
        self.nominator = Nominator(
            api,
            store,
            self._permission,
            retractor=self._retractor,
            patience=patience,
            sleep=sleep,
            monotonic=monotonic,
            now=now,
            rng=rng,
        )
        self.evictor = Evictor(
            api,
            store,
            self._permission,
            deleted=reporter.preempted,
            refused=self._refused,
            retractor=self._retractor,
            reporter=reporter,
            suspender=self._suspender,
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
        self._remainders = Remainders(
            store,
            self._permission,
            self._evict_rest,
            call_later=call_later,
        )

    def take(self, decisions: Decisions) -> None:
        """The decisions of one round."""
        for known in decisions.unnominated:
            self._nominate(known, "")
        for known, node in decisions.nominated:
            if known.nominated != node:
                self._store.metrics.former_preemptions.inc()
            self._nominate(known, node)
        for victims_of_pod in Counter(victim.preemptor.uid for victim in decisions.victims).values():
            self._store.metrics.victims_of_pod.observe(victims_of_pod)
        revocable = [victim for victim in decisions.victims if victim.known.revocable]
        victims = [victim for victim in decisions.victims if not victim.known.revocable]
        self._revoke(revocable)
        gangs = self._units([known for known, _ in victims])
        announced = announcements(self._store.preemption_rules, victims, self._now(), gangs)
        for known, preemptor in victims:
            if known.uid in announced:
                self._privilege(preemptor)
            self.evictor.evict(known, preemptor, gangs.get(known.uid), announced.get(known.uid))
        for migrating in decisions.migrations:
            self.migrator.migrate(*migrating)

    def finish(self, group: Group) -> None:
        """All bound members of a gang are victims: deletes those whose deletion is not under way, see Remainders."""
        self._remainders.note(group)

    def _revoke(self, victims: list[VictimPod]) -> None:
        """Gives back placements whose binds wait. As with kube-scheduler, nothing is deleted: the pods wait again."""
        for known, preemptor in victims:
            node = known.assumed
            self._withdraw([known.uid])
            if known.assumed:
                continue  # its bind has been sent by now
            self._store.metrics.victims.labels("unbound").inc()
            log.info("took %s back from %s for %s", known.full_name, node, preemptor.full_name)
            self._reporter.preempted(known, preemptor, node)

    def _units(self, victims: list[PodRecord]) -> dict[str, GangEviction]:
        return gang_evictions(self._store.gangs, victims, self._suspender)

    def _evict_rest(self, pods: list[PodRecord]) -> None:
        """Pods of a gang that is preempted entirely leave, as was decided before."""
        gang = GangEviction((), self._suspender.leaving(pods))
        for known in pods:
            self.evictor.evict(known, None, gang)

    def _nominate(self, known: PodRecord, node: str) -> None:
        self._store.nominations.set(known, node)
        known.privileged = known.privileged and bool(known.nominated)
        self.nominator.write(known)

    def _privilege(self, preemptor: PodRecord) -> None:
        """The evictions for the pod, and its gang, are announced first: meanwhile no other pod takes its place."""
        for each in self._nominated_with(preemptor):
            if each.nominated and not each.privileged:
                each.privileged = True
                self._store.touch_pod(each.uid)
                self.nominator.write(each)

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
        self.take_over()

    def take_over(self) -> None:
        """Takes over the announcements of an earlier leader, or of an earlier process, once all pods are known. Those
        whose preemptor is gone, or not nominated any more, are retracted."""
        store = self._store
        if self._permission.halted or not (store.announced.listed and store.announced.follows):
            return
        store.announced.follows = False
        victims = [known for known in store.pods.values() if known.announced is not None]
        pending = {known.full_name: known for known in store.waiting()}
        for known in pending.values():
            if known.privileged:
                self.nominator.adopt(known)
                self._nominate(known, known.nominated)
        gangs = self._units(victims)
        for known in victims:
            if known.announced is not None and known.state is PodState.BOUND:
                preemptor = pending.get(known.announced.preemptor)
                self.evictor.evict(known, preemptor, gangs.get(known.uid), known.announced)

    def halt(self) -> None:
        """Sends nothing until `resume`; what was not sent is over."""
        self._permission.halted = True
        self._store.announced.follows = True
        self.evictor.halt()
        self._retractor.halt()
        self.migrator.halt()
        self.nominator.halt()

    async def stop(self, timeout: float = 0.0) -> None:
        """Waits up to `timeout` seconds for requests in flight; the outcome of the others stays unknown."""
        self.halt()
        self._refusals.stop()
        self._remainders.stop()
        self.migrator.stop()
        tasks = [*self.evictor.tasks, *self.migrator.tasks, *self.nominator.tasks, *self._retractor.tasks]
        if tasks and timeout:
            await asyncio.wait(tasks, timeout=timeout)
        await end_tasks(*tasks)

    # -- refused deletions ------------------------------------------------------------------------------------

    def _refused(self, known: PodRecord, preemptors: list[PodRecord], why: str) -> None:
        self._refusals.add(known)
        message = f"preempting {known.full_name} on {known.node} failed: {why}"
        for preemptor in preemptors:
            backoff = self._failures.setdefault(preemptor.uid, Backoff(_AGAIN_FIRST, _AGAIN_MAX, self._rng))
            delay = backoff.next()
            log.warning("%s: %s; decided anew after %.1f s", preemptor.full_name, message, delay)
            preemptor.attempts += 1
            self._store.metrics.attempts.labels("error", preemptor.observed.scheduler).inc()
            not_before = int((self._now() + delay) * 1_000_000)
            for each in self._nominated_with(preemptor):
                node = each.nominated or known.node
                self._nominate(each, "")
                self.evictor.withdraw(each)
                if each.schedulable:
                    self._store.resend_pod(each.uid)
                    self._reporter.failed(each, message)
                    self._reject(each, self._store.id_of_node(node), not_before)

    def _nominated_with(self, preemptor: PodRecord) -> list[PodRecord]:
        """The pod, and the nominated members of its gang, which are placed together or not at all."""
        group = self._store.gangs.group_of(preemptor)
        members = group.members.values() if group is not None else ()
        return [preemptor, *(m.known for m in members if m.known.nominated and m.known is not preemptor)]


def _set_spared(known: PodRecord, spared: bool) -> None:
    known.spared = spared
