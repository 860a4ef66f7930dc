"""What running tasks would cost on the nodes that cost them least, found for no more classes than needed.

Classes are as many as there are pod templates, and few of their tasks could gain by a move. So a bound for whole kinds
of classes comes first: the least cost of any node that has what the smallest task of the kind requests. Only for
classes whose tasks might gain by that bound is the best node found, among those that cost little enough.
"""

import numpy as np

from firmament_py.model.arrays import I64, smallest
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState

_NOWHERE = 2**61
"""Above all costs; a difference fits 64 bits."""

CLASSES = 32
"""For so many classes the best node is found in a round."""

_FIRST = 1_000
"""So many nodes, those that cost a kind least, are tried first: one that can take a task is then the best of all."""


class ArrivalCosts:
    """cost (K, N): what a task of each kind costs on each node of the snapshot if it is the next one there. classes
    (K,): the class row of one task of each kind."""

    def __init__(self, state: ClusterState, snapshot: Snapshot, cost: I64, classes: I64) -> None:
        self._state, self._snapshot, self._cost, self._classes = state, snapshot, cost, classes
        self._free = np.ascontiguousarray(snapshot.free.T)

    def least(self, rows: I64, kind: I64) -> I64:
        """(P,) a lower bound of what task rows (P,), of kind (P,), cost on the node that costs them least."""
        requests = self._state.classes.requests
        kind_of = np.full(self._state.classes.capacity, -1, np.int64)
        kind_of[self._state.tasks.cls[rows]] = kind
        others = np.flatnonzero(kind_of >= 0)
        smallest = requests[self._classes]
        np.minimum.at(smallest, kind_of[others], requests[others])
        everywhere = np.arange(self._cost.shape[1])
        bounds = [self._least_of(k, smallest[k], everywhere) for k in range(len(self._cost))]
        return np.array(bounds, np.int64)[kind]

    def of_tasks(self, rows: I64, kind: I64, below: I64) -> I64:
        """(P,) what task rows (P,), of kind (P,), cost on the node that costs them least, if that is less than
        below (P,), else at least that; found for CLASSES classes, those with the highest of these limits."""
        size = self._state.classes.capacity
        pairs, of_pair = np.unique(kind * size + self._state.tasks.cls[rows], return_inverse=True)
        limit, least = np.zeros(len(pairs), np.int64), np.full(len(pairs), _NOWHERE)
        np.maximum.at(limit, of_pair, below)
        chosen = np.argsort(-limit, kind="stable")[:CLASSES]
        kinds, classes = np.divmod(pairs, size)
        for k in np.unique(kinds[chosen]).tolist():
            of_kind = chosen[kinds[chosen] == k]
            near = np.flatnonzero(self._cost[k] < limit[of_kind].max())
            first = near[smallest(self._cost[k, near], _FIRST)]
            for pair, c in zip(of_kind.tolist(), classes[of_kind].tolist(), strict=True):
                found = self._least_of_class(k, c, first)
                least[pair] = found if found < _NOWHERE or len(first) == len(near) else self._least_of_class(k, c, near)
        return least[of_pair]

    def _least_of_class(self, k: int, c: int, nodes: I64) -> int:
        """What a task of class row c, of kind k, costs on that of `nodes` (K,) that can take it and costs it least."""
        state = self._state
        if state.classes.lacking(c):
            return _NOWHERE
        selected, taint = state.node_index.evaluate(state.classes.demand(c), self._snapshot.nodes[nodes])
        return self._least_of(k, state.classes.requests[c], nodes[selected & (taint < 0)])

    def _least_of(self, k: int, requests: I64, nodes: I64) -> int:
        """The least cost of kind k on those of `nodes` (K,) that have `requests` (R,) left."""
        for r in np.flatnonzero(requests).tolist():
            nodes = nodes[self._free[r, nodes] >= requests[r]]
        return int(self._cost[k, nodes].min(initial=_NOWHERE))
