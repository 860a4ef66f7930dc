"""Tries to place one gang with what is left: several choices of members, and a search where flows find no way.

A gang is placed with all that it lacks, or not at all.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from firmament_py.admission.exact_packing import Kind, pack
from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.model.arrays import I64, Bools, distinct_rows, run_positions
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.placer import Placer
from firmament_py.snapshot.job_demand import JobDemand

STEPS_OF_A_GANG = 2_000
STEPS_OF_A_ROUND = 10_000
"""Bounds on the search for a way to place gangs of several classes that flows did not place."""

BRIEF_STEPS = 500
"""The same for both where longer searches follow beside the rounds: so many take no longer than a flow."""

AFFINITY_DOMAINS_OF_A_ROUND = 16
"""In how many domains a round tries gangs whose members must share one: it bounds a round with hundreds of them."""


class GangPlacer:
    """brief: whether searches that take long are left to one beside the rounds."""

    def __init__(self, placer: Placer, capacity: GangCapacity, *, brief: bool = False) -> None:
        self.placer = placer
        self._ledger = placer.ledger
        self._snapshot = placer.snapshot
        self.capacity = capacity
        self._brief = brief
        limits = (BRIEF_STEPS, BRIEF_STEPS) if brief else (STEPS_OF_A_GANG, STEPS_OF_A_ROUND)
        self._steps_of_gang, self._steps_left = limits
        self.given_up: set[int] = set()
        """Keys of the gangs for which a search would have gone on."""
        self._affinity_domains_left = AFFINITY_DOMAINS_OF_A_ROUND

    def anywhere(self, demand: JobDemand) -> bool:
        """Places the gang where its topology allows, or not at all."""
        if not demand.topology_key:
            return self.on(demand, None)
        if any(self.within(demand, domain) for domain in self.capacity.domains(demand)):
            return True
        return not demand.topology_required and self.within(demand, None)

    def on(self, demand: JobDemand, nodes: Bools | None) -> bool:
        """Places the gang on `nodes` (N,), or not at all. None: on any, and if its members must share a domain, in one
        of the domains that they may choose from."""
        return self.within(demand, nodes) or (nodes is None and self._in_affinity_domain(demand))

    def _in_affinity_domain(self, demand: JobDemand) -> bool:
        """Places the gang in one of the domains that members must share, or not at all."""
        if not self._affinity_domains_left:
            return False
        for domain in islice(self.capacity.affinity_domains(demand), self._affinity_domains_left):
            self._affinity_domains_left -= 1
            if self.within(demand, domain):
                return True
        return False

    def within(self, demand: JobDemand, nodes: Bools | None) -> bool:
        """Places the gang on `nodes` (N,), None: any, or not at all."""
        return any(self._all_of(demand, members, nodes) for members in self._selections(demand)) or self._search(
            demand, nodes
        )

    def _all_of(self, demand: JobDemand, members: I64, nodes: Bools | None) -> bool:
        """Places as many of the members as the gang lacks by flows, or none."""
        if self.capacity.fitting(members, nodes) < demand.lacking:
            return False
        with self._ledger.transaction() as transaction:
            self.placer.place(members, nodes, largest_first=True)
            satisfied = demand.satisfied(self._ledger.node_of)
            if satisfied:
                if not self.capacity.depends(demand):  # otherwise the others may depend on the surplus
                    self._ledger.remove(demand.surplus(self._ledger.node_of))
                transaction.commit()
        self.placer.telemetry.lap("gangs")
        return satisfied

    def _selections(self, demand: JobDemand) -> Iterator[I64]:
        """Members to try together: the oldest, then all, then the smallest."""
        core = demand.core()
        yield core
        if len(core) < len(demand.members):
            classes = self._snapshot.task_class[demand.members]
            if self.capacity.depends(demand) and demand.quota < len(demand.members):
                # members that others may depend on cannot be removed as surplus: some of each class
                in_class = run_positions(np.unique(classes, return_counts=True)[1])
                yield demand.core(np.lexsort((classes, in_class)), demand.quota)
            else:
                yield demand.members
            if classes[0] != classes[-1]:
                scale = np.maximum(self._snapshot.allocatable.max(axis=0, initial=1), 1)
                share = (self._snapshot.requests[classes] / scale).max(axis=1)
                yield demand.core(np.argsort(share, kind="stable"))

    def _give_up(self, demand: JobDemand) -> None:
        """No way was found within the steps of this round. What would fit at another time is no matter."""
        if self._brief and not self._ledger.trial:
            self.given_up.add(demand.key)

    def _search(self, demand: JobDemand, nodes: Bools | None) -> bool:
        """Searches for a way to place what the gang lacks if its members are of several classes, which a flow can
        miss."""
        snapshot = self._snapshot
        classes = snapshot.task_class[demand.members]
        some, at = np.unique(classes, return_inverse=True)
        steps = min(self._steps_of_gang, self._steps_left)
        if len(some) == 1 or not (steps or self._brief) or self.capacity.depends(demand):
            return False
        if self.capacity.fitting(demand.members, nodes) < demand.lacking:
            return False
        if not steps:
            self._give_up(demand)
            return False
        kinds = np.column_stack([at, demand.role])
        first, kind_of = distinct_rows(kinds)
        counts = np.bincount(kind_of).tolist()
        found = pack(
            self._ledger.free_for(demand.members),
            snapshot.requests[some],
            snapshot.suitable[some] if nodes is None else snapshot.suitable[some] & nodes,
            [Kind(cls, role, count) for (cls, role), count in zip(kinds[first].tolist(), counts, strict=True)],
            demand.lacking,
            demand.lacking_of_role,
            steps,
        )
        self._steps_left -= found.steps
        if not found.proven:
            self._give_up(demand)
        if found.places is not None:
            chosen = [demand.members[kind_of == k][: len(where)] for k, where in enumerate(found.places)]
            self._ledger.place(np.concatenate(chosen), np.concatenate(found.places), PlacedBy.GANG_SEARCH)
        self.placer.telemetry.lap("gangs")
        return found.places is not None
