"""Number of tasks with each value of a trait on each node, updated while a round places tasks.

Traits are properties of a class that policies can use (model/events.py). A trait is counted from its first use by a
policy; from then on its counts follow all placements and removals.
"""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.state.cluster import ClusterState
from firmament_py.state.node_index import NodeIndex


def nothing_measured(rows: I64) -> F64:
    """Measured cpu of task rows (K,) where there are no measurements: (K,) NaN."""
    return np.full(len(rows), np.nan)


class NeighbourCounts:
    """nodes: (N,) rows of the node table; classes: (C,) rows of the class table. cpu_of: measured millicores, (K,), of
    task rows (K,), NaN: not measured. Answers View.census, View.domains and View.cpu_of."""

    def __init__(
        self,
        state: ClusterState,
        nodes: I64,
        classes: I64,
        running: RunningTasks,
        cpu_of: Callable[[I64], F64] = nothing_measured,
    ) -> None:
        self._node_index: NodeIndex = state.node_index
        self._nodes = nodes
        self._running = running
        with_traits = running.classes_that(state.classes.has_traits)
        self._traits_of_running = {row: state.classes.definition(row).traits for row in with_traits}
        self.traits = tuple(MappingProxyType(state.classes.definition(row).traits) for row in classes.tolist())
        """(C,) of the round's classes, read-only since policies see them."""
        self._cpu_of = cpu_of
        self._changes: list[tuple[I64, I64, I64]] = []
        self._by_trait: dict[str, _Counts] = {}
        self._domains: dict[str, tuple[tuple[str, ...], I64]] = {}

    def add(self, cls: I64, node: I64, count: I64) -> None:
        """Counts count[i] more tasks (below 0: fewer) of class cls[i] on node[i], (K,) each."""
        if any(self.traits):
            self._changes.append((cls, node, count))

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]:
        """The V values of a trait, ascending, and (N, V) the number of tasks with each value on each node."""
        counts = self._by_trait.get(trait)
        if counts is None:
            counts = self._by_trait[trait] = self._count(trait)
        for cls, node, count in self._changes[counts.changes :]:
            some = counts.of_class[cls] >= 0
            np.add.at(counts.by_node, (node[some], counts.of_class[cls[some]]), count[some])
        counts.changes = len(self._changes)
        answer = counts.by_node.copy()
        answer.flags.writeable = False
        return counts.values, answer

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]:
        """The D values of node label `key`, ascending, and (N,) the index of each node's value, -1 if it has none."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = self._node_index.named_domains(key, self._nodes)
            found[1].flags.writeable = False
        return found

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]:
        """(V, D) mean measured millicores of a task with a value of the trait in a domain of label `key`, NaN without
        measurements, and (V, D) number of measured tasks; of the tasks that run at the start of the round."""
        values, _ = self.census(trait)
        names, domain = self.domains(key)
        value, where = self._by_trait[trait].of_task, domain[self._running.where]
        used = self._cpu_of(self._running.rows)
        counted = (value >= 0) & (where >= 0) & ~np.isnan(used)
        pairs, shape = value[counted] * len(names) + where[counted], (len(values), len(names))
        size = len(values) * len(names)
        number = np.bincount(pairs, minlength=size).astype(np.int64).reshape(shape)
        total = np.bincount(pairs, used[counted], minlength=size).reshape(shape)
        return np.divide(total, number, out=np.full(shape, np.nan), where=number > 0), number

    def _count(self, trait: str) -> "_Counts":
        texts = {t[trait] for t in (*self.traits, *self._traits_of_running.values()) if t.get(trait)}
        values = tuple(sorted(texts))
        number = {text: i for i, text in enumerate(values)}
        of_running = {row: number.get(traits.get(trait, ""), -1) for row, traits in self._traits_of_running.items()}
        of_class = np.array([number.get(t.get(trait, ""), -1) for t in self.traits], np.int64)
        of_task = self._running.kinds(of_running)
        return _Counts(values, self._running.by_node_and(of_task, len(values)), of_class, of_task)


class _Counts:
    """Counts of one trait: (N, V) by node, including the first `changes` recorded changes."""

    def __init__(self, values: tuple[str, ...], by_node: I64, of_class: I64, of_task: I64) -> None:
        self.values = values
        self.by_node = by_node
        self.of_class = of_class  # (C,) number of each class's value, -1: none
        self.of_task = of_task  # (P,) likewise of each task that runs at the start
        self.changes = 0
