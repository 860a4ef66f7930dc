"""Packs tasks on groups of equal hosts by patterns, each of which says what one host holds.

Gilmore and Gomory, A Linear Programming Approach to the Cutting-Stock Problem, 1961. The master program chooses how
many hosts of each group get which of the known patterns, level by level: each is maximised while those before it keep
their value. Its duals are prices of tasks and hosts; further patterns are those whose tasks are worth more than their
host. Ruin and recreate on one host finds them, which is no proof that there are no others, so the program gives no
bound. Its solution is rounded: whole hosts, then one host for each of the largest fractions, then what else fits. The
effort depends on the numbers of classes and groups, not on that of hosts.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, U64
from firmament_py.numba_cache import compiled
from firmament_py.packing.linear_program import LinearProgram
from firmament_py.packing.problem import Problem
from firmament_py.packing.search_math import uniform

_TRIES = 100
"""Steps of a search for one pattern."""

_ENTRY = 100
"""What an entry of the master program counts: its solution takes so many times longer than looking at a class."""

_SEPARATE = 8
"""So many levels are maximised one by one, the others together."""

_LEVEL_STEP = 16.0
"""A task weighs so many times one of the next level where levels are maximised together."""

_LEAST_GAIN = 1e-4
"""No more patterns are sought if those that were found last can add no more than this share."""

_TOLERANCE = 1e-6
"""Fractions that are this little below an integer count as that integer."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """hosts (P,) > 0 of group (P,) hold tasks (P, C) each; all hosts of all groups are among them. left (C,): how many
    tasks of each class are on none."""

    group: I64
    hosts: I64
    tasks: I64
    left: I64


def pack_patterns(problem: Problem, hosts: I64, effort: int) -> Patterns:
    """Packs `problem`, each of whose G nodes stands for hosts (G,) > 0 equal ones. effort: how often a search looks at
    a class on a host, about, 70 million times a second. The result depends on nothing but the arguments."""
    master = _Master(problem, hosts)
    amount = _generate(problem, hosts, master, effort)
    return _filled(problem, hosts, _rounded(problem, hosts, master, amount))


@dataclass(frozen=True, slots=True)
class _Solution:
    """value: of the objective; amount (P,): hosts with each pattern; worth (C,): of a task; price (G,): of a host."""

    value: float
    amount: F64
    worth: F64
    price: F64


class _Master:
    """The program: tasks (C,) that are placed, hosts (P,) with each pattern."""

    def __init__(self, problem: Problem, hosts: I64) -> None:
        self._problem, self._hosts = problem, hosts
        self._known: set[tuple[int, bytes]] = set()
        self.group: list[int] = []
        self.tasks: list[I64] = []  # (C,) of each pattern
        self.entries = 0
        """Of the program."""
        cls, group = np.nonzero(problem.slots)
        for c, g in zip(cls.tolist(), group.tolist(), strict=True):
            alone = np.zeros(len(problem.count), np.int64)
            alone[c] = problem.slots[c, g]
            self.add(g, alone)

    def add(self, group: int, tasks: I64) -> bool:
        """Adds a pattern (C,), which is not copied; whether it is new."""
        key = (group, tasks.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        self.group.append(group)
        self.tasks.append(tasks)
        self.entries += 1 + int(np.count_nonzero(tasks))
        return True

    def solve(self, objective: F64, floors: list[tuple[F64, float]]) -> _Solution | None:
        """Maximises objective (C,) per task; floors: of further objectives. None: the solver has found no solution."""
        count, classes, groups = self._problem.count.astype(np.float64), len(self._problem.count), len(self._hosts)
        group, tasks = np.array(self.group, np.int64), np.array(self.tasks).reshape(-1, classes)
        pattern, cls = np.nonzero(tasks)
        row, column = [np.arange(classes), cls, classes + group], [np.arange(classes), classes + pattern]
        column.append(classes + np.arange(len(group)))
        entry = [np.ones(classes), -tasks[pattern, cls].astype(np.float64), np.ones(len(group))]
        for number, (values, _) in enumerate(floors):
            (some,) = values.nonzero()
            row.append(np.full(len(some), classes + groups + number))
            column.append(some)
            entry.append(-values[some])
        program = LinearProgram(
            objective=np.r_[objective, np.zeros(len(group))],
            upper=np.r_[count, self._hosts[group].astype(np.float64)],
            limit=np.r_[np.zeros(classes), self._hosts.astype(np.float64), [-least for _, least in floors]],
            row=np.concatenate(row),
            column=np.concatenate(column),
            entry=np.concatenate(entry),
        )
        found = program.solve()
        if found is None:
            return None
        price = found.dual[classes : classes + groups]
        return _Solution(float(objective @ found.x[:classes]), found.x[classes:], found.dual[:classes], price)


def _objectives(problem: Problem) -> list[F64]:
    """(C,) each: what is maximised, one after the other."""
    separate = min(problem.levels, _SEPARATE)
    found = [np.where(problem.level == level, problem.value, 0.0) for level in range(separate)]
    if problem.levels > separate:
        later = np.minimum(problem.level - separate, 6)
        found.append(np.where(later >= 0, problem.value * _LEVEL_STEP ** -later.astype(np.float64), 0.0))
    return found


def _generate(problem: Problem, hosts: I64, master: _Master, effort: int) -> F64:
    """(P,) how many hosts get each of the patterns that the master has at the end."""
    floors: list[tuple[F64, float]] = []
    amount, rng = np.zeros(0), np.zeros(1, np.uint64)
    best = np.zeros((2, len(hosts), len(problem.count)), np.int64)  # of each group, the last ones found
    for objective in _objectives(problem):
        smooth = np.zeros(len(objective))
        while (found := master.solve(objective, floors)) is not None:
            amount = found.amount
            effort -= _ENTRY * master.entries
            if effort <= 0 or found.value >= (1 - 1e-9) * float(objective @ problem.count):
                break
            profit = np.where(found.worth > 1e-9, found.worth, 0.0)
            smooth = (smooth + profit) / 2 if smooth.any() else profit
            new, potential = False, 0.0
            for worth, tasks in zip((profit, smooth), best, strict=True):
                _search(problem.requests, problem.free, problem.slots, worth, _TRIES, rng, tasks)
                effort -= _TRIES * int(np.count_nonzero(problem.slots[worth > 0]))
                gain = tasks @ profit - found.price
                better = gain > 1e-7 * np.maximum(1.0, np.abs(found.price))
                for g in np.flatnonzero(better).tolist():
                    new |= master.add(g, tasks[g].copy())
                potential = max(potential, float(gain[better] @ hosts[better]))
            if not new or potential <= _LEAST_GAIN * found.value:
                break
        if found is None:
            break
        floors.append((objective, found.value * (1 - 1e-9)))
    return np.concatenate([amount, np.zeros(len(master.group) - len(amount))])


@compiled
def _search(requests: I64, free: I64, slots: I64, profit: F64, tries: int, rng: U64, best: I64) -> None:
    """Improves the pattern of each group in best (G, C), which fit, for profits (C,)."""
    classes, resources = requests.shape
    some, key, weight = np.empty(classes, np.int64), np.empty(classes), np.empty(resources)
    tasks, left = np.empty(classes, np.int64), np.empty(resources, np.int64)
    for g in range(len(free)):
        number, highest = 0, 0.0
        for c in range(classes):
            if profit[c] <= 0.0 or slots[c, g] == 0:
                best[g, c] = 0
            else:
                some[number] = c
                number += 1
                highest += best[g, c] * profit[c]
        for attempt in range(tries):
            # ruin: at random half of the classes lose some of their tasks, in the first step all
            for r in range(resources):
                left[r] = free[g, r]
                weight[r] = (0.2 + uniform(rng) if attempt else 1.0) / max(free[g, r], 1)
            for i in range(number):
                c = some[i]
                tasks[c] = best[g, c] if attempt else 0
                if tasks[c] and uniform(rng) < 0.5:
                    tasks[c] -= int((tasks[c] + 1) * uniform(rng))
                size = 1e-12
                for r in range(resources):
                    left[r] -= tasks[c] * requests[c, r]
                    size += requests[c, r] * weight[r]
                key[i] = -profit[c] / size * (0.7 + 0.6 * uniform(rng) if attempt else 1.0)

            # recreate: as many as fit of one class after the other
            value = 0.0
            for i in np.argsort(key[:number]):
                c = some[i]
                added = slots[c, g] - tasks[c]
                for r in range(resources):
                    if requests[c, r] > 0:
                        added = min(added, left[r] // requests[c, r])
                if added > 0:
                    tasks[c] += added
                    for r in range(resources):
                        left[r] -= added * requests[c, r]
                value += tasks[c] * profit[c]
            if value > highest + 1e-12:
                highest = value
                for i in range(number):
                    best[g, some[i]] = tasks[some[i]]


def _rounded(problem: Problem, hosts: I64, master: _Master, amount: F64) -> Patterns:
    """Whole hosts, then one for each of the largest fractions; no more tasks than there are."""
    group = np.array(master.group, np.int64)
    whole = np.floor(amount + _TOLERANCE).astype(np.int64)
    spare, left, found = hosts.copy(), problem.count.copy(), list[tuple[int, int, I64]]()
    for p in np.flatnonzero(whole > 0).tolist():
        number = min(whole[p], spare[group[p]])  # a solver has a tolerance
        spare[group[p]] -= number
        found += _trimmed(int(group[p]), int(number), master.tasks[p], left)
    for p in np.argsort(whole - amount, kind="stable").tolist():
        if amount[p] - whole[p] > _TOLERANCE and spare[group[p]] > 0:
            spare[group[p]] -= 1
            found += _trimmed(int(group[p]), 1, master.tasks[p], left)
    nothing = np.zeros(len(problem.count), np.int64)
    found += [(g, int(spare[g]), nothing) for g in np.flatnonzero(spare > 0).tolist()]
    groups, number, tasks = zip(*found, strict=True)
    return Patterns(np.array(groups), np.array(number), np.array(tasks), left)


def _trimmed(group: int, hosts: int, tasks: I64, left: I64) -> list[tuple[int, int, I64]]:
    """So many hosts with the pattern `tasks` (C,), as far as there are tasks left (C,), which are taken."""
    found = []
    while hosts > 0:
        tasks = np.minimum(tasks, left)
        some = tasks > 0
        number = min(hosts, int((left[some] // tasks[some]).min(initial=hosts)))
        found.append((group, number, tasks))
        left -= number * tasks
        hosts -= number
    return found


def _filled(problem: Problem, hosts: I64, patterns: Patterns) -> Patterns:
    """Adds what fits, by level, the smallest first."""
    total = np.maximum(hosts @ problem.free, 1)
    weight = np.minimum(problem.count @ problem.requests / total, 1.0) / problem.free.max(axis=0, initial=1)
    order = np.lexsort((problem.requests @ weight / problem.value, problem.level))
    for c in order[patterns.left[order] > 0].tolist():
        needs = problem.requests[c] > 0
        spare = problem.free[patterns.group] - patterns.tasks @ problem.requests
        fitting = np.where(problem.slots[c, patterns.group] > 0, patterns.left[c], 0)
        fitting = np.minimum(fitting, (spare[:, needs] // problem.requests[c, needs]).min(axis=1, initial=1 << 40))
        capacity = fitting * patterns.hosts
        taken = np.minimum(capacity, np.maximum(patterns.left[c] - (np.cumsum(capacity) - capacity), 0))
        if taken.any():
            patterns = _with(patterns, c, fitting, taken)
    return patterns


def _with(patterns: Patterns, c: int, each: I64, taken: I64) -> Patterns:
    """Places taken (P,) tasks of class c, each (P,) of them on as many hosts of a pattern as they need."""
    full = taken // np.maximum(each, 1)
    further = taken - full * each  # on one more host
    hosts = np.concatenate([full, np.minimum(further, 1), patterns.hosts - full - np.minimum(further, 1)])
    some = hosts > 0
    tasks = np.tile(patterns.tasks, (3, 1))
    tasks[:, c] += np.concatenate([each, further, np.zeros_like(further)])
    left = patterns.left.copy()
    left[c] -= taken.sum()
    return Patterns(np.tile(patterns.group, 3)[some], hosts[some], tasks[some], left)
