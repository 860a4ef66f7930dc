"""The running tasks as arrays, and their counts by node."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from firmament_py.model.arrays import I32, I64, NO_ROWS, Bools, positions_in
from firmament_py.snapshot.task_counts import Numbering, TaskCounts, incidence
from firmament_py.state.cluster import ClusterState

Term = TypeVar("Term")


class RunningTasks:
    """The P assumed and bound tasks on `nodes` (N,), rows of the node table. only: rows of those that count, ascending,
    None: all but `gone` (K,). also: further task rows (K,), and the positions in `nodes` (K,) where they count as
    running."""

    def __init__(
        self,
        state: ClusterState,
        nodes: I64,
        only: I64 | None = None,
        also: tuple[I64, I64] | None = None,
        gone: I64 = NO_ROWS,
    ) -> None:
        self._state, self._nodes, self._only, self._also, self._gone = state, nodes, only, also, gone

    @cached_property
    def _places(self) -> tuple[I64, I64]:
        """(P,) rows and (P,) positions. Found when they are first needed: few rounds have classes that need them."""
        tasks = self._state.tasks
        running = self._only
        if running is None:
            counted = tasks.on_nodes
            counted[self._gone] = False
            running = np.flatnonzero(counted)
        position = positions_in(self._nodes, self._state.nodes.capacity)
        where = position[tasks.node[running]]
        running, where = running[where >= 0], where[where >= 0]
        if self._also is not None:
            running, where = np.concatenate([running, self._also[0]]), np.concatenate([where, self._also[1]])
        return running, where

    @property
    def rows(self) -> I64:
        """(P,) task rows."""
        return self._places[0]

    @property
    def where(self) -> I64:
        """(P,) positions in `nodes`."""
        return self._places[1]

    @cached_property
    def cls(self) -> I64:
        """(P,) class rows."""
        return self._state.tasks.cls[self.rows]

    @cached_property
    def label_set(self) -> I64:
        """(P,) label set rows."""
        return self._state.tasks.label_set[self.rows]

    @cached_property
    def leaving(self) -> Bools:
        """(P,)"""
        return self._state.tasks.leaving[self.rows]

    @cached_property
    def classes(self) -> I64:
        """Class rows, ascending."""
        return np.flatnonzero(np.bincount(self.cls))

    def classes_that(self, marked: Bools) -> list[int]:
        """Those of `classes` for which a column of the class table is true."""
        if not marked.any():
            return []
        rows: list[int] = self.classes[marked[self.classes]].tolist()
        return rows

    def by_node(self, hits: Iterable[Bools]) -> I32:
        """(H, N) number of tasks on each node for which each of `hits`, (P,) each, is true; `hits` can be lazy."""
        counts = [np.bincount(self.where[hit], minlength=len(self._nodes)).astype(np.int32) for hit in hits]
        return np.array(counts, np.int32).reshape(len(counts), len(self._nodes))

    def matched(self, rows: list[I64], counted: Bools) -> tuple[I64, I64]:
        """Kinds (E,) and positions in `nodes` (E,): an entry for each task with counted (P,) whose label set is among
        rows[kind]."""
        some = np.flatnonzero(counted)
        kind, task = incidence(rows, self.label_set[some], self._state.label_sets.capacity)
        return kind, self.where[some[task]]

    def holders(
        self, of_running: Mapping[int, Sequence[Term]], of_waiting: Sequence[Sequence[Term]]
    ) -> tuple[list[Term], TaskCounts]:
        """The terms of classes, and how many tasks that have each of them there are on each node. of_running: by row of
        the class table; of_waiting (C,): of the classes of the round."""
        number = Numbering[Term](term for terms in (*of_running.values(), *of_waiting) for term in terms)
        if not len(number):  # as in most rounds
            return [], TaskCounts(self.by_node(()), np.zeros((0, len(of_waiting)), np.bool_))
        holders = np.zeros((len(number), self._state.classes.capacity), np.bool_)
        for row, terms in of_running.items():
            holders[[number.number(term) for term in terms], row] = True
        holds = np.zeros((len(number), len(of_waiting)), np.bool_)
        for c, terms in enumerate(of_waiting):
            holds[[number.number(term) for term in terms], c] = True
        return list(number), TaskCounts(self.by_node(of_term[self.cls] for of_term in holders), holds)

    def kinds(self, of_class: dict[int, int]) -> I64:
        """(P,) the kind of each task; of_class: class row -> kind; -1: none."""
        kind = np.full(int(self.classes.max(initial=-1)) + 1, -1, np.int64)
        kind[list(of_class)] = list(of_class.values())
        return kind[self.cls]

    def by_node_and(self, of_task: I64, kinds: int) -> I64:
        """(N, kinds) number of tasks of each kind on each node; of_task: (P,) their kinds, -1: not counted."""
        counted = of_task >= 0
        pairs = self.where[counted] * kinds + of_task[counted]
        return np.bincount(pairs, minlength=len(self._nodes) * kinds).astype(np.int64).reshape(len(self._nodes), kinds)
