"""What gangs need to be free before the first of their tasks is placed.

A gang may be of more tasks than exist: a driver creates its executors once it runs. So it can state amounts of
resources that must be free, in the cluster as a whole, before it starts. This is a comparison of sums, at the moment
when its turn comes. What gangs that have started have yet to take of their amounts is not free for the start of
others; single tasks and members of gangs can use it.
"""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.placement.ledger import Ledger
from firmament_py.snapshot.job_demand import JobDemand


class GangStart:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._started: list[JobDemand] = []

    def shortage(self, demand: JobDemand) -> tuple[tuple[str, int], ...]:
        """How much of which resources must become free before the gang can start; empty: nothing."""
        start = demand.start
        if start is None:
            return ()
        free = np.maximum(self._ledger.unreserved, 0).sum(axis=0) - self._snapshot.outstanding
        for started in self._started:
            free = free - self._outstanding(started)
        lacking = np.maximum(start.amounts - np.maximum(free, 0), 0)
        found = [(name, int(lacks)) for name, lacks in zip(self._snapshot.resources, lacking, strict=True) if lacks]
        return (*found, *start.unoffered)

    def started(self, demand: JobDemand) -> None:
        """The gang was placed."""
        if demand.start is not None:
            self._started.append(demand)

    def _outstanding(self, demand: JobDemand) -> I64:
        """(R,) what a gang that has started in this round has yet to take of its amounts."""
        assert demand.start is not None
        placed = demand.members[self._ledger.node_of[demand.members] >= 0]
        taken = self._snapshot.requests[self._snapshot.task_class[placed]].sum(axis=0)
        left: I64 = np.maximum(demand.start.amounts - taken, 0)
        return left
