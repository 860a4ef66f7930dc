"""Capacity that is reserved for a job that has waited for long, so that smaller ones cannot starve it. Here, a gang may
be a single task.

*By expected end.* If running tasks have expected durations, the gang is planned at the earliest time at which enough of
them have ended for it to fit whole. Tasks that end before that may use the capacity until then; all others must leave
what the gang needs at that time. So nothing that is admitted delays it, as long as the expectations are right (EASY
backfilling: Lifka, The ANL/IBM SP scheduling system, 1995).

*By age.* If that is unknown, because the tasks that would have to end have no expected duration, what the gang could
take now is reserved; for members that do not fit, the nodes are closed to others that have the least to release before
they fit. What is released there, or anywhere else, adds up until the gang fits whole.

Of the gangs of one priority that could use the same nodes, at most one has a reservation, so that two can never block
each other with halves; and only one that is feasible beside tasks that never end (admission/gang_feasibility.py).
Priorities are those of the classes: ranks of queues are many, and change from round to round.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.admission.gang_capacity import Choices
from firmament_py.admission.gang_feasibility import Feasibility
from firmament_py.admission.gang_placement import GangPlacer
from firmament_py.model.arrays import I64, Bools
from firmament_py.queues.ranking import own_priority
from firmament_py.snapshot.job_demand import JobDemand


@dataclass(frozen=True, slots=True)
class Reservation:
    """fitted: how many of the members that the gang lacks would fit now. starts_us: when all of them are expected to
    fit, 0: unknown."""

    fitted: int
    starts_us: int


@dataclass(frozen=True, slots=True)
class _Reserved:
    """nodes (N,): those that suit the gang. number: of the reservation in the ledger."""

    priority: int
    nodes: Bools
    number: int


class Reservations:
    """after_us: how long a gang waits before capacity is reserved for it, None: that is never done."""

    def __init__(self, gang_placer: GangPlacer, feasibility: Feasibility, after_us: int | None) -> None:
        self._gang_placer = gang_placer
        self._placer = gang_placer.placer
        self._capacity = gang_placer.capacity
        self._ledger = self._placer.ledger
        self._snapshot = self._placer.snapshot
        self._feasibility = feasibility
        self._after_us = after_us
        self._reserved: dict[int, _Reserved] = {}  # by key of the job

    def overdue(self, demand: JobDemand) -> bool:
        """Whether to reserve capacity for the gang if it does not fit: it has waited for long, is feasible, and no
        other of its priority has a reservation on its nodes."""
        waited = self._snapshot.now_us - demand.created_us
        return (
            self._after_us is not None
            and waited >= self._after_us
            and not self._competes(demand)
            and self._feasibility.any(demand)
        )

    def _competes(self, demand: JobDemand) -> bool:
        """Whether another gang of its priority has a reservation, and could use the same nodes."""
        priority, nodes = own_priority(demand.priority), self._nodes(demand)
        return any(other.priority == priority and (other.nodes & nodes).any() for other in self._reserved.values())

    def _nodes(self, demand: JobDemand) -> Bools:
        """(N,) nodes that suit any of its members."""
        classes = np.unique(self._snapshot.task_class[demand.members])
        suitable: Bools = np.any(self._snapshot.suitable[classes], axis=0)
        return suitable

    def _note(self, demand: JobDemand, starts_us: int, released: I64, demanded: I64) -> None:
        number = self._ledger.reserve(starts_us, released, demanded, demand.core())
        self._reserved[demand.key] = _Reserved(own_priority(demand.priority), self._nodes(demand), number)

    def reserve(self, demand: JobDemand) -> Reservation:
        """Reserves capacity for a gang that is overdue and does not fit."""
        choices, able, core = self._capacity.choices(demand), self._feasibility.able(demand), demand.core()
        fitting = self._capacity.fitting_each(core, choices)[able]
        fitted = int(fitting.max())
        ledger, releases = self._ledger, self._snapshot.releases
        starts_us, demanded = self._earliest(demand, choices)
        if demanded is not None:
            self._note(demand, starts_us, releases.until(starts_us), demanded)
            return Reservation(fitted, starts_us)
        by_slots = able[np.argsort(-fitting, kind="stable")].tolist()
        best = choices.nodes(next(number for number in by_slots if self._feasibility.possible(demand, number)))
        with ledger.transaction():
            self._placer.place(core, best, largest_first=True)
            unplaced = core[ledger.node_of[core] < 0]
            later = self._least_to_release(demand, unplaced, best)
            demanded = ledger.usage_of(core) + later
        self._note(demand, self._snapshot.now_us, np.zeros_like(demanded), demanded)
        return Reservation(len(core) - len(unplaced), 0)

    def release(self, demand: JobDemand) -> None:
        """Ends the reservation of `demand`."""
        self._ledger.release(self._reserved.pop(demand.key).number)

    def _least_to_release(self, demand: JobDemand, members: I64, within: Bools | None) -> I64:
        """(N, R) what `members` of a gang that do not fit now would take if all tasks that may end had ended, on the
        nodes where the least has to be released. They are closed to others, so that what is released adds up."""
        ledger, snapshot = self._ledger, self._snapshot
        used = snapshot.allocatable - snapshot.free - snapshot.releases.staying(demand.key)[1]
        scale = np.maximum(snapshot.allocatable.max(axis=0, initial=1), 1)
        order = np.argsort((used / scale).max(axis=1, initial=0.0), kind="stable")
        inside = np.ones(len(order), np.bool_) if within is None else within
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        with ledger.transaction(free=ledger.free_less_reserved + used):
            prefix = self._capacity.shortest_prefix(members, within, order)
            self._placer.place(members, inside & (rank < prefix), largest_first=True)
            while prefix < len(order) and (left := members[ledger.node_of[members] < 0]).size:
                prefix *= 2  # classes compete
                self._placer.place(left, inside & (rank < prefix), largest_first=True)
            return ledger.usage_of(members)

    def _earliest(self, demand: JobDemand, choices: Choices) -> tuple[int, I64 | None]:
        """The earliest time at which the gang fits, by expected ends, and what it takes then, (N, R); None: never.

        Before the bound nothing fits. If that is not enough, because classes compete or have intertask constraints,
        later ends are tried at growing distance, then by bisection.
        """
        able, ends = self._feasibility.able(demand), self._snapshot.releases.ends
        first = np.full(choices.count, len(ends), np.int64)
        first[able] = self._capacity.first_ends(demand, choices)[able]

        def plan(end: int) -> I64 | None:
            return self._plan(demand, [choices.nodes(d) for d in np.flatnonzero(first <= end).tolist()], int(ends[end]))

        low = high = int(first.min())
        best, step = plan(high) if high < len(ends) else None, 1
        while best is None and high < len(ends) - 1:
            low, high, step = high + 1, min(high + step, len(ends) - 1), 2 * step
            best = plan(high)
        while best is not None and low < high:
            middle = (low + high) // 2
            sooner = plan(middle)
            if sooner is None:
                low = middle + 1
            else:
                high, best = middle, sooner
        return (0 if best is None else int(ends[high])), best

    def _plan(self, demand: JobDemand, among: list[Bools | None], when_us: int) -> I64 | None:
        """(N, R) what the gang would take at `when_us` on one of these sets of nodes; None: it would not fit."""
        with self._ledger.transaction(free=self._ledger.free_less_reserved + self._snapshot.releases.until(when_us)):
            for nodes in among:
                if self._gang_placer.within(demand, nodes):
                    return self._ledger.usage_of(demand.members)
        return None
