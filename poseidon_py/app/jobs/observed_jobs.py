"""The tracker of jobs in a scheduler: what it is told of pods, its transitions and metrics, and the hooks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from poseidon_py.app.jobs.hook_terms import HookTerms
from poseidon_py.config.settings import Settings
from poseidon_py.machines.states import JOB, REPLICA, TASK
from poseidon_py.machines.transitions import AnyTransitions
from poseidon_py.state.deferred import DeferredListener, ReportClock
from poseidon_py.state.store import Store
from poseidon_py.tracking.accounts import MIGRATED, PREEMPTED
from poseidon_py.tracking.metrics import TrackingMetrics
from poseidon_py.tracking.tracker import Surroundings, Tracker
from poseidon_py.tracking.transition import Observed

log = logging.getLogger(__name__)

_PERIOD = 1.0
_JOB_SET = "JobSet"
_ENDING = ("Job", _JOB_SET)
"""How the names of kinds end whose status says that they have ended."""


class ObservedJobs:
    """`run` in a separate task; `lead`, `stand_by`, `stop`. `pods` is told of pods, and tells `tracker`; `transitions`
    has listeners."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        hooks: HookTerms | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._hooks = hooks
        self._sleep = sleep
        metrics = TrackingMetrics(store.metrics.registry)
        self.transitions: AnyTransitions[Observed] = AnyTransitions(
            {"job": JOB, "task": TASK, "replica": REPLICA}, metrics.transitions, metrics.illegal, logging.DEBUG
        )
        clock = ReportClock()
        self.tracker = Tracker(
            frozenset(settings.scheduler_name),
            self.transitions.passed,
            Surroundings(self._queue, self._gang_is_short, self._eviction, self._verdict),
            keep_seconds=settings.ended_jobs_seconds,
            keep_jobs=settings.ended_jobs,
            now=clock,
        )
        self.pods = DeferredListener(self.tracker, clock)
        metrics.show(self.tracker)
        if hooks is not None:
            hooks.watch(self.tracker)
            self.transitions.listeners.append(hooks.transitioned)

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._sleep(_PERIOD)
            try:
                self.pods.flush()  # a new pod may be that of a job that seems to have ended
                self.tracker.sweep()
            except Exception:  # rounds must go on
                log.exception("cannot bring ended jobs up to date")

    @property
    def newest(self) -> Tracker:
        """The tracker, told of all pods so far."""
        self.pods.flush()
        return self.tracker

    def lead(self) -> None:
        """This process reports to hooks from now on."""
        if self._hooks is not None:
            self._hooks.lead()

    def stand_by(self) -> None:
        """Another process may report to hooks."""
        if self._hooks is not None:
            self._hooks.stand_by()

    async def stop(self) -> None:
        """Until what was reported to hooks is stored, or some seconds have passed."""
        self.pods.flush()
        if self._hooks is not None:
            await self._hooks.stop()

    # -- what the scheduler knows -----------------------------------------------------------------------------

    def _queue(self, uid: str) -> str:
        known = self._store.pods.get(uid)
        return self._store.queues.resolution_of(known).name if known is not None else ""

    def _gang_is_short(self, uid: str) -> bool | None:
        pod = self._store.pods.get(uid)
        group = self._store.gangs.group_of(pod) if pod is not None else None
        return None if group is None else not group.complete

    def _eviction(self, uid: str) -> str:
        known = self._store.pods.get(uid)
        if known is None:
            return ""
        if known.preempting:
            return PREEMPTED
        return MIGRATED if known.migrating or known.planned else ""

    def _verdict(self, owner: str, kind: str) -> str | None:
        objects = self._store.gangs.objects
        found = objects.known_owner(owner)
        if kind == _JOB_SET and found is not None:  # its pods are those of its Jobs
            found = objects.known_owner(found.owner.uid) if found.owner is not None else None
        if found is not None and found.suspended:
            return ""
        return found.counts.verdict if found is not None and kind.endswith(_ENDING) else None
