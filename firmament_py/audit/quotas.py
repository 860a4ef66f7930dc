"""The independent check of quotas: whether placements exceed what queues may use, from the descriptions alone.

What a task uses counts on the flavor that it was admitted on, if its node is of that; new tasks are on such nodes only.
It adds up what tasks use from the deepest queues to the roots, and shares no code with the arithmetic of `queues`.
"""

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from firmament_py.audit.retained_quota import retained_quota
from firmament_py.model.arrays import I64, U64, Bools, counts_of, distinct_rows
from firmament_py.model.queues import UNLIMITED, Flavor, QueueDefinition, Sharing, Stop
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
        row = {queue.id: number for number, queue in enumerate(definitions)}
        self._parent = np.array([row.get(queue.parent, -1) for queue in definitions], np.int64)
        self._depths = _depths(self._parent)
        named = ((quota.flavor, quota.resource) for queue in definitions for quota in queue.quotas)
        self._column = {amount: column for column, amount in enumerate(dict.fromkeys(named))}
        at = np.zeros((2, 0), np.int64)
        if self._column:
            stated = (
                (row[q.id], self._column[quota.flavor, quota.resource]) for q in definitions for quota in q.quotas
            )
            at = np.array([*stated], np.int64).T
        quotas = [quota for queue in definitions for quota in queue.quotas]
        shape = (len(definitions), len(self._column))
        entitled, lent = np.zeros(shape, np.int64), np.full(shape, UNLIMITED)
        self._borrows, self._limit = np.full((2, *shape), UNLIMITED)
        entitled[at[0], at[1]] = [quota.nominal for quota in quotas]
        lent[at[0], at[1]] = _limits(quota.lending_limit for quota in quotas)
        self._borrows[at[0], at[1]] = _limits(quota.borrowing_limit for quota in quotas)
        self._limit[at[0], at[1]] = _limits(quota.limit for quota in quotas)
        self._unlent = np.zeros(shape, np.int64)
        for rows in reversed(self._depths):
            self._unlent[rows] = np.where(lent[rows] < UNLIMITED, np.maximum(entitled[rows] - lent[rows], 0), 0)
            if self._parent[rows[0]] >= 0:
                sums = entitled.astype(np.float64)  # where these are too large, int64 wraps around
                np.add.at(sums, self._parent[rows], entitled[rows] - self._unlent[rows])
                np.add.at(entitled, self._parent[rows], entitled[rows] - self._unlent[rows])
                entitled[sums >= UNLIMITED] = UNLIMITED
        self._borrows[self._parent < 0] = 0
        by_quota = queues.tree.sharing in (Sharing.CLASSICAL, Sharing.FAIR)
        self._entitled = entitled if by_quota else np.full(shape, UNLIMITED)  # else only limits bind
        self._takes = queues.open.copy()  # (Q,) whether tasks may be in each queue
        self._takes[self._parent[self._parent >= 0]] = False
        stop = np.array([int(queue.stop) for queue in definitions], np.int64)  # that of those above, too
        for rows in self._depths[1:]:
            stop[rows] = np.maximum(stop[rows], stop[self._parent[rows]])
        self._continues = self._takes | (stop == int(Stop.HOLD))  # (Q,) whether gangs that have started go on
        self._continues[self._parent[self._parent >= 0]] = False
        self._ids = np.array(sorted(row), np.uint64)
        self._row_of_id = np.array([row[identifier] for identifier in self._ids.tolist()], np.int64)
        self._stated = [{(quota.flavor, quota.resource) for quota in queue.quotas} for queue in definitions]
        self._flavors = len(queues.tree.flavors)
        self._taints = {flavor.name: flavor.taints for flavor in queues.tree.flavors if flavor.taints}
        self._kind: dict[frozenset[str], int] = {}  # flavors of nodes -> number
        self._amounts_of: tuple[tuple[tuple[str, ...], int], I64] = ((), 0), np.zeros((0, 0, 0), np.int64)

    def problems(self, state: ClusterState, tasks: I64, nodes: I64) -> dict[str, Bools]:
        """Reason -> which placements (K,) of task rows on node rows it concerns. What leaves still counts, and what
        gangs keep is in use already. If a queue, or an ancestor, exceeds a quota that its new tasks use, none of these
        is sound."""
        table, parent = state.tasks, self._parent
        row = self._rows(table.queue[tasks])
        served = np.append(self._takes, False)[row]  # the last one for unknown queues
        holding = np.flatnonzero((table.node >= 0) & (table.queue != 0))
        used, _, _ = self._used(state, self._rows(table.queue[holding]), holding, table.node[holding])
        covered = np.zeros_like(used)
        gangs, of_queue, amounts = self._retained(state)
        np.add.at(used, of_queue, amounts)
        for g in np.flatnonzero(np.isin(gangs, table.gang[tasks])).tolist():
            queue = int(of_queue[g])
            of_gang = (table.gang[tasks] == gangs[g]) & (row == queue)
            takes = self._used(state, row[of_gang], tasks[of_gang], nodes[of_gang])[0][queue]
            served |= of_gang & (self._continues[queue] and bool((takes <= amounts[g]).all()))
            covered[queue] += np.minimum(takes, amounts[g])
        new, uncovered, misplaced = self._used(state, row[served], tasks[served], nodes[served])
        new = np.maximum(new - covered, 0)
        total = used + new
        counted = total.copy()
        for rows in reversed(self._depths[1:]):
            np.add.at(total, parent[rows], total[rows])
            np.add.at(counted, parent[rows], np.maximum(counted[rows] - self._unlent[rows], 0))
        over = (counted > self._entitled + self._borrows) | (total > self._limit)
        for rows in self._depths[1:]:
            over[rows] |= over[parent[rows]] & (counted[rows] > self._unlent[rows])  # only what it takes from there
        bad = np.append(uncovered | (over & (new > 0)).any(axis=1), False)[row]
        on_others, repelled = served.copy(), served.copy()
        on_others[served] = misplaced
        repelled[served] = self._repelled(state, row[served], tasks[served], nodes[served])
        return {
            "its queue takes no tasks": (table.queue[tasks] != 0) & ~served,
            "the node is not of the flavor that it was admitted on": on_others,
            "it does not tolerate the taints of that flavor": repelled,
            "a quota is exceeded": served & bad,
        }

    def _retained(self, state: ClusterState) -> tuple[I64, I64, I64]:
        """Rows (G,) of gangs that keep quota, the rows (G,) of their queues, and (G, A) what they keep."""
        found = retained_quota(state)
        queue, kind = self._rows(found.queue), self._kinds(state, found.node)
        choice = np.where(found.task >= 0, state.tasks.flavors[found.task], -1)
        chosen, _ = self._chosen(state, queue, kind, choice)
        column = np.where(chosen >= 0, chosen, self._amounts(state.resources.names)[queue, kind])
        amounts = np.zeros((len(queue), len(self._column)), np.int64)
        for r in range(column.shape[1]):
            some = np.flatnonzero(column[:, r] >= 0)
            np.add.at(amounts, (some, column[some, r]), found.amounts[some, r])
        return found.gang, queue, amounts

    def _rows(self, ids: U64) -> I64:
        """(K,) the rows of queues by id (K,), -1: unknown."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[at] == ids, self._row_of_id[at], -1)

    def _used(self, state: ClusterState, row: I64, tasks: I64, nodes: I64) -> tuple[I64, Bools, Bools]:
        """(Q, A) what task rows (K,) on node rows (K,) take from their own queues, rows (K,), -1: unknown; (Q,) which
        queues have no quota of something that these request; and (K,) which are not on nodes of their flavors."""
        used, uncovered = np.zeros(self._entitled.shape, np.int64), np.zeros(len(self._entitled), np.bool_)
        known, misplaced = row >= 0, np.zeros(len(tasks), np.bool_)
        if not known.any():
            return used, uncovered, misplaced
        row, cls, kind = row[known], state.tasks.cls[tasks[known]], self._kinds(state, nodes[known])
        choice = state.tasks.flavors[tasks[known]] + 1  # 0: unknown
        # one sum per queue, class, kind of nodes and choice: there are far more tasks
        of = len(used), state.classes.capacity, len(self._kind), len(state.flavor_choices) + 1
        keys = np.ravel_multi_index((row, cls, kind, choice), of)
        alike, count = counts_of(keys, prod(of))
        row, cls, kind, choice = np.unravel_index(alike, of)
        names = state.resources.names
        requests = state.classes.requests[cls] * count[:, None]
        amount = self._amounts(names)[row, kind]
        chosen, wrong = self._chosen(state, row, kind, choice - 1)
        amount = np.where(chosen >= 0, chosen, amount)
        for r in range(len(names)):
            some = amount[:, r] >= 0
            np.add.at(used, (row[some], amount[some, r]), requests[some, r])
        uncovered[row[((amount == _UNCOVERED) & (requests > 0)).any(axis=1)]] = True
        off: Bools = np.logical_or.reduce(wrong & (requests > 0), axis=1)
        misplaced[known] = off[np.searchsorted(alike, keys)]
        return used, uncovered, misplaced

    def _repelled(self, state: ClusterState, row: I64, tasks: I64, nodes: I64) -> Bools:
        """(K,) which task rows (K,) of queue rows (K,) do not tolerate the taints of a flavor that they take from."""
        repelled = np.zeros(len(tasks), np.bool_)
        if not self._taints or not len(tasks):
            return repelled
        cls, kind = state.tasks.cls[tasks], self._kinds(state, nodes)
        chosen, _ = self._chosen(state, row, kind, state.tasks.flavors[tasks])
        amount = np.where(chosen >= 0, chosen, self._amounts(state.resources.names)[row, kind])
        for (flavor, _), column in self._column.items():
            if taints := self._taints.get(flavor):
                takes: Bools = np.any((amount == column) & (state.classes.requests[cls] > 0), axis=1)
                for each in set(cls[takes].tolist()):
                    if state.classes.demand(each).untolerated(taints) is not None:
                        repelled |= takes & (cls == each)
        return repelled

    def _chosen(self, state: ClusterState, row: I64, kind: I64, choice: I64) -> tuple[I64, Bools]:
        """(K, R) the column of the amount that was chosen, -1: none, or one that the queue or the node does not have;
        and (K, R) where the queue has it, but not the node."""
        names, there = {name: r for r, name in enumerate(state.resources.names)}, list(self._kind)
        if self._flavors < 2:
            return np.full((len(row), len(names)), -1), np.zeros((len(row), len(names)), np.bool_)
        keys = np.column_stack([row, kind, choice])
        first, of = distinct_rows(keys)
        distinct = keys[first]
        found, wrong = np.full((len(distinct), len(names)), -1), np.zeros((len(distinct), len(names)), np.bool_)
        for i, (q, of_node, number) in enumerate(distinct.tolist()):
            for resource, flavor in state.flavor_choices[number] if number >= 0 else ():
                if resource not in names or (flavor, resource) not in self._stated[q]:
                    continue
                if flavor in there[of_node]:
                    found[i, names[resource]] = self._column[flavor, resource]
                else:
                    wrong[i, names[resource]] = True
        return found[of], wrong[of]

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
            stating: dict[tuple[object, ...], I64] = {}  # nearly all queues state quotas of the same amounts
            for row, queue in enumerate(self.queues.definitions):
                stated = (queue.unlimited, *((quota.flavor, quota.resource) for quota in queue.quotas))
                if stated not in stating:
                    stating[stated] = self._amounts_of_queue(queue, names)
                columns[row] = stating[stated]
            self._amounts_of = key, columns
        return self._amounts_of[1]

    def _amounts_of_queue(self, queue: QueueDefinition, names: tuple[str, ...]) -> I64:
        """(S, R) the same for one queue."""
        columns = np.full((len(self._kind), len(names)), _NOTHING)
        for r, name in enumerate(names):
            of = [quota.flavor for quota in queue.quotas if quota.resource == name]
            if not of:
                tree = self.queues.tree
                free = queue.unlimited or name in tree.exempt_resources or name.startswith(tree.exempt_prefixes)
                columns[:, r] = _UNCOVERED if has_quota(name) and not free else _NOTHING
            for there, kind in self._kind.items() if of else ():
                flavor = next((flavor for flavor in of if flavor in there), of[0])
                columns[kind, r] = self._column[flavor, name]
        return columns


def _depths(parent: I64) -> list[I64]:
    """Rows of the queues of each depth, roots first; parents (Q,) come before children, -1: none."""
    depth = np.zeros(len(parent), np.int64)
    for row, above in enumerate(parent.tolist()):
        if above >= 0:
            depth[row] = depth[above] + 1
    return [np.flatnonzero(depth == each) for each in range(int(depth.max(initial=-1)) + 1)]


def _limits(stated: Iterable[int | None]) -> list[int]:
    return [UNLIMITED if limit is None else limit for limit in stated]


def _matching(flavors: list[Flavor], labels: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f.name for f in flavors if all(labels.get(key) == value for key, value in f.node_labels.items()))
