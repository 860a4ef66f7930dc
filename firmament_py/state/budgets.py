"""The disruption budgets: how many of which tasks may be evicted.

The number that a budget permits is observed, and follows an eviction with delay. So each victim is subtracted from it
until the number falls by one, which is taken for the effect of a victim, or a victim is gone.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import BudgetObserved
from firmament_py.state.label_sets import LabelSetTable


@dataclass(slots=True)
class _Budget:
    observed: BudgetObserved
    victims: int = 0
    """Tasks that leave because they were evicted."""
    noticed: int = 0
    """For how many of them the number has fallen."""


class Budgets:
    """All budgets, by id."""

    def __init__(self) -> None:
        self._budgets: dict[int, _Budget] = {}

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
        before, budget.observed = budget.observed, observed
        budget.noticed = min(budget.noticed + max(before.allowed - observed.allowed, 0), budget.victims)
        return before.allowed < observed.allowed or before.selector != observed.selector

    def remove(self, ident: int) -> bool:
        """Removes a budget; whether there was one."""
        return self._budgets.pop(ident, None) is not None

    def evicted(self, label_sets: LabelSetTable, rows: I64) -> None:
        """Tasks with these rows (K,) of the label set table become victims."""
        for budget in self._budgets.values():
            budget.victims += int(label_sets.matching(budget.observed.selector)[rows].sum())

    def gone(self, label_sets: LabelSetTable, rows: I64) -> None:
        """Victims with these rows (K,) of the label set table are gone, or stay after all."""
        for budget in self._budgets.values() if len(rows) else ():
            count = int(label_sets.matching(budget.observed.selector)[rows].sum())
            budget.victims = max(budget.victims - count, 0)
            budget.noticed = max(budget.noticed - count, 0)

    def limits(self, label_sets: LabelSetTable, rows: I64) -> tuple[I64, Bools]:
        """(B,) how many tasks each budget permits to evict, and (B, K) which of the rows (K,) of the label set table it
        counts."""
        allowed, counted = [], []
        for budget in self._budgets.values():
            allowed.append(max(budget.observed.allowed - (budget.victims - budget.noticed), 0))
            counted.append(label_sets.matching(budget.observed.selector)[rows])
        return np.array(allowed, np.int64), np.array(counted, np.bool_).reshape(len(counted), len(rows))
