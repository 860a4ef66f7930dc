"""Packs the single tasks of a round anew where a better packing could place more of them (packing/pack.py).

Flows count tasks, nodes have several resources: a node can be left with capacity of the wrong shape. So if tasks wait
that would have fitted at the start of the round, the tasks that the round has placed may move: all that are no
members of gangs, that have no constraints on other tasks, and that no constraint of others counts. What runs already,
reserved capacity and all other placements stay as they are. Tasks stay where the policy put them unless a packing that
places more moves them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

import numpy as np

from firmament_py.model.arrays import F64, I64, NO_ROWS, Bools, run_positions
from firmament_py.model.placed_by import PlacedBy
from firmament_py.packing.equal_nodes import equal_nodes, repacked_by_patterns
from firmament_py.packing.pack import gap_of_groups, greatest_effort, pack
from firmament_py.packing.problem import Packing, Problem
from firmament_py.placement.ledger import Ledger
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots

_Values = TypeVar("_Values", I64, Bools)

EFFORT_LIMIT = 100.0
"""Largest multiple of the usual effort: a round must end before its caller gives up."""


CELLS = 5_000_000
"""With more classes times nodes tasks are packed anew by patterns alone, where nodes are equal; with more classes times
different nodes not at all. It bounds a round's time and memory."""

BRIEF_TASKS, BRIEF_CELLS = 1_250, 100_000
"""With no more tasks, and no more classes times nodes, tasks are packed anew in the time of a flow for them: the search
has its least effort (packing/pack.py), and its linear programs are small."""


