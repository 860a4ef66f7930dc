"""Time as an argument, so that tests have their own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """`now`: seconds since the epoch; `monotonic`: seconds, never set back; `sleep`: waits as asyncio.sleep does."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def wait(self, event: asyncio.Event, seconds: float | None) -> None:
        """Until the event is set, or `seconds` have passed; None: however long that takes."""
        if event.is_set():
            return
        if seconds is None:
            await event.wait()
            return
        waiter = asyncio.create_task(event.wait())
        timer = asyncio.ensure_future(self.sleep(max(0.0, seconds)))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            timer.cancel()
