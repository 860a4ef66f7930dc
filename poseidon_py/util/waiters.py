"""Coroutines that wait for something that becomes available, in the order in which they came."""

import asyncio
from collections import deque


class Waiters:
    """Use from one event loop. A coroutine that is woken waits again if what it waits for is gone."""

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Until this one is woken."""
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.wake_one()  # this wake-up would be lost: pass it on
            raise

    def wake_one(self) -> None:
        """Wakes the first one that still waits."""
        while self._futures:
            future = self._futures.popleft()
            if not future.done():
                future.set_result(None)
                return

    def wake_all(self) -> None:
        for future in self._futures:
            if not future.done():
                future.set_result(None)
        self._futures.clear()
