"""Whether disruption budgets alone keep running tasks from being evicted for a waiting one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.arrays import I64, Bools, add_rows, positions_in
from firmament_py.snapshot.round_classes import demand_of
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


@dataclass(frozen=True)
class BudgetReasons:
    """For evictions within budgets at `now_us` on nodes (N,), rows of the node table."""

    state: ClusterState
    nodes: I64
    now_us: int

    def of(self, row: int, free: I64) -> Iterator[Reason]:
        """The reason for which a task like task row `row` evicts no other, if it is that: of `free` (N, R), which it
        may use, it has too little on every node, but enough on some if budgets that permit no eviction did not
        count."""
        classes, cls = self.state.classes, int(self.state.tasks.cls[row])
        if not len(self._evictable) or classes.never_preempts[cls]:
            return
        below = classes.priority[self.state.tasks.cls[self._evictable]] < classes.priority[cls]
        below &= self.state.tasks.least_preemptors(self.now_us)[self._evictable] <= classes.priority[cls]
        spared = below & self._exhausted.any(axis=0)
        if not spared.any():
            return
        selected, taint = self.state.node_index.evaluate(demand_of(self.state, row), self.nodes)
        fits = self._fitting(cls, free, below) & selected & (taint < 0)
        if not fits.any() or (self._fitting(cls, free, below & ~spared) & selected & (taint < 0)).any():
            return
        in_the_way: Bools = np.any(self._exhausted[:, spared & fits[self._where]], axis=1)
        names = [budget.name for budget, counts in zip(self.state.budgets.observed, in_the_way, strict=True) if counts]
        if names:
            yield Reason(ReasonKind.BUDGETS, int(fits.sum()), ", ".join(sorted(names)))

    @cached_property
    def _evictable(self) -> I64:
        """(K,) rows of the tasks that can be evicted one by one."""
        tasks = self.state.tasks
        rows = np.flatnonzero(tasks.evictable & (tasks.gang == NO_GANG))
        return rows[positions_in(self.nodes, self.state.nodes.capacity)[tasks.node[rows]] >= 0]

    @cached_property
    def _where(self) -> I64:
        """(K,) positions of their nodes."""
        return positions_in(self.nodes, self.state.nodes.capacity)[self.state.tasks.node[self._evictable]]

    @cached_property
    def _exhausted(self) -> Bools:
        """(B, K) which of them budgets count that permit no eviction."""
        return self.state.allowances().exhausted(self.state.tasks.label_set[self._evictable])

    def _fitting(self, cls: int, free: I64, gone: Bools) -> Bools:
        """(N,) nodes that have enough for the class once these of the evictable tasks (K,) are gone."""
        requests, left = self.state.classes.requests, free.copy()
        add_rows(left, self._where[gone], requests[self.state.tasks.cls[self._evictable[gone]]])
        fits: Bools = ((left >= requests[cls]) | (requests[cls] == 0)).all(axis=1)
        return fits & (not self.state.classes.lacking(cls))
