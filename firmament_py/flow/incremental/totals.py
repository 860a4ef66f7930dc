"""Compiled passes over a whole Graph: its cost, violations of its potentials, imbalances."""

import numpy as np

from firmament_py.flow.incremental.layout import HEAD, HEAD_BITS, Graph, show
from firmament_py.flow.incremental.numba_intrinsics import borrowed
from firmament_py.model.arrays import I64, Bools
from firmament_py.numba_cache import compiled

_SPLIT = 20
_LARGE = 2**21
"""The sum of flows up to this value times half a cost, over all fixed arcs, is below 2**63."""


@compiled
def _cost(g: Graph) -> tuple[int, int, int]:
    """Cost of tasks; and of fixed arcs without large flows, in two parts, as flow times cost may need over 64 bits."""
    g = borrowed(g)
    tasks = high = low = 0
    for word in g.now:
        tasks += word >> HEAD_BITS
    for a in range(len(g.flow)):
        if g.flow[a] <= _LARGE:
            high += g.flow[a] * (g.cost[a] >> _SPLIT)
            low += g.flow[a] * (g.cost[a] & ((1 << _SPLIT) - 1))
    return tasks, high, low


def cost(g: Graph) -> int:
    """The cost of the flow."""
    tasks, high, low = _cost(g)
    large = np.flatnonzero(g.flow > _LARGE)  # larger than all tasks: only if costs are negative
    remainder: int = sum(flow * unit for flow, unit in zip(g.flow[large].tolist(), g.cost[large].tolist(), strict=True))
    return int(tasks) + (int(high) << _SPLIT) + int(low) + remainder


@compiled
def unrouted(g: Graph, live: Bools) -> I64:
    """(K,) the unrouted tasks."""
    g = borrowed(g)
    count = 0
    for t in range(len(live)):
        count += live[t] and g.chosen[t] < 0
    found = np.empty(count, np.int64)
    count = 0
    for t in range(len(live)):
        if live[t] and g.chosen[t] < 0:
            found[count] = t
            count += 1
    return found


@compiled
def obey_potentials(g: Graph) -> I64:
    """Saturates fixed arcs of negative reduced cost and empties those of positive reduced cost.

    Returns (V,) inflow minus outflow of each vertex afterwards.
    """
    g = borrowed(g)
    vertices = len(g.deficit)
    balance = np.zeros(vertices, np.int64)
    for a in range(len(g.flow)):
        u, v = g.tail[a], g.head[a]
        reduced = g.cost[a] + g.potential[v] - g.potential[u]
        flow = 0 if reduced > 0 else g.capacity[a] if reduced < 0 else min(g.flow[a], g.capacity[a])
        if flow != g.flow[a]:
            g.flow[a] = flow
            show(g, a)
        balance[u] -= flow
        balance[v] += flow
    for word in g.now:
        if word & HEAD < vertices:
            balance[word & HEAD] += 1
    return balance
