"""Labels, names and taints of nodes; a demand is evaluated for all nodes in one vectorised pass.

Nodes with equal taints share a taint-set number, and tolerations are evaluated once for each set.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I32, I64, Bools
from firmament_py.model.constraints import NAME_FIELD, NodeDemand, Taint, Term
from firmament_py.model.copying import Copyable
from firmament_py.model.events import NodeObserved
from firmament_py.state.label_index import LabelColumns

_MAX_SETS = 1_000_000
_SPARE_SETS = 1024  # taint sets are renumbered when they exceed twice the number of nodes by this
_MAX_CACHED_DEMANDS = 4096


class NodeIndex(Copyable):
    """Labels, names and taints of all node rows; `version` increases whenever a result could change."""

    FLAT: ClassVar = frozenset({"_taints", "_taint_sets", "_owners_and_images", "_cache", "_rows_by_name"})

    def __init__(self) -> None:
        self._labels = LabelColumns()
        self._fields = LabelColumns()
        self._taints: dict[int, tuple[Taint, ...]] = {}
        self._taint_set: I32 = np.zeros(0, np.int32)
        self._taint_sets: dict[tuple[Taint, ...], int] = {(): 0}
        self._avoided: dict[str, set[int]] = {}  # owner -> node rows
        self._images: dict[str, dict[int, int]] = {}  # image -> node row -> bytes
        self._owners_and_images: dict[
            int, tuple[frozenset[str], tuple[str, ...]]
        ] = {}  # row -> owners and images in the two above
        self._cache: dict[NodeDemand, tuple[int, Bools, I32]] = {}
        self._rows_by_name: dict[str, int] | None = None
        self.version = 0

    def set(self, row: int, node: NodeObserved) -> bool:
        """Sets the description of node row `row`; returns whether anything that a demand can name has changed."""
        self._add_owners_and_images(row, node)
        fields, taints = {NAME_FIELD: node.name}, node.taints
        if (self._labels.get(row), self._fields.get(row), self._taints.get(row)) == (node.labels, fields, taints):
            return False
        self._labels.set(row, node.labels)
        self._fields.set(row, fields)
        self._taints[row] = taints
        self._taint_set = np.pad(self._taint_set, (0, self._labels.capacity - len(self._taint_set)))
        self._taint_set[row] = self._taint_sets.setdefault(taints, len(self._taint_sets))
        if len(self._taint_sets) > 2 * len(self._taints) + _SPARE_SETS:
            self._renumber_taints()
        self._changed()
        return True

    def forget(self, row: int) -> None:
        """Removes node row `row`, which can be reused."""
        if self._taints.pop(row, None) is None:
            return
        self._remove_owners_and_images(row)
        self._labels.forget(row)
        self._fields.forget(row)
        self._taint_set[row] = 0
        self._changed()

    def rows_by_name(self) -> Mapping[str, int]:
        """Node rows by name; another mapping whenever one has changed."""
        if self._rows_by_name is None:
            self._rows_by_name = {
                fields[NAME_FIELD]: row for row in sorted(self._taints) if (fields := self._fields.get(row))
            }
        return self._rows_by_name

    def evaluate(self, demand: NodeDemand, rows: I64) -> tuple[Bools, I32]:
        """For node `rows` (N,): whether each matches selector and affinity (N,), and which of its taints repels tasks
        with this demand (N,): a number for `taint`, -1 for none."""
        cached = self._cache.get(demand)
        if cached is None or cached[0] != self.version:
            if len(self._cache) > _MAX_CACHED_DEMANDS:  # demands come and go with their classes
                self._cache.clear()
            blocking = np.array([self._first_untolerated(demand, s) for s in self._taint_sets], np.int32)
            cached = (self.version, self._selected(demand), blocking[self._taint_set])
            self._cache[demand] = cached
        return cached[1][rows], cached[2][rows]

    def taint(self, number: int) -> Taint:
        """The taint of a number from `evaluate`: position in its set times _MAX_SETS, plus the set."""
        return list(self._taint_sets)[number % _MAX_SETS][number // _MAX_SETS]

    def preferred(self, term: Term, rows: I64) -> Bools:
        """Which of `rows` match one term, (N,)."""
        return self._term(term)[rows]

    def discouraging(self, demand: NodeDemand, rows: I64) -> I64 | None:
        """Number of PreferNoSchedule taints of each of `rows` that tasks with this demand do not tolerate, (N,); None
        if no node has any."""
        counts = [
            sum(t.effect == "PreferNoSchedule" and not demand.is_tolerated(t) for t in taints)
            for taints in self._taint_sets
        ]
        return np.array(counts, np.int64)[self._taint_set[rows]] if any(counts) else None

    def avoided(self, owner: str) -> bool:
        """Whether any node lists `owner` among the owners whose tasks it avoids."""
        return owner in self._avoided

    def avoiding(self, owner: str, rows: I64) -> Bools:
        """Which of `rows` list `owner` among the owners whose tasks they avoid, (N,)."""
        avoid = np.zeros(self._labels.capacity, np.bool_)
        avoid[list(self._avoided.get(owner, ()))] = True
        return avoid[rows]

    def has_image(self, image: str) -> bool:
        """Whether any node has an image."""
        return bool(self._images.get(image))

    def image_sizes(self, image: str, rows: I64) -> I64:
        """Bytes of an image on each of `rows`, 0 where it is absent, (N,)."""
        sizes = np.zeros(self._labels.capacity, np.int64)
        for row, size in self._images.get(image, {}).items():
            sizes[row] = size
        return sizes[rows]

    def domains(self, key: str, rows: I64) -> I64:
        """The domain of each of `rows` by label `key`, (N,): dense numbers from 0, -1 without the label."""
        values = self._labels.domains(key)[rows]
        known, dense = np.unique(values, return_inverse=True)
        return dense.astype(np.int64) - (1 if len(known) and known[0] < 0 else 0)

    def racks(self, keys: Iterable[str], rows: I64) -> tuple[I64, dict[str, int]]:
        """The domains of `rows` (N,) by the first of the labels `keys` that any of them has, -1 without it, and domain
        numbers by name."""
        for key in keys:
            names, domain = self.named_domains(key, rows)
            if names:
                return domain, {name: number for number, name in enumerate(names)}
        return np.full(len(rows), -1, np.int64), {}

    def named_domains(self, key: str, rows: I64) -> tuple[tuple[str, ...], I64]:
        """Values of label `key` that `rows` have, ascending, and which of them each of `rows` has, (N,), -1: none."""
        numbers = self._labels.domains(key)[rows]
        texts = self._labels.texts(key)
        known = np.unique(numbers[numbers >= 0]).tolist()
        values = tuple(sorted(texts[number] for number in known))
        rank = {text: i for i, text in enumerate(values)}
        dense = np.full(len(texts) + 1, -1, np.int64)  # the last is for rows without the label
        dense[known] = [rank[texts[number]] for number in known]
        return values, dense[numbers]

    def sweep(self) -> None:
        """Removes columns of labels that demands no longer name; called at the end of a round."""
        self._labels.sweep()
        self._fields.sweep()

    def _changed(self) -> None:
        self.version += 1
        self._rows_by_name = None

    def _renumber_taints(self) -> None:
        """Renumbers the taint sets that are in use; the caller raises the version."""
        self._taint_sets = {(): 0}
        for row, taints in self._taints.items():
            self._taint_set[row] = self._taint_sets.setdefault(taints, len(self._taint_sets))

    def _add_owners_and_images(self, row: int, node: NodeObserved) -> None:
        self._remove_owners_and_images(row)
        for owner in node.avoids:
            self._avoided.setdefault(owner, set()).add(row)
        for image, size in node.images.items():
            self._images.setdefault(image, {})[row] = size
        self._owners_and_images[row] = (node.avoids, tuple(node.images))

    def _remove_owners_and_images(self, row: int) -> None:
        owners, images = self._owners_and_images.pop(row, (frozenset(), ()))
        for owner in owners:
            self._avoided[owner].discard(row)
            if not self._avoided[owner]:
                del self._avoided[owner]
        for image in images:
            del self._images[image][row]
            if not self._images[image]:
                del self._images[image]

    def _first_untolerated(self, demand: NodeDemand, taints: tuple[Taint, ...]) -> int:
        taint = demand.untolerated(taints)
        return -1 if taint is None else taints.index(taint) * _MAX_SETS + self._taint_sets[taints]

    def _selected(self, demand: NodeDemand) -> Bools:
        chosen = self._labels.meets(demand.selector)
        for terms in (*demand.affinity, *(terms for _, terms in demand.further)):
            any_term = np.zeros(len(chosen), np.bool_)
            for term in terms:
                any_term |= self._term(term)
            chosen &= any_term
        return chosen

    def _term(self, term: Term) -> Bools:
        if not term.labels and not term.fields:
            return np.zeros(self._labels.capacity, np.bool_)
        return self._labels.meets(term.labels) & self._fields.meets(term.fields)
