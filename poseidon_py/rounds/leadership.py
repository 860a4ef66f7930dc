"""Whether this process is the leader, that is, may start rounds and report on pods."""

import asyncio


class Leadership:
    """Shared by all components that work on the leader only. Initially a standby."""

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
        """Waits until this process is the leader; not at all after `stop`, which does not end a wait that has begun."""
        while not (self.leads or self._stopped):
            await self._leading.wait()

    def lead(self) -> bool:
        """False: the lease was acquired after `stop`."""
        if not self._stopped:
            self._leading.set()
        return self.leads

    def stand_by(self) -> None:
        self._leading.clear()

    def stop(self) -> None:
        """Stops leading, permanently."""
        self._stopped = True
        self.stand_by()
