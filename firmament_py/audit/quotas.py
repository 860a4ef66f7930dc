"""The independent check of quotas: whether placements exceed what queues may use, from the descriptions alone.

It sums what tasks use by walking up the tree queue by queue, and shares no code with the arithmetic of `queues`.
"""

from collections.abc import Mapping

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.queues import UNLIMITED, Flavor, Sharing
from firmament_py.model.resources import has_quota
from firmament_py.queues.tree import Queues
from firmament_py.state.cluster import ClusterState

_NOTHING, _UNCOVERED = -1, -2
"""In place of the column of an amount: the queue needs no quota of it, or has none."""


class QuotaCheck:
    """For the queues of one tree. Q queues, parents before children; A amounts."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        definitions = queues.definitions
        self._row = {queue.id: row for row, queue in enumerate(definitions)}
        self._parent = [self._row.get(queue.parent, -1) for queue in definitions]
        named = ((quota.flavor, quota.resource) for queue in definitions for quota in queue.quotas)
        self._column = {amount: column for column, amount in enumerate(dict.fromkeys(named))}
        shape = (len(definitions), len(self._column))
        entitled, lent = np.zeros(shape, np.int64), np.full(shape, UNLIMITED)
        self._borrows, self._limit = np.full((2, *shape), UNLIMITED)
        for row, queue in enumerate(definitions):
            for quota in queue.quotas:
                at = row, self._column[quota.flavor, quota.resource]
                entitled[at] = quota.nominal
                for limits, value in (
                    (lent, quota.lending_limit),
                    (self._borrows, quota.borrowing_limit),
                    (self._limit, quota.limit),
                ):
                    limits[at] = UNLIMITED if value is None else value
        self._unlent = np.zeros(shape, np.int64)
        for row in reversed(range(len(definitions))):
            self._unlent[row] = np.where(lent[row] < UNLIMITED, np.maximum(entitled[row] - lent[row], 0), 0)
            if (parent := self._parent[row]) >= 0:
                entitled[parent] = np.minimum(entitled[parent] + entitled[row] - self._unlent[row], UNLIMITED)
            else:
                self._borrows[row] = 0
        by_quota = queues.tree.sharing in (Sharing.CLASSICAL, Sharing.FAIR)
        self._entitled = entitled if by_quota else np.full(shape, UNLIMITED)  # else only limits bind
        parents = {queue.parent for queue in definitions}
        takes = [queue.id for row, queue in enumerate(definitions) if queues.open[row] and queue.id not in parents]
        self._open = np.array(takes, np.uint64)
        self._ids = np.array(sorted(self._row), np.uint64)
        self._row_of_id = np.array([self._row[identifier] for identifier in self._ids.tolist()], np.int64)
        self._kind: dict[frozenset[str], int] = {}  # flavors of nodes -> number
        self._amounts_of: tuple[tuple[tuple[str, ...], int], I64] = ((), 0), np.zeros((0, 0, 0), np.int64)

    def problems(self, state: ClusterState, tasks: I64, nodes: I64) -> dict[str, Bools]:
        """Reason -> which placements (K,) of task rows on node rows it concerns. What leaves still counts. If a queue,
        or an ancestor, exceeds a quota that its new tasks use, none of these is sound."""
        table = state.tasks
        ids = table.queue[tasks]
        served = np.isin(ids, self._open)
        holding = np.flatnonzero((table.node >= 0) & (table.queue != 0))
        used, _ = self._used(state, holding, table.node[holding])
        new, uncovered = self._used(state, tasks[served], nodes[served])
        total = used + new
        counted = total.copy()
        for row in reversed(range(len(self._parent))):
            if (parent := self._parent[row]) >= 0:
                total[parent] += total[row]
                counted[parent] += np.maximum(counted[row] - self._unlent[row], 0)
        over = (counted > self._entitled + self._borrows) | (total > self._limit)
        for row in range(len(self._parent)):
            if (parent := self._parent[row]) >= 0:
                over[row] |= over[parent] & (counted[row] > self._unlent[row])  # only what it takes from there
        exceeded = {identifier for identifier, row in self._row.items() if (over[row] & (new[row] > 0)).any()}
        bad = np.isin(ids, np.array(sorted(exceeded | uncovered), np.uint64))
        return {"its queue takes no tasks": (ids != 0) & ~served, "a quota is exceeded": served & bad}

    def _used(self, state: ClusterState, tasks: I64, nodes: I64) -> tuple[I64, set[int]]:
        """(Q, A) what task rows (K,) on node rows (K,) take from their own queues, and ids of queues that they take
        something from that these have no quota of."""
        table, used = state.tasks, np.zeros(self._entitled.shape, np.int64)
        known = np.isin(table.queue[tasks], self._ids)
        tasks, nodes = tasks[known], nodes[known]
        if not len(tasks):
            return used, set()
        row = self._row_of_id[np.searchsorted(self._ids, table.queue[tasks])]
        cls, kind = table.cls[tasks], self._kinds(state, nodes)
        # one sum per queue, class and kind of nodes: there are far more tasks
        alike = (row * state.classes.capacity + cls) * len(self._kind) + kind
        _, first, count = np.unique(alike, return_index=True, return_counts=True)
        row, names = row[first], state.resources.names
        requests = state.classes.requests[cls[first]] * count[:, None]
        amount = self._amounts(names)[row, kind[first]]
        for r in range(len(names)):
            some = amount[:, r] >= 0
            np.add.at(used, (row[some], amount[some, r]), requests[some, r])
        bad = ((amount == _UNCOVERED) & (requests > 0)).any(axis=1)
        return used, {self.queues.definitions[each].id for each in np.unique(row[bad]).tolist()}

    def _kinds(self, state: ClusterState, nodes: I64) -> I64:
        """(K,) numbers of the sets of flavors that node rows (K,) are of; fills `_kind`."""
        special = [flavor for flavor in self.queues.tree.flavors if flavor.node_labels]
        everywhere = frozenset(flavor.name for flavor in self.queues.tree.flavors if not flavor.node_labels)
        if not special:
            self._kind.setdefault(everywhere, 0)
            return np.zeros(len(nodes), np.int64)
        distinct, of_task = np.unique(nodes, return_inverse=True)
        kinds = []
        for node in distinct.tolist():
            labels = state.nodes.observed[node].labels if node in state.nodes.observed else {}
            kinds.append(self._kind.setdefault(everywhere | _matching(special, labels), len(self._kind)))
        return np.array(kinds, np.int64)[of_task.reshape(-1)]

    def _amounts(self, names: tuple[str, ...]) -> I64:
        """(Q, S, R) the column of the amount that a task of each queue takes of each resource on each kind of nodes."""
        key = names, len(self._kind)
        if self._amounts_of[0] != key:
            columns = np.full((len(self._parent), len(self._kind), len(names)), _NOTHING)
            for row, queue in enumerate(self.queues.definitions):
                for r, name in enumerate(names):
                    of = [quota.flavor for quota in queue.quotas if quota.resource == name]
                    if not of:
                        columns[row, :, r] = _UNCOVERED if has_quota(name) and not queue.unlimited else _NOTHING
                    for there, kind in self._kind.items() if of else ():
                        flavor = next((flavor for flavor in of if flavor in there), of[0])
                        columns[row, kind, r] = self._column[flavor, name]
            self._amounts_of = key, columns
        return self._amounts_of[1]


def _matching(flavors: list[Flavor], labels: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f.name for f in flavors if all(labels.get(key) == value for key, value in f.node_labels.items()))
