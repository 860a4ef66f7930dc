"""Further victims for quota: what others give back, on any node, where the victims on a job's nodes do not suffice."""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.preemption.outcome import Outcome
from firmament_py.queues.permissions import Situation
from firmament_py.sharing.claims import Standing
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


class QuotaVictims:
    """For the jobs of one round. outcome: its victims count against disruption budgets already."""

    def __init__(self, state: ClusterState, standing: Standing, outcome: Outcome, *, beyond_budgets: bool) -> None:
        self._state = state
        self._standing = standing
        self._outcome = outcome
        self._beyond_budgets = beyond_budgets

    def with_further(self, victims: I64, candidates: I64, situation: Situation) -> I64 | None:
        """`victims` (V,), and the first of the candidates (K,) with which the quota of a job suffices, none of which it
        could do without; None: it never does."""
        standing = self._standing
        leave = standing.use.left_by(victims)
        if standing.fits(situation, leave):
            return victims
        rows, start = self._units(candidates[~np.isin(candidates, victims)], victims)
        queue, amounts = standing.use.queue_of(rows), standing.amounts(self._state, rows)
        amounts[start[:-1]] += standing.use.retained_by_gangs(self._state.tasks.gang[rows[start[:-1]]])

        def without(units: int) -> I64:
            total = leave.copy()
            np.add.at(total, queue[: start[units]], amounts[: start[units]])
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
        for i in reversed(range(low - 1)):  # put back what is not needed
            unit = slice(start[i], start[i + 1])
            kind = queue[unit].tobytes(), amounts[unit].tobytes()
            if kind in needed:
                continue
            less = used.copy()
            np.subtract.at(less, queue[unit], amounts[unit])
            if standing.fits(situation, less):
                used, chosen[unit] = less, False
            else:
                needed.add(kind)
        return np.concatenate([victims, rows[: start[low]][chosen]])

    def _units(self, rows: I64, victims: I64) -> tuple[I64, I64]:
        """What can leave on its own, of candidates (K,) in their order: single tasks, and whole gangs, unless one of
        their members is no candidate; within disruption budgets. Rows (L,), and where each of U units begins (U + 1,).
        """
        state, tasks = self._state, self._state.tasks
        before = np.concatenate([self._outcome.victims, victims])
        allowed, counted = state.evictions_allowed(tasks.label_set[before])
        left = allowed - counted.sum(axis=1)
        limited = len(left) > 0 and not self._beyond_budgets
        ganged = tasks.gang[rows] != NO_GANG
        if not limited and not ganged.any():
            return rows, np.arange(len(rows) + 1)
        running = np.flatnonzero((tasks.node >= 0) & (tasks.gang != NO_GANG) & ~tasks.leaving)
        units, seen = [NO_ROWS], set[int]()
        for row in rows.tolist():
            gang = int(tasks.gang[row])
            if gang in seen:
                continue
            unit = np.array([row])
            if gang != NO_GANG:
                seen.add(gang)
                unit = running[tasks.gang[running] == gang]
                if not np.isin(unit, rows).all():
                    continue
            if limited:
                counts = state.evictions_allowed(tasks.label_set[unit])[1].sum(axis=1)
                if (counts > np.maximum(left, 0))[counts > 0].any():
                    continue
                left = left - counts
            units.append(unit)
        return np.concatenate(units), np.cumsum([len(unit) for unit in units])
