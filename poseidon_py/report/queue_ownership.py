"""Which of several schedulers writes the statuses of queues: the holder of a lease of its own.

Schedulers of different pods (--scheduler-name) are leaders of different leases, and may serve the same queues. All of
them count all pods in these, and each admits its own. One of them writes what is known about the queues. The holder
of the lease is a set of scheduler names, and acts by its leader, so that another replica goes on at once.
"""

import asyncio
from collections.abc import Callable

from poseidon_py.kube.lease import Election

LEASE = "poseidon-queues"


class QueueOwnership:
    """`run` in a separate task; `changed` when `needed` may have changed. The lease is asked for only while it is
    needed, and expires afterwards."""

    def __init__(self, election: Election, needed: Callable[[], bool]) -> None:
        self._election = election
        self._needed = needed
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def holds(self) -> bool:
        """Whether this scheduler writes what concerns queues."""
        return self._needed() and self._election.holds()

    @property
    def other(self) -> str:
        """The scheduler names of the other scheduler that does; empty: none is known."""
        holder = self._election.holder
        return holder if holder != self._election.identity and self._task is not None else ""

    def changed(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Never returns."""
        try:
            while True:
                self._wake.clear()
                if self._task is not None and self._task.done():
                    self._task.result()  # a defect: raises
                if self._needed() and self._task is None:
                    self._task = asyncio.create_task(self._election.run(), name="queue ownership")
                    self._task.add_done_callback(lambda task: self._wake.set())
                elif not self._needed():
                    await self._end()
                await self._wake.wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
