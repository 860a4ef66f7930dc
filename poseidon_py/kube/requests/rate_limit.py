"""A limit on requests per second, in client-go's terms: a bucket of `burst` tokens that `qps` tokens a second fill."""

import asyncio
import time
from collections.abc import Awaitable, Callable


class RateLimit:
    """`await limit.wait()` before each request; those that wait are served in order."""

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`qps`: 0 or less: no limit."""
        self._qps = qps
        self._burst = burst
        self._sleep = sleep
        self._monotonic = monotonic
        self._tokens = float(burst)
        """Below 0: of requests that wait."""
        self._filled_at = monotonic()

    async def wait(self) -> None:
        """Until one more request may be sent."""
        if self._qps <= 0:
            return
        now = self._monotonic()
        self._tokens = min(self._tokens + (now - self._filled_at) * self._qps, self._burst) - 1
        self._filled_at = now
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)
