"""Which members of running gangs may be evicted: those above the minimum one by one, the others only all together.

So no gang is left with fewer members than it needs. Of a gang that can only be disrupted as a whole, none counts as
above the minimum.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG

GANGS = 256
"""Limit on the gangs that may lose members above the minimum in a round: those with the largest surplus."""


WHOLE_GANGS = 2_048
"""Limit on the gangs that may be evicted as a whole in a round: the least important ones."""


@dataclass(frozen=True, slots=True)
class Surplus:
    """limit (B,): how many members of a gang, or of one of its roles, may be evicted. of_row (T, 2): two limits that
    count each row of the task table, -1: none. evictable (T,): members that may be evicted."""

    limit: I64
    of_row: I64
    evictable: Bools

    def with_loose(self, rows: I64) -> "Surplus":
        """The same, but members with these rows (K,) may be evicted without limits."""
        of_row, evictable = self.of_row.copy(), self.evictable.copy()
        of_row[rows], evictable[rows] = -1, True
        return Surplus(self.limit, of_row, evictable)


@dataclass(frozen=True, slots=True)
class RunningGang:
    """A gang that may be evicted: its row, its running members (M,), rows of the task table, its priority, the highest
    of theirs, and whether it can only be disrupted as a whole."""

    row: int
    members: I64
    priority: int
    whole: bool


def surplus(state: ClusterState) -> Surplus:
    """Members of gangs above their minimums. Members that are leaving do not count."""
    tasks, gangs = state.tasks, state.gangs
    of_row = np.full((tasks.capacity, 2), -1, np.int64)
    rows = np.flatnonzero(_holding(state) & (tasks.gang != NO_GANG) & ~tasks.leaving)
    if not len(rows):
        return Surplus(NO_ROWS, of_row, of_row[:, 0] >= 0)
    rows = rows[np.argsort(tasks.gang[rows], kind="stable")]
    found, first, there = np.unique(tasks.gang[rows], return_index=True, return_counts=True)
    limits: list[int] = []
    spare = [_spare(state, row, count) for row, count in zip(found.tolist(), there.tolist(), strict=True)]
    for i in np.argsort(-np.array(spare), kind="stable")[:GANGS].tolist():
        if spare[i] <= 0:
            break
        members = rows[first[i] : first[i] + there[i]]
        of_row[members, 0] = len(limits)
        limits.append(spare[i])
        for r, (_, minimum) in enumerate(gangs.definition(int(found[i])).roles):
            of_role = members[tasks.role[members] == r]
            of_row[of_role, 1] = len(limits)
            limits.append(max(len(of_role) - minimum, 0))
    return Surplus(np.array(limits, np.int64), of_row, of_row[:, 0] >= 0)


def _spare(state: ClusterState, row: int, running: int) -> int:
    definition = state.gangs.definition(row)
    return 0 if definition.disrupted_whole else running - definition.minimum


def evictable_gangs(state: ClusterState, precedence: I64, priority: int, victims: I64) -> list[RunningGang]:
    """The gangs of a precedence (T,) below `priority` that may be evicted as a whole, the least important first: by
    priority, then those that started last, then the smaller ones. victims (V,): rows of the task table that leave by
    now."""
    tasks = state.tasks
    rows = np.flatnonzero(_holding(state) & (tasks.gang != NO_GANG))
    if not len(rows):
        return []
    rows = rows[np.argsort(tasks.gang[rows], kind="stable")]
    found, first = np.unique(tasks.gang[rows], return_index=True)
    leaving, chosen = tasks.leaving[rows], np.isin(rows, victims)
    able = leaving | tasks.evictable[rows]
    highest = np.maximum.reduceat(precedence[rows], first)
    size = np.add.reduceat((~leaving).astype(np.int64), first)
    started_us = np.minimum.reduceat(np.where(leaving, np.iinfo(np.int64).max, tasks.started_us[rows]), first)
    may_go = (highest < priority) & (size > 0)
    may_go &= np.logical_and.reduceat(able, first) & ~np.logical_or.reduceat(chosen, first)
    end = np.append(first[1:], len(rows))
    gangs: list[RunningGang] = []
    for i in np.lexsort((found, size, -started_us, highest)).tolist():
        if may_go[i] and len(gangs) < WHOLE_GANGS:
            members = rows[first[i] : end[i]]
            whole = state.gangs.definition(int(found[i])).disrupted_whole
            gangs.append(RunningGang(int(found[i]), members[~tasks.leaving[members]], int(highest[i]), whole))
    return gangs


def disruptions(state: ClusterState, victims: I64) -> I64:
    """One of task rows (V,) for each disruption that their eviction is: a gang that can only be disrupted as a whole
    counts once, like a single task."""
    gang = state.tasks.gang[victims].astype(np.int64)
    whole = np.array([g != NO_GANG and state.gangs.definition(g).disrupted_whole for g in gang.tolist()], np.bool_)
    first = np.unique(gang[whole], return_index=True)[1]
    return np.concatenate([victims[~whole], victims[whole][first]])


def _holding(state: ClusterState) -> Bools:
    """(T,) tasks that are on nodes."""
    holding: Bools = state.tasks.on_nodes
    return holding
