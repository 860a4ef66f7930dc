"""A queue of reports with a limited rate: reports never delay a bind, and none is lost.

Without binds, reports are sent at the full rate. While binds are in flight the rate is low; urgent reports are sent
first, and calm ones only once they are old, so that a burst of binds is reported after it. Old reports have the low
rate only while binds wait for a slot, because a steady load that never fills the slots would delay them forever.
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
    """The load of binds, which have priority: see bind.slots.BindSlots."""

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
        """`rate`: items per second; 0: unlimited while there are no binds."""
        self._binds = binds
        self._rate = rate
        self._sleep = sleep
        self._monotonic = monotonic
        self._urgent: _Queue[T] = {}  # by key, oldest first: time of the first put, and the item
        self._calm: _Queue[T] = {}
        self._wake = asyncio.Event()
        self._pacing = asyncio.Lock()
        self._next = 0.0  # monotonic time from which the next item may be sent
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
        """Drops the item with the key, if there is one; with `calm` False only if it is urgent."""
        self._urgent.pop(key, None)
        if calm:
            self._calm.pop(key, None)

    def hurry(self) -> None:
        """Removes the rate limit from now on."""
        self._hurried = True
        self._wake.set()

    async def take(self) -> T:
        """The next item, once it may be sent."""
        async with self._pacing:  # one worker paces for all
            while True:
                while not len(self):
                    self._wake.clear()
                    await self._wake.wait()
                queue = await self._pace()
                if queue:
                    return queue.pop(next(iter(queue)))[1]

    async def _pace(self) -> _Queue[T]:
        """Waits until an item may be sent. Returns the queue that it heads; empty: all items were discarded."""
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
                    # credit for at most a tenth of a second, so that a long pause is not followed by a burst
                    self._next = max(self._next, now - 0.1) + 1.0 / rate
                    return queue
                pause = self._next - now
            else:
                pause = 1.0
            # a lower bound, to avoid a timer per item, and an upper one, because the binds may end before
            await self._sleep(min(max(pause, 0.01), 0.05))
            if busy and not self._binds.busy:
                self._next = min(self._next, self._monotonic())
        return self._urgent or self._calm
