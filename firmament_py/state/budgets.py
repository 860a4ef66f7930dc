"""The disruption budgets: how many of which tasks may be evicted.

The number that a budget permits is observed, and follows an eviction with delay. So each victim is subtracted from it
until the number falls by one, which is taken for the effect of a victim. A victim may be gone before: then it is
subtracted until the budget is observed again, or for a few seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, distinct_rows
from firmament_py.model.constraints import PeerSelector
from firmament_py.model.events import BudgetObserved
from firmament_py.state.label_sets import LabelSetTable

LATE_US = 5_000_000
"""How long the number of a budget is expected to follow victims that are gone, microseconds."""


class Allowances:
    """How many further evictions each of B budgets permits, beside those that have been spent on it.

    Tasks are named by their rows (K,) of the label set table. What is spent counts here alone: the state learns of
    evictions when they are decided.
    """

    def __init__(self, label_sets: LabelSetTable, selectors: list[PeerSelector], left: list[int]) -> None:
        self._label_sets, self._selectors = label_sets, selectors
        self.left: I64 = np.array(left, np.int64)
        """(B,) in the order of Budgets.observed; below 0 where more has been spent."""

    def __len__(self) -> int:
        """B."""
        return len(self.left)

    def counted(self, tasks: I64) -> Bools:
        """(B, K) which of the tasks each budget counts."""
        matching = [self._label_sets.matching(selector)[tasks] for selector in self._selectors]
        return np.array(matching, np.bool_).reshape(len(matching), len(tasks))

    def pattern(self, tasks: I64) -> I64:
        """(K,) numbers, equal for tasks that the same budgets count."""
        sets, of_task = np.unique(tasks, return_inverse=True)
        number: I64 = distinct_rows(self.counted(sets).T)[1][of_task.reshape(-1)]
        return number

    def exhausted(self, tasks: I64) -> Bools:
        """(B, K) which of the tasks each budget counts that permits no eviction."""
        return self.counted(tasks) & (self.left <= 0)[:, None]

    def permitted(self, tasks: I64) -> Bools:
        """(K,) which of the tasks may be evicted, each alone."""
        sets, of_task = np.unique(tasks, return_inverse=True)
        exhausted: Bools = np.any(self.exhausted(sets), axis=0)
        return ~exhausted[of_task.reshape(-1)]

    def exceeded(self, tasks: I64) -> I64:
        """The budgets, ascending, that do not permit to evict so many of the tasks together."""
        number = self.counted(tasks).sum(axis=1)
        exceeded: I64 = ((number > self.left) & (number > 0)).nonzero()[0]
        return exceeded

    def spend(self, tasks: I64) -> None:
        """The tasks are evicted, whatever is permitted."""
        if len(tasks):
            self.left = self.left - self.counted(tasks).sum(axis=1)

    def take(self, tasks: I64) -> bool:
        """Spends the evictions of the tasks if all of them together are permitted; whether they are."""
        permitted = not len(self.exceeded(tasks))
        if permitted:
            self.spend(tasks)
        return permitted

    def take_in_order(self, tasks: I64, limit: int) -> I64:
        """Spends the evictions of the tasks one by one, each if it is permitted, `limit` at most; their positions."""
        if not len(tasks):
            return NO_ROWS
        left, taken = self.left.copy(), list[int]()
        for i, counts in enumerate(self.counted(tasks).T):
            if len(taken) < limit and (left[counts] > 0).all():
                left -= counts
                taken.append(i)
        self.left = left
        return np.array(taken, np.int64)


@dataclass(slots=True)
class _Budget:
    observed: BudgetObserved
    victims: int = 0
    """Tasks that leave because they were evicted."""
    noticed: int = 0
    """For how many of them the number has fallen."""
    late: int = 0
    """Victims that are gone, and for which the number has not fallen yet."""

    @property
    def left(self) -> int:
        """How many tasks it permits to evict."""
        return max(self.observed.allowed - (self.victims - self.noticed) - self.late, 0)


class Budgets:
    """All budgets, by id."""

    def __init__(self) -> None:
        self._budgets: dict[int, _Budget] = {}
        self.late_until_us = 0
        """Until when victims that are gone are subtracted, microseconds since the epoch; 0: there are none."""

    def __len__(self) -> int:
        return len(self._budgets)

    @property
    def observed(self) -> list[BudgetObserved]:
        """All budgets, as observed last, in the order of `allowances`."""
        return [budget.observed for budget in self._budgets.values()]

    def observe(self, observed: BudgetObserved) -> bool:
        """Sets a budget; whether that may permit further evictions."""
        budget = self._budgets.get(observed.id)
        if budget is None:
            self._budgets[observed.id] = _Budget(observed)
            return False
        before, left = budget.observed, budget.left
        budget.observed = observed
        fallen = max(before.allowed - observed.allowed - budget.late, 0)
        budget.noticed, budget.late = min(budget.noticed + fallen, budget.victims), 0
        return left < budget.left or before.selector != observed.selector

    def remove(self, ident: int) -> bool:
        """Removes a budget; whether there was one."""
        return self._budgets.pop(ident, None) is not None

    def evicted(self, label_sets: LabelSetTable, rows: I64) -> None:
        """Tasks with these rows (K,) of the label set table become victims."""
        for budget in self._budgets.values():
            budget.victims += int(label_sets.matching(budget.observed.selector)[rows].sum())

    def gone(self, label_sets: LabelSetTable, rows: I64) -> None:
        """Victims with these rows (K,) of the label set table are gone."""
        for budget, count in self._counted(label_sets, rows):
            budget.late += max(count - budget.noticed, 0)
            self._forget(budget, count)

    def stay(self, label_sets: LabelSetTable, rows: I64) -> None:
        """Victims with these rows (K,) of the label set table stay after all."""
        for budget, count in self._counted(label_sets, rows):
            self._forget(budget, count)

    def _counted(self, label_sets: LabelSetTable, rows: I64) -> Iterator[tuple[_Budget, int]]:
        for budget in self._budgets.values() if len(rows) else ():
            yield budget, int(label_sets.matching(budget.observed.selector)[rows].sum())

    def _forget(self, budget: _Budget, count: int) -> None:
        budget.victims = max(budget.victims - count, 0)
        budget.noticed = max(budget.noticed - count, 0)

    def expire(self, now_us: int) -> None:
        """Victims that have been gone for long are not subtracted any more; `now_us`: microseconds since the epoch."""
        late = [budget for budget in self._budgets.values() if budget.late]
        if self.late_until_us and self.late_until_us <= now_us:
            for budget in late:
                budget.late = 0
            late = []
        self.late_until_us = (self.late_until_us or now_us + LATE_US) if late else 0

    def allowances(self, label_sets: LabelSetTable) -> Allowances:
        """What they permit now."""
        budgets = self._budgets.values()
        return Allowances(label_sets, [each.observed.selector for each in budgets], [each.left for each in budgets])
