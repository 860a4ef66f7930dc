"""How much room there is for a gang: bounds that need no solve, and the domains that it may choose from."""

import numpy as np

from firmament_py.arrays import I64, Bools
from firmament_py.gangs import Claim
from firmament_py.placing import Placing


class GangRoom:
    """Of what is left while `placing` goes on."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot

    def fitting(self, members: I64, within: Bools | None, *, empty: bool = False) -> int:
        """How many of `members` would fit if their classes did not compete: an upper bound. empty: if nobody was on
        the nodes who may go some day."""
        classes, slots = self._placing.room_for(members, within, empty=empty)
        waiting = np.bincount(np.searchsorted(classes, self._snapshot.task_class[members]), minlength=len(classes))
        return int(np.minimum(slots.sum(axis=1), waiting).sum())

    def depends(self, claim: Claim) -> bool:
        """Whether where its members may be depends on where other tasks are."""
        classes = np.unique(self._snapshot.task_class[claim.members]).tolist()
        return any(self._snapshot.peers.concerns(c) for c in classes)

    def every_domain(self, claim: Claim) -> list[Bools]:
        """The domains that the gang may choose from, (N,) each."""
        domain = self._snapshot.domains(claim.definition.topology_key)
        at = np.unique(domain[claim.settled])
        if (at >= 0).any():  # members are in some already: the others have to follow
            return [np.isin(domain, at[at >= 0])]
        return [np.equal(domain, d) for d in range(int(domain.max(initial=-1)) + 1)]

    def domains(self, claim: Claim) -> list[Bools]:
        """Domains that could take what the gang lacks, (N,) each, the tightest first."""
        members = claim.members
        _, slots = self._placing.room_for(members)
        room = slots.sum(axis=0)
        able = [d for d in self.every_domain(claim) if int(room[d].sum()) >= claim.lacking]
        return sorted(able, key=lambda d: int(room[d].sum()))

    def choices(self, claim: Claim) -> list[Bools] | list[None]:
        """Where all that it lacks may go: one of these."""
        return self.every_domain(claim) if claim.definition.topology_required else [None]

    def able(self, claim: Claim) -> list[Bools | None]:
        """The choices that could take it some day."""
        return [d for d in self.choices(claim) if self.fitting(claim.members, d, empty=True) >= claim.lacking]
