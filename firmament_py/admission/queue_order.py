"""Which gangs a round places, and in which order everything gets its turn.

Priorities go from the highest down. At one priority: first gangs that have members on nodes already (their binding was
interrupted, or they lost some), then single tasks that have waited longer than any other gang, then gangs by age, then
the remaining single tasks and what gangs have beyond their minimum.

A lower bound on a flow must hold whatever it costs, so admission is a decision made before the flow: the gangs that
by their sums could fit together are forced (none of the members that they lack has an arc to U) and solved in one
network, largest members first. Those that come out short are taken back whole, and so are all younger ones, until
the short one has been tried on its own. Each gang that the sums left out, that asks for a domain, or whose members
depend on where others are, is tried on its own, too. What gangs cannot use goes to others in the same round.

Backfilling can starve a large gang, or a large task: smaller ones always fit first. So the oldest gang or single task
of a priority that has waited for long gets its turn before any younger one, and if it does not fit room is kept for it
(admission/backfill.py). Single tasks that all find places in one network need no turns: those would cost others their
places.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from firmament_py.admission import overdue_tasks
from firmament_py.admission.backfill import Reservations
from firmament_py.admission.gang_capacity import GangCapacity
from firmament_py.admission.gang_feasibility import Prospects
from firmament_py.admission.gang_placement import GangTry
from firmament_py.model.arrays import I64, run_positions
from firmament_py.placement.placement import Placing
from firmament_py.snapshot.gang_demand import GangDemand

STRICT_TURNS = 16
"""So often in a round of a priority gangs are kept strictly in order of age at the cost of a further solve; after that
only an overdue gang is. Bounds a round with hundreds of gangs that nearly fit."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A gang that was not placed, and how many of the members that it lacks would have fitted. missing: members that
    do not exist yet (it was not tried, as if it is full: see Claim). reserves, starts_us: room is kept for it, and when
    it is expected to fit, 0: unknown."""

    claim: GangDemand
    fitted: int
    missing: int
    reserves: bool = False
    starts_us: int = 0

    @property
    def untried(self) -> bool:
        return self.missing > 0 or self.claim.full


class Admission:
    """reserve_after_us: how long a gang waits before it keeps room (admission/backfill.py), None: it never does."""

    def __init__(
        self, placing: Placing, claims: list[GangDemand], lap: Callable[[str], None], reserve_after_us: int | None
    ) -> None:
        self.placing = self._placing = placing
        self._snapshot = placing.snapshot
        self._claims = claims
        self._lap = lap
        self._single = np.ones(len(self._snapshot.tasks), np.bool_)  # (T,) tasks that are tried one by one
        for claim in claims:
            self._single[claim.members] = False
        self._room = GangCapacity(placing)
        self._try = GangTry(placing, self._room, lap)
        prospects = Prospects(placing, self._room, lap)
        self._reservations = Reservations(placing, self._room, self._try, prospects, reserve_after_us)
        self._overdue = overdue_tasks.overdue(placing.snapshot, reserve_after_us)
        self.rejected: list[Rejected] = []

    def run(self) -> None:
        """Places everything that can be placed, in order."""
        snapshot, single = self._snapshot, self._single
        waiting = np.unique(snapshot.priority[snapshot.task_class[self._overdue]]).tolist()
        by_priority: dict[int, list[GangDemand]] = {priority: [] for priority in waiting}
        for claim in sorted(self._claims, key=lambda claim: (claim.definition.created_us, claim.definition.id)):
            by_priority.setdefault(claim.priority, []).append(claim)
        turns = sorted(by_priority.items(), reverse=True)
        done = 0  # tasks before this position are of priorities that had their turn
        if not self._claims and by_priority and self._all_at_once():
            turns, done = [], len(snapshot.tasks)
        for priority, claims in turns:
            first, end = np.searchsorted(-snapshot.priority[snapshot.task_class], (-priority, -priority + 1)).tolist()
            if first > done:
                self._attempt(done + np.flatnonzero(single[done:first]))
            self._gangs(claims, first + np.flatnonzero(single[first:end]))
            done = end
        # lower priorities where nobody may keep room share their solves
        self._attempt(done + np.flatnonzero(single[done:]))
        if snapshot.intertask.any and (by_priority or self._placing.staged):
            self._follow_up()

    def _all_at_once(self) -> bool:
        """Places single tasks of all priorities in one go if none that is overdue is left out: apart, a higher one
        could take a place that is the only one of a lower."""
        if not all(self._fits(claim) for claim in self._overdue_of_each()):
            return False
        everybody = np.arange(len(self._snapshot.tasks))
        self._attempt(everybody)
        if self._overdue_of_each():
            self._placing.take_back(everybody)
            return False
        return True

    def _overdue_of_each(self) -> list[GangDemand]:
        """The oldest of each priority that wait and are overdue."""
        priority = self._snapshot.priority[self._snapshot.task_class[self._overdue]]
        return [c for p in np.unique(priority) for c in self._overdue_among(self._overdue[priority == p])]

    def _attempt(self, tasks: I64) -> None:
        """Places what can be placed of `tasks` (K,), ascending, one by one; of gangs no more than their maximum."""
        snapshot, placing = self._snapshot, self._placing
        if not len(snapshot.quota):
            placing.attempt(tasks)
            return
        while len(tasks):
            placed = snapshot.task_quota[(placing.node_of >= 0) & (snapshot.task_quota >= 0)]
            left = snapshot.quota - np.bincount(placed, minlength=len(snapshot.quota))
            order = np.argsort(snapshot.task_quota[tasks], kind="stable")
            sizes = np.unique(snapshot.task_quota[tasks], return_counts=True)[1]
            number = np.empty(len(tasks), np.int64)  # of each task among those of its gang
            number[order] = run_positions(sizes)
            quota = snapshot.task_quota[tasks]
            now = tasks[(quota < 0) | (number < left[quota])]
            if not len(now):
                return
            placing.attempt(now)
            # in the place of those that did not fit others may, of other classes
            failed = np.unique(snapshot.task_class[now[placing.node_of[now] < 0]])
            tasks = tasks[(quota >= 0) & (number >= left[quota]) & ~np.isin(snapshot.task_class[tasks], failed)]

    def _follow_up(self) -> None:
        """Tries again, until nothing more comes of it, what depends on where other tasks are: the others may have
        been placed later."""
        while True:
            before = int((self._placing.node_of >= 0).sum())
            still = []
            for rejected in self.rejected:
                again = not rejected.untried and not rejected.reserves and self._room.depends(rejected.claim)
                if again and self._try.anywhere(rejected.claim):
                    self._single[rejected.claim.members] = True
                else:
                    still.append(rejected)
            self.rejected = still
            self._attempt(np.flatnonzero(self._single & (self._placing.node_of < 0)))
            self._let_go()
            if int((self._placing.node_of >= 0).sum()) == before:
                return

    def _gangs(self, claims: list[GangDemand], singles: I64) -> None:
        """One priority: gangs that are begun, then the others by age among its single tasks (positions, ascending)."""
        complete = []
        for claim in claims:
            if claim.missing or claim.full:
                self.rejected.append(Rejected(claim, 0, claim.missing))
            else:
                complete.append(claim)
        admitted = self._in_order([claim for claim in complete if claim.begun])
        complete = [claim for claim in complete if not claim.begun]
        if complete:
            oldest_us = min(claim.definition.created_us for claim in complete)
            older = singles[self._snapshot.task_created_us[singles] < oldest_us]
            if len(older):
                self._one_by_one(older)
        # a single task that is overdue has its turn before younger gangs
        for lone_claim in self._overdue_among(singles) if complete else ():
            since_us = lone_claim.definition.created_us
            before = [claim for claim in complete if claim.definition.created_us <= since_us]
            if len(before) == len(complete):
                break
            admitted += self._in_order(before)
            complete = complete[len(before) :]
            if not self._gets_turn(lone_claim):
                break
        admitted += self._in_order(complete)
        rest = [singles[self._placing.node_of[singles] < 0]]
        for claim in admitted:
            extra = claim.members[self._placing.node_of[claim.members] < 0]
            lower = self._snapshot.priority[self._snapshot.task_class[extra]] < claim.priority
            self._single[extra] = True  # the lower ones get their turn later, the others once more at the end
            rest.append(extra[~lower])
        tasks = np.sort(np.concatenate(rest))
        self._one_by_one(tasks)
        while self._let_go():
            self._one_by_one(tasks)

    def _one_by_one(self, tasks: I64) -> None:
        """`_attempt` of those of the tasks that wait, where overdue ones come first if they do not find places among
        the others anyway: alone they could take one that somebody else has no other choice but."""
        tasks = tasks[self._placing.node_of[tasks] < 0]
        overdue = self._overdue_among(tasks)
        together = all(self._fits(claim) for claim in overdue)
        if together:
            self._attempt(tasks)
            together = all(self._placing.node_of[claim.members[0]] >= 0 for claim in overdue)
            if not together:
                self._placing.take_back(tasks)
        if not together:
            self._get_turns(overdue)
            self._attempt(tasks[self._placing.node_of[tasks] < 0])
        if overdue:  # of their classes others may be overdue, too
            self._get_turns(self._overdue_among(tasks))

    def _fits(self, claim: GangDemand) -> bool:
        """Whether there is a node for a single task as things stand."""
        c, peers = int(self._snapshot.task_class[claim.members[0]]), self._snapshot.intertask
        return self._room.fitting(claim.members, peers.allowed(c) if peers.concerns(c) else None) > 0

    def _overdue_among(self, singles: I64) -> list[GangDemand]:
        """The oldest of single tasks (positions, ascending) that wait and are overdue."""
        tasks = np.intersect1d(self._overdue, singles[self._placing.node_of[singles] < 0], assume_unique=True)
        return [claim for claim in overdue_tasks.claims(self._snapshot, tasks) if self._reservations.overdue(claim)]

    def _get_turns(self, claims: list[GangDemand]) -> None:
        for claim in claims:
            if not self._gets_turn(claim):
                return

    def _gets_turn(self, claim: GangDemand) -> bool:
        """Places a single task that is overdue; if it finds no place it keeps room, and no other has a turn."""
        if not self._reservations.overdue(claim):  # somebody keeps room by now
            return False
        if not self._try.anywhere(claim):
            self._turn_away(claim)
            return False
        return True

    def _let_go(self) -> bool:
        """Gives up the room kept for single tasks that found a place after all, beside others who came; whether
        there was any."""
        found = [r for r in self.rejected if r.claim.task >= 0 and self._placing.node_of[r.claim.members[0]] >= 0]
        for rejected in found:
            self._reservations.give_up(rejected.claim)
        self.rejected = [r for r in self.rejected if not any(r is other for other in found)]
        return bool(found)

    def _in_order(self, claims: list[GangDemand]) -> list[GangDemand]:
        """Tries complete gangs of one priority, oldest first; those that were placed."""
        admitted = []
        strict = STRICT_TURNS
        while claims:
            turn = self._turn(claims, strict > 0)
            strict -= 1
            claims = claims[len(turn) :]
            placed, short = self._together([claim for claim in turn if self._joins(claim)])
            for i, claim in enumerate(turn):
                if (claim.row in short and strict > 0) or (
                    claim.row not in placed and self._reservations.overdue(claim)
                ):
                    # no younger one may keep it from being placed: they go back to the queue
                    back = [other for other in turn[i + 1 :] if other.row in placed]
                    if back:
                        self._placing.take_back(np.concatenate([other.members for other in back]))
                    claims, turn = turn[i + 1 :] + claims, turn[: i + 1]
                    break
            for claim in turn:
                if claim.row in placed or self._try.anywhere(claim):
                    admitted.append(claim)
                else:
                    self._turn_away(claim)
        return admitted

    def _turn(self, claims: list[GangDemand], strict: bool) -> list[GangDemand]:
        """The gangs to try next: up to the first that cannot be tried together with others if that is overdue or, by
        its kind, if strict."""
        left = np.maximum(self._placing.free, 0).sum(axis=0)
        for i, claim in enumerate(claims):
            needs, joins = self._needs(claim), self._joins(claim)
            if joins and (needs <= left).all():
                left = left - needs
            elif (strict and not joins) or self._reservations.overdue(claim):
                return claims[: i + 1]
        return claims

    def _joins(self, claim: GangDemand) -> bool:
        """Whether it can be tried together with others: what is taken back must not be what a gang counts on."""
        return not claim.definition.topology_key and not self._room.depends(claim)

    def _needs(self, claim: GangDemand) -> I64:
        """(R,) what the members that it lacks request together."""
        needs: I64 = self._snapshot.requests[self._snapshot.task_class[claim.core()]].sum(axis=0)
        return needs

    def _together(self, claims: list[GangDemand]) -> tuple[set[int], set[int]]:
        """Tries the gangs that by their sums could all fit, in one go; rows of those that were placed, and of those
        that came out short."""
        chosen, left = [], np.maximum(self._placing.free, 0).sum(axis=0)
        for claim in claims:
            needs = self._needs(claim)
            if (needs <= left).all():
                chosen.append(claim)
                left = left - needs
        if len(chosen) < 2:
            return set(), set()  # no gain over trying it alone
        self._placing.attempt(np.sort(np.concatenate([claim.core() for claim in chosen])), largest_first=True)
        short = [claim for claim in chosen if not claim.satisfied(self._placing.node_of)]
        if short:
            self._placing.take_back(np.concatenate([claim.members for claim in short]))
        self._lap("gangs")
        rows = {claim.row for claim in short}
        return {claim.row for claim in chosen} - rows, rows

    def _turn_away(self, claim: GangDemand) -> None:
        """Notes a gang that does not fit, and how far it would have come; one that is overdue keeps room."""
        if self._reservations.overdue(claim):
            kept = self._reservations.reserve(claim)
            fitted, starts_us, reserves = kept.fitted, kept.starts_us, True
        else:
            core = claim.core()
            fitted = int(self._room.fitting_each(core, self._room.choices(claim)).max(initial=0))
            starts_us, reserves = 0, False
        # the bound counts classes and domains apart: that all would fit was just found to be wrong
        self.rejected.append(Rejected(claim, min(fitted, claim.lacking - 1), 0, reserves, starts_us))
        self._lap("gangs")
