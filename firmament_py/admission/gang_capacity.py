"""How much room there is for a gang: bounds that need no solve, and the domains that it may choose from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.admission.earliest_start import Need, enough_there, first_ends
from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.gang_demand import GangDemand


@dataclass(frozen=True, slots=True)
class Choices:
    """Sets of nodes of which one has to take what a gang lacks. of (N,): the number of the set that a node is in, -1:
    none. everywhere: there is one, of all nodes."""

    of: I64
    count: int
    everywhere: bool

    def nodes(self, number: int) -> Bools | None:
        """(N,) of one choice, None: all."""
        return None if self.everywhere else self.of == number

    def sums(self, amounts: I64) -> I64:
        """What `amounts` (C, N) >= 0 add up to in each: (C, D)."""
        inside = np.flatnonzero(self.of >= 0)
        sums = np.zeros((len(amounts), self.count), np.int64)
        for row, amount in zip(sums, amounts, strict=True):
            np.add.at(row, self.of[inside], amount[inside])
        return sums


class GangCapacity:
    """Of what is left while `placing` goes on."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot

    def fitting(self, members: I64, within: Bools | None) -> int:
        """How many of `members` would fit if their classes did not compete: an upper bound."""
        _, slots = self._placing.room_for(members, within)
        return int(np.minimum(slots.sum(axis=1), self._waiting(members)).sum())

    def fitting_each(self, members: I64, choices: Choices) -> I64:
        """The same for each of the choices: (D,)."""
        _, slots = self._placing.room_for(members)
        fitting: I64 = np.minimum(choices.sums(slots), self._waiting(members)[:, None]).sum(axis=0)
        return fitting

    def first_enough(self, members: I64, within: Bools | None, order: I64) -> int:
        """How many of the nodes in `order` (N,) it takes, 1 at least, for all of `members` to fit by that bound, N: it
        takes all, or all are not enough."""
        _, slots = self._placing.room_for(members, within)
        fitting = np.minimum(np.cumsum(slots[:, order], axis=1), self._waiting(members)[:, None]).sum(axis=0)
        return min(int(np.searchsorted(fitting, len(members))) + 1, len(order))

    def first_ends(self, claim: GangDemand, choices: Choices) -> I64:
        """For each choice (D,) the position in `releases.ends` of the first end at which what the gang lacks could fit
        there beside what is kept for others, len(ends): none. Its members fit then if they are of one class and depend
        on nobody."""
        placing, snapshot = self._placing, self._snapshot
        need = self._need(claim, placing.open_to(np.unique(snapshot.task_class[claim.members])))
        return first_ends(need, placing.unclaimed, choices.of, choices.count, snapshot.releases)

    def some_day(self, claim: GangDemand, choices: Choices) -> Bools:
        """(D,) for each choice whether, by that bound, what the gang lacks could fit there if nobody was on the nodes
        but those who stay."""
        snapshot = self._snapshot
        need = self._need(claim, snapshot.suitable[np.unique(snapshot.task_class[claim.members])])
        free = snapshot.allocatable - snapshot.releases.staying(claim.row)[1]
        return enough_there(need, free, choices.of, choices.count)

    def _need(self, claim: GangDemand, suitable: Bools) -> Need:
        """What the gang lacks, of members whose classes may go to `suitable` (C', N)."""
        requests = self._snapshot.requests[np.unique(self._snapshot.task_class[claim.members])]
        return Need(requests, suitable, self._waiting(claim.members), claim.lacking)

    def _waiting(self, members: I64) -> I64:
        """(C',) how many there are of each of their classes."""
        return np.unique(self._snapshot.task_class[members], return_counts=True)[1]

    def depends(self, claim: GangDemand) -> bool:
        """Whether where its members may be depends on where other tasks are."""
        classes = np.unique(self._snapshot.task_class[claim.members]).tolist()
        return any(self._snapshot.intertask.concerns(c) for c in classes)

    def every_domain(self, claim: GangDemand) -> Choices:
        """The domains that the gang may choose from."""
        domain = self._snapshot.domains(claim.definition.topology_key)
        at = np.unique(domain[claim.settled])
        if (at >= 0).any():  # members are in some already: the others have to follow
            return Choices(np.where(np.isin(domain, at[at >= 0]), 0, -1), 1, everywhere=False)
        return Choices(domain, int(domain.max(initial=-1)) + 1, everywhere=False)

    def domains(self, claim: GangDemand) -> list[Bools | None]:
        """Domains that could take what the gang lacks, (N,) each, the tightest first."""
        choices = self.every_domain(claim)
        room = choices.sums(self._placing.room_for(claim.members)[1]).sum(axis=0)
        order = np.argsort(room, kind="stable")
        return [choices.nodes(d) for d in order[room[order] >= claim.lacking].tolist()]

    def affinity_domains(self, claim: GangDemand, most: int = 4) -> Iterator[Bools]:
        """Domains that members want to share with others, (N,) each, the roomiest first."""
        classes, slots = self._placing.room_for(claim.members)
        for key in sorted({key for c in classes.tolist() for key in self._snapshot.intertask.affine_keys(c)}):
            domain = self._snapshot.domains(key)
            choices = Choices(domain, int(domain.max(initial=-1)) + 1, everywhere=False)
            room = choices.sums(slots).sum(axis=0)
            for d in np.argsort(-room, kind="stable")[:most].tolist():
                if room[d] >= claim.lacking:
                    yield domain == d

    def choices(self, claim: GangDemand) -> Choices:
        """Where all that it lacks may go: one of these."""
        if claim.definition.topology_required:
            return self.every_domain(claim)
        return Choices(np.zeros(len(self._snapshot.nodes), np.int64), 1, everywhere=True)
