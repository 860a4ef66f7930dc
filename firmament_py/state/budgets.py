"""The disruption budgets: how many of which tasks may be evicted.

The number that a budget permits is observed, and follows an eviction with delay. So each victim is subtracted from it
until the number falls by one, which is taken for the effect of a victim. A victim may be gone before: then it is
subtracted until the budget is observed again, or for a few seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import BudgetObserved
from firmament_py.state.label_sets import LabelSetTable

LATE_US = 5_000_000
"""How long the number of a budget is expected to follow victims that are gone, microseconds."""


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
        """All budgets, as observed last, in the order of `limits`."""
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

    def limits(self, label_sets: LabelSetTable, rows: I64) -> tuple[I64, Bools]:
        """(B,) how many tasks each budget permits to evict, and (B, K) which of the rows (K,) of the label set table it
        counts."""
        allowed, counted = [], []
        for budget in self._budgets.values():
            allowed.append(budget.left)
            counted.append(label_sets.matching(budget.observed.selector)[rows])
        return np.array(allowed, np.int64), np.array(counted, np.bool_).reshape(len(counted), len(rows))
