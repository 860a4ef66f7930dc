"""A problem of eviction, and its solution: tasks to insert, residents that may leave, tasks that may move."""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, run_positions


@dataclass(frozen=True, slots=True)
class Arrivals:
    """W classes of tasks to insert: requests (W, R), count (W,), priority (W,), suitable (W, N), evicts (W,): whether
    residents are evicted for them. home (sum of count,): of the tasks of each class in turn, the node that each prefers
    if it costs no more than others, -1: no node."""

    requests: I64
    count: I64
    priority: I64
    suitable: Bools
    evicts: Bools
    home: I64


@dataclass(frozen=True, slots=True)
class Movers:
    """M running tasks of D kinds that may move. kind (M,); home (M,): their nodes, which can take them all. Of each
    kind: requests (D, R); suitable (D, N); cost (D,) > 0 of moving one; budgets (D, B): which budgets a move counts
    against."""

    kind: I64
    home: I64
    requests: I64
    suitable: Bools
    cost: F64
    budgets: Bools


@dataclass(frozen=True, slots=True)
class Residents:
    """K groups of alike tasks on nodes, E kinds, B budgets.

    node (K,), ascending; kind (K,); count (K,) > 0. Of each kind: requests (E, R); priority (E,): only tasks of higher
    priority evict it; rank (E,): residents of higher rank are spared first, whatever the number; value (E,) >= 0 of
    sparing one, within its rank; budgets (E, B): which budgets an eviction counts against.
    """

    node: I64
    kind: I64
    count: I64
    requests: I64
    priority: I64
    rank: I64
    value: I64
    budgets: Bools

    def groups_on(self, nodes: I64) -> I64:
        """(L,) the groups on nodes (N,), in the order of these."""
        first = np.searchsorted(self.node, nodes)
        counts = np.searchsorted(self.node, nodes, side="right") - first
        return np.repeat(first, counts) + run_positions(counts)

    def on(self, nodes: I64) -> "Residents":
        """Those on nodes (N,), ascending, which become 0 .. N - 1."""
        groups = self.groups_on(nodes)
        node = np.searchsorted(nodes, self.node[groups])
        return replace(self, node=node, kind=self.kind[groups], count=self.count[groups])


@dataclass(frozen=True, slots=True)
class Problem:
    """Arrivals and residents on N nodes. free (N, R): may be below 0. allowed (B,): how many evictions each budget
    permits. exceedable (E,): kinds of residents that may be evicted beyond their budgets."""

    arrivals: Arrivals
    residents: Residents
    free: I64
    allowed: I64
    exceedable: Bools

    def on(self, nodes: I64) -> "Subproblem":
        """On some nodes, ascending."""
        position = np.full(len(self.free) + 1, -1, np.int64)  # the last is that of no home
        position[nodes] = np.arange(len(nodes))
        home = position[self.arrivals.home]
        home_count = np.zeros((len(self.arrivals.count), len(nodes)), np.int64)
        cls = np.repeat(np.arange(len(home_count)), self.arrivals.count)
        np.add.at(home_count, (cls[home >= 0], home[home >= 0]), 1)
        some = replace(self.arrivals, suitable=self.arrivals.suitable[:, nodes])
        of = some, home_count, self.residents.on(nodes), self.free[nodes], self.allowed, self.exceedable
        return Subproblem(*of)


@dataclass(frozen=True, slots=True)
class Subproblem:
    """A problem on a few of its nodes, N. home_count (W, N): how many arrivals of each class have their home there."""

    arrivals: Arrivals
    home_count: I64
    residents: Residents
    free: I64
    allowed: I64
    exceedable: Bools

    def on(self, nodes: I64, count: I64, allowed: I64) -> "Subproblem":
        """On some of these nodes, ascending, with so many arrivals (W,) and evictions (B,)."""
        return replace(
            self,
            arrivals=replace(self.arrivals, suitable=self.arrivals.suitable[:, nodes], count=count),
            home_count=np.minimum(self.home_count[:, nodes], count[:, None]),
            residents=self.residents.on(nodes),
            free=self.free[nodes],
            allowed=allowed,
        )


@dataclass(frozen=True, slots=True)
class Eviction:
    """evicted (K,): how many of each group of residents; violating (K,): how many of these no budget permits. placed:
    triples (P, 3) of class, node, count. node_of_mover (M,). least_moves: a lower bound on the moves by which the
    placed arrivals fit; 0 if tasks are evicted, too."""

    evicted: I64
    violating: I64
    placed: I64
    node_of_mover: I64
    least_moves: int
