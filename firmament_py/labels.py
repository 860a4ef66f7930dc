"""Node labels and taints as columns, and which nodes meet a demand: one vectorised pass a demand.

A label key becomes a column (value number per node row) when a demand first names it; other labels cost nothing.
Nodes with equal taints share a taint-set number, and tolerations are judged once for each set.
"""

from collections.abc import Mapping

import numpy as np

from firmament_py.arrays import I32, I64, Bools
from firmament_py.constraints import NodeDemand, Operator, Requirement, Taint, Term, integer

_ABSENT = -1  # value number of a node without the label


class _LabelColumn:
    """Value numbers of one label key, (capacity,), _ABSENT where the node has no such label."""

    def __init__(self, capacity: int) -> None:
        self.value: I32 = np.full(capacity, _ABSENT, np.int32)
        self._number: dict[str, int] = {}

    def set(self, row: int, text: str | None) -> None:
        self.value[row] = _ABSENT if text is None else self._number.setdefault(text, len(self._number))

    def one_of(self, texts: tuple[str, ...]) -> Bools:
        numbers = [self._number[t] for t in texts if t in self._number]
        return np.isin(self.value, numbers)

    def compared(self, operator: Operator, bound: int) -> Bools:
        holds = [
            (number := integer(text)) is not None and (number > bound if operator is Operator.GT else number < bound)
            for text in self._number
        ]
        return np.append(np.array(holds, np.bool_), False)[self.value]  # _ABSENT reads the False at the end


class NodeLabels:
    """Labels, names and taints of all node rows; `generation` rises whenever an answer could change."""

    def __init__(self) -> None:
        self._labels: dict[int, Mapping[str, str]] = {}
        self._names: dict[int, str] = {}
        self._taints: dict[int, tuple[Taint, ...]] = {}
        self._label_columns: dict[str, _LabelColumn] = {}
        self._field_columns: dict[str, _LabelColumn] = {}
        self._taint_set: I32 = np.zeros(64, np.int32)
        self._taint_sets: dict[tuple[Taint, ...], int] = {(): 0}
        self._cache: dict[NodeDemand, tuple[int, Bools, I32]] = {}
        self.generation = 0

    def set(self, row: int, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> bool:
        """Tells what node row `row` looks like; whether that changed anything."""
        if (self._labels.get(row), self._names.get(row), self._taints.get(row)) == (labels, name, taints):
            return False
        self._labels[row], self._names[row], self._taints[row] = labels, name, taints
        if row >= len(self._taint_set):
            self._grow(row)
        for key, column in self._label_columns.items():
            column.set(row, labels.get(key))
        for column in self._field_columns.values():
            column.set(row, name)
        self._taint_set[row] = self._taint_sets.setdefault(taints, len(self._taint_sets))
        self.generation += 1
        return True

    def forget(self, row: int) -> None:
        """Node row `row` is no more; the row may be used again."""
        if self._labels.pop(row, None) is None:
            return
        del self._names[row], self._taints[row]
        for column in (*self._label_columns.values(), *self._field_columns.values()):
            column.set(row, None)
        self._taint_set[row] = 0
        self.generation += 1

    def judge(self, demand: NodeDemand, rows: I64) -> tuple[Bools, I32]:
        """For each of node `rows` (N,): does it match selector and affinity (N,), and which of its taints keeps
        tasks with this demand away (N,): a number for `taint`, -1 for none."""
        cached = self._cache.get(demand)
        if cached is None or cached[0] != self.generation:
            if len(self._cache) > 4096:  # demands come and go with their classes
                self._cache.clear()
            blocking = np.array([self._first_untolerated(demand, s) for s in self._taint_sets], np.int32)
            cached = (self.generation, self._selected(demand), blocking[self._taint_set])
            self._cache[demand] = cached
        return cached[1][rows], cached[2][rows]

    def taint(self, number: int) -> Taint:
        """The taint that `judge` numbered: sets are numbered in order, taints within a set _MAX_SETS apart."""
        return list(self._taint_sets)[number % _MAX_SETS][number // _MAX_SETS]

    def _first_untolerated(self, demand: NodeDemand, taints: tuple[Taint, ...]) -> int:
        taint = demand.untolerated(taints)
        return -1 if taint is None else taints.index(taint) * _MAX_SETS + self._taint_sets[taints]

    def _selected(self, demand: NodeDemand) -> Bools:
        chosen = np.ones(len(self._taint_set), np.bool_)
        for requirement in demand.selector:
            chosen &= self._holds(requirement, self._label_column(requirement.key))
        if demand.affinity is not None:
            any_term = np.zeros(len(chosen), np.bool_)
            for term in demand.affinity:
                any_term |= self._term(term)
            chosen &= any_term
        return chosen

    def _term(self, term: Term) -> Bools:
        if not term.labels and not term.fields:
            return np.zeros(len(self._taint_set), np.bool_)
        chosen = np.ones(len(self._taint_set), np.bool_)
        for requirement in term.labels:
            chosen &= self._holds(requirement, self._label_column(requirement.key))
        for requirement in term.fields:
            chosen &= self._holds(requirement, self._field_column(requirement.key))
        return chosen

    def _holds(self, requirement: Requirement, column: _LabelColumn) -> Bools:
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
                bound = integer(requirement.values[0])
                if bound is None:
                    return np.zeros(len(column.value), np.bool_)
                return column.compared(requirement.operator, bound)

    def _label_column(self, key: str) -> _LabelColumn:
        column = self._label_columns.get(key)
        if column is None:
            column = self._label_columns[key] = _LabelColumn(len(self._taint_set))
            for row, labels in self._labels.items():
                column.set(row, labels.get(key))
        return column

    def _field_column(self, key: str) -> _LabelColumn:
        """The only field of a node is its name; any other is absent everywhere."""
        column = self._field_columns.get(key) if key == NAME_FIELD else _LabelColumn(len(self._taint_set))
        if column is None:
            column = self._field_columns[key] = _LabelColumn(len(self._taint_set))
            for row, name in self._names.items():
                column.set(row, name)
        return column

    def _grow(self, row: int) -> None:
        capacity = max(row + 1, 2 * len(self._taint_set))
        self._taint_set = np.pad(self._taint_set, (0, capacity - len(self._taint_set)))
        for column in (*self._label_columns.values(), *self._field_columns.values()):
            column.value = np.pad(column.value, (0, capacity - len(column.value)), constant_values=_ABSENT)


_MAX_SETS = 1_000_000
NAME_FIELD = "metadata.name"
"""The field that holds a node's name."""
