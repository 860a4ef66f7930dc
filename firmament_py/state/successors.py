"""Successors of migrating tasks: where each is expected, and what its node reserves for it until it arrives.

A successor is a task of the same job and class, which the owner of the one that was evicted creates. Any such task is
as good as another. One that does not arrive in time is not expected any more; nor is that of a task in no job, because
nobody could tell it from others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.resources import Resources
from firmament_py.state.classes import ClassTable
from firmament_py.state.tables import TaskTable


@dataclass(frozen=True, slots=True)
class _Expected:
    """uid: of the task that migrates. class_id, not its row: rows are used again. node: its row."""

    uid: int
    job: int
    class_id: int
    requests: Mapping[str, int]
    node: int
    until_us: int


class Successors:
    """At most a few at a time: see placement/migration.py. Rows are those of the task table."""

    def __init__(self, tasks: TaskTable, classes: ClassTable, resources: Resources) -> None:
        self._tasks, self._classes, self._resources = tasks, classes, resources
        self._expected: list[_Expected] = []

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
            uid, job, cls = int(tasks.uid[row]), int(tasks.job[row]), int(tasks.cls[row])
            requests = dict(zip(self._resources.names, classes.requests[cls].tolist(), strict=True))
            if job:
                self._expected.append(_Expected(uid, job, int(classes.id[cls]), requests, node, until_us))

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

    def arrive(self, rows: I64) -> None:
        """Task rows (K,) have been placed, on whichever nodes."""
        if self._expected:
            for job, class_id in zip(*(column.tolist() for column in self._kinds(rows)), strict=True):
                found = (i for i, each in enumerate(self._expected) if (each.job, each.class_id) == (job, class_id))
                if (i := next(found, None)) is not None:
                    del self._expected[i]

    def nodes_for(self, rows: I64) -> I64:
        """(K,) node rows where task rows (K,) are expected, -1: nowhere."""
        nodes = np.full(len(rows), -1, np.int64)
        if self._expected:
            jobs, class_ids = self._kinds(rows)
            for each in self._expected:
                alike = (jobs == each.job) & (class_ids == each.class_id) & (nodes < 0)
                nodes[np.flatnonzero(alike)[:1]] = each.node
        return nodes

    def reserved(self) -> tuple[I64, I64]:
        """(K,) node rows, and (K, R) what each reserves."""
        names = self._resources.names
        amounts = [[each.requests.get(name, 0) for name in names] for each in self._expected]
        nodes = np.array([each.node for each in self._expected], np.int64)
        return nodes, np.array(amounts, np.int64).reshape(len(amounts), len(names))

    def _kinds(self, rows: I64) -> tuple[U64, U64]:
        """(K,) jobs, and (K,) ids of classes of task rows (K,)."""
        return self._tasks.job[rows], self._classes.id[self._tasks.cls[rows]]
