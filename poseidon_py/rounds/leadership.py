"""Whether this process leads, that is, whether it may begin rounds and report on pods."""

import asyncio


class Leadership:
    """Shared by all that only the leader does. Stands by at first."""

    def __init__(self) -> None:
        self._leading = asyncio.Event()
        self._stopped = False

    @property
    def leads(self) -> bool:
        return self._leading.is_set()

    @property
    def stopped(self) -> bool:
        return self._stopped

    async def wait(self) -> None:
        """Returns when this process leads, or at once if it has stopped for good: see `stopped`."""
        while not (self.leads or self._stopped):
            await self._leading.wait()

    def lead(self) -> bool:
        """False: the lease came too late, after `stop`."""
        if not self._stopped:
            self._leading.set()
        return self.leads

    def stand_by(self) -> None:
        self._leading.clear()

    def stop(self) -> None:
        """Does not lead any more, for good."""
        self._stopped = True
        self.stand_by()
