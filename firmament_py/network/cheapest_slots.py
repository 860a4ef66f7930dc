"""A few tasks of one class on the slots that cost least: the optimal flow of a network that need not be built.

Tasks of one class are interchangeable, and the slots of a node do not get cheaper, so the slots of least cost are an
optimum. Limits of domains that nodes share could need others, unless there is only one task.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.network.capacities import Capacities, built_in
from firmament_py.network.decode import NodeCounts
from firmament_py.network.slot_runs import widths
from firmament_py.policy import Costs

FEW = 64
"""More tasks take a network: it bounds the slots that are sorted, to its square."""

_NOWHERE = 2**61


@dataclass(frozen=True, slots=True)
class Selection:
    """Where tasks go, how many do, and the cost of the flow."""

    sent: NodeCounts
    placed: int
    cost: int


def cheapest_slots(capacities: Capacities, costs: Costs, offsets: I64, c: int) -> Selection | None:
    """Where the tasks of class c go, of which there are as many as costs.wait (T,) has; slots begin at offsets (K,).
    None: it takes a network. The costs must be without those of data."""
    tasks, limits = len(costs.wait), built_in(capacities.limits.get(c, ()))
    if tasks > FEW or (tasks > 1 and limits):
        return None
    first = np.where(capacities.slots[c] > 0, costs.place[c % len(costs.place)] + costs.slot[:, 0], _NOWHERE)
    for limit in limits:
        extra = np.where(limit.soft_limit > 0, 0, np.where(limit.maximum > 0, limit.soft_limit_cost, _NOWHERE))
        first = np.minimum(first + np.append(extra, 0)[limit.domain], _NOWHERE)
    if tasks == 1:
        return _of_one(first, int(costs.wait[0]), c)
    node, cost = _of_several(capacities, costs, offsets, c, first)
    longest_first = -np.sort(-costs.wait)
    placed = int(np.count_nonzero(cost <= longest_first[: len(cost)]))  # those before one that is too dear
    used, count = np.unique(node[:placed], return_counts=True)
    total = int(cost[:placed].sum()) + int(longest_first[placed:].sum())
    return Selection(NodeCounts(np.full(len(used), c), used, count), placed, total)


def _of_one(first: I64, wait: int, c: int) -> Selection:
    """The same for one task, which costs `first` (N,) on each node, and `wait` if it waits."""
    best = int(first.argmin())
    cost = int(first[best])
    node = np.array([best] if cost <= wait else [], np.int64)
    sent = NodeCounts(np.full_like(node, c), node, np.ones_like(node))
    return Selection(sent, len(node), min(cost, wait))


def _of_several(capacities: Capacities, costs: Costs, offsets: I64, c: int, first: I64) -> tuple[I64, I64]:
    """Node and cost (K,) of the slots of least cost, ascending; the first of each node costs `first` (N,). At a tie
    several nodes are used, with costs.fill as few as possible."""
    tasks = len(costs.wait)
    near = _least(first, tasks)
    runs = int(np.searchsorted(offsets, tasks))
    depth = np.minimum(np.minimum(capacities.slots[c, near], capacities.depth[near]), tasks)
    width = widths(offsets, depth)[:, :runs]
    slot = np.broadcast_to(costs.slot, (len(first), len(offsets)))[near, :runs]
    cost = first[near, None] + slot - slot[:, :1]
    node = np.broadcast_to(near[:, None], cost.shape)
    if not costs.fill:
        node, cost, width = node.T, cost.T, width.T
    order = np.argsort(cost, axis=None, kind="stable")
    order = np.repeat(order, width.ravel()[order])[:tasks]
    return node.ravel()[order], cost.ravel()[order]


def _least(cost: I64, tasks: int) -> I64:
    """The nodes of least cost (N,), at most one for each task, ascending."""
    if len(cost) <= tasks:
        return np.flatnonzero(cost < _NOWHERE)
    highest = np.partition(cost, tasks - 1)[tasks - 1]
    less = np.flatnonzero(cost < highest)
    if highest >= _NOWHERE:
        return less
    return np.union1d(less, np.flatnonzero(cost == highest)[: tasks - len(less)])
