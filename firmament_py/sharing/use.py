"""What the tasks of queues use of their quotas."""

from collections.abc import Mapping
from functools import cached_property
from math import prod

import numpy as np

from firmament_py.model.arrays import I64, Bools, counts_of
from firmament_py.model.resources import LIMIT
from firmament_py.queues.tree import Queues
from firmament_py.sharing.choices import Choices
from firmament_py.sharing.completed import completed
from firmament_py.sharing.flavors import Flavors, add_amounts
from firmament_py.sharing.retained import Retained, retained_by, takes_those_who_started
from firmament_py.state.cluster import ClusterState


class QueueUse:
    """Sums of what tasks request, by queue and column of quota, in one state of the cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.queues: Queues = completed(state.queues, state.resources.names)
        self.nodes = state.present_nodes()
        self.flavors = Flavors(self.queues, state.node_index, self.nodes)
        names = state.resources.names
        self._column = np.array([names.index(r) if r in names else -1 for r in self.queues.resources], np.int64)
        self._position = np.full(state.nodes.capacity + 1, -1, np.int64)  # the last one for no node
        self._position[self.nodes] = np.arange(len(self.nodes))
        always = np.array([not self.queues.tree.needs_quota(name) for name in self.queues.resources], np.bool_)
        unlimited = np.array([queue.unlimited for queue in self.queues.definitions], np.bool_)
        self._needs_none = unlimited[:, None] | always  # (Q, R)
        self.choices = Choices(state, self.queues, self.flavors)
        if self.flavors.overlap:
            node = self._position[np.maximum(state.tasks.node, state.tasks.nominated)]
            rows = np.flatnonzero((node >= 0) & (state.tasks.queue_row >= 0))  # a node that is gone may come back
            self.choices.settle(rows, self.flavors.kind[node[rows]], self.requests(state.tasks.cls[rows]))

    def queue_of(self, rows: I64) -> I64:
        """(K,) rows of the queues of task rows (K,), -1: it has none, or one that is unknown."""
        return self._state.tasks.queue_row[rows]

    def position(self, nodes: I64) -> I64:
        """(K,) the position of node rows (K,) among the present ones, -1: absent."""
        return self._position[nodes]

    def local_queue_of(self, rows: I64) -> I64:
        """(K,) rows of the local queues of task rows (K,), -1: it has none, or one that is unknown."""
        return self._local_queue[rows]

    @cached_property
    def _local_queue(self) -> I64:
        """(T,) of all rows of the task table."""
        row_of = {each.id: row for row, each in enumerate(self.queues.tree.local_queues)}
        ids = np.array(sorted(row_of), np.uint64)
        row = np.array([row_of[i] for i in ids.tolist()], np.int64)
        named = self._state.tasks.local_queue
        found = np.full(len(named), -1)
        some = np.flatnonzero(named)
        if len(ids) and len(some):
            at = np.minimum(np.searchsorted(ids, named[some]), len(ids) - 1)
            found[some] = np.where(ids[at] == named[some], row[at], -1)
        return found

    def requests(self, classes: I64) -> I64:
        """(K, R) what classes (K,), rows of the class table, request of each resource that quotas name."""
        return self._columns_of(self._state.classes.requests, classes)

    def amounts(self, stated: Mapping[str, int], default: int) -> I64:
        """(R,) `stated` amounts of each resource that quotas name, `default` of the others."""
        return np.array([min(stated.get(name, default), LIMIT) for name in self.queues.resources], np.int64)

    @cached_property
    def offered(self) -> I64:
        """(V,) what the nodes of each flavor offer. What is in use counts as offered, though a node has less by now or
        is gone: else the queues would pay for it with free capacity of other nodes."""
        nodes = self._state.nodes
        allocatable = self._columns_of(np.maximum(nodes.allocatable, nodes.used), self.nodes)
        offered: I64 = (self.flavors.nodes.astype(np.int64) @ allocatable).reshape(-1)
        rows = self._on_nodes
        rows = rows[self._position[self._state.tasks.node[rows]] < 0]
        if len(rows):
            offered += self.of(rows, self._state.tasks.node[rows]).sum(axis=0)
        return offered

    def counted(self, queue: I64, amounts: I64) -> I64:
        """amounts (K, R) without what queues (K,) have no quota of and need none."""
        return np.where((self.queues.group[queue] < 0) & self._needs_none[queue], 0, amounts)

    def _columns_of(self, amounts: I64, rows: I64) -> I64:
        if not len(self._column):
            return np.zeros((len(rows), 0), np.int64)
        return np.where(self._column >= 0, amounts[rows][:, np.maximum(self._column, 0)], 0)

    def of(self, rows: I64, nodes: I64) -> I64:
        """(Q, V) what task rows (K,) request on node rows (K,). Tasks of a node that is gone hold quota until they are
        gone, too; those without a queue count nothing."""
        return self._sums(rows, nodes, None, self.queues.count)

    def of_local_queues(self, rows: I64) -> I64:
        """(L, V) what task rows (K,) request on their nodes, by local queue."""
        owners = len(self.queues.tree.local_queues)
        return self._sums(rows, self._state.tasks.node[rows], self.local_queue_of(rows), owners)

    def _sums(self, rows: I64, nodes: I64, owner: I64 | None, owners: int) -> I64:
        """(O, V) what task rows (K,) request on node rows (K,), by their owners (K,), -1: none; None: their queues."""
        used = np.zeros((owners, self.queues.nominal.shape[1]), np.int64)
        queue, node = self.queue_of(rows), self._position[nodes]
        counted = queue >= 0
        if owner is not None:
            counted &= owner >= 0
        if not counted.any():
            return used
        # one sum per owner, queue, class and node kind instead of one per task
        of = [self.queues.count, self._state.classes.capacity, self.choices.kinds]
        keys = [queue[counted], self._state.tasks.cls[rows[counted]], self.choices.kind(rows[counted], node[counted])]
        if owner is not None:
            of, keys = [*of, owners], [*keys, owner[counted]]
        number, count = counts_of(np.ravel_multi_index(keys, of), prod(of))
        queue, cls, kind, *by_owner = np.unravel_index(number, of)
        columns, amounts = self.choices.columns(queue, kind), self.requests(cls) * count[:, None]
        add_amounts(used, by_owner[0] if by_owner else queue, columns, amounts)
        return used

    def local_queues_running(self) -> I64:
        """(L, V) what assumed and bound tasks use, by local queue."""
        return self.of_local_queues(self._on_nodes)

    def running(self, *, leaving: bool) -> I64:
        """(Q, V) what assumed and bound tasks use, successors of migrating tasks will, and what gangs keep beyond that.
        leaving: also those that terminate."""
        tasks, rows = self._state.tasks, self._on_nodes
        if leaving:
            return self._running.copy()
        rows = rows[tasks.leaving[rows]]
        return self._running - self.of(rows, tasks.node[rows])

    @cached_property
    def _on_nodes(self) -> I64:
        """(K,) rows of assumed and bound tasks that name a queue."""
        return np.flatnonzero((self._state.tasks.node >= 0) & (self._state.tasks.queue != 0))

    @cached_property
    def _running(self) -> I64:
        """(Q, V)"""
        used = self.of(self._on_nodes, self._state.tasks.node[self._on_nodes]) + self._successors()
        add_amounts(used, self.retained.queue, self._retained_columns(), self.retained.amounts)
        return used

    @cached_property
    def retained(self) -> Retained:
        """What gangs keep beyond what their tasks use."""
        classes = np.arange(self._state.classes.capacity)
        return retained_by(self._state, self.queues, self.flavors, self.requests(classes))

    def retained_places(self, rows: I64) -> tuple[Bools, I64]:
        """(K,) which of the waiting task rows (K,) have a place in what their gangs keep, and (W, R) the flavor of each
        resource of these, -1: none."""
        if not len(self.retained.gang):
            return np.zeros(len(rows), np.bool_), np.zeros((0, len(self.queues.resources)), np.int64)
        queue = self.queue_of(rows)
        takes = np.append(takes_those_who_started(self.queues), False)[queue]
        requests = self.counted(queue, self.requests(self._state.tasks.cls[rows]))
        retained = takes & self.retained.within(self._state, rows, queue, requests)
        column = self._retained_columns()[self.retained.of(self._state.tasks.gang[rows[retained]])]
        return retained, np.where(
            (column >= 0) & (requests[retained] > 0), column // max(len(self.queues.resources), 1), -1
        )

    def retained_by_gangs(self, gangs: I64) -> I64:
        """(K, V) what gangs (K,), -1: none, keep beyond what their tasks use."""
        amounts = np.zeros((len(gangs), self.queues.nominal.shape[1]), np.int64)
        at = self.retained.of(gangs)
        some = np.flatnonzero(at >= 0)
        add_amounts(amounts, some, self._retained_columns()[at[some]], self.retained.amounts[at[some]])
        return amounts

    def left_by(self, rows: I64) -> I64:
        """(Q, V) what task rows (K,), all on nodes, use, with what is kept by gangs none of whose other tasks stay."""
        tasks, left = self._state.tasks, self.of(rows, self._state.tasks.node[rows])
        gangs = self.retained.gang
        if len(gangs) and len(rows):
            there = np.flatnonzero((tasks.node >= 0) & ~tasks.leaving & np.isin(tasks.gang, gangs))
            stays = np.isin(gangs, tasks.gang[np.setdiff1d(there, rows)])
            goes = np.flatnonzero(~stays & np.isin(gangs, tasks.gang[rows]))
            np.add.at(left, self.retained.queue[goes], self.retained_by_gangs(gangs[goes]))
        return left

    def _retained_columns(self) -> I64:
        """(G, R) the columns of quota from which gangs keep."""
        kind = self.choices.kind(self.retained.task, self._position[self.retained.node])
        return self.choices.columns(self.retained.queue, kind)

    def _successors(self) -> I64:
        """(Q, V) what those use that have not arrived."""
        state, queues = self._state, self.queues
        used = np.zeros((queues.count, queues.nominal.shape[1]), np.int64)
        for ident, node, requests in state.successors.absent():
            queue = state.queues.rows_of(np.array([ident], np.uint64))
            if ident and queue[0] >= 0 and self._position[node] >= 0:
                amounts = np.array([[requests.get(name, 0) for name in queues.resources]], np.int64)
                add_amounts(
                    used, queue, self.flavors.columns(queue, self.flavors.kind[self._position[[node]]]), amounts
                )
        return used

    def firm(self) -> I64:
        """(Q, V) what tasks on nodes use that cannot be preempted."""
        tasks = self._state.tasks
        rows = self._on_nodes[tasks.unevictable[self._on_nodes]]
        return self.of(rows, tasks.node[rows])

    def demand(self) -> I64:
        """(Q, V) what waiting tasks request, on the first flavor of each resource group."""
        queues, tasks = self.queues, self._state.tasks
        rows = tasks.waiting
        rows = rows[tasks.queue[rows] != 0]
        queue = self.queue_of(rows)
        rows, queue = rows[queue >= 0], queue[queue >= 0]
        amounts = np.zeros(queues.nominal.shape, np.int64)
        resources = len(queues.resources)
        if not len(rows) or not resources:
            return amounts
        of = queues.count, self._state.classes.capacity
        number, count = counts_of(np.ravel_multi_index((queue, tasks.cls[rows]), of), prod(of))
        queue, classes = np.unravel_index(number, of)
        group = queues.group[queue]
        flavor = np.take_along_axis(queues.flavor_order[queue][:, :, 0], np.maximum(group, 0), axis=1)
        columns = np.where((group >= 0) & (flavor >= 0), flavor * resources + np.arange(resources), -1)
        add_amounts(amounts, queue, columns, self.requests(classes) * count[:, None])
        return amounts

    def nominated(self) -> I64:
        """(Q, V) what is reserved for waiting tasks that are nominated."""
        tasks = self._state.tasks
        rows = tasks.nominees
        return self.of(rows, tasks.nominated[rows])
