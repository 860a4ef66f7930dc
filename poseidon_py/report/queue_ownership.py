"""Which of several schedulers writes the statuses of queues: the holder of a lease for queues of that kind.

Schedulers of different pods (--scheduler-name) are leaders of different leases, and may serve the same queues. All of
them count all pods in these, and each admits its own. One of them writes what is known about the queues. The holder
of the lease is a set of scheduler names, and acts by its leader, so that another replica goes on at once. Schedulers
with queues of different kinds (--queues) both write.
"""

import asyncio
from collections.abc import Callable

from poseidon_py.kube.lease import Election
from poseidon_py.state.queues.kinds import KINDS


def lease_of(kind: str) -> str:
    """The name of the lease for queues of a kind."""
    return f"poseidon-queues-{kind}"


LEASES = tuple(lease_of(kind) for kind in KINDS)


class QueueOwnership:
    """`run` in a separate task; `changed` when `needed` may have changed. A lease is asked for only while it is needed,
    and expires afterwards."""

    def __init__(self, election_for: Callable[[str], Election], needed: Callable[[], str]) -> None:
        """`election_for`: a new election for the lease of this name. `needed`: the kind of the queues that there is
        something to write about; empty: none."""
        self._election_for = election_for
        self._needed = needed
        self._wake = asyncio.Event()
        self._kind = ""
        self._election: Election | None = None
        self._task: asyncio.Task[None] | None = None

    def holds(self) -> bool:
        """Whether this scheduler writes what concerns queues."""
        return self._election is not None and self._needed() == self._kind and self._election.holds()

    @property
    def other(self) -> str:
        """The scheduler names of the other scheduler that does; empty: none is known."""
        election = self._election
        return election.holder if election is not None and election.holder != election.identity else ""

    def changed(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Never returns."""
        try:
            while True:
                self._wake.clear()
                if self._task is not None and self._task.done():
                    self._task.result()  # a defect: raises
                if self._needed() != self._kind:
                    await self._end()
                    self._begin(self._needed())
                await self._wake.wait()
        finally:
            await self._end()

    def _begin(self, kind: str) -> None:
        if kind:
            self._kind, self._election = kind, self._election_for(lease_of(kind))
            self._task = asyncio.create_task(self._election.run(), name="queue ownership")
            self._task.add_done_callback(lambda task: self._wake.set())

    async def _end(self) -> None:
        self._kind, self._election = "", None
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
