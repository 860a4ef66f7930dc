"""The order of moves: each follows those that leave the capacity that it takes.

A *bundle* is what is carried out together. Bundles that wait for each other in a circle become one: its tasks leave
together, and their successors arrive as capacity is released.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks that leave nodes `origin` (D,), which releases `released` (D, R), and tasks that arrive on nodes `target`
    (A,), where they take `taken` (A, R)."""

    origin: I64
    released: I64
    target: I64
    taken: I64

    def joined(self, other: Bundle) -> Bundle:
        pairs = (
            (self.origin, other.origin),
            (self.released, other.released),
            (self.target, other.target),
            (self.taken, other.taken),
        )
        return Bundle(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Ordered:
    """Bundles, by position, that are carried out together, after those at these positions in the order."""

    together: tuple[int, ...]
    after: tuple[int, ...]


def ordered(bundles: list[Bundle], free: I64) -> list[Ordered]:
    """The order of bundles on nodes with free (N, R), where all of them have capacity in the end."""
    groups: list[tuple[int, ...]] = [(i,) for i in range(len(bundles))]
    joined = list(bundles)
    free = free.copy()
    order: list[Ordered] = []
    leaving: dict[int, list[tuple[int, I64]]] = {}  # node -> position in the order, and what it releases there
    taken: dict[int, I64] = {}  # node -> what the bundles in the order take there
    at_first = free.copy()
    while groups:
        stuck: list[int] = []
        progress = False
        for i, bundle in enumerate(joined):
            if not _fits(bundle, free):
                stuck.append(i)
                continue
            progress = True
            order.append(Ordered(groups[i], _needed(bundle, at_first, leaving, taken)))
            np.add.at(free, bundle.origin, bundle.released)
            np.subtract.at(free, bundle.target, bundle.taken)
            for node, amounts in zip(bundle.origin.tolist(), bundle.released, strict=True):
                leaving.setdefault(node, []).append((len(order) - 1, amounts))
            for node, amounts in zip(bundle.target.tolist(), bundle.taken, strict=True):
                taken[node] = taken.get(node, np.zeros_like(amounts)) + amounts
        groups, joined = [groups[i] for i in stuck], [joined[i] for i in stuck]
        if not progress:
            groups, joined = _circle_joined(groups, joined)
    return order


def _fits(bundle: Bundle, free: I64) -> bool:
    """Whether all that arrives fits once what leaves is gone."""
    nodes, at = np.unique(bundle.target, return_inverse=True)
    taken = np.zeros((len(nodes), free.shape[1]), np.int64)
    np.add.at(taken, at.reshape(-1), bundle.taken)
    left = free[nodes] - taken
    there = np.isin(bundle.origin, nodes)
    np.add.at(left, np.searchsorted(nodes, bundle.origin[there]), bundle.released[there])
    return not (taken[left < 0] > 0).any()


def _needed(
    bundle: Bundle, at_first: I64, leaving: dict[int, list[tuple[int, I64]]], taken: dict[int, I64]
) -> tuple[int, ...]:
    """Positions in the order of the first bundles that leave a target which have to be gone before this one fits."""
    needed: set[int] = set()
    for node in np.unique(bundle.target).tolist():
        takes = bundle.taken[bundle.target == node].sum(axis=0)
        left = at_first[node] - takes + bundle.released[bundle.origin == node].sum(axis=0)
        if node in taken:
            left = left - taken[node]
        for position, amounts in leaving.get(node, ()):
            if (left >= 0)[takes > 0].all():
                break
            left = left + amounts
            needed.add(position)
    return tuple(sorted(needed))


def _circle_joined(groups: list[tuple[int, ...]], joined: list[Bundle]) -> tuple[list[tuple[int, ...]], list[Bundle]]:
    """The same with bundles joined that wait for each other, and for no others. Raises ValueError if there are none."""
    import networkx as nx  # a fifth of the start time of a flow service

    leaves: dict[int, list[int]] = {}
    for i, bundle in enumerate(joined):
        for node in np.unique(bundle.origin).tolist():
            leaves.setdefault(node, []).append(i)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(joined)))
    for i, bundle in enumerate(joined):
        graph.add_edges_from(
            (i, j) for node in np.unique(bundle.target).tolist() for j in leaves.get(node, ()) if j != i
        )
    for circle in nx.strongly_connected_components(graph):
        last = all(j in circle for i in circle for j in graph.successors(i))
        if last and len(circle) > 1:
            members = sorted(circle)
            one = joined[members[0]]
            for i in members[1:]:
                one = one.joined(joined[i])
            others = [i for i in range(len(joined)) if i not in circle]
            together = tuple(position for i in members for position in groups[i])
            return [together, *(groups[i] for i in others)], [one, *(joined[i] for i in others)]
    raise ValueError("the moves have no order: in the end they do not all fit")
