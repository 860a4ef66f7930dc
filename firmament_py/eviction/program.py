"""Evictions on a few nodes as an integer program, which is solved for one objective after the other.

Its variables are numbers: the tasks of each class on each node, and those of them that stay at home; the residents of
each group that leave; and how many of these no budget permits, for all together that the same budgets count and the
same tasks evict. So what is alike is interchangeable. The objectives are those of the search (eviction/search.py). Each
becomes a row once it is reached, which the later ones keep. So no resident leaves for tasks that may not evict it: what
only more important tasks evict is decided before these are served. Tasks that evict nothing have what is free anyway.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firmament_py.eviction.problem import Subproblem
from firmament_py.model.arrays import I64, distinct_rows
from firmament_py.packing.integer_rows import IntegerRows


@dataclass(frozen=True, slots=True)
class Solution:
    """placed (W, N): tasks of each class on each node. Of each group of residents (K,): evicted, and violating: how
    many of these no budget permits."""

    placed: I64
    evicted: I64
    violating: I64


class EvictionProgram:
    """The program of one problem. Budgets permit at least 0."""

    def __init__(self, problem: Subproblem) -> None:
        arrivals, residents = problem.arrivals, problem.residents
        self._problem = problem
        self._home_count = problem.home_count
        self._levels = np.unique(-arrivals.priority)
        self._kind = residents.kind
        # (K,) the last level whose tasks may evict each group, -1: none may
        self._tier = np.searchsorted(self._levels, -residents.priority[self._kind]) - 1
        self._cls, self._node = np.nonzero(arrivals.suitable & (arrivals.count > 0)[:, None])
        self._exceedable = np.flatnonzero(problem.exceedable[self._kind] & (self._tier >= 0))
        counted = np.column_stack([self._tier, residents.budgets[self._kind]])[self._exceedable]
        first, self._excess_of = distinct_rows(counted)
        self._excess = counted[first]  # (X, 1 + B)
        self._stays = np.flatnonzero(self._home_count[self._cls, self._node])
        self._lacking = np.argwhere(problem.free < 0).T
        parts = (self._cls, self._kind, self._excess, self._stays, self._lacking[0])
        end = np.cumsum([len(part) for part in parts])
        self._width = int(end[-1])
        columns = np.split(np.arange(self._width), end[:-1])
        self._of_tasks, self._of_leaving, self._of_excess, self._of_stays, self._of_asking = columns
        self._rows = IntegerRows()
        self._add_capacities()
        self._add_evictions()

    def improved(self, start: Solution, work: float) -> Solution | None:
        """The best solution; `start` itself if none is better. None: this is not proved within so much deterministic
        time for each objective (CP-SAT's measure, about a second)."""
        x = first = self._values(start)
        upper = self._upper()
        for objective, bound in self._objectives():
            if objective @ x < bound:
                found = self._rows.solve_from(objective, upper, x, work)
                if found is None:
                    return None
                if objective @ found > objective @ x:
                    x = found
            some = np.flatnonzero(objective)
            self._rows.add(np.array([-(objective @ x)]), np.zeros_like(some), some, -objective[some])
        return start if x is first else self._solution(x)

    def _upper(self) -> I64:
        """(V,) upper bounds of the variables."""
        leaving = np.where(self._tier >= 0, self._problem.residents.count, 0)
        excess = np.bincount(self._excess_of, leaving[self._exceedable], len(self._excess))
        return np.concatenate(
            [
                self._problem.arrivals.count[self._cls],
                leaving,
                excess.astype(np.int64),
                self._home_count[self._cls, self._node][self._stays],
                np.ones_like(self._of_asking),
            ]
        )

    def _add_capacities(self) -> None:
        """Nodes have what their tasks request, less what evictions release; classes have so many tasks."""
        arrivals, residents, free = self._problem.arrivals, self._problem.residents, self._problem.free
        self._rows.add(arrivals.count, self._cls, self._of_tasks, np.ones_like(self._cls))
        requests = arrivals.requests[self._cls]
        amount = np.vstack([requests, -residents.requests[self._kind]])
        row = np.r_[self._node, residents.node][:, None] * free.shape[1] + np.arange(free.shape[1])
        column = np.broadcast_to(np.r_[self._of_tasks, self._of_leaving][:, None], row.shape)
        limit = free.reshape(-1).copy()
        lacking = np.ravel_multi_index(tuple(self._lacking), free.shape)
        limit[lacking] = 0  # such a node has tasks all the same if these do not request what it lacks
        row = np.r_[row.reshape(-1), lacking]
        column = np.r_[column.reshape(-1), self._of_asking]
        amount = np.r_[amount.reshape(-1), -free.reshape(-1)[lacking]]
        self._rows.add(limit, row, column, amount)
        for asking, n, r in zip(self._of_asking.tolist(), *self._lacking.tolist(), strict=True):
            asks = (self._node == n) & (requests[:, r] > 0)
            columns = self._of_tasks[asks]
            self._rows.imply(columns, arrivals.count[self._cls[asks]], np.full_like(columns, asking))
        places = np.arange(len(self._stays))
        columns = np.r_[self._of_stays, self._of_tasks[self._stays]]
        self._rows.add(np.zeros_like(places), np.tile(places, 2), columns, np.repeat([1, -1], len(places)))

    def _add_evictions(self) -> None:
        """Residents leave within budgets but for the excess, and for none of the tasks that evict nothing."""
        arrivals, residents, free = self._problem.arrivals, self._problem.residents, self._problem.free
        non_evicting = ~arrivals.evicts[self._cls]
        requests = arrivals.requests[self._cls[non_evicting]]
        row = self._node[non_evicting][:, None] * free.shape[1] + np.arange(free.shape[1])
        column = np.broadcast_to(self._of_tasks[non_evicting][:, None], row.shape)
        if non_evicting.any():
            limit = np.maximum(free.reshape(-1), 0)
            self._rows.add(limit, row.reshape(-1), column.reshape(-1), requests.reshape(-1))
        budget, counted = np.nonzero(residents.budgets[self._kind].T)
        exceeded, excess = np.nonzero(self._excess[:, 1:].T)
        entries = np.r_[np.ones_like(counted), -np.ones_like(excess)]
        columns = np.r_[self._of_leaving[counted], self._of_excess[excess]]
        self._rows.add(self._problem.allowed, np.r_[budget, exceeded], columns, entries)
        number = np.r_[np.arange(len(self._excess)), self._excess_of]
        entries = np.r_[np.ones_like(self._of_excess), -np.ones_like(self._exceedable)]
        columns = np.r_[self._of_excess, self._of_leaving[self._exceedable]]
        self._rows.add(np.zeros_like(self._of_excess), number, columns, entries)

    def _objectives(self) -> Iterator[tuple[I64, int]]:
        """Coefficients (V,) of what is to be as large as possible, the most important first, and a bound on each."""
        arrivals, residents = self._problem.arrivals, self._problem.residents
        rank = residents.rank[self._kind]
        unit = max(int(np.gcd.reduce(residents.value[self._kind], initial=0)), 1)
        # without a value, too, as few as possible leave
        value = np.maximum(residents.value[self._kind] // unit, 1)
        for level, negative in enumerate(self._levels.tolist()):
            some = -arrivals.priority == negative
            yield self._objective(self._of_tasks, some[self._cls].astype(np.int64)), int(arrivals.count[some].sum())
            yield self._objective(self._of_excess, -(self._excess[:, 0] == level).astype(np.int64)), 0
            for each in np.unique(rank[self._tier == level])[::-1].tolist():
                cost = np.where((self._tier == level) & (rank == each), value, 0)
                yield self._objective(self._of_leaving, -cost), 0
        yield self._objective(self._of_stays, np.ones_like(self._of_stays)), int(self._home_count.sum())

    def _objective(self, columns: I64, coefficients: I64) -> I64:
        objective = np.zeros(self._width, np.int64)
        objective[columns] = coefficients
        return objective

    def _values(self, solution: Solution) -> I64:
        """(V,) the variables of a solution."""
        placed = solution.placed[self._cls, self._node]
        asked = solution.placed.T @ self._problem.arrivals.requests > 0  # (N, R)
        return np.concatenate(
            [
                placed,
                solution.evicted,
                np.bincount(self._excess_of, solution.violating[self._exceedable], len(self._excess)).astype(np.int64),
                np.minimum(placed, self._home_count[self._cls, self._node])[self._stays],
                asked[tuple(self._lacking)].astype(np.int64),
            ]
        )

    def _solution(self, x: I64) -> Solution:
        placed, evicted = np.zeros_like(self._home_count), x[self._of_leaving]
        placed[self._cls, self._node] = x[self._of_tasks]
        violating = np.zeros_like(evicted)
        for number, excess in enumerate(x[self._of_excess].tolist()):
            groups = self._exceedable[self._excess_of == number]
            before = np.cumsum(evicted[groups]) - evicted[groups]
            violating[groups] = np.clip(excess - before, 0, evicted[groups])
        return Solution(placed, evicted, violating)
