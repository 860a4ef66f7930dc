"""Time stamps as the API server writes them, and the agenda of the simulated controllers.

`Agenda` decides what is due and runs it. The event loop of a server calls `run`, or a test does, so that simulated
controllers can be tested without waiting.
"""

from __future__ import annotations

import heapq
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

log = logging.getLogger(__name__)

_stamp_second = -1
_stamp_text = ""


def now_text() -> str:
    """The current time in whole seconds, RFC 3339; cached, because every write needs it."""
    global _stamp_second, _stamp_text
    second = int(time.time())
    if second != _stamp_second:
        _stamp_second, _stamp_text = second, rfc3339(second)
    return _stamp_text


def now_micro_text() -> str:
    """The current time with microseconds, as in leases and events.k8s.io."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def parse_rfc3339(text: str) -> float:
    """RFC 3339 as Unix seconds."""
    return datetime.fromisoformat(text).timestamp()


class Agenda:
    """Immediate work, in order, and delayed work, by due time (equal times in the order of registration).

    `speed` is simulated seconds per real second and applies to every delay.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, speed: float = 1.0) -> None:
        self._now = now
        self._speed = speed
        self._due: deque[Callable[[], None]] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.failures = 0
        """Actions that raised; anything but 0 is a defect."""
        self.on_work: Callable[[float], None] | None = None
        """Called with the seconds until the next work when it becomes due earlier than before."""

    def now(self) -> float:
        """Simulated seconds since some start."""
        return self._now() * self._speed

    def call_soon(self, action: Callable[[], None]) -> None:
        """Run `action` once, after the actions that are already due."""
        self._due.append(action)
        if len(self._due) == 1 and self.on_work is not None:
            self.on_work(0.0)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run `action` once, `seconds` of simulated time from now."""
        now = self._now()
        due = now + max(0.0, seconds) / self._speed
        heapq.heappush(self._later, (due, next(self._order), action))
        if self._later[0][0] == due and not self._due and self.on_work is not None:
            self.on_work(due - now)

    def run(self, budget_s: float = math.inf) -> float | None:
        """Run what is due, for at most the budget of real time.

        Returns the seconds until there is more to do (0 if the budget ran out), None if there is nothing.
        """
        stop = time.perf_counter() + budget_s
        now = self._now()
        while True:
            while self._later and self._later[0][0] <= now:
                self._due.append(heapq.heappop(self._later)[2])
            if not self._due:
                break
            action = self._due.popleft()
            try:
                action()
            except Exception:
                # an exception in one simulated component must not stop the others
                self.failures += 1
                log.exception("a simulated component failed")
            if time.perf_counter() > stop:
                break
        if self._due:
            return 0.0
        return max(0.0, self._later[0][0] - self._now()) if self._later else None
