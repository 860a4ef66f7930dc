"""Reports transitions to the hooks while this process leads: one `Hooks` object for each term.

A transition is in the API server before it is reported, so it can be reported once more: those of jobs and tasks are
noted in the status (jobs/outbox.py), and a pod that exists shows its own. That is done at the start of each term. What
this process has seen leave while another one led is reported, too: that one may have ended before.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

from msgspec import structs

from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.leader_hooks import LeaderHooks
from poseidon_py.jobs.cache import Cache, Key
from poseidon_py.jobs.hooks.mapping import deliveries
from poseidon_py.jobs.outbox import Outbox
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.transitions import Transition

log = logging.getLogger(__name__)

LEFT_SECONDS = 600.0
"""Time for which a process that stands by remembers pods that left."""
LEFT_PODS = 20_000


class HookReporter(LeaderHooks):
    """`watch` a cache, listen to its transitions; `lead` and `stand_by`; `stop`."""

    def __init__(
        self,
        new_hooks: Callable[[], Hooks],
        stored: Callable[[Key], None] = lambda key: None,
        ended: Callable[[str], None] = lambda why: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`new_hooks`: makes those of a term. `stored`: gets the key of a job whose transitions were stored. `ended`:
        gets the reason why the hooks of this term cannot go on."""
        super().__init__(new_hooks, "hooks of jobs")
        self._job_stored = stored
        self._report_end = ended
        self._now = now
        self.outbox = Outbox(self.transitioned)
        self._cache: Cache | None = None
        self._unstored: list[Transition] = []
        self._some = asyncio.Event()
        self._left: deque[Transition] = deque(maxlen=LEFT_PODS)

    def watch(self, cache: Cache) -> None:
        """The cache that has the jobs and pods."""
        self._cache = cache

    def lead(self) -> None:
        """A term begins."""
        super().lead()
        self._unstored = []
        left, self._left = self._left, deque(maxlen=LEFT_PODS)
        for transition in left:
            if transition.time > self._now() - LEFT_SECONDS:
                self.transitioned(transition)
        if self._cache is not None:
            for transition in self._cache.present():
                self.transitioned(transition)

    def transitioned(self, transition: Transition) -> None:
        """A transition has taken place; a listener of jobs.transitions.Transitions."""
        hooks = self._hooks
        if hooks is None:
            if transition.machine == "replica" and transition.new == ReplicaState.ABSENT:
                # its whole path: the leader may have reported none of it
                self._left.append(structs.replace(transition, old=ReplicaState.ABSENT))
            return
        job = self._cache.jobs.get((transition.namespace, transition.job)) if self._cache is not None else None
        if job is not None and job.owner.uid != transition.job_uid:
            job = None
        for delivery in deliveries(transition, job):
            hooks.transitioned(delivery)
        if transition.number:
            self._unstored.append(transition)
            self._some.set()

    def _ended(self, why: str) -> None:
        log.warning("the hooks of jobs have ended: %s", why)
        self._report_end(why)

    async def _confirm(self, hooks: Hooks) -> None:
        """Tells the outbox what is stored."""
        while True:
            await self._some.wait()
            self._some.clear()
            taken, self._unstored = self._unstored, []
            await hooks.reported()
            for transition in taken:
                self.outbox.stored(transition)
            for key in {(each.namespace, each.job) for each in taken}:
                self._job_stored(key)
