"""Placements that are ready to be sent, in order, and the slots that send them.

While binds are busy, reports have a lower rate and the queue of pods defers more, so both read this load.
"""

import asyncio
from collections import OrderedDict, deque

from poseidon_py.bind.placement import Placement


class BindSlots:
    """`put` placements; each slot is a worker that calls `take`, sends, and calls `done`."""

    def __init__(self) -> None:
        self._ready: OrderedDict[Placement, None] = OrderedDict()
        self._idle: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0
        """Number of placements that are taken and not done."""

    @property
    def busy(self) -> bool:
        """Whether binds wait for a slot or are in flight."""
        return bool(self._ready) or self.in_flight > 0

    @property
    def saturated(self) -> bool:
        """Whether binds wait for a slot."""
        return bool(self._ready) and not self._idle  # a worker between two binds takes the next at once

    def put(self, placement: Placement) -> None:
        self._ready[placement] = None
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def remove(self, placement: Placement) -> None:
        """Removes a placement; no effect if it is not waiting for a slot."""
        self._ready.pop(placement, None)

    async def take(self) -> Placement:
        """Waits for the oldest ready placement. `done` must follow."""
        while not self._ready:
            waiter = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            await waiter
        placement, _ = self._ready.popitem(last=False)
        self.in_flight += 1
        return placement

    def done(self) -> None:
        self.in_flight -= 1
