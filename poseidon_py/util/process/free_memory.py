"""Gives memory back that a process has freed."""

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from contextlib import suppress

_QUIET_SECONDS = 60.0
_MANY = 1000


def give_back_freed_memory() -> None:
    """What a start needs once, such as pages of lists, otherwise stays with the allocator. Where that is not glibc's,
    nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def give_back_after_bursts(
    done: Callable[[], int],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    give_back: Callable[[], None] = give_back_freed_memory,
) -> None:
    """Gives memory back after each burst of work: in the first minute without any after a thousand pieces. `done`: how
    many pieces there were. Never returns."""
    before = last = done()
    while True:
        await sleep(_QUIET_SECONDS)
        now = done()
        if now == last and now - before >= _MANY:
            give_back()
            before = now
        last = now
