"""A tree of queues as arrays: parents before children, amounts in one column for each flavor and resource."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.model.queues import UNLIMITED, Flavor, QueueDefinition, QueueTree, Stop
from firmament_py.queues.validation import Problem, check


class Level(NamedTuple):
    """Queues `start` .. `stop` have the same depth, and their `parents` (stop - start,) are rows of the level above."""

    start: int
    stop: int
    parents: I64

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """Q queues, leaves and inner ones, sorted by depth; V = F x R columns: flavor f and resource r have column f R + r.

    Amounts are int64 and at most UNLIMITED, which is also what a limit that is not stated is.
    """

    tree: QueueTree
    """What is left of the description after its check."""
    problems: tuple[Problem, ...]
    row: dict[int, int]
    """id -> row."""
    ids: U64
    """(Q,) all ids, ascending."""
    row_of_id: I64
    """(Q,) the rows of `ids`."""
    flavors: tuple[str, ...]
    resources: tuple[str, ...]
    definitions: tuple[QueueDefinition, ...]
    """In the order of the rows."""
    parent: I64
    """(Q,) the parent's row, -1 of roots; always below the queue's own."""
    depth: I64
    """(Q,) 0 of roots."""
    paths: I64
    """(Q, D) the queue, its parent, ..., its root, then -1."""
    levels: tuple[Level, ...]
    """Depth 1, 2, ...; roots are in none."""
    children: I64
    """(Q,) rows by parent, roots first; children of a parent by priority, the highest first, then as they came."""
    child_starts: I64
    """(Q + 2,) where in `children` the roots begin, then the children of each queue; the last entry is Q."""
    leaf: Bools
    """(Q,) queues without children: only they have tasks."""
    open: Bools
    """(Q,) whether tasks are admitted: neither the queue nor an ancestor is stopped, or closed because it is wrong."""
    nominal: I64
    borrowing_limit: I64
    lending_limit: I64
    limit: I64
    """(Q, V) each."""
    covered: Bools
    """(Q, V) where the queue states a quota."""
    known: Bools
    """(Q, V) where the queue or one below it does."""
    weight: F64
    """(Q,) weight of the queue."""
    weights: F64
    """(Q, V) weights of its amounts."""
    priority: I64
    """(Q,) of the queue itself, not of its tasks."""
    priority_offset: I64
    priority_fence: Bools
    """(Q,) how priorities of its tasks are seen outside of it: see queues/priorities.py."""
    reclaimable: Bools
    """(Q,) whether other queues may reclaim from it."""
    group: I64
    """(Q, R) the resource group of each resource, -1 if the queue has no quota of it."""
    flavor_order: I64
    """(Q, G, F) the flavors of each resource group in the order in which they are tried, then -1."""

    @property
    def count(self) -> int:
        return len(self.parent)

    def roots(self) -> I64:
        """(Q,) the row of the root above each queue, or its own."""
        root = np.arange(self.count)
        for level in self.levels:
            root[level.rows] = root[level.parents]
        return root

    def rows_of(self, ids: U64) -> I64:
        """(K,) the rows of queues by id (K,), -1: unknown, as is 0, which stands for no queue."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.row_of_id[at], -1)

    def column(self, flavor: str, resource: str) -> int:
        """The column of a flavor and a resource; ValueError if no quota names them."""
        return self.flavors.index(flavor) * len(self.resources) + self.resources.index(resource)


ALL_NODES = Flavor("all nodes")
"""Of trees that name no flavors."""


