"""Whether requests may be sent, and how many at once."""

import asyncio
from collections.abc import Callable


class Permission:
    """Shared by all writers of preemptions. `halted` until `resume`, and after `halt`."""

    def __init__(self, leads: Callable[[], bool], concurrency: int) -> None:
        """`leads`: whether, by the clock, no other replica can be the leader."""
        self._leads = leads
        self.slots = asyncio.Semaphore(concurrency)
        """One for each request in flight."""
        self.halted = False

    def may_write(self) -> bool:
        """Called before each write, because a suspended process learns late that another replica is the leader."""
        return not self.halted and self._leads()
