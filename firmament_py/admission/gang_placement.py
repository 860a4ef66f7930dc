"""Tries to place one gang with what is left: several choices of members, and a search where flows find no way.

A gang is placed with what it lacks, or whole again not at all.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from firmament_py.admission.exact_packing import Kind, pack
from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.gang_demand import GangDemand

STEPS_OF_A_GANG = 2_000
STEPS_OF_A_ROUND = 10_000
"""How far a round searches for a way to place a gang of several classes that flows did not place."""

HOMES_OF_A_ROUND = 16
"""In so many domains a round tries gangs whose members want to share one: bounds a round with hundreds of them."""


class GangTry:
    def __init__(self, placing: Placing, room: GangCapacity, lap: Callable[[str], None]) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot
        self._room = room
        self._lap = lap
        self._steps_left = STEPS_OF_A_ROUND
        self._homes_left = HOMES_OF_A_ROUND

    def anywhere(self, claim: GangDemand) -> bool:
        """Places the gang where its topology allows, or takes it back whole."""
        if not claim.definition.topology_key:
            return self.on(claim, None)
        if any(self.within(claim, domain) for domain in self._room.domains(claim)):
            return True
        return not claim.definition.topology_required and self.within(claim, None)

    def on(self, claim: GangDemand, nodes: Bools | None) -> bool:
        """The same on `nodes` (N,), None: any, which is where members that want to share a domain choose one."""
        return self.within(claim, nodes) or (nodes is None and self._at_home(claim))

    def _at_home(self, claim: GangDemand) -> bool:
        """Places the gang in one of the domains that members want to share, or takes it back whole."""
        if not self._homes_left:
            return False
        for home in islice(self._room.affinity_domains(claim), self._homes_left):
            self._homes_left -= 1
            if self.within(claim, home):
                return True
        return False

    def within(self, claim: GangDemand, nodes: Bools | None) -> bool:
        """Places the gang on `nodes` (N,), None: any, or takes it back whole."""
        for members in self._selections(claim):
            if self._room.fitting(members, nodes) < claim.lacking:
                continue
            self._placing.attempt(members, nodes, largest_first=True)
            if claim.satisfied(self._placing.node_of):
                if not self._room.depends(claim):  # else the others may count on those
                    self._placing.take_back(claim.surplus(self._placing.node_of))
                self._lap("gangs")
                return True
            self._placing.take_back(members)
            self._lap("gangs")
        return self._search(claim, nodes)

    def _selections(self, claim: GangDemand) -> Iterator[I64]:
        """Members to try together: the oldest, then all, then the smallest."""
        core = claim.core()
        yield core
        if len(core) < len(claim.members):
            classes = self._snapshot.task_class[claim.members]
            if self._room.depends(claim) and claim.quota < len(claim.members):
                # of those that others may count on none can be taken back as surplus: some of each class
                in_class = run_positions(np.unique(classes, return_counts=True)[1])
                yield claim.core(np.lexsort((classes, in_class)), claim.quota)
            else:
                yield claim.members
            if classes[0] != classes[-1]:
                scale = np.maximum(self._snapshot.allocatable.max(axis=0, initial=1), 1)
                share = (self._snapshot.requests[classes] / scale).max(axis=1)
                yield claim.core(np.argsort(share, kind="stable"))

    def _search(self, claim: GangDemand, nodes: Bools | None) -> bool:
        """Looks for any way to place what the gang lacks, where its members are of several classes, which a flow can
        miss."""
        snapshot = self._snapshot
        classes = snapshot.task_class[claim.members]
        some, at = np.unique(classes, return_inverse=True)
        steps = min(STEPS_OF_A_GANG, self._steps_left)
        if len(some) == 1 or not steps or self._room.depends(claim):
            return False
        if self._room.fitting(claim.members, nodes) < claim.lacking:
            return False
        kinds, kind_of = np.unique(np.stack([at, claim.role]), axis=1, return_inverse=True)
        kind_of = kind_of.ravel()
        counts = np.bincount(kind_of).tolist()
        found = pack(
            self._placing.free_for(claim.members),
            snapshot.requests[some],
            snapshot.suitable[some] if nodes is None else snapshot.suitable[some] & nodes,
            [Kind(cls, role, count) for (cls, role), count in zip(kinds.T.tolist(), counts, strict=True)],
            claim.lacking,
            claim.lacking_of_role,
            steps,
        )
        self._steps_left -= found.steps
        if found.places is not None:
            chosen = [claim.members[kind_of == k][: len(where)] for k, where in enumerate(found.places)]
            self._placing.put(np.concatenate(chosen), np.concatenate(found.places))
        self._lap("gangs")
        return found.places is not None
