"""Places tasks one by one, not as gangs: within the maximum of the gang that they belong to, and overdue ones first if
they would otherwise be left out."""

import numpy as np

from firmament_py.admission import overdue_tasks
from firmament_py.admission.backfill import Reservations
from firmament_py.admission.gang_placement import GangPlacer
from firmament_py.admission.rejections import Rejections
from firmament_py.model.arrays import I64, Bools
from firmament_py.snapshot.job_demand import JobDemand


class SingleTasks:
    """after_us: how long a task waits until it is overdue, None: it never is."""

    def __init__(
        self,
        gang_placer: GangPlacer,
        reservations: Reservations,
        rejections: Rejections,
        after_us: int | None,
    ) -> None:
        self._gang_placer = gang_placer
        self._placer = gang_placer.placer
        self._capacity = gang_placer.capacity
        self._ledger = self._placer.ledger
        self._snapshot = self._placer.snapshot
        self._reservations = reservations
        self._rejections = rejections
        self._overdue = overdue_tasks.overdue(self._snapshot, after_us)
        self.overdue_priorities: list[int] = sorted(set(self._priorities(self._overdue).tolist()))

    @property
    def overdue(self) -> Bools:
        """(T,) tasks that have waited for long."""
        found = np.zeros(len(self._snapshot.tasks), np.bool_)
        found[self._overdue] = True
        return found

    def place(self, tasks: I64) -> None:
        """Places what can be placed of `tasks` (K,), ascending; of each gang no more than its maximum."""
        snapshot, ledger = self._snapshot, self._ledger
        if not len(snapshot.quota):
            self._placer.place(tasks)
            return
        while len(tasks):
            within = ledger.within_maximum(tasks)
            now = tasks[within]
            if not len(now):
                return
            self._placer.place(now)
            # in place of those that did not fit others may, of other classes
            failed = np.unique(snapshot.task_class[now[ledger.node_of[now] < 0]])
            tasks = tasks[~within & ~np.isin(snapshot.task_class[tasks], failed)]

    def place_all_priorities(self, tasks: I64) -> bool:
        """Places `tasks` (K,), ascending, of all priorities together if no overdue task is left out, else none of them:
        priority by priority, a higher one could take the only node that suits a lower one."""
        if not all(self._fits(demand) for demand in self._overdue_of_each_priority()):
            return False
        with self._ledger.transaction() as transaction:
            self.place(tasks)
            if not self._overdue_of_each_priority():
                transaction.commit()
        return transaction.committed

    def place_of_priority(self, tasks: I64) -> None:
        """Places what can be placed of `tasks` (K,), ascending, of one priority. Overdue ones come first only if they
        are left out among the others: they could take a node that is the only one for another task."""
        tasks = tasks[self._ledger.node_of[tasks] < 0]
        overdue = self.overdue_among(tasks)
        if not self._place_together(tasks, overdue):
            self._place_or_reserve_all(overdue)
            self.place(tasks[self._ledger.node_of[tasks] < 0])
        if overdue:  # others of their classes may be overdue, too
            self._place_or_reserve_all(self.overdue_among(tasks))

    def overdue_among(self, tasks: I64) -> list[JobDemand]:
        """The oldest of `tasks` (K,), ascending, that wait, are overdue, and may get a reservation."""
        waiting = np.intersect1d(self._overdue, tasks[self._ledger.pending[tasks]], assume_unique=True)
        return [
            demand for demand in overdue_tasks.demands(self._snapshot, waiting) if self._reservations.overdue(demand)
        ]

    def place_or_reserve(self, demand: JobDemand) -> bool:
        """Places an overdue task; if no node takes it, capacity is reserved for it. Whether it was placed."""
        if not self._reservations.overdue(demand):  # another has a reservation by now
            return False
        if not self._gang_placer.anywhere(demand):
            self._rejections.add(demand)
            return False
        return True

    def _place_together(self, tasks: I64, overdue: list[JobDemand]) -> bool:
        """Places what can be placed of `tasks`, or nothing if one of those that are overdue is left out."""
        if not all(self._fits(demand) for demand in overdue):
            return False
        with self._ledger.transaction() as transaction:
            self.place(tasks)
            if all(self._ledger.node_of[demand.members[0]] >= 0 for demand in overdue):
                transaction.commit()
        return transaction.committed

    def _place_or_reserve_all(self, demands: list[JobDemand]) -> None:
        """One after the other, until one is not placed."""
        for demand in demands:
            if not self.place_or_reserve(demand):
                return

    def _fits(self, demand: JobDemand) -> bool:
        """Whether a node would take a single task as things stand."""
        c, intertask = int(self._snapshot.task_class[demand.members[0]]), self._snapshot.intertask
        return self._capacity.fitting(demand.members, intertask.allowed(c) if intertask.concerned[c] else None) > 0

    def _overdue_of_each_priority(self) -> list[JobDemand]:
        """The oldest of each priority that wait and are overdue."""
        priority = self._priorities(self._overdue)
        return [
            demand
            for level in self.overdue_priorities
            for demand in self.overdue_among(self._overdue[priority == level])
        ]

    def _priorities(self, tasks: I64) -> I64:
        return self._snapshot.priority[self._snapshot.task_class[tasks]]