class Packs(Enum):
    """Which packings a round carries out itself: all; those that are no longer than a flow, while others follow beside
    the rounds; or none, since one is under way."""

    ALL = auto()
    BRIEFLY = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Repacked:
    """moved: how many tasks have another node than before or none. gap: how many more single tasks any packing could
    have placed at most."""

    moved: int
    gap: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search comes to. moving (M,): positions among the tasks of those that move; to (M,): positions among the
    nodes of where they go, -1: nowhere. gap: see Repacked."""

    moving: I64
    to: I64
    gap: int


@dataclass(frozen=True, slots=True)
class Repacking:
    """Tasks of a round that are to be packed anew. It shares nothing that changes with the round, so its search may go
    on in another thread after the round.

    tasks (K,), ascending, and nodes (M,): positions in the snapshot; at (K,): where the tasks are, positions in nodes,
    -1: nowhere. problem: of the classes task_class (K,), on the nodes, or, with of_node (M,), on one node of each group
    of equal ones. effort: multiplies that of the search.
    """

    tasks: I64
    nodes: I64
    at: I64
    problem: Problem
    task_class: I64
    of_node: I64 | None
    effort: float

    @property
    def long(self) -> bool:
        """Whether the search takes longer than a flow for the same tasks, by the numbers that its steps depend on."""
        return len(self.tasks) > BRIEF_TASKS or len(self.problem.count) * len(self.nodes) > BRIEF_CELLS

    @property
    def by(self) -> PlacedBy:
        """Which step it is."""
        return PlacedBy.PACKING if self.of_node is None else PlacedBy.PATTERNS

    def search(self) -> Found:
        """Finds a packing that is no worse. The result depends on nothing but the arrays."""
        return self._one_by_one() if self.of_node is None else self._by_patterns(self.of_node)

    def _one_by_one(self) -> Found:
        problem, placed = self.problem, _placed(self.task_class, self.at)
        packed = pack(problem, Packing.of(problem, *placed), self.effort)
        moving, to = _moves(self.task_class, self.at, packed.packing.entries())
        return Found(moving, to, _in_tasks(problem, packed.packing.left, packed.gap))

    def _by_patterns(self, of_node: I64) -> Found:
        problem, placed, effort = self.problem, _placed(self.task_class, self.at), greatest_effort(self.effort)
        moving, to = NO_ROWS, NO_ROWS
        if self.effort > 0 and (found := repacked_by_patterns(problem, of_node, placed, effort)):
            moving, to = _moves(self.task_class, self.at, found)
            placed = found
        left = problem.count - np.bincount(placed[0], placed[2], minlength=len(problem.count)).astype(np.int64)
        gap = gap_of_groups(problem, np.bincount(of_node, minlength=len(problem.free)), left)
        return Found(moving, to, _in_tasks(problem, left, gap))


def repack(ledger: Ledger, single: Bools, overdue: Bools, worth: Callable[[], I64], effort: float) -> Repacked:
    """Repacks the tasks `single` (T,) of a ledger; for the arguments see `repacking`. At effort 0 only the gap is
    found."""
    some, left_out = repacking(ledger, single, overdue, worth, effort)
    return Repacked(0, left_out) if some is None else repacked(ledger, some)


def repacked(ledger: Ledger, some: Repacking) -> Repacked:
    """Packs these tasks anew, which are where they were."""
    found = some.search()
    moving = some.tasks[found.moving]
    ledger.remove(moving)
    ledger.place(moving[found.to >= 0], some.nodes[found.to[found.to >= 0]], some.by)
    return Repacked(len(moving), found.gap)


def repacking(
    ledger: Ledger, single: Bools, overdue: Bools, worth: Callable[[], I64], effort: float
) -> tuple[Repacking | None, int]:
    """Which of the tasks `single` (T,) of a ledger are to be packed anew, None: none; and how many of them are left
    that would have fitted.

    Of each priority those that are `overdue` (T,) and placed remain so, then as many as possible are placed of those
    that are overdue, then of the others. worth (T,) > 0: what placing each is worth within its priority. effort:
    multiplies that of the search.
    """
    snapshot = ledger.snapshot
    if not (single & (ledger.node_of < 0)).any():
        return None, 0
    movable = single & may_move(snapshot)[snapshot.task_class] & _may_stay(ledger)
    left_out = int(_left_out(ledger, movable).sum())
    if not left_out:
        return None, 0
    tasks = np.flatnonzero(movable)
    if len(np.unique(snapshot.task_class[tasks])) * len(ledger.free) > CELLS:
        return _of_equal_nodes(ledger, tasks, overdue[tasks], worth, effort), left_out
    problem, task_class, nodes = _problem(ledger, tasks, overdue[tasks], worth()[tasks], np.arange(len(ledger.free)))
    at = _positions(nodes, len(ledger.free))[ledger.node_of[tasks]]
    return Repacking(tasks, nodes, at, problem, task_class, None, effort), left_out


def _of_equal_nodes(
    ledger: Ledger, tasks: I64, overdue: Bools, worth: Callable[[], I64], effort: float
) -> Repacking | None:
    """The repacking of `tasks` (K,), of which some are `overdue` (K,), where many nodes are equal; None: too few
    are."""
    snapshot = ledger.snapshot
    classes = np.unique(snapshot.task_class[tasks])
    used = np.flatnonzero(snapshot.requests[classes].any(axis=0))
    of_node = equal_nodes(_free(ledger, tasks)[:, used], snapshot.suitable, classes)
    _, first = np.unique(of_node, return_index=True)
    if len(classes) * len(first) > CELLS:
        return None
    problem, task_class, groups = _problem(ledger, tasks, overdue, worth()[tasks], first)
    of_node = _positions(groups, len(first))[of_node]
    nodes = np.flatnonzero(of_node >= 0)
    at = _positions(nodes, len(ledger.free))[ledger.node_of[tasks]]
    return Repacking(tasks, nodes, at, problem, task_class, of_node[nodes], effort)


def _positions(some: I64, length: int) -> I64:
    """(length + 1,) the position of each number among `some`, -1: it is not among them, nor is the last one, -1."""
    position = np.full(length + 1, -1, np.int64)
    position[some] = np.arange(len(some))
    return position


def _in_tasks(problem: Problem, left: I64, gap: F64) -> int:
    """How many more of the tasks that are left (C,) fit at most if the values of levels may rise by gap (L,)."""
    some = left > 0
    least = np.full(problem.levels, np.inf)
    np.minimum.at(least, problem.level[some], problem.value[some])
    possible = np.bincount(problem.level, left, minlength=problem.levels)
    return int(np.minimum(np.floor(gap / least + 1e-6), possible).sum())


def may_move(snapshot: Snapshot) -> Bools:
    """(C,) classes whose tasks can go to any suitable node, as far as other tasks are concerned."""
    free: Bools = ~(snapshot.intertask.concerned | snapshot.intertask.counted)
    return free


def _may_stay(ledger: Ledger) -> Bools:
    """(T,) tasks that do not use capacity that is reserved for later."""
    if not ledger.has_reservations:
        return np.ones(len(ledger.node_of), np.bool_)
    in_time = ledger.ends_us(np.arange(len(ledger.node_of))) <= max(h for h in ledger.horizons if h < FOREVER)
    return (ledger.node_of < 0) | ~in_time


def _left_out(ledger: Ledger, movable: Bools) -> Bools:
    """(T,) movable tasks that wait and would have fitted when the round began, beside those that cannot move."""
    snapshot = ledger.snapshot
    waiting = movable & (ledger.node_of < 0)
    classes = np.unique(snapshot.task_class[waiting])
    free = _free(ledger, np.flatnonzero(movable))
    fits = np.zeros(len(snapshot.classes), np.bool_)
    ones = np.ones(len(classes), np.int64)
    fits[classes] = task_slots(free, snapshot.requests[classes], snapshot.suitable[classes], ones).any(axis=1)
    return waiting & fits[snapshot.task_class]


def _free(ledger: Ledger, tasks: I64) -> I64:
    """(N, R) what is free for `tasks` (K,) if none of them is placed: at least what they use, also where more than the
    rest is reserved."""
    free: I64 = np.maximum(ledger.unreserved, 0) + ledger.usage_of(tasks)
    return free


def _problem(ledger: Ledger, tasks: I64, overdue: Bools, worth: I64, among: I64) -> tuple[Problem, I64, I64]:
    """The problem of packing `tasks` (K,), ascending, on those of the nodes `among` (M,) that can take any of them; the
    class of each task in it (K,), and the positions of its nodes in `among` (N',)."""
    snapshot = ledger.snapshot
    rank = np.where(overdue, ledger.node_of[tasks] < 0, 2)  # overdue tasks that are placed remain so
    kinds, task_class, count = np.unique(3 * snapshot.task_class[tasks] + rank, return_inverse=True, return_counts=True)
    classes, rank = kinds // 3, kinds % 3
    free, requests = _free(ledger, tasks)[among], snapshot.requests[classes]
    suitable = (
        snapshot.suitable[classes] if len(among) == len(ledger.free) else snapshot.suitable[np.ix_(classes, among)]
    )
    slots = task_slots(free, requests, suitable, count)
    nodes, used = np.flatnonzero(slots.any(axis=0)), np.flatnonzero(requests.any(axis=0))
    level = np.unique(rank - 3 * snapshot.priority[classes], return_inverse=True)[1].astype(np.int64)
    value = np.bincount(task_class, worth.astype(np.float64)) / count
    problem = Problem(
        np.ascontiguousarray(requests[:, used]),
        np.ascontiguousarray(free[np.ix_(nodes, used)]),
        _columns(suitable, nodes),
        _columns(slots, nodes),
        np.where(slots.any(axis=1), count, 0),  # no search for those that fit nowhere
        _relative(value, level),
        level,
    )
    return problem, task_class.astype(np.int64), nodes


def _columns(values: _Values, nodes: I64) -> _Values:
    """(C', N') those of (C', N); not a copy if they are all, as in most rounds: there can be millions of values."""
    return values if len(nodes) == values.shape[1] else np.ascontiguousarray(values[:, nodes])


def _relative(value: F64, level: I64) -> F64:
    """Values as multiples of the least of their level."""
    least = np.full(int(level.max(initial=0)) + 1, np.inf)
    np.minimum.at(least, level, value)
    relative: F64 = value / least[level]
    return relative


def _placed(task_class: I64, node_of: I64) -> tuple[I64, I64, I64]:
    """(P,) class, node and number of the tasks (K,) of each class on each node, by class and node."""
    there = node_of >= 0
    nodes = int(node_of.max(initial=0)) + 1
    key, number = np.unique(task_class[there] * nodes + node_of[there], return_counts=True)
    return key // nodes, key % nodes, number


def _moves(task_class: I64, node_of: I64, after: tuple[I64, I64, I64]) -> tuple[I64, I64]:
    """Positions of the tasks (K,), oldest first within a class, that move so that there are as many of each class on
    each node as `after` says, in the order of _placed; and their new nodes, -1: none. The newest leave a node, the
    oldest get the places."""
    before = _placed(task_class, node_of)
    nodes = int(max(before[1].max(initial=0), after[1].max(initial=0))) + 1
    key_before, key_after = before[0] * nodes + before[1], after[0] * nodes + after[1]
    placed = np.flatnonzero(node_of >= 0)[::-1]
    placed = placed[np.lexsort((node_of[placed], task_class[placed]))]  # by class and node, the newest first
    surplus = before[2] - _number_at(key_before, key_after, after[2])
    leaving = placed[run_positions(before[2]) < np.repeat(surplus, before[2])]
    pool = np.sort(np.concatenate([leaving, np.flatnonzero(node_of < 0)]))
    pool = pool[np.argsort(task_class[pool], kind="stable")]
    gained = np.maximum(after[2] - _number_at(key_after, key_before, before[2]), 0)
    places = np.bincount(after[0], gained, minlength=int(task_class.max(initial=-1)) + 1).astype(np.int64)
    waiting = np.bincount(task_class[pool], minlength=len(places))
    to = np.full(len(pool), -1)
    to[run_positions(waiting) < np.repeat(places, waiting)] = np.repeat(after[1], gained)
    changed = to != node_of[pool]
    return pool[changed], to[changed]


def _number_at(keys: I64, known: I64, number: I64) -> I64:
    """(K,) the number (P,) at each of the keys (K,) among known keys (P,), ascending; 0: not among them."""
    at = np.searchsorted(known, keys)
    found = np.append(known, -1)[at] == keys
    return np.where(found, np.append(number, 0)[at], 0)
