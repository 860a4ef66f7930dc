"""Which gangs a round places, and in which order everything is placed.

Priorities go from the highest down. At one priority: first gangs that have members on nodes already (their binding was
interrupted, or they lost some), then single tasks that have waited longer than any other gang, then gangs by age
(admission/gang_queue.py), then the remaining single tasks and the members of gangs beyond their minimum. What gangs
cannot use goes to others in the same round; members beyond the minimum of a gang that requires a domain, and starts in
this round, come with the next.

Backfilling can starve a large gang, or a large task: smaller ones always fit first. So the oldest gang or single task
of a priority that has waited for long is placed before any younger one, and if it does not fit, capacity is reserved
for it (admission/backfill.py). If single tasks all fit in one network, none is placed before the others: that would
cost them places.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np

from firmament_py.admission.backfill import Reservations
from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.admission.gang_feasibility import Feasibility
from firmament_py.admission.gang_placement import GangPlacer
from firmament_py.admission.gang_queue import GangQueue
from firmament_py.admission.nominated_tasks import place_nominated
from firmament_py.admission.rejections import Rejected, Rejections
from firmament_py.admission.single_tasks import SingleTasks
from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.options import EngineOptions
from firmament_py.placement.list_scheduling import may_place_from_lists, place_from_lists
from firmament_py.placement.placer import Placer
from firmament_py.placement.repacking import Packs, Repacked, Repacking, repack, repacked, repacking
from firmament_py.preemption.preemptor import Preemptor
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.state.gangs import NO_GANG


class Admission:
    """preemptor: evicts running tasks for those that are left, None: none are. packs: which packings the round carries
    out. beside: searches beside the rounds go on where the round gives up (see `unsearched`)."""

    def __init__(
        self,
        placer: Placer,
        demands: list[JobDemand],
        options: EngineOptions,
        preemptor: Preemptor | None = None,
        packs: Packs = Packs.ALL,
        *,
        beside: bool = False,
    ) -> None:
        self.placer = placer
        self._ledger = placer.ledger
        self._snapshot = placer.snapshot
        self._demands = demands
        self._improve, reserve_after_us = options.improve, options.reserve_after_us
        self._single = np.ones(len(self._snapshot.tasks), np.bool_)  # (T,) tasks that are placed one by one
        for demand in demands:
            self._single[demand.members] = False
        self._capacity = GangCapacity(placer.ledger)
        self._gang_placer = GangPlacer(placer, self._capacity, brief=beside)
        feasibility = Feasibility(placer, self._capacity)
        reservations = Reservations(self._gang_placer, feasibility, reserve_after_us)
        self._rejections = Rejections(placer, self._capacity, reservations)
        self._gangs = GangQueue(self._gang_placer, reservations, self._rejections)
        self._packs = packs
        self.repacked = Repacked(0, 0)
        self.postponed: Repacking | None = None
        """What is to be packed beside the rounds."""
        self._preemptor = preemptor
        self._singles = SingleTasks(self._gang_placer, reservations, self._rejections, reserve_after_us)

    @property
    def rejected(self) -> list[Rejected]:
        """Gangs, and single tasks with a reservation, that were not placed."""
        return self._rejections.all

    @property
    def unsearched(self) -> I64:
        """Task rows (K,) of gangs that were not placed, and for which the search was given up."""
        given_up = [each.demand.members for each in self.rejected if each.demand.key in self._gang_placer.given_up]
        return self._snapshot.tasks[np.concatenate(given_up)] if given_up else NO_ROWS

    def note_bounds(self, at_best: Mapping[int, tuple[int, int]]) -> None:
        """What an earlier search says of gangs that were not placed, by id: how many of the members that they lacked
        would fit with all evictions and moves, and how many they lacked."""
        keys = {each.demand.gang.id: each.demand for each in self.rejected if each.demand.gang is not None}
        known = {demand.key: at_best[gang] for gang, demand in keys.items() if gang in at_best}
        lacking = {demand.key: demand.lacking for demand in keys.values()}
        self._rejections.note_bounds({key: best for key, (best, lacked) in known.items() if lacked == lacking[key]})

    def run(self) -> None:
        """Places everything that can be placed, in order; then preempts."""
        place_nominated(self.placer)
        self._place_jobs()
        self._place_anew()
        self._preempt()

    def _place_jobs(self) -> None:
        """Places gangs and single tasks, priority by priority."""
        snapshot, single = self._snapshot, self._single
        by_priority: dict[int, list[JobDemand]] = {priority: [] for priority in self._singles.overdue_priorities}
        for demand in sorted(self._demands, key=lambda demand: demand.age):
            admitted = demand.only(~snapshot.withheld[demand.members])
            if admitted.missing <= demand.missing:  # else it waits for quota
                by_priority.setdefault(demand.priority, []).append(admitted)
        priorities = sorted(by_priority.items(), reverse=True)
        done = 0  # tasks before this position are of priorities that have been placed
        alone = bool(by_priority) and not any(by_priority.values())
        if alone and self._singles.place_all_priorities(np.flatnonzero(single)):
            priorities, done = [], len(snapshot.tasks)
        for priority, demands in priorities:
            first, end = np.searchsorted(-snapshot.priority[snapshot.task_class], (-priority, -priority + 1)).tolist()
            if first > done:
                self._singles.place(done + np.flatnonzero(single[done:first]))
            self._place_priority(demands, first + np.flatnonzero(single[first:end]))
            done = end
        # lower priorities without gangs and overdue tasks share their solves
        self._singles.place(done + np.flatnonzero(single[done:]))
        if snapshot.intertask.any and (by_priority or self.placer.staged):
            self._follow_up()

    def _preempt(self) -> None:
        """Preempts for single tasks and gangs that wait, and tries those that have lost their places to them
        elsewhere."""
        if self._preemptor is None:
            return
        rejected = [each for each in self._rejections.all if each.demand.gang is not None]
        independent = [each.demand for each in rejected if not each.untried]
        # further members of a gang that lacks none are single tasks, too, unless their number is limited
        single = (self._snapshot.task_quota < 0) & ~self._ledger.delayed
        for demand in self._demands:
            single[demand.members] = False
        displaced = self._preemptor.run(single, independent)
        self._rejections.note_bounds(self._preemptor.at_best)
        self.placer.telemetry.lap("preempt")
        self._singles.place(displaced)
        self._rejections.release_reservations()

    def _place_anew(self) -> None:
        """Places single tasks anew if that may place more of them; then tries what could not move once more."""
        snapshot, ledger, overdue = self._snapshot, self._ledger, self._singles.overdue
        claimed = (snapshot.nominated >= 0) & (ledger.node_of >= 0)  # their places were reserved for them
        single = (snapshot.task_gang == NO_GANG) & ~ledger.delayed & ~claimed & ~snapshot.withheld
        some, left_out = None, 0
        if self._packs is not Packs.NONE:
            some, left_out = repacking(ledger, single, overdue, self.placer.worth, self._improve)
        postpones = self._packs is Packs.BRIEFLY and not may_place_from_lists(self.placer, np.flatnonzero(single))
        if some is not None and some.long and postpones:
            self.postponed, self.repacked = some, Repacked(0, left_out)
            self.placer.telemetry.lap("pack")
            return
        self.repacked = Repacked(0, left_out) if some is None else repacked(ledger, some)
        self.placer.telemetry.lap("pack")
        listed = place_from_lists(self.placer, single, overdue, self._improve)
        self.placer.telemetry.lap("lists")
        if listed:
            gap = repack(ledger, single, overdue, self.placer.worth, 0.0).gap
            self.repacked = Repacked(self.repacked.moved, gap)
        if self.repacked.moved or listed:
            self._rejections.release_reservations()
            if snapshot.intertask.any:
                self._follow_up()

    def _place_priority(self, demands: list[JobDemand], singles: I64) -> None:
        """One priority: gangs that are begun, then the others by age among its single tasks (positions, ascending)."""
        complete = []
        for demand in demands:
            if demand.missing or demand.full:
                self._rejections.add_untried(demand)
            else:
                complete.append(demand)
        admitted = self._gangs.place(demand for demand in complete if demand.begun)
        admitted += self._place_by_age(deque(demand for demand in complete if not demand.begun), singles)
        remaining = [singles[self._ledger.node_of[singles] < 0]]
        for demand in admitted:
            if demand.topology_required:
                continue  # the next round knows the domain that its others have to join
            extra = demand.members[self._ledger.node_of[demand.members] < 0]
            lower = self._snapshot.priority[self._snapshot.task_class[extra]] < demand.priority
            self._single[extra] = True  # lower ones come with their priority, the others once more at the end
            remaining.append(extra[~lower])
        tasks = np.sort(np.concatenate(remaining))
        self._singles.place_of_priority(tasks)
        while self._rejections.release_reservations():
            self._singles.place_of_priority(tasks)

    def _place_by_age(self, gangs: deque[JobDemand], singles: I64) -> list[JobDemand]:
        """Places gangs, oldest first, among single tasks (positions, ascending) that are older or overdue; returns the
        gangs that were placed."""
        admitted: list[JobDemand] = []
        if not gangs:
            return admitted
        older = singles[self._snapshot.task_created_us[singles] < gangs[0].created_us]
        if len(older):
            self._singles.place_of_priority(older)
        for single in self._singles.overdue_among(singles):
            since_us = single.created_us
            if gangs[-1].created_us <= since_us:
                break  # no gang is younger: it is placed with the other single tasks
            before = []
            while gangs[0].created_us <= since_us:
                before.append(gangs.popleft())
            admitted += self._gangs.place(before)
            if not self._singles.place_or_reserve(single):
                break
        return admitted + self._gangs.place(gangs)

    def _follow_up(self) -> None:
        """Tries what depends on where other tasks are again, until nothing more is placed: the others may have been
        placed later."""
        while True:
            before = int((self._ledger.node_of >= 0).sum())
            still = []
            for rejected in self._rejections.all:
                again = not rejected.untried and not rejected.reserves and self._capacity.depends(rejected.demand)
                if again and self._gang_placer.anywhere(rejected.demand):
                    self._single[rejected.demand.members] = not rejected.demand.topology_required
                else:
                    still.append(rejected)
            self._rejections.all = still
            self._singles.place(np.flatnonzero(self._single & (self._ledger.node_of < 0)))
            self._rejections.release_reservations()
            if int((self._ledger.node_of >= 0).sum()) == before:
                return
