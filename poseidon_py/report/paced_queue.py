"""What waits to be told, and when the next of it may go: so that telling never delays a bind, and ends complete.

Idle, it goes at the full rate. While binds are on their way it trickles, what is urgent first, and what is calm only
once it is old: a burst of binds is told of when it is over. But what is old trickles only as long as binds wait for a
slot, as under a load that goes on without ever filling the slots it would never all be told.
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
    """What the outbox needs of binder.Binder."""

    @property
    def busy(self) -> bool: ...
    @property
    def saturated(self) -> bool: ...


class Outbox(Generic[T]):
    """`put` any number, `take` by any number of workers. What has the same key coalesces to the newest."""

    def __init__(
        self,
        binds: Binds,
        rate: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rate`: a second; 0: no limit but beside binds."""
        self._binds = binds
        self._rate = rate
        self._sleep = sleep
        self._monotonic = monotonic
        self._urgent: _Queue[T] = {}  # by key, oldest first: since when, and what
        self._calm: _Queue[T] = {}
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()
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
        """Forgets what waits under the key, if anything; not `calm`: only if it is urgent."""
        self._urgent.pop(key, None)
        if calm:
            self._calm.pop(key, None)

    def hurry(self) -> None:
        """From now on all goes as fast as it is taken."""
        self._hurried = True
        self._wake.set()

    async def take(self) -> T:
        """The next, when its time has come."""
        async with self._turn:  # one looks at the clock for all
            while True:
                while not len(self):
                    self._wake.clear()
                    await self._wake.wait()
                queue = await self._pace()
                if queue:
                    return queue.pop(next(iter(queue)))[1]

    async def _pace(self) -> _Queue[T]:
        """Waits until one may go. Returns which it is the first of; empty: what waited is gone meanwhile."""
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
                rest = self._next - now
            else:
                rest = 1.0
            # not for a moment: that would be a timer for each; not for long: the binds may be done before
            await self._sleep(min(max(rest, 0.01), 0.05))
            if busy and not self._binds.busy:
                self._next = min(self._next, self._monotonic())
        return self._urgent or self._calm
