"""The order of moves: each follows those that leave the capacity that it takes.

A *bundle* is what is carried out together. Bundles that wait for each other in a circle become one: its tasks leave
together, and their successors arrive as capacity is released.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, add_rows
from firmament_py.model.bundle import Bundle


@dataclass(frozen=True, slots=True)
class Ordered:
    """Bundles, by position, that are carried out together, after those at these positions in the order."""

    together: tuple[int, ...]
    after: tuple[int, ...]


def ordered(bundles: list[Bundle], free: I64) -> list[Ordered]:
    """The order of bundles on nodes with free (N, R), where all of them have capacity in the end. Raises ValueError if
    they do not."""
    order = _Order(free)
    waiting = {i: _Waiting((i,), bundle) for i, bundle in enumerate(bundles)}
    arriving: dict[int, list[int]] = defaultdict(list)  # node -> keys of `waiting`
    for i, bundle in enumerate(bundles):
        for node in set(bundle.target.tolist()):
            arriving[node].append(i)
    candidates = list(waiting)
    while waiting:
        if not candidates:
            candidates = _join_circles(waiting, arriving)
        released: set[int] = set()
        for i in candidates:
            if order.add(waiting[i]):
                released.update(waiting.pop(i).bundle.origin.tolist())
        # only where capacity has been released may another one fit by now
        candidates = sorted({i for node in released for i in arriving[node] if i in waiting})
    return order.steps


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Bundles, by position, as one."""

    together: tuple[int, ...]
    bundle: Bundle


class _Order:
    """The order so far. free (N, R): before it."""

    def __init__(self, free: I64) -> None:
        self.steps: list[Ordered] = []
        self._first, self._free = free, free.copy()
        self._leaving: dict[int, list[tuple[int, I64]]] = defaultdict(list)
        """Node -> position in the order, and what it releases there."""
        self._taken: dict[int, I64] = defaultdict(lambda: np.zeros(free.shape[1], np.int64))
        """Node -> what the bundles in the order take there."""

    def add(self, waiting: _Waiting) -> bool:
        """Appends these if they fit after those in the order; whether they do."""
        bundle, position = waiting.bundle, len(self.steps)
        if not bundle.fits(self._free):
            return False
        self.steps.append(Ordered(waiting.together, self._needed(bundle)))
        add_rows(self._free, bundle.origin, bundle.released)
        add_rows(self._free, bundle.target, -bundle.taken)
        for node, amounts in zip(bundle.origin.tolist(), bundle.released, strict=True):
            self._leaving[node].append((position, amounts))
        for node, amounts in zip(bundle.target.tolist(), bundle.taken, strict=True):
            self._taken[node] += amounts
        return True

    def _needed(self, bundle: Bundle) -> tuple[int, ...]:
        """Positions of the first bundles that leave a target which have to be gone before this one fits."""
        needed: set[int] = set()
        for node in np.unique(bundle.target).tolist():
            takes = bundle.taken[bundle.target == node].sum(axis=0)
            released = bundle.released[bundle.origin == node].sum(axis=0)
            left = self._first[node] - self._taken[node] - takes + released
            for position, amounts in self._leaving[node]:
                if (left >= 0)[takes > 0].all():
                    break
                left = left + amounts
                needed.add(position)
        return tuple(sorted(needed))


def _join_circles(waiting: dict[int, _Waiting], arriving: dict[int, list[int]]) -> list[int]:
    """Joins bundles that wait for each other, and for no others, and returns their keys in `waiting`: they fit by now.
    Raises ValueError if there are none."""
    import networkx as nx  # a fifth of the start time of a flow service

    leaves: dict[int, list[int]] = defaultdict(list)
    for i, each in waiting.items():
        for node in set(each.bundle.origin.tolist()):
            leaves[node].append(i)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(waiting)
    for i, each in waiting.items():
        graph.add_edges_from((i, j) for node in set(each.bundle.target.tolist()) for j in leaves[node] if j != i)
    joined = []
    for circle in nx.strongly_connected_components(graph):
        if len(circle) > 1 and all(j in circle for i in circle for j in graph.successors(i)):
            one, *others = sorted(circle)
            members = [waiting[one], *(waiting.pop(i) for i in others)]
            together = tuple(position for member in members for position in member.together)
            waiting[one] = _Waiting(together, Bundle.of_all(member.bundle for member in members))
            for node in set(waiting[one].bundle.target.tolist()):
                arriving[node].append(one)
            joined.append(one)
    if not joined:
        raise ValueError("the moves have no order: in the end they do not all fit")
    return sorted(joined)
