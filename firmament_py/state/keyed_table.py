"""Tables of descriptions with ids chosen by the sender: a row is found by its id and counts the tasks that refer to it.

A description stays as long as a task refers to it, and for a while after that, because a new description may not be
in use yet: if there are many unused rows, those are removed that were unused at two consecutive sweeps. A sender that
refers to one of them is asked to describe it again.
"""

from typing import ClassVar, Generic, TypeVar

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, U64
from firmament_py.state.table import Table

UNKNOWN = -2
"""Result of `find` for an id without a row; -1 is reserved for the id that means none."""

D = TypeVar("D")


class KeyedTable(Table, Generic[D]):
    """Base of these tables. `definition` has the fields that are not columns.

    Id 0 means none: it is UNKNOWN, or a subclass gives it a row, which is never removed.
    """

    FIELDS: ClassVar = {"id": (np.uint64, 0), "tasks": (np.int64, 0)}
    FLAT: ClassVar = frozenset({"_row", "_definition"})
    id: U64
    tasks: I64  # rows of the task table that refer to the row

    def __init__(self, spare_rows: int = 0) -> None:
        """spare_rows: a sweep removes rows only if more than this number are unused."""
        super().__init__()
        self._row: dict[int, int] = {}
        self._definition: dict[int, D] = {}
        self._spare_rows = spare_rows
        self._unused_before: I64 = NO_ROWS  # rows, at the last sweep

    def find(self, ids: U64) -> I64:
        """Rows of `ids` (K,) -> (K,), UNKNOWN where there is none."""
        find = self._row.get
        return np.array([find(i, UNKNOWN) for i in ids.tolist()], np.int64)

    def definition(self, row: int) -> D:
        return self._definition[row]

    def add(self, id_: int, definition: D) -> int:
        """Adds a row for an id that has none; the row."""
        row = int(self.allocate(1)[0])
        self._row[id_], self._definition[row] = row, definition
        self.id[row] = id_
        return row

    def remove_rows(self, rows: I64) -> None:
        """Removes rows (K,)."""
        for id_, row in zip(self.id[rows].tolist(), rows.tolist(), strict=True):
            del self._row[id_], self._definition[row]
        self.release(rows)

    def remove_unused(self) -> I64:
        """Removes rows to which no task refers, now and at the last call; the removed rows."""
        if len(self) <= self._spare_rows:
            self._unused_before = NO_ROWS
            return NO_ROWS
        rows = self.rows()
        unused = rows[(self.tasks[rows] == 0) & (self.id[rows] != 0)]
        if len(unused) <= self._spare_rows:
            unused = unused[:0]
        removed = np.intersect1d(unused, self._unused_before)
        self._unused_before = np.setdiff1d(unused, removed)
        self.remove_rows(removed)
        return removed
