"""The gangs and overdue single tasks that a round did not place, and the reservations that some of them have."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from firmament_py.admission.backfill import Reservations
from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.placement.placer import Placer
from firmament_py.snapshot.job_demand import JobDemand


@dataclass(frozen=True, slots=True)
class Rejected:
    """A gang that was not placed, and how many of the members that it lacks would have fitted. missing: members that do
    not exist yet (it was not tried, nor is one that is full: see JobDemand). shortage: (resource, amount) that must
    become free before it can start, so that it was not tried. reserves: capacity is reserved for it;
    starts_us: when it is expected to fit, 0: unknown. at_best: how many would fit with all evictions and moves, -1:
    perhaps all."""

    demand: JobDemand
    fitted: int
    missing: int
    reserves: bool = False
    starts_us: int = 0
    at_best: int = -1
    shortage: tuple[tuple[str, int], ...] = ()

    @property
    def untried(self) -> bool:
        return self.missing > 0 or self.demand.full or bool(self.shortage)


class Rejections:
    def __init__(self, placer: Placer, capacity: GangCapacity, reservations: Reservations) -> None:
        self._placer = placer
        self._capacity = capacity
        self._reservations = reservations
        self.all: list[Rejected] = []

    def add_untried(self, demand: JobDemand, shortage: tuple[tuple[str, int], ...] = ()) -> None:
        """A gang that lacks members that do not exist yet, would exceed its maximum, or cannot start for this shortage
        of resources."""
        self.all.append(Rejected(demand, 0, demand.missing, shortage=shortage))

    def add(self, demand: JobDemand) -> None:
        """A gang that does not fit; capacity is reserved for it if it is overdue."""
        if self._reservations.overdue(demand):
            reservation = self._reservations.reserve(demand)
            fitted, starts_us, reserves = reservation.fitted, reservation.starts_us, True
        else:
            core = demand.core()
            fitted = int(self._capacity.fitting_each(core, self._capacity.choices(demand)).max(initial=0))
            starts_us, reserves = 0, False
        # the bound counts classes and domains apart; that not all fit is known
        self.all.append(Rejected(demand, min(fitted, demand.lacking - 1), 0, reserves, starts_us))
        self._placer.telemetry.lap("gangs")

    def note_bounds(self, at_best: Mapping[int, int]) -> None:
        """at_best: keys of gangs -> how many of the members that they lack would fit with all evictions and moves."""
        self.all = [replace(r, at_best=at_best.get(r.demand.key, -1)) for r in self.all]

    def release_reservations(self) -> bool:
        """Releases what is reserved for single tasks that have been placed after all, among others; whether there was
        any."""
        node_of = self._placer.ledger.node_of
        found = [r for r in self.all if r.demand.gang is None and node_of[r.demand.members[0]] >= 0]
        for rejected in found:
            self._reservations.release(rejected.demand)
        self.all = [r for r in self.all if not any(r is other for other in found)]
        return bool(found)
