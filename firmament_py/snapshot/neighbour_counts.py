"""Who is where: how many tasks with each value of a trait each node has, while a round places tasks.

Traits are what the sender says of a class for policies (model/events.py). Nothing is counted until a policy asks; from
then on a trait's counts follow what is placed and taken back.
"""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.state.cluster import ClusterState
from firmament_py.state.node_index import NodeIndex


def nothing_measured(rows: I64) -> F64:
    """What is known of the use of task rows (K,) where nothing is: (K,) NaN."""
    return np.full(len(rows), np.nan)


class NeighbourCounts:
    """nodes: (N,) rows of the node table; classes: (C,) rows of the class table. cpu_of: millicores that task rows
    (K,) were measured to use, (K,), NaN: not measured."""

    def __init__(
        self,
        state: ClusterState,
        nodes: I64,
        classes: I64,
        placed: RunningTasks,
        cpu_of: Callable[[I64], F64] = nothing_measured,
    ) -> None:
        self._node_index: NodeIndex = state.node_index
        self._nodes = nodes
        self._placed = placed
        with_traits = placed.classes_that(state.classes.has_traits)
        self._traits_of_placed = {row: state.classes.definition(row).traits for row in with_traits}
        self.traits = tuple(MappingProxyType(state.classes.definition(row).traits) for row in classes.tolist())
        """(C,) of the round's classes. Policies see them: what they could change would be the class itself."""
        self._cpu_of = cpu_of
        self._changes: list[tuple[int, I64, I64]] = []
        self._by_trait: dict[str, _Counts] = {}
        self._domains: dict[str, tuple[tuple[str, ...], I64]] = {}

    def add(self, c: int, node: I64, count: I64) -> None:
        """Takes note that count[i] tasks more (or, below 0, fewer) of class c are on node[i], no node twice."""
        if self.traits[c]:
            self._changes.append((c, node, count))

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]:
        """V values of a trait, ascending, and (N, V) how many tasks that have each are on each node."""
        counts = self._by_trait.get(trait)
        if counts is None:
            counts = self._by_trait[trait] = self._count(trait)
        for c, node, count in self._changes[counts.changes :]:
            value = counts.of_class[c]
            if value >= 0:
                counts.by_node[node, value] += count
        counts.changes = len(self._changes)
        answer = counts.by_node.copy()
        answer.flags.writeable = False
        return counts.values, answer

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]:
        """D values of node label `key`, ascending, and (N,) which of them each node has, -1 without the label."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = self._node_index.named_domains(key, self._nodes)
            found[1].flags.writeable = False
        return found

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]:
        """(V, D) mean millicores that a task with a value of the trait uses in a domain of label `key`, NaN where none
        was measured, and how many were; of the tasks that were placed at the start."""
        values, _ = self.census(trait)
        names, domain = self.domains(key)
        value, where = self._by_trait[trait].of_task, domain[self._placed.where]
        used = self._cpu_of(self._placed.rows)
        counted = (value >= 0) & (where >= 0) & ~np.isnan(used)
        pairs, shape = value[counted] * len(names) + where[counted], (len(values), len(names))
        size = len(values) * len(names)
        number = np.bincount(pairs, minlength=size).astype(np.int64).reshape(shape)
        total = np.bincount(pairs, used[counted], minlength=size).reshape(shape)
        return np.divide(total, number, out=np.full(shape, np.nan), where=number > 0), number

    def _count(self, trait: str) -> "_Counts":
        texts = {t[trait] for t in (*self.traits, *self._traits_of_placed.values()) if t.get(trait)}
        values = tuple(sorted(texts))
        number = {text: i for i, text in enumerate(values)}
        of_placed = {row: number.get(traits.get(trait, ""), -1) for row, traits in self._traits_of_placed.items()}
        of_class = [number.get(t.get(trait, ""), -1) for t in self.traits]
        of_task = self._placed.kinds(of_placed)
        return _Counts(values, self._placed.by_node_and(of_task, len(values)), of_class, of_task)


class _Counts:
    """Of one trait. changes: how many of the recorded changes are in by_node (N, V)."""

    def __init__(self, values: tuple[str, ...], by_node: I64, of_class: list[int], of_task: I64) -> None:
        self.values = values
        self.by_node = by_node
        self.of_class = of_class  # number of each class's value, -1: none
        self.of_task = of_task  # the same of each task that was placed at the start
        self.changes = 0
