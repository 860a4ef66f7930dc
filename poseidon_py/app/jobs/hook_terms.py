"""Reports the scheduler's transitions of jobs, tasks and replicas to hooks, while this process leads.

Nothing of a job is stored but what its pods say, so a new leader reports again what exists: all transitions since a
mark, the time up to which the one before has stored all of them. The mark is kept with the deliveries. Without one,
hooks are new here, and get what happens from now on.

    lead -> former deliveries are read -> what exists, since the mark -> each transition -> stored -> the mark moves
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import chain

from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.leader_hooks import LeaderHooks
from poseidon_py.hooks.transition import Transition
from poseidon_py.kube.quantity import CPU
from poseidon_py.tracking.times import written
from poseidon_py.tracking.tracker import Tracker
from poseidon_py.tracking.transition import Observed

log = logging.getLogger(__name__)

MARGIN_SECONDS = 60.0
"""By how much clocks of nodes may differ, and watches lag: so much before the mark is reported again."""
REMEMBERED = 20_000
"""Transitions that a process remembers while it stands by."""
_AT_ONCE = 200
"""Transitions that are examined without a pause, which takes some milliseconds."""
_POLL = 0.2
_PERIOD = 5.0
"""Seconds after which the mark moves, if there were transitions."""


class HookTerms(LeaderHooks):
    """`watch` a tracker and listen to its transitions; `lead`, `stand_by`, `stop`."""

    def __init__(
        self,
        new_hooks: Callable[[], Hooks],
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`new_hooks`: makes those of a term."""
        super().__init__(new_hooks, "hooks of observed jobs")
        self._now = now
        self._sleep = sleep
        self._tracker: Tracker | None = None
        self._seen: deque[Observed] = deque(maxlen=REMEMBERED)
        """While another process led, which may have ended before it reported them; some are of pods that are gone."""
        self._moved = False
        """Whether there was a transition since the mark was set."""

    def watch(self, tracker: Tracker) -> None:
        """The tracker that has what exists."""
        self._tracker = tracker

    def transitioned(self, transition: Observed) -> None:
        """A transition has taken place; a listener."""
        if self._hooks is not None:
            self._hooks.transitioned(delivery_of(transition))
            self._moved = True
        else:
            self._seen.append(transition)

    def _ended(self, why: str) -> None:
        # scheduling goes on; transitions from now on are counted as lost
        remedy = "if another scheduler has the same file of hooks, give each file a namespace of its own"
        log.error("hooks of observed jobs have ended: %s; %s", why, remedy)

    async def _confirm(self, hooks: Hooks) -> None:
        """Reports what exists since the former mark, and moves it."""
        former = await hooks.mark()
        while self._tracker is not None and not self._tracker.live:
            await self._sleep(_POLL)  # what exists is not known before
        if former:
            await self._report_again(hooks, former - MARGIN_SECONDS)
        self._seen.clear()
        self._moved = True
        while True:
            if self._moved:
                self._moved, now = False, self._now()
                await hooks.reported()
                hooks.set_mark(now)
            await self._sleep(_PERIOD)

    async def _report_again(self, hooks: Hooks, since: float) -> None:
        count = 0
        present = self._tracker.present() if self._tracker is not None else ()
        for number, transition in enumerate(chain(list(self._seen), present), 1):
            if number % _AT_ONCE == 0:
                await self._sleep(0)  # let binds proceed
            if transition.time >= since:
                hooks.transitioned(delivery_of(transition))
                count += 1
        log.info("hooks of observed jobs: %d transitions since the former leader are reported again", count)


def delivery_of(it: Observed) -> Transition:
    """What hooks are given of a transition."""
    job_id = it.job_uid or f"{it.kind}/{it.namespace}/{it.job}"
    details = {f"requests.{resource}": _amount(resource, amount) for resource, amount in it.requests}
    texts = {"kind": it.kind, "task": it.task, "pod": it.pod, "node": it.node, "queue": it.queue, "reason": it.reason}
    details |= {key: text for key, text in texts.items() if text}
    if since := written(min(it.since, it.time)):
        details["since"] = since
    if it.machine == "replica":
        ident, name = it.pod_uid, it.pod
    elif it.machine == "task":
        ident, name = f"{job_id}/{it.task}", f"{it.job}-{it.task}"
    else:
        ident, name = job_id, it.job
    return Transition(
        it.machine, ident, it.namespace, name, it.user, f"{it.namespace}/{it.job}",
        it.old, it.new, it.time, details, it.occasion,
    )  # fmt: skip


def _amount(resource: str, amount: float) -> str:
    return f"{amount:g}" if resource == CPU else f"{amount:.0f}"
