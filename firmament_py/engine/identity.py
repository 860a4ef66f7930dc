"""Whether rows of the tables still are of the same tasks and nodes, described alike: preconditions of what was decided
on an earlier state."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import GangObserved, NodeObserved
from firmament_py.model.lifecycle import PRESENT
from firmament_py.queues.tree import Queues
from firmament_py.state.cluster import ClusterState

_COLUMNS = ("generation", "cls", "gang", "role", "label_set", "queue", "local_queue", "required_node")


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Of task rows (K,). columns: names of columns -> (K,); class_generation (K,); gangs: of those of their gangs that
    there were, by row: generation and definition."""

    rows: I64
    columns: dict[str, I64]
    class_generation: I64
    gangs: dict[int, tuple[int, GangObserved]]
    queues: Queues

    @classmethod
    def of(cls, state: ClusterState, rows: I64) -> Self:
        """As they are in a state."""
        columns = {name: getattr(state.tasks, name)[rows] for name in _COLUMNS}
        gangs = {
            row: (int(state.gangs.generation[row]), state.gangs.definition(row))
            for row in np.unique(columns["gang"]).tolist()
            if row >= 0
        }
        return cls(rows, columns, state.classes.generation[columns["cls"]], gangs, state.queues)

    def same(self, now: ClusterState) -> Bools:
        """(K,) which are the same now."""
        rows, tasks = self.rows, now.tasks
        same: Bools = tasks.live[rows].copy()
        for name, column in self.columns.items():
            same &= getattr(tasks, name)[rows] == column
        same &= now.classes.generation[tasks.cls[rows]] == self.class_generation
        gangs = now.gangs
        changed = [
            row
            for row, (generation, definition) in self.gangs.items()
            if not gangs.live[row] or gangs.generation[row] != generation or gangs.definition(row) != definition
        ]
        same &= ~np.isin(self.columns["gang"], changed)
        if now.queues.tree != self.queues.tree:
            same &= tasks.queue[rows] == 0
        return same


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Of node rows (K,). generation (K,); observed: what each was, None: absent."""

    rows: I64
    generation: I64
    observed: list[NodeObserved | None]

    @classmethod
    def of(cls, state: ClusterState, rows: I64) -> Self:
        """As they are in a state."""
        return cls(rows, state.nodes.generation[rows], [state.nodes.observed.get(row) for row in rows.tolist()])

    def same(self, now: ClusterState) -> Bools:
        """(K,) which are present and the same now."""
        rows, observed = self.rows, now.nodes.observed
        same: Bools = (now.nodes.state[rows] == PRESENT) & (now.nodes.generation[rows] == self.generation)
        for i, (row, before) in enumerate(zip(rows.tolist(), self.observed, strict=True)):
            known = observed.get(row)
            same[i] &= known is before or known == before
        return same
