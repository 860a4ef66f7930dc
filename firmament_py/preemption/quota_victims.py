"""Further victims for quota: what others give back, on any node, where the victims on a job's nodes do not suffice."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.preemption.gang_victims import Surplus, surplus
from firmament_py.preemption.outcome import Outcome
from firmament_py.queues.permissions import Situation
from firmament_py.sharing.claims import Standing
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


@dataclass(frozen=True, slots=True)
class _Evictions:
    """What can leave on its own, in order. rows (L,) of the task table; start (U + 1,): where each eviction begins.
    gang (U,): the gang of each, NO_GANG: none; whole (U,): whether it is what is left of a gang after the evictions of
    the same gang before it, so that these leave with it."""

    rows: I64
    start: I64
    gang: I64
    whole: Bools


class QuotaVictims:
    """For the jobs of one round. outcome: its victims count against disruption budgets already."""

    def __init__(self, state: ClusterState, standing: Standing, outcome: Outcome, *, beyond_budgets: bool) -> None:
        self._state = state
        self._standing = standing
        self._outcome = outcome
        self._beyond_budgets = beyond_budgets
        self._surplus: Surplus | None = None  # it is the same all round

    def with_further(self, victims: I64, candidates: I64, situation: Situation) -> I64 | None:
        """`victims` (V,), and the first of the candidates (K,) with which the quota of a job suffices, none of which it
        could do without; None: it never does."""
        standing = self._standing
        leave = standing.use.left_by(victims)
        if standing.fits(situation, leave):
            return victims
        units = self._units(candidates[~np.isin(candidates, victims)], victims)
        rows, start = units.rows, units.start
        queue, amounts = standing.use.queue_of(rows), standing.amounts(self._state, rows)
        of_whole = start[:-1][units.whole]
        amounts[of_whole] += standing.use.retained_by_gangs(self._state.tasks.gang[rows[of_whole]])

        def without(number: int) -> I64:
            total = leave.copy()
            np.add.at(total, queue[: start[number]], amounts[: start[number]])
            return total

        low, high = 1, len(start) - 1  # the fewest units that suffice
        if not high or not standing.fits(situation, without(high)):
            return None
        while low < high:
            middle = (low + high) // 2
            if standing.fits(situation, without(middle)):
                high = middle
            else:
                low = middle + 1
        used, chosen = without(low), np.ones(start[low], np.bool_)
        needed = set[tuple[bytes, bytes]]()  # of units alike none is put back once one of them cannot be
        gone = set(units.gang[low - 1 : low][units.whole[low - 1 : low]].tolist())
        for i in reversed(range(low - 1)):  # put back what is not needed
            unit, gang = slice(start[i], start[i + 1]), int(units.gang[i])
            kind = queue[unit].tobytes(), amounts[unit].tobytes()
            if kind in needed or (gang in gone and not units.whole[i]):
                gone |= {gang} if units.whole[i] else set()
                continue
            less = used.copy()
            np.subtract.at(less, queue[unit], amounts[unit])
            if standing.fits(situation, less):
                used, chosen[unit] = less, False
            else:
                needed.add(kind)
                gone |= {gang} if units.whole[i] else set()
        return np.concatenate([victims, rows[: start[low]][chosen]])

    def _units(self, rows: I64, victims: I64) -> _Evictions:
        """Of candidates (K,), in their order, within disruption budgets: single tasks, and members of gangs above their
        minimums; then gangs as a whole, unless one of their members is no candidate."""
        state, tasks = self._state, self._state.tasks
        before = np.concatenate([self._outcome.victims, victims])
        allowances = state.allowances()
        allowances.spend(tasks.label_set[before])
        limited = len(allowances) > 0 and not self._beyond_budgets
        ganged = tasks.gang[rows] != NO_GANG
        if not limited and not ganged.any():
            return _Evictions(rows, np.arange(len(rows) + 1), tasks.gang[rows], ~ganged & False)
        running = np.flatnonzero((tasks.node >= 0) & (tasks.gang != NO_GANG) & ~tasks.leaving)
        units, of, whole, single = [NO_ROWS], [], [], list[int]()
        for row, as_whole in self._events(rows, before):
            gang, unit = int(tasks.gang[row]), np.array([row])
            if as_whole:
                unit = running[tasks.gang[running] == gang]
                unit = unit[~np.isin(unit, victims)]
                if not len(unit) or not np.isin(unit, rows).all():
                    continue
                unit = unit[~np.isin(unit, single)]
            if limited and not allowances.take(tasks.label_set[unit]):
                continue
            single += [] if as_whole else [row]
            units.append(unit)
            of.append(gang)
            whole.append(as_whole)
        return _Evictions(
            np.concatenate(units),
            np.cumsum([len(unit) for unit in units]),
            np.array(of, np.int64),
            np.array(whole, np.bool_),
        )

    def _events(self, rows: I64, leaving: I64) -> list[tuple[int, bool]]:
        """Candidates (K,) in their order, task rows, each a task that leaves by itself or, True, one of a gang that
        leaves as a whole: once for each gang, behind its members above the minimum. leaving (V,): task rows."""
        last_single, first_other = dict[int, int](), dict[int, int]()
        events: list[tuple[float, int, bool]] = []
        gangs, alone = self._state.tasks.gang[rows].tolist(), self._leaves_alone(rows, leaving).tolist()
        for at, (row, gang) in enumerate(zip(rows.tolist(), gangs, strict=True)):
            if alone[at]:
                last_single[gang] = at
                events.append((at, row, False))
            else:
                first_other.setdefault(gang, at)
        for gang, at in first_other.items():
            events.append((max(at, last_single.get(gang, -1) + 0.5), int(rows[at]), True))
        return [(row, as_whole) for _, row, as_whole in sorted(events)]

    def _leaves_alone(self, rows: I64, leaving: I64) -> Bools:
        """(K,) whether each candidate can leave by itself, with those before it: tasks of no gang, and members above
        the minimum of theirs. A gang that keeps what it was admitted with gives nothing back with one of its members,
        so it loses none. leaving (V,): task rows that leave before."""
        self._surplus = self._surplus or surplus(self._state)
        limits, of_row = self._surplus.limit.copy(), self._surplus.of_row
        counted = of_row[leaving].reshape(-1)
        np.subtract.at(limits, counted[counted >= 0], 1)
        gang = self._state.tasks.gang[rows]
        alone: Bools = gang == NO_GANG
        left = limits.tolist()
        members = np.flatnonzero(~alone & (self._standing.use.retained.of(gang) < 0))
        for at, each in zip(members.tolist(), of_row[rows[members]].tolist(), strict=True):
            some = [limit for limit in each if limit >= 0]
            if some and all(left[limit] > 0 for limit in some):
                alone[at] = True
                for limit in some:
                    left[limit] -= 1
        return alone
