"""Reports that wait to be sent, and when the next may go: reports never delay a bind, and none is lost.

Without binds, reports go at the full rate. While binds are in flight they trickle, urgent ones first, and calm ones
only once they are old: a burst of binds is reported when it is over. Old reports trickle only while binds wait for a
slot; otherwise, under a steady load that never fills the slots, they would never all be sent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

_TRICKLE = 0.1
_OLD_SECONDS = 10.0

T = TypeVar("T")
_Queue = dict[str, tuple[float, T]]


class Binds(Protocol):
    """The load of binds, of which the outbox keeps clear: see bind.slots.BindSlots."""

    @property
    def busy(self) -> bool: ...
    @property
    def saturated(self) -> bool: ...


class Outbox(Generic[T]):
    """`put` any number, `take` by any number of workers. Items with the same key coalesce to the newest."""

    def __init__(
        self,
        binds: Binds,
        rate: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rate`: items a second; 0: unlimited while there are no binds."""
        self._binds = binds
        self._rate = rate
        self._sleep = sleep
        self._monotonic = monotonic
        self._urgent: _Queue[T] = {}  # by key, oldest first: since when, and what
        self._calm: _Queue[T] = {}
        self._wake = asyncio.Event()
        self._pacing = asyncio.Lock()
        self._next = 0.0  # monotonic time at which the next may go
        self._hurried = False

    def __len__(self) -> int:
        return len(self._urgent) + len(self._calm)

    def __contains__(self, key: str) -> bool:
        return key in self._urgent or key in self._calm

    def put(self, key: str, item: T, *, urgent: bool) -> None:
        self.discard(key)
        (self._urgent if urgent else self._calm)[key] = self._monotonic(), item
        self._wake.set()

    def discard(self, key: str, *, calm: bool = True) -> None:
        """Drops what waits under the key, if anything; not `calm`: only if it is urgent."""
        self._urgent.pop(key, None)
        if calm:
            self._calm.pop(key, None)

    def hurry(self) -> None:
        """From now on items go as fast as they are taken."""
        self._hurried = True
        self._wake.set()

    async def take(self) -> T:
        """The next item, when it may go."""
        async with self._pacing:  # one worker paces for all
            while True:
                while not len(self):
                    self._wake.clear()
                    await self._wake.wait()
                queue = await self._pace()
                if queue:
                    return queue.pop(next(iter(queue)))[1]

    async def _pace(self) -> _Queue[T]:
        """Waits until an item may go. Returns the queue whose first it is; empty: all that waited was discarded."""
        while len(self) and not self._hurried:
            busy, now = self._binds.busy, self._monotonic()
            queue = self._urgent or self._calm
            old = next(iter(queue.values()))[0] + _OLD_SECONDS <= now
            if old or not busy or queue is self._urgent:
                rate = self._rate
                if busy and (self._binds.saturated or not old):
                    rate = (rate or 1000.0) * _TRICKLE
                if not rate:
                    return queue
                if now >= self._next:
                    # credit for at most a tenth of a second: a long pause must not become a burst
                    self._next = max(self._next, now - 0.1) + 1.0 / rate
                    return queue
                pause = self._next - now
            else:
                pause = 1.0
            # not too short: that would be a timer for each item; not too long: the binds may end before
            await self._sleep(min(max(pause, 0.01), 0.05))
            if busy and not self._binds.busy:
                self._next = min(self._next, self._monotonic())
        return self._urgent or self._calm
