"""The labels of tasks: tasks with equal labels in one namespace share a label set.

Selectors between tasks are evaluated once for each label set, not for each task.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.constraints import PeerSelector
from firmament_py.state.label_index import LabelColumns
from firmament_py.state.table import KeyedTable

NO_LABELS = 0
"""Row of the label set of tasks without labels in no namespace; no selector matches it."""

SPARE_ROWS = 4096
_MAX_CACHED_SELECTORS = 4096
_SPARE_NAMESPACES = 1024


class LabelSetTable(KeyedTable[Mapping[str, str]]):
    """One row per label set."""

    FIELDS: ClassVar = {**KeyedTable.FIELDS, "namespace": (np.int64, -1)}
    FLAT: ClassVar = frozenset({"_namespace_number", "_names", "_cache"})
    namespace: I64  # number of the namespace, -1: none

    def __init__(self) -> None:
        super().__init__(SPARE_ROWS)
        self.add(0, {})  # NO_LABELS
        self._labels = LabelColumns()
        self._namespace_number: dict[str, int] = {}
        self._namespace_labels = LabelColumns()
        self._names: list[str] = []
        self._namespaces_in_use = 0  # when they were last renumbered
        self._cache: dict[PeerSelector, tuple[int, I64]] = {}
        self.version = 0

    def define(self, label_set_id: int, namespace: str, labels: Mapping[str, str]) -> None:
        """Adds a label set, unless its id is known (an id is a hash of the content)."""
        if label_set_id in self._row:
            return
        row = self.add(label_set_id, labels)
        self.namespace[row] = self._number(namespace)
        self._labels.set(row, labels)
        self.version += 1

    def describe_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Sets the labels of a namespace; returns whether they have changed."""
        number = self._number(name)
        if self._namespace_labels.get(number) == labels:
            return False
        self._namespace_labels.set(number, labels)
        self.version += 1
        return True

    def matching(self, selector: PeerSelector) -> Bools:
        """(capacity,) whether `selector` matches each row."""
        result = np.zeros(self.capacity, np.bool_)
        result[self.rows_matching(selector)] = True
        return result

    def rows_matching(self, selector: PeerSelector) -> I64:
        """The rows that `selector` matches, ascending."""
        cached = self._cache.get(selector)
        if cached is not None and cached[0] == self.version:
            return cached[1]
        if len(self._cache) > _MAX_CACHED_SELECTORS:
            self._cache.clear()
        rows = NO_ROWS
        if selector.labels is not None:
            selected = np.zeros(len(self._names) + 1, np.bool_)  # the last is for label sets without a namespace
            selected[[self._namespace_number[n] for n in selector.namespaces if n in self._namespace_number]] = True
            if selector.namespace_selector is not None:
                selected[:-1] |= self._namespace_labels.meets(selector.namespace_selector)[: len(self._names)]
            rows = self._labels.rows_meeting(selector.labels)
            rows = rows[rows < self.capacity]
            rows = rows[selected[self.namespace[rows]] & self.live[rows] & (rows != NO_LABELS)]
        self._cache[selector] = (self.version, rows)
        return rows

    def describe(self, row: int) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
        """Namespace, labels of the namespace, and labels of a row."""
        number = int(self.namespace[row])
        if number < 0:
            return "", {}, {}
        return self._names[number], self._namespace_labels.get(number) or {}, self.definition(row)

    def _number(self, namespace: str) -> int:
        number = self._namespace_number.get(namespace)
        if number is None:
            number = self._namespace_number[namespace] = len(self._names)
            self._names.append(namespace)
            self._namespace_labels.set(number, {})
        return number

    def sweep(self) -> None:
        """Removes label sets that no task has referred to for a while, if there are many of them."""
        removed = self.remove_unused()
        for row in removed.tolist():
            self._labels.forget(row)
        if len(removed):
            self.version += 1
        self._labels.sweep()
        self._namespace_labels.sweep()
        if len(self._names) > 2 * self._namespaces_in_use + _SPARE_NAMESPACES:
            self._renumber_namespaces()

    def _renumber_namespaces(self) -> None:
        """Renumbers the namespaces, dropping those without labels and label sets."""
        names, labels = self._names, self._namespace_labels
        rows = self.rows()[1:]
        labelled = set(self.namespace[rows].tolist())
        in_use = [number for number in range(len(names)) if number in labelled or labels.get(number)]
        self._names, self._namespace_number, self._namespace_labels = [], {}, LabelColumns()
        position = np.full(len(names), -1, np.int64)
        for old in in_use:
            position[old] = self._number(names[old])
            self._namespace_labels.set(int(position[old]), labels.get(old) or {})
        self.namespace[rows] = position[self.namespace[rows]]
        self._namespaces_in_use = len(in_use)
        self.version += 1
