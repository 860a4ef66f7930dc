"""Passes what the watch of pods reports on to a listener a moment later, so that pods are scheduled first.

A report on a pending pod leads to a round; a listener that is told of it beforehand delays the bind by all the time
that it takes. So reports wait, in order, and are passed on some at a time; of each pod only the newest, since most are
bound meanwhile. Ends and deletions are passed on at once, after what waits: listeners look up what the
store has of a pod, which forgets these.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Container
from itertools import islice

from poseidon_py.kube.objects import Pod
from poseidon_py.state.listeners import PodListener

log = logging.getLogger(__name__)

DELAY = 0.25
"""Seconds that a report waits: longer than it usually takes until the pod is bound."""
PAUSE = 0.002
"""Seconds between two portions of reports that are due, ..."""
STEP = 0.02
"""... and at least until others are."""
PORTION = 20
"""Reports that are passed on at once, which takes a few milliseconds; or a tenth of those that wait, if these are
more."""


class ReportClock:
    """The time of the report that is passed on, else the time now: what a listener notes is not late by the wait."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.now = now
        self.reported: float | None = None

    def __call__(self) -> float:
        return self.now() if self.reported is None else self.reported


class DeferredListener:
    """`observed`, `removed`, `listed`: see PodListener. `flush`: passes on what waits."""

    def __init__(
        self,
        listener: PodListener,
        clock: ReportClock,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._listener = listener
        self._clock = clock
        self._call_later = call_later
        self._waiting: dict[str, tuple[float, Pod]] = {}
        """By UID: the time of the newest report, and the pod."""
        self._scheduled = False

    def observed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self._waiting and not _replaces(pod, self._waiting[uid][1]):
            self.flush()
        self._waiting.pop(uid, None)  # to the end, since no report may overtake those before it
        self._waiting[uid] = self._clock.now(), pod
        if pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deleting:
            self.flush()
        elif not self._scheduled:
            self._after(DELAY)

    def removed(self, pod: Pod) -> None:
        self.flush()
        self._listener.removed(pod)

    def listed(self, uids: Container[str]) -> None:
        self.flush()
        self._listener.listed(uids)

    def flush(self) -> None:
        self._pass_on(len(self._waiting))

    def _after(self, seconds: float) -> None:
        self._scheduled = True
        (self._call_later or asyncio.get_running_loop().call_later)(seconds, self._due)

    def _due(self) -> None:
        self._scheduled = False
        due = self._clock.now() - DELAY
        portion = max(PORTION, len(self._waiting) // 10)
        self._pass_on(sum(1 for at, _ in islice(self._waiting.values(), portion) if at <= due))
        if self._waiting:
            first, _ = next(iter(self._waiting.values()))
            self._after(PAUSE if first <= due else min(max(first - due, STEP), DELAY))

    def _pass_on(self, count: int) -> None:
        """A defect of the listener loses no other report."""
        for uid in [*islice(self._waiting, count)]:
            self._clock.reported, pod = self._waiting.pop(uid)
            try:
                self._listener.observed(pod)
            except Exception:
                log.exception("a listener to pods failed")
            finally:
                self._clock.reported = None


def _replaces(newer: Pod, older: Pod) -> bool:
    """Whether nothing is missed without the older report on a pod: an announcement in its annotations may have been
    withdrawn since, and a phase may have ended."""
    return newer.status.phase == older.status.phase and newer.metadata.annotations == older.metadata.annotations
