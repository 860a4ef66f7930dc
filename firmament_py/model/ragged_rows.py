"""Rows of different lengths in one array, so that many are read at once."""

import numpy as np

from firmament_py.model.arrays import I64, group_starts, run_positions


class RaggedRows:
    """Row r has a number of entries of `width` integers, none after `remove`. Growth is amortised, and the
    space of removed rows is reclaimed once it exceeds that of the others."""

    def __init__(self, width: int) -> None:
        self._entries: I64 = np.zeros((64, width), np.int64)
        self._end = 0
        self._unused = 0  # entries of removed rows
        self._start: I64 = np.zeros(64, np.int64)
        self._count: I64 = np.zeros(64, np.int64)

    def set(self, row: int, entries: I64) -> None:
        """Sets a row that has no entries to entries (K, width)."""
        if row >= len(self._start):
            added = (0, max(row + 1, 2 * len(self._start)) - len(self._start))
            self._start, self._count = np.pad(self._start, added), np.pad(self._count, added)
        if self._end + len(entries) > len(self._entries):
            self._make_space(len(entries))
        self._start[row], self._count[row] = self._end, len(entries)
        self._entries[self._end : self._end + len(entries)] = entries
        self._end += len(entries)

    def remove(self, rows: I64) -> None:
        """Removes the entries of rows (K,), each of which was set."""
        self._unused += int(self._count[rows].sum())
        self._count[rows] = 0

    def of(self, rows: I64) -> tuple[I64, I64]:
        """The entries of rows (K,), one after the other, (P, width), and the number of each, (K,). Each must have been
        set at some time."""
        count = self._count[rows]
        return self._entries[np.repeat(self._start[rows], count) + run_positions(count)], count

    def all(self) -> I64:
        """A view of the entries of all rows, (P, width), in any order."""
        self._compact(len(self._entries))
        return self._entries[: self._end]

    def _make_space(self, needed: int) -> None:
        live = self._end - self._unused
        self._compact(len(self._entries) if self._unused > live + needed else max(2 * live, live + needed))

    def _compact(self, capacity: int) -> None:
        rows = np.flatnonzero(self._count)
        rows = rows[np.argsort(self._start[rows])]
        entries, count = self.of(rows)
        self._start[rows] = group_starts(count)
        self._entries = np.zeros((capacity, self._entries.shape[1]), np.int64)
        self._entries[: len(entries)] = entries
        self._end, self._unused = len(entries), 0
