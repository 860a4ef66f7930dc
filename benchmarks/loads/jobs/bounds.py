"""Proven bounds for jobs of equal tasks: how many of them can be served, and how many tasks must leave their nodes.

Each node is considered alone: to take k tasks of the jobs, it must lose at least f(k) of its running tasks, and no
fewer seconds of run time than its f(k) youngest have. These costs, made convex, and the number of tasks to serve are a
transportation problem, whose optimum is the sum of the smallest slopes. Where f is convex and one resource binds, the
number of victims is exact; where tasks are equal, so is the run time. Nothing here comes from the engine.
"""

from __future__ import annotations

from math import lcm

import numpy as np

from benchmarks.loads.jobs.load import JobsLoad
from firmament_py.model.arrays import I64, Bools

IMPOSSIBLE = 2**31
"""Stands for removals that do not suffice."""


def fewest_removals(load: JobsLoad, removable: Bools) -> I64:
    """(N, K + 1) how many of the running tasks that are removable (P,) each node must lose to take 0 .. K tasks of the
    jobs: at least, by each resource alone. IMPOSSIBLE: all of them are too few."""
    used, member = load.used, load.member
    asked = member > 0
    largest = int((load.allocatable[:, asked] // member[asked]).min(axis=1).max())
    tasks = np.arange(largest + 1)
    fewest = np.zeros((len(used), largest + 1), np.int64)
    for r in np.flatnonzero(asked).tolist():
        freed = _freed(load, removable, r)  # (N, M + 1), ascending along a row
        missing = used[:, r, None] + tasks * member[r] - load.allocatable[:, r, None]  # (N, K + 1)
        count = (freed[:, None, :] < missing[:, :, None]).sum(axis=2)
        fewest = np.maximum(fewest, np.where(count < freed.shape[1], count, IMPOSSIBLE))
    return fewest


def _freed(load: JobsLoad, removable: Bools, resource: int) -> I64:
    """(N, M + 1) how much of a resource the 0 .. M largest removable tasks of each node use."""
    node, request = load.node[removable], load.requests[load.cls[removable], resource]
    return _cumulative(node, request, np.lexsort((-request, node)), len(load.allocatable))


def _cumulative(node: I64, amount: I64, order: I64, nodes: int) -> I64:
    """(N, M + 1) sums of the first 0 .. M amounts (P,) of each node, in an order (P,) by node."""
    node, amount = node[order], amount[order]
    rank = np.arange(len(node)) - np.searchsorted(node, node)
    sums = np.zeros((nodes, int(rank.max(initial=-1)) + 2), np.int64)
    sums[node, rank + 1] = amount
    return np.cumsum(sums, axis=1)


def least_lost_s(load: JobsLoad, removable: Bools, fewest: I64) -> I64:
    """(N, K + 1) the run time in seconds that a node loses at least with so many (N, K + 1) of the running tasks that
    are removable (P,)."""
    node, run_s = load.node[removable], load.run_s[removable]
    lost = _cumulative(node, run_s, np.lexsort((run_s, node)), len(load.allocatable))
    return np.take_along_axis(lost, np.minimum(fewest, lost.shape[1] - 1), axis=1)


def servable_jobs(load: JobsLoad, fewest: I64, *, moves: bool) -> int:
    """At most so many jobs can be served if each node loses what it must. moves: what leaves a node stays in the
    cluster."""
    tasks = int((np.where(fewest < IMPOSSIBLE, np.arange(fewest.shape[1]), 0)).max(axis=1).sum())
    if moves:
        asked = load.member > 0
        free = (load.allocatable - load.used).sum(axis=0)
        tasks = min(tasks, int((free[asked] // load.member[asked]).min()))
    return min(load.spec.jobs, tasks // load.spec.size)


def removals_bound(fewest: I64, lost_s: I64, served: int) -> tuple[int, int]:
    """At least so many tasks leave their nodes for `served` tasks of the jobs, and if no others do, they lose at least
    so many seconds. Raises ValueError if no removals suffice."""
    scale, weight = lcm(*range(1, fewest.shape[1])), int(lost_s.max(axis=1).sum()) + 1
    count = _least(np.unique(fewest, axis=0, return_counts=True), served, scale)
    possible = fewest < IMPOSSIBLE
    impossible = (int(fewest[possible].max()) + 2) * weight
    costs = np.where(possible, np.where(possible, fewest, 0) * weight + lost_s, impossible)
    both = _least((costs, np.ones(len(costs), np.int64)), served, scale, impossible)
    return count, max(both - count * weight, 0)


def _least(costs: tuple[I64, I64], served: int, scale: int, impossible: int = IMPOSSIBLE) -> int:
    """The least cost of `served` tasks, rounded up. costs: (K + 1) of nodes (N, K + 1), and how many are alike (N,)."""
    slopes: list[tuple[int, int]] = []  # scaled cost of one task, number of tasks
    for of_node, alike in zip(*(column.tolist() for column in costs), strict=True):
        slopes += [(cost, tasks * alike) for cost, tasks in _slopes(of_node, scale, impossible)]
    total = 0
    for cost, tasks in sorted(slopes):
        total += cost * min(tasks, served)
        served -= min(tasks, served)
    if served:
        raise ValueError(f"{served} tasks of the jobs cannot be served")
    return -(-total // scale)


def _slopes(costs: list[int], scale: int, impossible: int) -> list[tuple[int, int]]:
    """(slope times scale, length) of the pieces of the lower convex envelope of costs of 0 .. K."""
    found, at = [], 0
    while at + 1 < len(costs) and costs[at + 1] < impossible:
        ahead = [(scale * (cost - costs[at]) // k, -k) for k, cost in enumerate(costs[at + 1 :], 1)]
        slope, length = min(ahead)
        found.append((slope, -length))
        at -= length
    return found
