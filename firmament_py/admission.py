"""Which gangs a round places, and in which order everything gets its turn.

Priorities go from the highest down. At one priority: first single tasks that have waited longer than any gang, then
gangs by age, then the remaining single tasks and what gangs have beyond their minimum.

A lower bound on a flow must hold whatever it costs, so admission is a decision made before the flow: the gangs that
by their sums could fit together are forced (none of the members that they lack has an arc to U) and solved in one
network, largest members first. Those that come out short are taken back whole, and their room is free again. Each of
them, and each that the sums left out, is then tried on its own, by age, with what is left. So at the end no gang that
was turned away could have been placed on what remained when its turn came, and what gangs cannot use goes to others
in the same round.

A gang may ask for one domain of a topology (a rack): then it is tried in one domain after the other, the tightest
that could take it first.

Backfilling can starve a large gang: smaller ones always fit first. So the oldest gang of a priority that has waited
for RESERVE_AFTER_US and still does not fit claims what it could take: that room stays empty this round, and what
others release adds to it, until the gang fits whole. One gang a priority at most, so that two can never block each
other with halves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from firmament_py.arrays import I64, Bools
from firmament_py.gangs import Claim
from firmament_py.placing import Placing

RESERVE_AFTER_US = 300_000_000
"""How long a gang waits before it keeps room free, microseconds."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A gang that was not placed, and how many of the members that it lacks would have fitted. missing: members that
    do not exist yet (it was not tried)."""

    claim: Claim
    fitted: int
    missing: int
    reserves: bool = False


class Admission:
    def __init__(self, placing: Placing, claims: list[Claim], lap: Callable[[str], None]) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot
        self._claims = claims
        self._lap = lap
        self.rejected: list[Rejected] = []

    def run(self) -> None:
        """Places everything that can be placed, in order."""
        snapshot = self._snapshot
        single = np.ones(len(snapshot.tasks), np.bool_)
        for claim in self._claims:
            single[claim.members] = False
        by_priority = sorted(self._claims, key=lambda claim: (-claim.priority, claim.definition.created_us, claim.row))
        done = 0  # tasks before this position are of priorities that had their turn
        for priority, claims in groupby(by_priority, key=lambda claim: claim.priority):
            first, end = np.searchsorted(-snapshot.priority[snapshot.task_class], (-priority, -priority + 1)).tolist()
            if first > done:
                self._placing.attempt(done + np.flatnonzero(single[done:first]))
            self._gangs(list(claims), first + np.flatnonzero(single[first:end]))
            done = end
        # lower priorities without gangs share their solves
        self._placing.attempt(done + np.flatnonzero(single[done:]))

    def _gangs(self, claims: list[Claim], singles: I64) -> None:
        """One priority: gangs by age among its single tasks (positions, ascending)."""
        oldest_us = min(claim.definition.created_us for claim in claims)
        older = singles[self._snapshot.task_created_us[singles] < oldest_us]
        if len(older):
            self._placing.attempt(older)
        complete = []
        for claim in claims:
            if claim.missing:
                self.rejected.append(Rejected(claim, 0, claim.missing))
            else:
                complete.append(claim)
        admitted = self._together([claim for claim in complete if not claim.definition.topology_key])
        for claim in complete:
            if claim.row not in admitted:
                if self._alone(claim):
                    admitted.add(claim.row)
                else:
                    self._turn_away(claim)
        extra = [c.members[self._placing.node_of[c.members] < 0] for c in complete if c.row in admitted]
        rest = [singles[self._placing.node_of[singles] < 0], *extra]
        self._placing.attempt(np.sort(np.concatenate(rest)))

    def _together(self, claims: list[Claim]) -> set[int]:
        """Tries the gangs that by their sums could all fit, in one go; rows of those that were placed."""
        chosen, left = [], np.maximum(self._placing.free, 0).sum(axis=0)
        for claim in claims:
            needs = self._snapshot.requests[self._snapshot.task_class[claim.core()]].sum(axis=0)
            if (needs <= left).all():
                chosen.append(claim)
                left = left - needs
        if len(chosen) < 2:
            return set()  # no gain over trying it alone
        self._placing.attempt(np.sort(np.concatenate([claim.core() for claim in chosen])), largest_first=True)
        short = [claim for claim in chosen if not claim.satisfied(self._placing.node_of)]
        if short:
            self._placing.take_back(np.concatenate([claim.members for claim in short]))
        self._lap("gangs")
        return {claim.row for claim in chosen} - {claim.row for claim in short}

    def _alone(self, claim: Claim) -> bool:
        """Tries one gang with what is left; takes it back whole if it comes out short."""
        if not claim.definition.topology_key:
            return self._try(claim, None)
        if any(self._try(claim, domain) for domain in self._domains(claim)):
            return True
        return not claim.definition.topology_required and self._try(claim, None)

    def _try(self, claim: Claim, within: Bools | None) -> bool:
        core = claim.core()
        for members in (core, claim.members) if len(core) < len(claim.members) else (core,):
            if not self._could_fit(members, claim.lacking, within):
                continue
            self._placing.attempt(members, within, largest_first=True)
            if claim.satisfied(self._placing.node_of):
                self._placing.take_back(claim.surplus(self._placing.node_of))
                self._lap("gangs")
                return True
            self._placing.take_back(members)
            self._lap("gangs")
        return False

    def _could_fit(self, members: I64, lacking: int, within: Bools | None) -> bool:
        """Whether counting each class alone does not rule it out already."""
        return self._fitting(members, within) >= lacking

    def _fitting(self, members: I64, within: Bools | None) -> int:
        """How many of `members` would fit if their classes did not compete: an upper bound."""
        classes, slots = self._placing.room_for(members, within)
        waiting = np.bincount(np.searchsorted(classes, self._snapshot.task_class[members]), minlength=len(classes))
        return int(np.minimum(slots.sum(axis=1), waiting).sum())

    def _every_domain(self, claim: Claim) -> list[Bools]:
        """The domains that the gang may choose from, (N,) each."""
        domain = self._snapshot.domains(claim.definition.topology_key)
        if len(claim.settled):  # members are somewhere already: the others have to follow
            at = np.unique(domain[claim.settled])
            return [np.isin(domain, at[at >= 0])] if (at >= 0).any() else []
        return [np.equal(domain, d) for d in range(int(domain.max(initial=-1)) + 1)]

    def _domains(self, claim: Claim) -> list[Bools]:
        """Domains that could take what the gang lacks, (N,) each, the tightest first."""
        members = claim.members
        _, slots = self._placing.room_for(members)
        room = slots.sum(axis=0)
        able = [d for d in self._every_domain(claim) if int(room[d].sum()) >= claim.lacking]
        return sorted(able, key=lambda d: int(room[d].sum()))

    def _turn_away(self, claim: Claim) -> None:
        """Notes a gang that does not fit, and how far it would have come; the first to have waited long enough keeps
        what it could take."""
        core = claim.core()
        waited = self._snapshot.now_us - claim.definition.created_us
        reserves = waited >= RESERVE_AFTER_US and not any(
            other.reserves and other.claim.priority == claim.priority for other in self.rejected
        )
        if reserves:
            within = next(iter(self._domains(claim)), None) if claim.definition.topology_key else None
            self._placing.attempt(core, within, largest_first=True)
            fitted = int((self._placing.node_of[core] >= 0).sum())
            self._placing.withhold(core)
        else:
            if claim.definition.topology_required:
                fitted = max((self._fitting(core, domain) for domain in self._every_domain(claim)), default=0)
            else:
                fitted = self._fitting(core, None)
        self.rejected.append(Rejected(claim, min(fitted, claim.lacking), 0, reserves))
        self._lap("gangs")