def build(tree: QueueTree, resources: Sequence[str] = ()) -> Queues:
    """The arrays of a tree. `resources` come first and always have columns; others follow as quotas name them."""
    checked = check(tree)
    tree = checked.tree if checked.tree.flavors else replace(checked.tree, flavors=(ALL_NODES,))
    definitions, depths = _by_depth(tree.queues)
    row = {queue.id: number for number, queue in enumerate(definitions)}
    ids = np.array(sorted(row), np.uint64)
    parent = np.array([row.get(queue.parent, -1) for queue in definitions], np.int64)
    depth = np.array(depths, np.int64)
    flavors = tuple(flavor.name for flavor in tree.flavors)
    named = (resource for queue in definitions for group in queue.resource_groups for resource in group)
    resources = tuple(dict.fromkeys((*resources, *named)))
    levels = _levels(parent, depth)
    leaf = np.ones(len(definitions), np.bool_)
    leaf[parent[parent >= 0]] = False
    is_open = np.array([q.stop is Stop.NONE and q.id not in checked.closed for q in definitions], np.bool_)
    for level in levels:
        is_open[level.rows] &= is_open[level.parents]
    priority = np.array([queue.priority for queue in definitions], np.int64)
    amounts = _Amounts(definitions, flavors, resources)
    known = amounts.covered.copy()
    for level in reversed(levels):
        np.logical_or.at(known, level.parents, known[level.rows])
    return Queues(
        tree=tree,
        problems=checked.problems,
        row=row,
        ids=ids,
        row_of_id=np.array([row[identifier] for identifier in ids.tolist()], np.int64),
        flavors=flavors,
        resources=resources,
        definitions=tuple(definitions),
        parent=parent,
        depth=depth,
        paths=_paths(parent, len(levels) + 1),
        levels=levels,
        children=np.lexsort((-priority, parent)),
        child_starts=np.searchsorted(np.sort(parent), np.arange(-1, len(parent) + 1)),
        leaf=leaf,
        open=is_open,
        nominal=amounts.nominal,
        borrowing_limit=amounts.borrowing_limit,
        lending_limit=amounts.lending_limit,
        limit=amounts.limit,
        covered=amounts.covered,
        known=known,
        weight=np.array([queue.weight for queue in definitions], np.float64),
        weights=amounts.weights,
        priority=priority,
        priority_offset=np.array([queue.priority_offset for queue in definitions], np.int64),
        priority_fence=np.array([queue.priority_fence for queue in definitions], np.bool_),
        reclaimable=np.array([queue.reclaimable for queue in definitions], np.bool_),
        group=amounts.group,
        flavor_order=amounts.flavor_order,
    )


def _by_depth(queues: tuple[QueueDefinition, ...]) -> tuple[list[QueueDefinition], list[int]]:
    """The queues and their depths, sorted by depth, then as they came; every queue has a path to a root."""
    by_id = {queue.id: queue for queue in queues}
    depth: dict[int, int] = {0: -1}
    for queue in queues:
        path = []
        current = queue.id
        while current not in depth:
            path.append(current)
            current = by_id[current].parent
        for identifier in reversed(path):
            depth[identifier] = depth[by_id[identifier].parent] + 1
    ordered = sorted(queues, key=lambda queue: depth[queue.id])
    return ordered, [depth[queue.id] for queue in ordered]


def _levels(parent: I64, depth: I64) -> tuple[Level, ...]:
    bounds = np.searchsorted(depth, np.arange(1, (int(depth[-1]) if len(depth) else 0) + 2)).tolist()
    return tuple(Level(start, stop, parent[start:stop]) for start, stop in pairwise(bounds))


def _paths(parent: I64, length: int) -> I64:
    paths = np.full((len(parent), length), -1, np.int64)
    paths[:, 0] = np.arange(len(parent))
    for step in range(1, length):
        below = paths[:, step - 1]
        paths[:, step] = np.where(below >= 0, parent[below], -1)
    return paths


class _Amounts:
    """The columns of all quotas."""

    def __init__(self, queues: Sequence[QueueDefinition], flavors: Sequence[str], resources: Sequence[str]) -> None:
        flavor_row = {name: number for number, name in enumerate(flavors)}
        column = {name: number for number, name in enumerate(resources)}
        shape = (len(queues), len(flavors) * len(resources))
        self.nominal = np.zeros(shape, np.int64)
        self.borrowing_limit, self.lending_limit, self.limit = np.full((3, *shape), UNLIMITED, np.int64)
        self.covered = np.zeros(shape, np.bool_)
        self.weights = np.repeat(np.array([queue.weight for queue in queues], np.float64)[:, None], shape[1], axis=1)
        self.group = np.full((len(queues), len(resources)), -1, np.int64)
        groups = max((len(queue.resource_groups) for queue in queues), default=0)
        self.flavor_order = np.full((len(queues), groups, len(flavors)), -1, np.int64)
        for q, queue in enumerate(queues):
            orders: list[list[int]] = [[] for _ in queue.resource_groups]
            group_of = {resource: number for number, group in enumerate(queue.resource_groups) for resource in group}
            for quota in queue.quotas:
                f, r = flavor_row[quota.flavor], column[quota.resource]
                v, group = f * len(resources) + r, group_of[quota.resource]
                self.covered[q, v] = True
                self.group[q, r] = group
                self.nominal[q, v] = quota.nominal
                for limits, value in (
                    (self.borrowing_limit, quota.borrowing_limit),
                    (self.lending_limit, quota.lending_limit),
                    (self.limit, quota.limit),
                ):
                    if value is not None:
                        limits[q, v] = value
                if quota.weight is not None:
                    self.weights[q, v] = quota.weight
                if f not in orders[group]:
                    orders[group].append(f)
            for number, order in enumerate(orders):
                self.flavor_order[q, number, : len(order)] = order


NO_QUEUES = build(QueueTree())
