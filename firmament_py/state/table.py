"""A growable table of typed numpy columns: rows are dense integers, freed rows are reused.

Guarantees: a row number keeps its meaning from `allocate` to `release`; `allocate` fills every column of the new rows
with the column's fill value; a column is one contiguous array, so that operations on the whole table are vectorised;
growth is amortised (capacity doubles). Hold row numbers, not arrays, because growth replaces the arrays. Data about a
row that is stored elsewhere must be stored with the row's `generation`, which changes when the row is reused.
"""

from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, U64, Bools
from firmament_py.model.copying import Copyable


class Table(Copyable):
    """Base of the engine's tables: a subclass names its columns in FIELDS and declares them as attributes.

    FIELDS: column name -> (dtype, fill value). Columns have shape (capacity,).
    """

    FIELDS: ClassVar[dict[str, tuple[Any, Any]]]
    FLAT: ClassVar = frozenset({"_free"})

    def __init__(self, capacity: int = 64) -> None:
        self._free: list[int] = []
        self._used_rows = 0  # rows below this have been allocated at least once
        self.live: Bools = np.zeros(capacity, np.bool_)
        self.generation: I64 = np.zeros(capacity, np.int64)
        """Number of the row's allocation, unique within the table, from 1."""
        self._generations = 0
        for name, (dtype, fill) in self.FIELDS.items():
            setattr(self, name, np.full(capacity, fill, dtype))

    def __len__(self) -> int:
        """Rows in use."""
        return self._used_rows - len(self._free)

    @property
    def allocations(self) -> int:
        """Number of rows allocated so far, including released ones."""
        return self._generations

    @property
    def capacity(self) -> int:
        return len(self.live)

    def rows(self) -> I64:
        """The rows in use, ascending."""
        return np.flatnonzero(self.live[: self._used_rows])

    def allocate(self, count: int) -> I64:
        """Allocates `count` rows, each column at its fill value."""
        reused = min(count, len(self._free))
        rows = np.empty(count, np.int64)
        if reused:
            rows[:reused] = self._free[len(self._free) - reused :]
            del self._free[len(self._free) - reused :]
        fresh = count - reused
        if self._used_rows + fresh > self.capacity:
            self._grow(self._used_rows + fresh)
        rows[reused:] = np.arange(self._used_rows, self._used_rows + fresh)
        self._used_rows += fresh
        self.live[rows] = True
        self.generation[rows] = np.arange(self._generations + 1, self._generations + count + 1)
        self._generations += count
        at = int(rows[0]) if count == 1 else rows  # numpy takes four times as long for an array of one index
        for name, (_, fill) in self.FIELDS.items():
            getattr(self, name)[at] = fill
        return rows

    def release(self, rows: I64) -> None:
        """Frees rows for reuse. Raises ValueError, and changes nothing, if one is not in use."""
        if not self.live[rows].all():
            raise ValueError("cannot release a row that is not in use")
        self.live[rows] = False
        self._free.extend(rows.tolist())

    def _grow(self, needed: int) -> None:
        capacity = max(needed, 2 * self.capacity)
        for name, (dtype, fill) in {**self.FIELDS, "live": (np.bool_, False), "generation": (np.int64, 0)}.items():
            old = getattr(self, name)
            new = np.full(capacity, fill, dtype)
            new[: len(old)] = old
            setattr(self, name, new)


UNKNOWN = -2
"""Result of `find` for an id without a row; -1 is reserved for the id that means none."""

D = TypeVar("D")


class KeyedTable(Table, Generic[D]):
    """Base of tables of descriptions with ids chosen by the sender: a row is found by its id and counts the tasks that
    refer to it. `definition` has the fields that are not columns.

    A description stays as long as a task refers to it, and for a while after that, because a new description may not be
    in use yet: if there are many unused rows, those are removed that were unused at two consecutive sweeps. A sender
    that refers to one of them is asked to describe it again.

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
