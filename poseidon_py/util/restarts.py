"""Keeps background work going that nothing else supervises, although a defect ends it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

_FIRST, _LONGEST = 1.0, 60.0


async def restarted(
    name: str,
    work: Callable[[], Awaitable[None]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Runs `work`, which does not return by itself, and again after each exception, with growing delays. Each is logged
    with its traceback. Never returns."""
    backoff = Backoff(_FIRST, _LONGEST)
    while True:
        began = monotonic()
        try:
            await work()
        except Exception:
            if monotonic() - began >= _LONGEST:
                backoff.reset()
            delay = backoff.next()
            log.exception("%s failed: a defect; starting it again in %.1f s", name, delay)
            await sleep(delay)
