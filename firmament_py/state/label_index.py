"""Labels as columns: a requirement is evaluated for all rows by one vectorised comparison.

A label key becomes a column (value number per row) when a requirement first names it and a row has it; other labels
cost nothing. If there are many columns, those that requirements no longer name are removed.
Used for nodes (state/node_index.py) and for the labels of tasks (state/label_sets.py).
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I32, I64, NO_ROWS, Bools, group_starts
from firmament_py.model.constraints import Operator, Requirement, integer
from firmament_py.model.copying import Copyable

_ABSENT = -1  # value number of a row without the label
_SPARE_COLUMNS = 256  # number of columns that are kept although no requirement names them
_SPARE_VALUES = 1024  # a column is rebuilt when its values exceed twice the number of rows by this


class _Column(Copyable):
    """Value numbers of one label key, (capacity,), _ABSENT where the row has no such label."""

    FLAT: ClassVar = frozenset({"_number", "_by_value"})

    def __init__(self, capacity: int) -> None:
        self.value: I32 = np.full(capacity, _ABSENT, np.int32)
        self._number: dict[str, int] = {}
        self._by_value: tuple[I64, I64] | None = None  # rows ordered by value number, and the first of each number

    def set(self, row: int, text: str | None) -> None:
        self._by_value = None
        self.value[row] = _ABSENT if text is None else self._number.setdefault(text, len(self._number))

    def grow(self, rows: int) -> None:
        """Adds rows without the label."""
        self.value = np.pad(self.value, (0, rows), constant_values=_ABSENT)
        self._by_value = None

    @property
    def values(self) -> int:
        """Number of numbered values, in use or not."""
        return len(self._number)

    @property
    def texts(self) -> list[str]:
        return list(self._number)

    def one_of(self, texts: Iterable[str]) -> Bools:
        listed = np.zeros(len(self._number) + 1, np.bool_)  # _ABSENT reads the False at the end
        listed[[self._number[text] for text in texts if text in self._number]] = True
        return listed[self.value]

    def rows_with(self, texts: Iterable[str]) -> I64:
        """The rows with one of these values, ascending."""
        if self._by_value is None:
            order = np.argsort(self.value, kind="stable")
            counts = np.bincount(self.value + 1, minlength=len(self._number) + 2)
            self._by_value = order, group_starts(counts)[1:]
        order, start = self._by_value
        found = [order[start[n] : start[n + 1]] for text in set(texts) if (n := self._number.get(text)) is not None]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate([NO_ROWS, *found]))

    def compared(self, operator: Operator, bound: int) -> Bools:
        holds = [
            (number := integer(text)) is not None and (number > bound if operator is Operator.GT else number < bound)
            for text in self._number
        ]
        return np.append(np.array(holds, np.bool_), False)[self.value]  # _ABSENT reads the False at the end


class LabelColumns(Copyable):
    """The labels of rows; rows are small integers that can be removed and reused."""

    FLAT: ClassVar = frozenset({"_labels", "_rows_with", "_read", "_read_before"})

    def __init__(self) -> None:
        self._labels: dict[int, Mapping[str, str]] = {}
        self._rows_with: dict[str, int] = {}  # number of rows with each key, > 0
        self._columns: dict[str, _Column] = {}
        self._no_row = _Column(64)  # of every key that no row has
        self._read: set[str] = set()
        self._read_before: set[str] = set()
        self.capacity = 64

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        while row >= self.capacity:
            self._grow()
        self._count(labels, +1)
        self._count(self._labels.get(row, {}), -1)
        self._labels[row] = labels
        for key, column in list(self._columns.items()):
            column.set(row, labels.get(key))
            if column.values > 2 * len(self._labels) + _SPARE_VALUES:
                del self._columns[key]  # rebuilt, with current values, when it is needed

    def forget(self, row: int) -> None:
        labels = self._labels.pop(row, None)
        if labels is not None:
            self._count(labels, -1)
            for column in self._columns.values():
                column.set(row, None)

    def get(self, row: int) -> Mapping[str, str] | None:
        return self._labels.get(row)

    def meets(self, requirements: Iterable[Requirement]) -> Bools:
        """(capacity,) whether rows meet all `requirements`; removed rows count as rows without labels."""
        chosen = np.ones(self.capacity, np.bool_)
        for requirement in requirements:
            chosen &= self._holds(requirement)
        return chosen

    def rows_meeting(self, requirements: Iterable[Requirement]) -> I64:
        """The rows, ascending, that `meets` chooses: few rows are compared if a requirement names values."""
        ordered = sorted(requirements, key=lambda requirement: requirement.operator is not Operator.IN)
        if not ordered or ordered[0].operator is not Operator.IN:
            return np.flatnonzero(self.meets(ordered))
        rows = self._column(ordered[0].key).rows_with(ordered[0].values)
        for requirement in ordered[1:]:
            rows = rows[self._holds(requirement)[rows]]
        return rows

    def domains(self, key: str) -> I32:
        """(capacity,) the number of each row's value of label `key`, -1 if it has none."""
        return self._column(key).value

    def texts(self, key: str) -> list[str]:
        """The values by their numbers in `domains`; some can be unused."""
        return self._column(key).texts

    def _holds(self, requirement: Requirement) -> Bools:
        column = self._column(requirement.key)
        match requirement.operator:
            case Operator.IN:
                return column.one_of(requirement.values)
            case Operator.NOT_IN:
                return ~column.one_of(requirement.values)
            case Operator.EXISTS:
                return np.not_equal(column.value, _ABSENT)
            case Operator.DOES_NOT_EXIST:
                return np.equal(column.value, _ABSENT)
            case _:
                bound = integer(requirement.values[0]) if len(requirement.values) == 1 else None
                if bound is None:
                    return np.zeros(self.capacity, np.bool_)
                return column.compared(requirement.operator, bound)

    def sweep(self) -> None:
        """Removes columns not read since the last sweep but one, if there are many; called at the end of a round."""
        if len(self._columns) > _SPARE_COLUMNS:
            read = self._read | self._read_before
            self._columns = {key: column for key, column in self._columns.items() if key in read}
        self._read, self._read_before = set(), self._read

    def _count(self, labels: Mapping[str, str], sign: int) -> None:
        for key in labels:
            count = self._rows_with.get(key, 0) + sign
            if count:
                self._rows_with[key] = count
            else:
                del self._rows_with[key]
                self._columns.pop(key, None)

    def _column(self, key: str) -> _Column:
        if key not in self._rows_with:
            return self._no_row
        self._read.add(key)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _Column(self.capacity)
            for row, labels in self._labels.items():
                column.set(row, labels.get(key))
        return column

    def _grow(self) -> None:
        for column in (self._no_row, *self._columns.values()):
            column.grow(self.capacity)
        self.capacity *= 2
