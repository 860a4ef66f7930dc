"""What queues used in the past, as a table that survives changes of the queues."""

from collections.abc import Sequence

import numpy as np

from firmament_py.model.arrays import F64
from firmament_py.model.events import PastUse

Column = tuple[str, str]
"""Flavor and resource."""

CAPACITY = 0
"""In place of the id of a queue: what nodes offered."""


class PastUseTable:
    """Decayed means until `at_us`, 0: nothing is known. One row for each id of a queue or local queue."""

    def __init__(self) -> None:
        self.at_us = 0
        self.confirmed: list[int] = []
        """Uids of tasks that were confirmed on their nodes since `at_us`."""
        self._ids: list[int] = []
        self._columns: list[Column] = []
        self._amounts: F64 = np.zeros((0, 0))

    def of(self, ids: Sequence[int], columns: Sequence[Column]) -> F64:
        """(K, V) amounts of K ids and V columns, 0 where none is known."""
        ids, columns = list(ids), list(columns)
        if ids == self._ids and columns == self._columns:
            return self._amounts
        found = np.zeros((len(ids), len(columns)))
        row_of = {identifier: row for row, identifier in enumerate(self._ids)}
        column_of = {column: number for number, column in enumerate(self._columns)}
        rows = np.array([row_of.get(identifier, -1) for identifier in ids], np.int64)
        numbers = np.array([column_of.get(column, -1) for column in columns], np.int64)
        to, at = np.flatnonzero(rows >= 0), np.flatnonzero(numbers >= 0)
        found[np.ix_(to, at)] = self._amounts[np.ix_(rows[to], numbers[at])]
        return found

    def keep(self, at_us: int, ids: Sequence[int], columns: Sequence[Column], amounts: F64) -> None:
        """Replaces all by amounts (K, V)."""
        self.at_us, self._ids, self._columns, self._amounts = at_us, list(ids), list(columns), amounts
        self.confirmed = []

    def clear(self) -> None:
        """Past use does not count."""
        self.keep(0, (), (), np.zeros((0, 0)))

    def restore(self, past: PastUse) -> bool:
        """Takes over amounts that were kept elsewhere, if none is known here; whether it has. Those that are no amounts
        count as 0."""
        if self.at_us or past.at_us <= 0:
            return False
        columns = list(dict.fromkeys(column for amounts in past.amounts.values() for column in amounts))
        amounts = np.array([[of.get(column, 0.0) for column in columns] for of in past.amounts.values()], np.float64)
        valid = np.where(np.isfinite(amounts) & (amounts > 0.0), amounts, 0.0)
        self.keep(past.at_us, list(past.amounts), columns, valid.reshape(len(past.amounts), len(columns)))
        return True

    def value(self) -> PastUse:
        """All amounts above 0."""
        amounts = {
            identifier: {self._columns[v]: float(row[v]) for v in np.flatnonzero(row).tolist()}
            for identifier, row in zip(self._ids, self._amounts, strict=True)
        }
        return PastUse(self.at_us, {identifier: of for identifier, of in amounts.items() if of})
