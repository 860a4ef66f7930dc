"""cpu-memory: cpu and memory evenly used across nodes, and balanced on each node.

    slot[n, k] = 1000 x max over cpu, memory of (load + k x m) / allocatable
    place[c, n] = 10,000 x (v(n, c) - least v of c)     v: what a task of c adds to (cpu share - memory share)^2 of n
    wait[t] = waiting_cost + 0 .. 9999 by size
    node_limit[n] = number of tasks of the first portion that n takes if all nodes are filled to one level

`load` is View.load: requested, or measured. The slot cost levels nodes like water: the next task goes to the node on
which the fuller of the two resources is least used. The place cost sends tasks that are heavy in one resource to nodes
that are light in it (Poseidon's cpu-memory cost model adds the two in the same way: kube-scheduler's LeastAllocated and
BalancedAllocation). Both are exact for the next task and approximate for further ones. So tasks are placed in portions,
large tasks first, as small ones fit into gaps: the first portion requests 35 % of all that waiting tasks request, m is
its mean request, and costs are computed again for the other tasks. (If all tasks together request more cpu or memory
than is free, large tasks would displace several small ones each: then one portion holds all tasks.)
Example: of two nodes of 4 cpu and 8 Gi, one has 1 cpu and 4 Gi in use, the other nothing: slots start at 500 and at
0. A task of 0 cpu and 2 Gi adds (1/2)^2 - (1/4)^2 = 3/16 to the first and (1/4)^2 = 1/16 to the second, where it costs
1250 less.

A running task that may be moved is, if that saves more than `move-cost`, and more the more work it loses: by default if
the other node is less used by three tenths.
"""

import numpy as np

from firmament_py.policy import (
    COST_MAX,
    F64,
    I64,
    MOVING_MAX,
    NODE_LIMIT_MAX,
    Costs,
    Victims,
    View,
    moving_cost,
    waiting_cost,
)

_RESOURCES = ("cpu", "memory")
_LEVEL = 1000
_IMBALANCE = 10_000
_AT_ONCE = 0.35
_SIZE = 9999
_BISECTIONS = 20


class CpuMemory:
    """Cpu and memory evenly used across nodes, and balanced on each node."""

    name = "cpu-memory"
    spreads_tasks = True

    def __init__(self, move_cost: int = 300) -> None:
        if not 1 <= move_cost <= MOVING_MAX:
            raise ValueError(f"option move-cost is {move_cost}; give 1 .. {MOVING_MAX}")
        self._move_cost = move_cost

    def costs(self, view: View) -> Costs:
        columns = [view.resources.index(name) for name in _RESOURCES if name in view.resources]
        allocatable = view.allocatable[:, columns].astype(np.float64)
        load = np.maximum(view.load[:, columns], 0).astype(np.float64)
        open_to_some = view.depth[:, None] > 0
        requests = view.requests[:, columns].astype(np.float64)
        count = np.bincount(view.task_class, minlength=len(requests))
        # sorted, because the last bits of a sum depend on the order of nodes, and costs must not depend on it
        free = np.where(open_to_some, np.maximum(view.free[:, columns], 0), 0).astype(np.float64)
        in_portions = bool((count @ requests <= np.sort(free, axis=0).sum(axis=0)).all())
        size = _share(requests, allocatable.max(axis=0, initial=0.0)[None, :]).max(axis=1, initial=0.0)
        first = _first(count, size, view.priority) if in_portions else count.astype(np.float64)
        mean = first @ requests / max(first.sum(), 1.0)
        slot = np.zeros((len(allocatable), len(view.slot_offsets)))
        for r in range(len(columns)):
            after = load[:, r, None] + mean[r] * view.slot_offsets
            slot = np.maximum(slot, _share(after, allocatable[:, r, None]))
        bonus = np.rint(_SIZE * in_portions * size / max(size.max(initial=0.0), 1e-12)).astype(np.int64)
        return Costs(
            place=_imbalance(load, requests, allocatable) if len(columns) == 2 else np.zeros((1, 1), np.int64),
            slot=np.rint(_LEVEL * slot).astype(np.int64),
            wait=waiting_cost(view) + bonus[view.task_class],
            node_limit=_node_limit(load, allocatable * open_to_some, mean, first.sum()) if in_portions else None,
        )

    def moving_costs(self, victims: Victims) -> I64:
        return moving_cost(victims, self._move_cost)


def _imbalance(load: F64, requests: F64, allocatable: F64) -> I64:
    """(C, N) what a task of each class adds to the squared difference of shares, minus the least of the class."""
    now = np.diff(_share(load, allocatable), axis=1)[:, 0]
    task = _share(requests[:, 1, None], allocatable[:, 1]) - _share(requests[:, 0, None], allocatable[:, 0])
    added = task * (2.0 * now + task)  # (now + task)^2 - now^2
    added -= added.min(axis=1, keepdims=True, initial=4.0)
    cost: I64 = np.minimum(np.rint(_IMBALANCE * added), COST_MAX).astype(np.int64)
    return cost


def _first(count: I64, size: F64, priority: I64) -> F64:
    """(C,) number of waiting tasks of each class in the first portion, which is _AT_ONCE of all that they request."""
    order = np.lexsort((-size, -priority))
    volume = np.cumsum((count * size)[order])
    before = np.concatenate([[0.0], volume[:-1]])
    left = np.maximum(_AT_ONCE * volume[-1:] - before, 0.0)
    first = np.zeros(len(count))
    first[order] = np.minimum(count[order], np.ceil(left / np.maximum(size[order], 1e-12)))
    return first


def _node_limit(load: F64, allocatable: F64, mean: F64, tasks: float) -> I64:
    """(N,) number of tasks on each node if `tasks` tasks of the mean request fill all nodes to one level."""
    matters = mean > 0
    if not matters.any():
        return np.full(len(allocatable), NODE_LIMIT_MAX)

    def taken(level: float) -> F64:
        tasks_to_level: F64 = np.maximum((level * allocatable - load)[:, matters] / mean[matters], 0.0).min(axis=1)
        return tasks_to_level

    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.sort(taken(middle)).sum() < tasks else (low, middle)
    return np.clip(np.ceil(taken(high)), 0, NODE_LIMIT_MAX).astype(np.int64)


def _share(amount: F64, allocatable: F64) -> F64:
    """amount / allocatable within 0 .. 1; 0 where nothing is allocatable."""
    share = np.divide(
        amount, allocatable, out=np.zeros(np.broadcast_shapes(amount.shape, allocatable.shape)), where=allocatable > 0
    )
    return np.clip(share, 0.0, 1.0)
