"""Room that is kept for a gang that has waited for long, so that smaller ones cannot starve it.

*By expected end.* Where tasks that run say how long they will, the gang is planned at the earliest time at which
enough of them have ended for it to fit whole. Who ends before that may use the room until then; everybody else has to
leave, at that time, the room that the gang is planned in. So nobody who is let in delays it, as long as expectations
are true (EASY backfilling: Lifka, The ANL/IBM SP scheduling system, 1995).

*By age.* Where that is not known, because those who would have to go do not say how long they run, the gang keeps what
it could take now; for members that do not fit it keeps others out of the nodes that have least to give back for them.
What is released there, or anywhere else, adds to it until it fits whole.

One gang of a priority at most, so that two can never block each other with halves; and none that the nodes could not
take beside what never ends (admission/gang_feasibility.py).
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.admission.gang_capacity import Choices, GangCapacity
from firmament_py.admission.gang_feasibility import Prospects
from firmament_py.admission.gang_placement import GangTry
from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.gang_demand import GangDemand

RESERVE_AFTER_US = 300_000_000
"""How long a gang waits before it keeps room free unless the operator says otherwise, microseconds."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """fitted: how many of the members that it lacks would fit now. starts_us: when all of them are expected to, 0: that
    is not known."""

    fitted: int
    starts_us: int


class Reservations:
    """after_us: how long a gang waits before it keeps room, None: it never does."""

    def __init__(
        self, placing: Placing, room: GangCapacity, trying: GangTry, prospects: Prospects, after_us: int | None
    ) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot
        self._room = room
        self._try = trying
        self._prospects = prospects
        self._after_us = after_us
        self._kept: dict[int, int] = {}  # of priorities for which a gang keeps room: the number of what it keeps

    def overdue(self, claim: GangDemand) -> bool:
        """Whether it is to keep room free if it does not fit: it has waited, could fit some day, and is the first."""
        waited = self._snapshot.now_us - claim.definition.created_us
        return (
            self._after_us is not None
            and waited >= self._after_us
            and claim.priority not in self._kept
            and self._prospects.any(claim)
        )

    def reserve(self, claim: GangDemand) -> Reservation:
        """Keeps room for a gang that is overdue and does not fit."""
        choices, able, core = self._room.choices(claim), self._prospects.able(claim), claim.core()
        fitting = self._room.fitting_each(core, choices)[able]
        fitted = int(fitting.max())
        placing, releases = self._placing, self._snapshot.releases
        starts_us, claimed = self._earliest(claim, choices)
        if claimed is not None:
            self._kept[claim.priority] = placing.keep(starts_us, placing.free_now + releases.until(starts_us), claimed)
            return Reservation(fitted, starts_us)
        roomiest = able[np.argsort(-fitting, kind="stable")].tolist()
        best = choices.nodes(next(number for number in roomiest if self._prospects.possible(claim, number)))
        placing.attempt(core, best, largest_first=True)
        fitted = int((placing.node_of[core] >= 0).sum())
        later = self._where_least_has_to_go(claim, core[placing.node_of[core] < 0], best)
        claimed = self._take_back(core) + later
        self._kept[claim.priority] = placing.keep(self._snapshot.now_us, placing.free_now, claimed)
        return Reservation(fitted, 0)

    def give_up(self, claim: GangDemand) -> None:
        """Keeps no longer what `claim` reserved."""
        self._placing.give_up(self._kept.pop(claim.priority))

    def _where_least_has_to_go(self, claim: GangDemand, members: I64, within: Bools | None) -> I64:
        """(N, R) what `members` of a gang, which do not fit now, would take if all had gone who may, on the nodes of
        which least has to. Nobody else may enter there, so that what is released adds up."""
        placing, snapshot = self._placing, self._snapshot
        held = snapshot.allocatable - snapshot.free - snapshot.releases.staying(claim.row)[1]
        scale = np.maximum(snapshot.allocatable.max(axis=0, initial=1), 1)
        order = np.argsort((held / scale).max(axis=1, initial=0.0), kind="stable")
        inside = np.ones(len(order), np.bool_) if within is None else within
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        with placing.supposing(placing.unclaimed + held):
            enough = self._room.first_enough(members, within, order)
            placing.attempt(members, inside & (rank < enough), largest_first=True)
            while enough < len(order) and (left := members[placing.node_of[members] < 0]).size:
                enough *= 2  # classes compete
                placing.attempt(left, inside & (rank < enough), largest_first=True)
            return self._take_back(members)

    def _earliest(self, claim: GangDemand, choices: Choices) -> tuple[int, I64 | None]:
        """The earliest time at which the gang fits, as far as expectations go, and what it takes then; None: never.

        Before the bound nothing fits. Where that is not enough, because classes compete or depend on others, later ends
        are tried at growing distance, then by halving.
        """
        able, ends = self._prospects.able(claim), self._snapshot.releases.ends
        first = np.full(choices.count, len(ends), np.int64)
        first[able] = self._room.first_ends(claim, choices)[able]

        def plan(end: int) -> I64 | None:
            return self._plan(claim, [choices.nodes(d) for d in np.flatnonzero(first <= end).tolist()], int(ends[end]))

        low = high = int(first.min())
        best, step = plan(high) if high < len(ends) else None, 1
        while best is None and high < len(ends) - 1:
            low, high, step = high + 1, min(high + step, len(ends) - 1), 2 * step
            best = plan(high)
        while best is not None and low < high:
            middle = (low + high) // 2
            sooner = plan(middle)
            if sooner is None:
                low = middle + 1
            else:
                high, best = middle, sooner
        return (0 if best is None else int(ends[high])), best

    def _plan(self, claim: GangDemand, among: list[Bools | None], when_us: int) -> I64 | None:
        """(N, R) what the gang would take at `when_us` on one of these sets of nodes; None: it would not fit."""
        with self._placing.supposing(self._placing.unclaimed + self._snapshot.releases.until(when_us)):
            for nodes in among:
                if self._try.within(claim, nodes):
                    return self._take_back(claim.members)
        return None

    def _take_back(self, members: I64) -> I64:
        """(N, R) what members were just given."""
        placed = members[self._placing.node_of[members] >= 0]
        claimed = np.zeros_like(self._snapshot.free)
        requests = self._snapshot.requests[self._snapshot.task_class[placed]]
        np.add.at(claimed, self._placing.node_of[placed], requests)
        self._placing.take_back(placed)
        return claimed
