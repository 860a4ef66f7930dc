"""Successors of migrating tasks: where each is expected, and what its node reserves for it until it arrives.

A successor is a task of the same job, and of the same class apart from its preferences, some of which only waiting
tasks have. The owner of the one that was evicted creates it. Any such task is as good as another. One that does not
arrive in time is not expected any more. For a task without a job none is expected: it could not be identified.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.constraints import NO_PREFERENCES
from firmament_py.model.events import ClassDefined
from firmament_py.model.resources import Resources
from firmament_py.state.classes import ClassTable
from firmament_py.state.tables import TaskTable

_REMEMBERED = 10_000
"""For how many tasks that migrated it is known where their successors were placed."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """uid: of the task that migrates; queue: its id. kind: its class without preferences. node: its row."""

    uid: int
    job: int
    queue: int
    kind: ClassDefined
    requests: Mapping[str, int]
    node: int
    until_us: int


class Successors:
    """At most a few at a time: see placement/migration.py. Rows are those of the task table."""

    def __init__(self, tasks: TaskTable, classes: ClassTable, resources: Resources) -> None:
        self._tasks, self._classes, self._resources = tasks, classes, resources
        self._expected: list[_Expected] = []
        self._ended: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._expected)

    @property
    def next_end_us(self) -> int:
        """Until when the first of them is expected, microseconds since the epoch; 0: there are none."""
        return min((each.until_us for each in self._expected), default=0)

    def expect(self, rows: I64, nodes: I64, until_us: int) -> None:
        """Those of task rows (K,) on node rows (K,) until a time, microseconds since the epoch."""
        tasks, classes = self._tasks, self._classes
        for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
            uid, job, queue = int(tasks.uid[row]), int(tasks.job[row]), int(tasks.queue[row])
            cls = int(tasks.cls[row])
            requests = dict(zip(self._resources.names, classes.requests[cls].tolist(), strict=True))
            if job:
                kind = _kind(classes.definition(cls))
                self._expected.append(_Expected(uid, job, queue, kind, requests, node, until_us))

    def expects(self, uid: int) -> bool:
        """Whether the successor of this task is expected."""
        return any(each.uid == uid for each in self._expected)

    def ended_on(self, uid: int) -> int:
        """The row of the node that the successor of this task was placed on, -1: none has come in time. Of the last
        tasks that migrated."""
        return self._ended.get(uid, -1)

    def expire(self, now_us: int) -> None:
        """Those that have not arrived in time are not expected any more."""
        self._expected = [each for each in self._expected if each.until_us > now_us]

    def withdraw(self, rows: I64) -> bool:
        """Task rows (K,) stay on their nodes; whether the successor of any of them was expected."""
        before, stay = len(self._expected), set(self._tasks.uid[rows].tolist())
        self._expected = [each for each in self._expected if each.uid not in stay]
        return len(self._expected) < before

    def forget_node(self, row: int) -> None:
        """The node of this row is gone."""
        self._expected = [each for each in self._expected if each.node != row]

    def arrive(self, rows: I64, nodes: I64) -> bool:
        """Task rows (K,), which wait, are about to be placed on node rows (K,), whichever these are; whether one is not
        where it was expected."""
        awaited, misplaced = self._awaited(), False
        arrived = {
            awaited[row]: node for row, node in zip(rows.tolist(), nodes.tolist(), strict=True) if row in awaited
        }
        for position, node in arrived.items():
            expected = self._expected[position]
            misplaced |= node != expected.node
            self._ended[expected.uid] = node
            if len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]
        self._expected = [each for i, each in enumerate(self._expected) if i not in arrived]
        return misplaced

    def displace(self, rows: I64) -> None:
        """Task rows (K,), which wait, are not expected any more: they have lost the places that were kept for them, or
        are about to be nominated elsewhere."""
        lost = self._positions(rows)
        self._expected = [each for i, each in enumerate(self._expected) if i not in lost]

    def nodes_for(self, rows: I64) -> I64:
        """(K,) node rows where task rows (K,) are expected, -1: nowhere."""
        nodes = np.full(len(rows), -1, np.int64)
        if awaited := self._awaited():
            for i, row in enumerate(rows.tolist()):
                if row in awaited:
                    nodes[i] = self._expected[awaited[row]].node
        return nodes

    def reserved(self, placed: I64 = NO_ROWS) -> tuple[I64, I64]:
        """(K,) node rows, and (K, R) what each reserves. placed: task rows that are not expected any more."""
        names, arrived = self._resources.names, self._positions(placed)
        expected = [each for i, each in enumerate(self._expected) if i not in arrived]
        amounts = [[each.requests.get(name, 0) for name in names] for each in expected]
        nodes = np.array([each.node for each in expected], np.int64)
        return nodes, np.array(amounts, np.int64).reshape(len(amounts), len(names))

    def absent(self) -> list[tuple[int, int, dict[str, int]]]:
        """Of each successor that neither waits nor is still to follow a task on its node: the id of its queue, the row
        of the node that it is expected on, and what it requests."""
        if not self._expected:
            return []
        waiting, on_nodes = {*self._awaited().values()}, self._tasks.uid[self._tasks.node >= 0]
        stays = np.isin(np.array([each.uid for each in self._expected], np.uint64), on_nodes)
        return [
            (each.queue, each.node, dict(each.requests))
            for i, each in enumerate(self._expected)
            if not stays[i] and i not in waiting
        ]

    def _positions(self, rows: I64) -> set[int]:
        """Positions in `_expected` of those that are task rows (K,)."""
        awaited = self._awaited() if len(rows) else {}
        return {awaited[row] for row in rows.tolist() if row in awaited}

    def _awaited(self) -> dict[int, int]:
        """Which waiting tasks the successors are: row -> position in `_expected`. Of those that are alike, the one that
        may be placed soonest, then the oldest. That follows from the tables alone, so that all who ask agree."""
        if not self._expected:
            return {}
        tasks = self._tasks
        rows = tasks.waiting
        rows = rows[tasks.nominated[rows] < 0]
        rows = rows[np.isin(tasks.job[rows], [each.job for each in self._expected])]
        rows = rows[np.lexsort((tasks.uid[rows], tasks.created_us[rows], tasks.not_before_us[rows]))]
        kinds = {c: _kind(self._classes.definition(c)) for c in set(tasks.cls[rows].tolist())}
        alike = [each.kind for each in self._expected]
        number = {c: alike.index(kind) for c, kind in kinds.items() if kind in alike}
        waiting: dict[tuple[int, int], deque[int]] = {}
        for row, job, cls in zip(rows.tolist(), tasks.job[rows].tolist(), tasks.cls[rows].tolist(), strict=True):
            if cls in number:
                waiting.setdefault((job, number[cls]), deque()).append(row)
        awaited = {}
        for i, each in enumerate(self._expected):
            if found := waiting.get((each.job, alike.index(each.kind))):
                awaited[found.popleft()] = i
        return awaited


def _kind(definition: ClassDefined) -> ClassDefined:
    return replace(definition, id=0, name="", preferences=NO_PREFERENCES)
