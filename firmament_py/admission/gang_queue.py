"""Places the complete gangs of one priority, oldest first.

A lower bound on a flow must hold whatever it costs, so admission is a decision made before the flow: the gangs at the
head of the queue that could fit together, judging by sums, are forced (none of the members that they lack has an arc to
U) and solved in one network, largest members first. Those that come out short are removed whole, and so are all younger
ones, until the short one has been tried on its own. A gang that the sums left out, that asks for a topology domain, or
whose members have intertask constraints is tried on its own, too.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np

from firmament_py.admission.backfill import Reservations
from firmament_py.admission.gang_placement import GangPlacer
from firmament_py.admission.gang_start import GangStart
from firmament_py.admission.rejections import Rejections
from firmament_py.model.arrays import I64
from firmament_py.snapshot.job_demand import JobDemand

STRICT_BATCHES = 16
"""For so many batches of a queue gangs are kept strictly in order of age at the cost of a further solve; after that
only an overdue gang is. Bounds a round with hundreds of gangs that nearly fit."""


class GangQueue:
    def __init__(self, gang_placer: GangPlacer, reservations: Reservations, rejections: Rejections) -> None:
        self._gang_placer = gang_placer
        self._placer = gang_placer.placer
        self._capacity = gang_placer.capacity
        self._ledger = self._placer.ledger
        self._snapshot = self._placer.snapshot
        self._reservations = reservations
        self._rejections = rejections
        self._start = GangStart(self._ledger)

    def place(self, demands: Iterable[JobDemand]) -> list[JobDemand]:
        """Places complete gangs of one priority, oldest first; returns those that fit, and rejects the others."""
        queue, admitted, strict = deque(demands), [], STRICT_BATCHES
        while queue:
            batch = self._next_batch(queue, strict > 0)
            strict -= 1
            placed, short = self._together([demand for demand in batch if self._joins(demand)])
            accepted = self._until_short(batch, placed, short if strict > 0 else set())
            queue.extendleft(reversed(batch[accepted:]))  # back to the head of the queue
            for demand in batch[:accepted]:
                if shortage := self._start.shortage(demand):
                    self._rejections.add_untried(demand, shortage)
                elif demand.key in placed or self._gang_placer.anywhere(demand):
                    admitted.append(demand)
                    self._start.started(demand)
                else:
                    self._rejections.add(demand)
        return admitted

    def _next_batch(self, queue: deque[JobDemand], strict: bool) -> list[JobDemand]:
        """Takes the gangs to try next from the queue: all up to the first that cannot be tried together with others if
        that is overdue or, if strict, has to be tried on its own."""
        batch, left = [], np.maximum(self._ledger.unreserved, 0).sum(axis=0)
        while queue:
            demand = queue.popleft()
            batch.append(demand)
            needs, joins = self._needs(demand), self._joins(demand)
            if joins and (needs <= left).all():
                left = left - needs
            elif (strict and not joins) or self._reservations.overdue(demand):
                break
        return batch

    def _until_short(self, batch: list[JobDemand], placed: set[int], short: set[int]) -> int:
        """How many gangs of the batch keep their turn: all up to the first that is short, or overdue and not placed.
        Younger ones that were placed are removed: none may prevent it from being placed."""
        for i, demand in enumerate(batch):
            if demand.key in short or (demand.key not in placed and self._reservations.overdue(demand)):
                younger = [other for other in batch[i + 1 :] if other.key in placed]
                if younger:
                    self._ledger.remove(np.concatenate([other.members for other in younger]))
                return i + 1
        return len(batch)

    def _joins(self, demand: JobDemand) -> bool:
        """Whether it can be tried together with others: what is removed must not be what another gang depends on."""
        return not demand.topology_key and demand.start is None and not self._capacity.depends(demand)

    def _needs(self, demand: JobDemand) -> I64:
        """(R,) what the members that it lacks request together."""
        needs: I64 = self._snapshot.requests[self._snapshot.task_class[demand.core()]].sum(axis=0)
        return needs

    def _together(self, demands: list[JobDemand]) -> tuple[set[int], set[int]]:
        """Tries the gangs that could all fit, judging by sums, in one solve; rows of those that were placed, and of
        those that came out short."""
        chosen, left = [], np.maximum(self._ledger.unreserved, 0).sum(axis=0)
        for demand in demands:
            needs = self._needs(demand)
            if (needs <= left).all():
                chosen.append(demand)
                left = left - needs
        if len(chosen) < 2:
            return set(), set()  # no gain over trying it alone
        self._placer.place(np.sort(np.concatenate([demand.core() for demand in chosen])), largest_first=True)
        short = [demand for demand in chosen if not demand.satisfied(self._ledger.node_of)]
        if short:
            self._ledger.remove(np.concatenate([demand.members for demand in short]))
        self._placer.telemetry.lap("gangs")
        rows = {demand.key for demand in short}
        return {demand.key for demand in chosen} - rows, rows
