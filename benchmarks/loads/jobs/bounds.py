"""Proven bounds for jobs of equal tasks: how many of them can be served, and what it costs to remove running tasks.

Each node is considered alone, by the first resource (cpu or GPUs): to take k tasks of the jobs, it loses the cheapest
of its running tasks that free enough. These costs, made convex, and the number of tasks to serve are a transportation
problem, whose optimum is the sum of the smallest slopes. Where costs are convex and no other resource binds, the bound
is exact for victims. Nothing here comes from the engine.
"""

from __future__ import annotations

from math import gcd, lcm

import numpy as np

from benchmarks.loads.jobs.load import JobsLoad
from firmament_py.model.arrays import I64, Bools

IMPOSSIBLE = 2**60
"""Stands for the cost if all removable tasks are too few; other costs of a node must be below."""


def cheapest_removals(load: JobsLoad, removable: Bools, cost: I64) -> I64:
    """(N, K + 1) the least cost of running tasks that a node loses to take 0 .. K tasks of the jobs. Of running tasks:
    removable (P,), cost (P,) > 0."""
    member, allocatable = int(load.member[0]), load.allocatable[:, 0]
    tasks = np.arange(allocatable.max() // member + 1)
    missing = load.used[:, 0, None] + tasks * member - allocatable[:, None]  # (N, K + 1)
    unit = gcd(*load.requests[:, 0].tolist(), *missing.reshape(-1).tolist())
    missing = np.maximum(missing // unit, 0)
    cheapest = _knapsacks(load, removable, cost, unit, int(missing.max()))
    return np.take_along_axis(cheapest, missing, axis=1)


def _knapsacks(load: JobsLoad, removable: Bools, cost: I64, unit: int, largest: int) -> I64:
    """(N, L + 1) the least cost to free at least 0 .. L units of the first resource, by dynamic programming over the
    first removable task of every node, then the second, ..."""
    node, units = load.node[removable], load.requests[load.cls[removable], 0] // unit
    cost, order = cost[removable], np.argsort(node, kind="stable")
    rank = np.empty(len(node), np.int64)
    rank[order] = np.arange(len(node)) - np.searchsorted(node[order], node[order])
    cheapest = np.full((len(load.allocatable), largest + 1), IMPOSSIBLE, np.int64)
    cheapest[:, 0] = 0
    for number in range(int(rank.max(initial=-1)) + 1):
        for size in np.unique(units[rank == number]).tolist():
            some = np.flatnonzero((rank == number) & (units == size))
            before = cheapest[node[some]]
            without = np.maximum(np.arange(largest + 1) - size, 0)  # what the others have to free
            cheapest[node[some]] = np.minimum(before, before[:, without] + cost[some, None])
    return np.minimum(cheapest, IMPOSSIBLE)


def servable_jobs(load: JobsLoad, costs: I64, *, moves: bool) -> int:
    """An upper bound on the number of jobs that can be served. moves: running tasks that leave a node use others."""
    tasks = int((np.where(costs < IMPOSSIBLE, np.arange(costs.shape[1]), 0)).max(axis=1).sum())
    if moves:
        asked = load.member > 0
        free = (load.allocatable - load.used).sum(axis=0)
        tasks = min(tasks, int((free[asked] // load.member[asked]).min()))
    return min(load.spec.jobs, tasks // load.spec.size)


def least_cost(costs: I64, served: int) -> int:
    """The least cost (N, K + 1) at which nodes take `served` tasks together, rounded up. Raises ValueError if they
    cannot."""
    scale = lcm(*range(1, costs.shape[1]))
    slopes: list[tuple[int, int]] = []  # scaled cost of one task, number of tasks
    kinds, alike = np.unique(costs, axis=0, return_counts=True)
    for of_node, nodes in zip(kinds.tolist(), alike.tolist(), strict=True):
        slopes += [(cost, tasks * nodes) for cost, tasks in _slopes(of_node, scale)]
    total = 0
    for cost, tasks in sorted(slopes):
        total += cost * min(tasks, served)
        served -= min(tasks, served)
    if served:
        raise ValueError(f"{served} tasks of the jobs cannot be served")
    return -(-total // scale)


def _slopes(costs: list[int], scale: int) -> list[tuple[int, int]]:
    """(slope times scale, length) of the pieces of the lower convex envelope of costs of 0 .. K."""
    found, at = [], 0
    while at + 1 < len(costs) and costs[at + 1] < IMPOSSIBLE:
        ahead = [(scale * (cost - costs[at]) // k, -k) for k, cost in enumerate(costs[at + 1 :], 1)]
        slope, length = min(ahead)
        found.append((slope, -length))
        at -= length
    return found


def eviction_costs(run_s: I64) -> I64:
    """(P,) the usual cost of evicting tasks that have run for so many seconds, as the documentation has it: 10,000, and
    250 for each quarter of a doubling of a minute and the run time."""
    quarters: I64 = np.floor(4 * np.log2(1 + run_s / 60)).astype(np.int64)
    return 10_000 + 250 * quarters
