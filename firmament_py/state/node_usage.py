"""What tasks use of their nodes: the columns `used` and `tasks` of the node table."""

from __future__ import annotations

import numpy as np

from firmament_py.model.arrays import I64, add_rows
from firmament_py.state.classes import ClassTable
from firmament_py.state.tables import NodeTable, TaskTable


class NodeUsage:
    """Adds tasks to the usage of their nodes, and subtracts them."""

    def __init__(self, tasks: TaskTable, classes: ClassTable, nodes: NodeTable) -> None:
        self._tasks, self._classes, self._nodes = tasks, classes, nodes

    def add(self, rows: I64) -> None:
        """Adds task rows (K,); those without a node are skipped."""
        self._count(rows, +1)

    def subtract(self, rows: I64) -> None:
        """Subtracts task rows (K,); those without a node are skipped."""
        self._count(rows, -1)

    def _count(self, rows: I64, sign: int) -> None:
        rows = rows[self._tasks.node[rows] >= 0]
        if not len(rows):
            return
        node = self._tasks.node[rows]
        add_rows(self._nodes.used, node, sign * self._classes.requests[self._tasks.cls[rows]])
        np.add.at(self._nodes.tasks, node, sign)
