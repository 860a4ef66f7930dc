"""Who is where: how many tasks with each value of a trait each node has, while a round places tasks.

Traits are what the sender says of a class for policies (events.py). Nothing is counted until a policy asks; from then
on a trait's counts follow what is placed and taken back.
"""

import numpy as np

from firmament_py.arrays import I64
from firmament_py.cluster import ClusterState
from firmament_py.nodes import NodeLooks
from firmament_py.placed import PlacedTasks


class Census:
    """nodes: (N,) rows of the node table; classes: (C,) rows of the class table."""

    def __init__(self, state: ClusterState, nodes: I64, classes: I64, placed: PlacedTasks) -> None:
        self._looks: NodeLooks = state.looks
        self._nodes = nodes
        self._placed = placed
        self._traits_of_placed = {row: state.classes.definition(row).traits for row in placed.classes}
        self.traits = tuple(state.classes.definition(row).traits for row in classes.tolist())
        """(C,) of the round's classes."""
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
            found = self._domains[key] = self._looks.named_domains(key, self._nodes)
            found[1].flags.writeable = False
        return found

    def _count(self, trait: str) -> "_Counts":
        texts = {t[trait] for t in (*self.traits, *self._traits_of_placed.values()) if t.get(trait)}
        values = tuple(sorted(texts))
        number = {text: i for i, text in enumerate(values)}
        rows = self._placed.classes
        of_placed = [number.get(self._traits_of_placed[row].get(trait, ""), -1) for row in rows]
        of_class = [number.get(t.get(trait, ""), -1) for t in self.traits]
        by_node = self._placed.by_node_and(rows, np.array(of_placed, np.int64), len(values))
        return _Counts(values, by_node, of_class)


class _Counts:
    """Of one trait. changes: how many of the census's changes are in by_node (N, V)."""

    def __init__(self, values: tuple[str, ...], by_node: I64, of_class: list[int]) -> None:
        self.values = values
        self.by_node = by_node
        self.of_class = of_class  # number of each class's value, -1: none
        self.changes = 0
