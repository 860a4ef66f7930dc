"""Which gangs could be placed some day: if nobody was on the nodes but tasks that stay, and the gang's own members.

Room that is kept for a gang that could never be placed is lost to everybody else for as long as it waits. Sums are
not proof: members of several classes can compete for what each could take alone, and members that keep away from each
other need more nodes than resources say. So where it is not certain, the gang is placed on trial.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from firmament_py.admission.gang_capacity import Choices, GangCapacity
from firmament_py.admission.gang_placement import GangTry
from firmament_py.model.arrays import I64
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.gang_demand import GangDemand
from firmament_py.snapshot.snapshot import Snapshot, once_gone

TRIALS_OF_A_ROUND = 16
"""So often a round places a gang on trial; one that is not certain to be possible then waits without keeping room."""


class Prospects:
    def __init__(self, placing: Placing, room: GangCapacity, lap: Callable[[str], None]) -> None:
        self._placing = placing
        self._room = room
        self._lap = lap
        self._trials_left = TRIALS_OF_A_ROUND
        self._able: dict[int, I64] = {}
        self._possible: dict[tuple[int, int], bool] = {}

    def able(self, claim: GangDemand) -> I64:
        """Numbers of the choices that could take the gang some day as far as sums say, ascending."""
        known = self._able.get(claim.row)
        if known is None:
            some_day = self._room.some_day(claim, self._room.choices(claim))
            known = self._able[claim.row] = np.flatnonzero(some_day)
        return known

    def any(self, claim: GangDemand) -> bool:
        """Whether one of the choices could."""
        return any(self.possible(claim, number) for number in self.able(claim).tolist())

    def possible(self, claim: GangDemand, number: int) -> bool:
        """Whether choice `number`, one of those that are able to, could really take it."""
        if not self._room.depends(claim) and len(np.unique(self._placing.snapshot.task_class[claim.members])) == 1:
            return True  # for one class that depends on nobody sums are proof
        known = self._possible.get((claim.row, number))
        if known is None:
            known = self._trials_left > 0 and self._try(claim, self._room.choices(claim), number)
            self._trials_left -= 1
            self._possible[claim.row, number] = known
        return known

    def _try(self, claim: GangDemand, choices: Choices, number: int) -> bool:
        gone = once_gone(self._placing.snapshot, claim.row)
        # whom members want near them may be among those who would have gone: then beside all who are there now
        peers = (
            [gone.intertask] if not self._room.depends(claim) else [gone.intertask, self._placing.snapshot.intertask]
        )
        return any(self._fits(claim, choices, number, replace(gone, intertask=these)) for these in peers)

    def _fits(self, claim: GangDemand, choices: Choices, number: int, snapshot: Snapshot) -> bool:
        placing = self._placing.elsewhere(snapshot)
        trying = GangTry(placing, GangCapacity(placing), self._lap)
        fits = trying.on(claim, choices.nodes(number))
        placing.take_back(claim.members)
        return fits
