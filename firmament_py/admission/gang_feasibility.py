"""Which gangs could ever be placed: if only tasks that stay, and the gang's own members, were on the nodes.

Capacity that is reserved for a gang that can never be placed is lost to all others for as long as it waits. Sums are
not proof: members of several classes can compete for what each could take alone, and members that must keep apart need
more nodes than their requests suggest. So unless sums are proof the gang is placed on trial. Without trials capacity
is reserved for gangs that can never be placed (`pytest tests/firmament_py/admission`: 6 tests fail).
"""

import numpy as np

from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.admission.gang_placement import GangPlacer
from firmament_py.model.arrays import I64, Bools
from firmament_py.placement.placer import Placer
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.snapshot.running_tasks import RunningTasks

TRIALS_OF_A_ROUND = 16
"""How often a round places a gang on trial; after that, gangs whose feasibility is uncertain get no reservation."""


class Feasibility:
    def __init__(self, placer: Placer, capacity: GangCapacity) -> None:
        self._placer = placer
        self._capacity = capacity
        self._trials_left = TRIALS_OF_A_ROUND
        self._able: dict[int, I64] = {}
        self._possible: dict[tuple[int, int], bool] = {}

    def able(self, demand: JobDemand) -> I64:
        """Numbers, ascending, of the choices that could take the gang some day, judging by sums."""
        known = self._able.get(demand.key)
        if known is None:
            some_day = self._capacity.some_day(demand, self._capacity.choices(demand))
            known = self._able[demand.key] = np.flatnonzero(some_day)
        return known

    def any(self, demand: JobDemand) -> bool:
        """Whether one of the choices could really take the gang."""
        return any(self.possible(demand, number) for number in self.able(demand).tolist())

    def possible(self, demand: JobDemand, number: int) -> bool:
        """Whether choice `number`, one of those that are able to, could really take it."""
        one_class = len(np.unique(self._placer.snapshot.task_class[demand.members])) == 1
        if one_class and not self._capacity.depends(demand):
            return True  # for one class without intertask constraints sums are proof
        known = self._possible.get((demand.key, number))
        if known is None:
            known = self._trials_left > 0 and self._try(demand, self._capacity.choices(demand).nodes(number))
            self._trials_left -= 1
            self._possible[demand.key, number] = known
        return known

    def _try(self, demand: JobDemand, nodes: Bools | None) -> bool:
        """Whether it fits on `nodes` (N,), None: any, once all have gone that it can outlast."""
        snapshot = self._placer.snapshot
        rows, used = snapshot.releases.staying(demand.key)
        free = snapshot.allocatable - used
        if not self._capacity.depends(demand):
            return self._fits(demand, nodes, free)
        with snapshot.intertask.beside(RunningTasks(snapshot.releases.state, snapshot.nodes, rows)):
            if self._fits(demand, nodes, free):
                return True
        # tasks that members must be near may be among those that would have gone: beside all that are there now
        return self._fits(demand, nodes, free)

    def _fits(self, demand: JobDemand, nodes: Bools | None, free: I64) -> bool:
        with self._placer.ledger.transaction(free=free):
            return GangPlacer(self._placer, self._capacity).on(demand, nodes)
