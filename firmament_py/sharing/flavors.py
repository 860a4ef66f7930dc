"""Flavors of nodes: which nodes quotas are given for, and from which quota a task on a node takes."""

import numpy as np

from firmament_py.model.arrays import I64, Bools, distinct_rows
from firmament_py.model.constraints import NodeDemand, Operator, Requirement
from firmament_py.queues.tree import Queues
from firmament_py.state.node_index import NodeIndex


class Flavors:
    """F flavors of Q queues on N nodes, which are rows of the node table. nodes (F, N): of which flavors each is;
    kind (N + 1,): equal for nodes of the same flavors, below `kinds`; the last one is that of nodes that are gone,
    which have no labels. of_kind (S, F): the flavors of each kind."""

    def __init__(self, queues: Queues, index: NodeIndex, nodes: I64) -> None:
        self._queues = queues
        self.nodes: Bools = np.ones((len(queues.flavors), len(nodes)), np.bool_)
        for f, flavor in enumerate(queues.tree.flavors):
            if flavor.node_labels:
                labels = tuple(Requirement(k, Operator.IN, (v,)) for k, v in sorted(flavor.node_labels.items()))
                self.nodes[f] = index.evaluate(NodeDemand(selector=labels), nodes)[0]
        unlabelled = np.array([[not flavor.node_labels for flavor in queues.tree.flavors]], np.bool_)
        self.of_kind, kind = unlabelled, np.zeros(len(nodes) + 1, np.int64)
        if (self.nodes.transpose() != unlabelled).any():
            selected = np.vstack([self.nodes.T, unlabelled])
            first, kind = distinct_rows(selected)
            self.of_kind = selected[first]
        self.kind: I64 = kind
        self.kinds = len(self.of_kind)
        order = queues.flavor_order
        self._first = _first_flavor(order, order, self.of_kind)
        self.several: Bools = _first_flavor(order, order[:, :, ::-1], self.of_kind) != self._first
        """(Q, G, S) whether a task of a queue on a node of a kind may be of several flavors."""
        self.overlap = bool(self.several.any())

    def columns(self, queue: I64, kind: I64, chosen: I64 | None = None) -> I64:
        """(K, R) the column of quota from which a task of each queue (K,) on a node of each kind (K,) takes each
        resource, -1: its queue has no quota of it. That is of the flavor that was chosen (K, R), -1: none, if the node
        is of it; else of the first that the node is of. On nodes of no flavor of the queue it takes from its first one.
        """
        queues, resources = self._queues, len(self._queues.resources)
        group = queues.group[queue]
        flavor = self._first[queue[:, None], np.maximum(group, 0), kind[:, None]]
        if chosen is not None:
            flavor = np.where(self.suits(queue, kind, chosen), chosen, flavor)
        return np.where(group >= 0, flavor * resources + np.arange(resources), -1)

    def suits(self, queue: I64, kind: I64, chosen: I64) -> Bools:
        """(K, R) whether chosen flavors (K, R) are of queues (K,), and nodes of kinds (K,) of them; -1: is of none."""
        some, resources = np.maximum(chosen, 0), chosen.shape[1]
        covered = self._queues.covered[queue[:, None], some * resources + np.arange(resources)]
        suits: Bools = (chosen >= 0) & covered & self.of_kind[kind[:, None], some]
        return suits


def add_amounts(total: I64, queue: I64, columns: I64, amounts: I64) -> None:
    """Adds amounts (K, R) to `total` (Q, V), in the columns (K, R) of queues (K,); -1: in none."""
    some = columns >= 0
    rows = np.broadcast_to(queue[:, None], columns.shape)
    np.add.at(total, (rows[some], columns[some]), amounts[some])


def _first_flavor(order: I64, tried: I64, kinds: Bools) -> I64:
    """(Q, G, S) of each kind of nodes (S, F), the first flavor of those `tried` (Q, G, F) that it is of; if it is of
    none, the first one in the order (Q, G, F)."""
    queues, groups, flavors = order.shape
    found = np.zeros((queues, groups, len(kinds)), np.int64)
    found[:] = np.maximum(order[:, :, :1], 0)
    for place in range(flavors - 1, -1, -1):
        flavor = tried[:, :, place]
        of_kind = kinds[:, np.maximum(flavor, 0)].transpose(1, 2, 0) & (flavor >= 0)[:, :, None]
        found = np.where(of_kind, flavor[:, :, None], found)
    return found
