"""The linear relaxation of a packing: tasks are divisible, and alike nodes are one (packing/node_groups.py).

Merging nodes adds up their constraints, so the value of the relaxation is an upper bound for every packing. It has one
column for each class and group with slots, and a row for each class, each resource of a group that its columns can
exceed, and each level that must not lose value. Its size does not depend on the number of nodes.

Rounded rows make the bound tighter (Gomory, 1958): of the tasks that request at least k of a resource, floor(request /
k) each, a node holds at most floor(free / k) together. Those that the solution breaks are added, and it is solved
again.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled
from firmament_py.packing.linear_program import LinearProgram
from firmament_py.packing.node_groups import node_groups
from firmament_py.packing.problem import Problem

MOST_GROUPS = 100
"""Largest number of groups: the relaxation of 100 classes is solved in a tenth of a second."""

_COLUMNS = 20_000
"""Largest number of columns: with more than 200 classes there are fewer groups."""

_UNITS = 200
"""Largest number of different requests of a resource for which rounded rows are sought."""

_ROUNDED_ROWS = 400
"""Largest number of rounded rows that are added."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """bound: of the objective. amount (K,): a solution, tasks of each column."""

    bound: float
    amount: F64


@dataclass(frozen=True, slots=True)
class Shares:
    """A fractional packing: of tasks of class c, node n has of_groups[c, group[n]] * share[n], as far as it has slots.
    of_groups (C, G), group (N,), share (N,)."""

    of_groups: F64
    group: I64
    share: F64


class Relaxation:
    """Of one problem, for different objectives. G groups."""

    def __init__(self, problem: Problem, group_limit: int = MOST_GROUPS) -> None:
        self._problem = problem
        classes, nodes = problem.slots.shape
        limit = max(min(group_limit, _COLUMNS // max(classes, 1)), 1)
        self._group = node_groups(problem, limit) if nodes else np.zeros(0, np.int64)
        groups = int(self._group.max(initial=-1)) + 1
        self._members = np.zeros((groups, nodes), np.float64)
        self._members[self._group, np.arange(nodes)] = 1.0
        self._free = self._members @ problem.free  # (G, R)
        slots = np.zeros((classes, groups), np.int64)
        _add_by_group(problem.slots, self._group, slots)
        self._class, self._of_group = np.nonzero((slots > 0) & (problem.count > 0)[:, None])
        self._upper = np.minimum(slots[self._class, self._of_group], problem.count[self._class])
        self._rows: list[tuple[I64, F64, float]] = [*self._rows_of_classes(), *self._rows_of_resources()]
        self._solved: dict[tuple[bytes, bytes], Relaxed | None] = {}  # by objective and floor

    def solve(self, objective: F64, floor: F64 | None = None) -> Relaxed | None:
        """Maximises objective (C,) per task; floor (L,): values that the levels must have at least. None: the solver
        has found no solution."""
        floor = np.zeros(self._problem.levels) if floor is None else floor
        program = (objective.tobytes(), floor.tobytes())
        if program not in self._solved:
            self._solved[program] = self._solution(objective, floor)
        return self._solved[program]

    def _solution(self, objective: F64, floor: F64) -> Relaxed | None:
        rows = list(self._rows)
        problem = self._problem
        for level, least in enumerate(floor.tolist()):
            columns = np.flatnonzero(problem.level[self._class] == level)
            if least > 0 and len(columns):
                rows.append((columns, -problem.value[self._class[columns]], -least * (1 - 1e-9)))
        found = self._program(objective, rows).solve()
        return None if found is None else Relaxed(found.bound, found.x)

    def tighten(self, relaxed: Relaxed) -> bool:
        """Adds the rounded rows that a solution breaks most; whether there were any."""
        problem, amount = self._problem, relaxed.amount
        found: list[tuple[float, I64, F64, float]] = []
        for r in range(problem.requests.shape[1]):
            request = problem.requests[:, r]
            for unit in _spread_over(np.unique(request[request > 1])).tolist():
                times = (request // unit)[self._class].astype(np.float64)
                limit = self._members @ (problem.free[:, r] // unit)
                excess = np.bincount(self._of_group, times * amount, minlength=len(limit)) - limit
                for g in np.flatnonzero(excess > 1e-6).tolist():
                    columns = np.flatnonzero((self._of_group == g) & (times > 0))
                    found.append((-float(excess[g]), columns, times[columns], float(limit[g])))
        found.sort(key=lambda entry: entry[0])
        self._rows += [(columns, entries, limit) for _, columns, entries, limit in found[:_ROUNDED_ROWS]]
        if found:
            self._solved.clear()
        return bool(found)

    def _program(self, objective: F64, rows: list[tuple[I64, F64, float]]) -> LinearProgram:
        return LinearProgram(
            objective=objective[self._class],
            upper=self._upper,
            limit=np.array([limit for _, _, limit in rows]),
            row=np.repeat(np.arange(len(rows)), [len(columns) for columns, _, _ in rows]),
            column=np.concatenate([columns for columns, _, _ in rows] or [np.zeros(0, np.int64)]),
            entry=np.concatenate([entries for _, entries, _ in rows] or [np.zeros(0)]),
        )

    def _rows_of_classes(self) -> list[tuple[I64, F64, float]]:
        """No more tasks of a class than there are."""
        count = self._problem.count
        start = np.searchsorted(self._class, np.arange(len(count) + 1))  # columns are in the order of their classes
        total = np.bincount(self._class, self._upper, minlength=len(count))
        return [
            (np.arange(start[c], start[c + 1]), np.ones(start[c + 1] - start[c]), float(count[c]))
            for c in np.flatnonzero(total > count).tolist()
        ]

    def _rows_of_resources(self) -> list[tuple[I64, F64, float]]:
        """No more of a resource than is free in a group, where its columns together could use more."""
        rows = []
        by_group = np.argsort(self._of_group, kind="stable")
        starts = np.searchsorted(self._of_group[by_group], np.arange(len(self._free) + 1))
        for g, free in enumerate(self._free):
            columns = by_group[starts[g] : starts[g + 1]]
            requests = self._problem.requests[self._class[columns]]
            usable = self._upper[columns] @ requests
            for r in np.flatnonzero(usable > free).tolist():
                some = requests[:, r] > 0
                unit = float(requests[:, r].max())  # entries of at most 1
                rows.append((columns[some], requests[some, r] / unit, float(free[r]) / unit))
        return rows

    def shares(self, relaxed: Relaxed) -> Shares:
        """A solution on nodes: the tasks of a group are divided over its nodes in proportion to what is free of the
        resource that is shortest there."""
        problem = self._problem
        of_groups = np.zeros((len(problem.count), len(self._free)))
        of_groups[self._class, self._of_group] = relaxed.amount
        used = of_groups.T @ problem.requests > 1e-9  # (G, R)
        free = np.maximum(self._free, 1)[self._group]
        share = np.where(used[self._group], problem.free / free, np.inf).min(axis=1, initial=np.inf)
        share[~np.isfinite(share)] = 0.0
        return Shares(of_groups, self._group, share)


@compiled
def _add_by_group(slots: I64, group: I64, total: I64) -> None:
    """Adds up the slots (C, N) of the nodes of each group (N,) in total (C, G)."""
    for c in range(len(slots)):
        for n in range(len(group)):
            total[c, group[n]] += slots[c, n]


def _spread_over(numbers: I64) -> I64:
    """Evenly chosen ones of ascending numbers, with the last, if there are more than _UNITS."""
    if len(numbers) <= _UNITS:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, _UNITS).astype(np.int64)]
