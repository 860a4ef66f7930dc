"""The independent check of quotas: whether placements exceed what queues may use, from the descriptions alone.

It sums what tasks use by walking up the tree queue by queue, and shares no code with the arithmetic of `queues`.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.queues import UNLIMITED, Flavor
from firmament_py.model.resources import LINKS, TASK_SLOTS, TOKEN
from firmament_py.queues.tree import Queues
from firmament_py.state.cluster import ClusterState


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
        self._kept = np.zeros(shape, np.int64)
        for row in reversed(range(len(definitions))):
            self._kept[row] = np.where(lent[row] < UNLIMITED, np.maximum(entitled[row] - lent[row], 0), 0)
            if (parent := self._parent[row]) >= 0:
                entitled[parent] = np.minimum(entitled[parent] + entitled[row] - self._kept[row], UNLIMITED)
            else:
                self._borrows[row] = 0
        self._entitled = entitled
        parents = {queue.parent for queue in definitions}
        takes = [queue.id for row, queue in enumerate(definitions) if queues.open[row] and queue.id not in parents]
        self._open = np.array(takes, np.uint64)

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
                counted[parent] += np.maximum(counted[row] - self._kept[row], 0)
        over = (counted > self._entitled + self._borrows) | (total > self._limit)
        for row in range(len(self._parent)):
            if (parent := self._parent[row]) >= 0:
                over[row] |= over[parent] & (counted[row] > self._kept[row])  # only what it takes from there
        exceeded = {identifier for identifier, row in self._row.items() if (over[row] & (new[row] > 0)).any()}
        bad = np.isin(ids, np.array(sorted(exceeded | uncovered), np.uint64))
        return {"its queue takes no tasks": (ids != 0) & ~served, "a quota is exceeded": served & bad}

    def _used(self, state: ClusterState, tasks: I64, nodes: I64) -> tuple[I64, set[int]]:
        """(Q, A) what task rows (K,) on node rows (K,) take from their own queues, and ids of queues that they take
        something from that these have no quota of."""
        table, used = state.tasks, np.zeros(self._entitled.shape, np.int64)
        uncovered: set[int] = set()
        if not len(tasks):
            return used, uncovered
        special = [flavor for flavor in self.queues.tree.flavors if flavor.node_labels]
        everywhere = frozenset(flavor.name for flavor in self.queues.tree.flavors if not flavor.node_labels)
        kind = nodes if special else np.zeros_like(nodes)
        flavors: dict[int, frozenset[str]] = defaultdict(lambda: everywhere)
        for row in np.unique(kind).tolist() if special else ():
            node = state.nodes.observed.get(row)
            flavors[row] = everywhere | (_matching(special, node.labels) if node else frozenset())
        alike = np.stack([table.queue[tasks].view(np.int64), table.cls[tasks], kind], axis=1)
        _, first, count = np.unique(alike, axis=0, return_index=True, return_counts=True)
        for i, number in zip(first.tolist(), count.tolist(), strict=True):
            row_of_queue = self._row.get(int(table.queue[tasks[i]]))
            if row_of_queue is None:
                continue
            queue = self.queues.definitions[row_of_queue]
            there = flavors[int(kind[i])]
            for resource, amount in state.classes.definition(int(table.cls[tasks[i]])).requests.items():
                of = [quota.flavor for quota in queue.quotas if quota.resource == resource]
                if amount and of:
                    flavor = next((name for name in of if name in there), of[0])
                    used[row_of_queue, self._column[flavor, resource]] += number * amount
                elif amount and not queue.unlimited and _has_quota(resource):
                    uncovered.add(queue.id)
        return used, uncovered


def _matching(flavors: list[Flavor], labels: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f.name for f in flavors if all(labels.get(key) == value for key, value in f.node_labels.items()))


def _has_quota(resource: str) -> bool:
    """Whether a queue without a quota of a resource may not use it."""
    return resource != TASK_SLOTS and resource not in LINKS and not resource.startswith(TOKEN)
