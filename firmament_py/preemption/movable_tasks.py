"""Running tasks that may move so that waiting tasks fit: those on the nodes that are cheapest to clear."""

from dataclasses import dataclass

import numpy as np

from firmament_py.eviction.clearing import TOLERANCE, clearing_costs
from firmament_py.model.arrays import F64, I64, Bools, add_rows, distinct_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import (
    EvictionCosts,
    Snapshots,
    examples_of,
    independent_classes,
    movable_singles,
    positions_of,
    run_times,
    victims_of,
)
from firmament_py.policy import COST_MAX
from firmament_py.state.cluster import ClusterState

TOGETHER = 4_000
"""Limit on the tasks of one search that may move."""

_FURTHER_NODES = 24
"""Tasks may move from twice as many nodes as a class has waiting tasks, and from this many more."""

_COSTS = 8
"""Number of costs that the tasks of a class are divided into: the search has candidate nodes for each kind of task."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """M tasks that may move, of D classes: row (M,) of the task table; node (M,), positions in the snapshot; kind (M,);
    cost (M,) of moving each; label_set (M,): rows of the label set table. Of each class: requests (D, R), suitable
    (D, N)."""

    row: I64
    node: I64
    kind: I64
    cost: F64
    label_set: I64
    requests: I64
    suitable: Bools

    def only(self, some: Bools) -> "Candidates":
        """Those of `some` (M,)."""
        rows, node, kind = self.row[some], self.node[some], self.kind[some]
        cost, label_set = self.cost[some], self.label_set[some]
        return Candidates(rows, node, kind, cost, label_set, self.requests, self.suitable)


@dataclass(frozen=True, slots=True)
class MovableTasks:
    """M tasks of D kinds: row (M,) of the task table; node (M,), positions in the snapshot; kind (M,). Of each kind:
    requests (D, R), suitable (D, N), cost (D,) of moving one, label_set (D,): a row of the label set table. The
    disruption budgets that count one of a kind count all."""

    row: I64
    node: I64
    kind: I64
    requests: I64
    suitable: Bools
    cost: F64
    label_set: I64

    def usage(self, nodes: int) -> I64:
        """(N, R) what they use on their nodes."""
        used = np.zeros((nodes, self.requests.shape[1]), np.int64)
        add_rows(used, self.node, self.requests[self.kind])
        return used


class MovableNearby:
    """Finds the tasks that may move. after_us: how long each runs before; limit: how many may move in this round;
    at_once: how many may when none is on its way, None: the same."""

    def __init__(
        self,
        state: ClusterState,
        snapshots: Snapshots,
        eviction_costs: EvictionCosts,
        after_us: int,
        limit: int,
        at_once: int | None = None,
    ) -> None:
        self._state = state
        self._snapshots = snapshots
        self._eviction_costs = eviction_costs
        self._after_us = after_us
        self.limit = limit
        self.at_once = limit if at_once is None else at_once
        self.considered = 0
        """Number of tasks that searches have had so far, those of several counted several times."""

    @property
    def some(self) -> bool:
        """Whether there could be any in this round."""
        return self.limit > 0 and self.later

    @property
    def later(self) -> bool:
        """Whether there could be any, now or when those are that are on their way have arrived."""
        return self.at_once > 0 and bool(_able(self._state).any())

    def of(self, ledger: Ledger, asked: I64, suitable: Bools, count: I64) -> MovableTasks | None:
        """The tasks whose moves may make `count` (W,) waiting tasks with requests (W, R) fit on suitable nodes (W, N);
        None: there are none."""
        found = self.everywhere(ledger)
        if found is None:
            return None
        near = self._near(ledger, (asked, suitable, count), found)
        self.considered += int(near.sum())
        return self._by_kind(found.only(near)) if near.any() else None

    def everywhere(self, ledger: Ledger) -> Candidates | None:
        """All that may move; None: none may."""
        snapshot, state = ledger.snapshot, self._state
        rows = self._rows(ledger)
        if not len(rows):
            return None
        examples, kind = examples_of(state, rows)
        running = self._snapshots(examples, np.zeros(0, np.int64), data=False)
        by_row = np.argsort(running.tasks)
        cls = running.task_class[by_row[np.searchsorted(running.tasks[by_row], examples)]]  # of each example
        independent = independent_classes(running)[cls]
        rows, kind = rows[independent[kind]], kind[independent[kind]]
        node = positions_of(snapshot, state.nodes.capacity)[state.tasks.node[rows]]
        cost, label_set = self._costs(rows, snapshot.now_us), state.tasks.label_set[rows]
        return Candidates(rows, node, kind, cost, label_set, running.requests[cls], running.suitable[cls])

    def _by_kind(self, found: Candidates) -> MovableTasks:
        """Kinds of equal classes and budgets, and similar costs."""
        edges = np.quantile(found.cost, np.linspace(0, 1, _COSTS + 1)[1:-1])
        keys = found.kind, np.searchsorted(edges, found.cost), self._state.allowances().pattern(found.label_set)
        first, kind = distinct_rows(np.column_stack(keys))
        mean = np.bincount(kind, found.cost) / np.bincount(kind)
        like = found.kind[first]
        return MovableTasks(
            found.row, found.node, kind, found.requests[like], found.suitable[like], mean, found.label_set[first]
        )

    def _rows(self, ledger: Ledger) -> I64:
        """Task rows (M,) that may move."""
        tasks, snapshot = self._state.tasks, ledger.snapshot
        rows = np.flatnonzero(_able(self._state))
        since_us = np.maximum(tasks.started_us[rows], tasks.created_us[rows])
        rows = rows[since_us <= snapshot.now_us - self._after_us]
        node = positions_of(snapshot, self._state.nodes.capacity)[tasks.node[rows]]
        rows, node = rows[node >= 0], node[node >= 0]
        full = np.asarray((ledger.unreserved < 0).any(axis=1))  # nodes that cannot take what they have
        return rows[~full[node]]

    def _costs(self, rows: I64, now_us: int) -> F64:
        """(M,) the cost of moving each: 1 for the move, which decides, and a small share of its cost of eviction."""
        victims = victims_of(self._state, self._state.tasks.cls[rows], *run_times(self._state, rows, now_us))
        return 1.0 + TOLERANCE * self._eviction_costs(victims) / COST_MAX

    def _near(self, ledger: Ledger, waiting: tuple[I64, Bools, I64], found: Candidates) -> Bools:
        """(M,) those on the nodes that are cheapest to clear for any of the waiting tasks, TOGETHER at most."""
        asked, suitable, count = waiting
        node, requests = found.node, found.requests[found.kind]
        used = np.zeros_like(ledger.free)
        add_rows(used, node, requests)
        clearing = clearing_costs(asked, suitable, node, requests, found.cost, ledger.unreserved + used)
        least = np.full(len(ledger.free), np.inf)
        for costs, number in zip(clearing, count.tolist(), strict=True):
            some = np.flatnonzero(np.isfinite(costs))
            some = some[np.argsort(costs[some], kind="stable")][: 2 * number + _FURTHER_NODES]
            least[some] = np.minimum(least[some], costs[some])
        by_cost = np.argsort(least, kind="stable")
        number = np.cumsum(np.bincount(node, minlength=len(least))[by_cost])
        chosen = np.zeros(len(least), np.bool_)
        chosen[by_cost[number <= TOGETHER]] = True
        near: Bools = (chosen & np.isfinite(least))[node]
        return near


def _able(state: ClusterState) -> Bools:
    """(T,) tasks that may move now or later. They have an owner, which creates their successors."""
    able: Bools = movable_singles(state) & (state.tasks.job != 0)
    return able
