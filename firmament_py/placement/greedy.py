"""Greedy placing, for what flows have left over: no optimum, but nothing that fits stays unplaced."""

import numpy as np

from firmament_py.model.arrays import I64, run_positions
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.subproblem import Subproblem
from firmament_py.policy import Costs
from firmament_py.policy.locality import DataCosts, of_groups
from firmament_py.snapshot.domain_limits import UNLIMITED
from firmament_py.snapshot.solo_capacity import task_slots

BIDDING_ROUNDS = 8
"""How often the tasks of a class bid for the nodes that hold their data."""


def fill(ledger: Ledger, subproblem: Subproblem, costs: Costs) -> None:
    """Places what fits class by class, each on the nodes that cost it least, after tasks with data have bid for the
    nodes that hold it."""
    nodes = len(ledger.free)
    first_slot = np.broadcast_to(costs.slot[:, 0], (nodes,))
    for i in np.unique(subproblem.view.task_class).tolist():
        c = int(subproblem.classes[i])
        positions = np.flatnonzero(subproblem.view.task_class == i)
        if costs.data is not None:
            positions = _bid(ledger, subproblem, costs.data, i, positions)
        tasks = subproblem.tasks[positions]
        cost = np.broadcast_to(costs.place, subproblem.suitable.shape)[i] + first_slot
        order = np.lexsort((np.arange(nodes), cost))
        while len(tasks):
            slots = _slots(ledger, subproblem, i, len(tasks))
            if ledger.snapshot.intertask.concerned[c]:
                slots = np.where(ledger.snapshot.intertask.allowed(c), slots, 0)  # whichever of these are taken
            count = np.diff(np.minimum(np.cumsum(slots[order]), len(tasks)), prepend=0)
            count = ledger.commit_counts(np.full(len(order), c), order, count)
            placed = int(count.sum())
            if not placed:
                break
            ledger.assign(tasks[:placed], np.full(placed, c), np.repeat(order, count), PlacedBy.GREEDY)
            ledger.free[order] -= count[:, None] * ledger.snapshot.requests[c]
            tasks = tasks[placed:]


def _slots(ledger: Ledger, subproblem: Subproblem, i: int, tasks: int) -> I64:
    """(N,) how many of `tasks` tasks of class i of the subproblem each node could take now."""
    c = int(subproblem.classes[i])
    intertask, request, suitable = ledger.snapshot.intertask, ledger.snapshot.requests[[c]], subproblem.suitable[[i]]
    at_most = UNLIMITED if intertask.concerned[c] and intertask.may_be_first(c) else tasks
    slots: I64 = task_slots(ledger.free, request, suitable, np.array([at_most]))[0]
    if intertask.concerned[c]:
        slots, _ = intertask.limit(c, slots, tasks)
    return slots


def _bid(ledger: Ledger, subproblem: Subproblem, data: DataCosts, i: int, positions: I64) -> I64:
    """Places tasks of class i of the subproblem (positions in its tasks) where their data is: each bids for the best
    of its nodes with capacity, and those that save most get it. Returns the positions of those that are left."""
    c = int(subproblem.classes[i])
    bids = _Bids(data, data.of_task[positions])
    for _ in range(BIDDING_ROUNDS):
        slots = _slots(ledger, subproblem, i, len(positions))
        bidders, nodes = bids.best(slots)
        if not len(nodes):
            break
        where, demand = np.unique(nodes, return_counts=True)
        count = ledger.commit_counts(np.full(len(where), c), where, np.minimum(demand, slots[where]))
        won = np.flatnonzero(run_positions(demand) < np.repeat(count, demand))
        if not len(won):
            break
        tasks = subproblem.tasks[positions[bidders[won]]]
        ledger.assign(tasks, np.full(len(won), c), nodes[won], PlacedBy.GREEDY)
        ledger.free[where] -= count[:, None] * ledger.snapshot.requests[c]
        bids.close(bidders[won])
    placed = ledger.node_of[subproblem.tasks[positions]] >= 0
    return positions[~placed]


class _Bids:
    """Tasks (K,) of one class, which read sets `of_task` (K,), -1 for none, bid for the nodes their arcs lead to."""

    def __init__(self, data: DataCosts, of_task: I64) -> None:
        arc, self._bidder = of_groups(of_task, data.near_set, len(data.anywhere))
        self._node = data.near_node[arc]
        self._saving = (data.anywhere[data.near_set] - data.near_cost)[arc]
        self._open = np.ones(len(arc), np.bool_)

    def best(self, slots: I64) -> tuple[I64, I64]:
        """Each task's best bid for a node with slots (N,): bidders (K',) and nodes (K',), node by node, and on each
        those first that save most, then the oldest."""
        bids = np.flatnonzero(self._open & (slots[self._node] > 0))
        bids = bids[np.lexsort((-self._saving[bids], self._bidder[bids]))]
        bids = bids[np.diff(self._bidder[bids], prepend=-1) != 0]
        bids = bids[np.lexsort((self._bidder[bids], -self._saving[bids], self._node[bids]))]
        return self._bidder[bids], self._node[bids]

    def close(self, bidders: I64) -> None:
        """Ends the bids of tasks (K,) that have been placed."""
        self._open &= ~np.isin(self._bidder, bidders)
