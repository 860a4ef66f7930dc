"""Compiled computation of the potentials of an optimal flow by label correction."""

import numpy as np

from firmament_py.flow.incremental.layout import (
    HEAD,
    HEAD_BITS,
    INTO,
    INTO_END,
    OUT,
    OUT_END,
    SIZE_IN,
    START,
    TASK,
    TASK_BITS,
    Graph,
)
from firmament_py.flow.incremental.numba_intrinsics import borrowed
from firmament_py.model.arrays import I32
from firmament_py.numba_cache import compiled, inner


@compiled
def find_potentials(g: Graph, sink: int, far: int) -> bool:
    """Finds potentials for an optimal flow: the cost of the cheapest residual path to the sink; without one, about far.

    Label correction (Bellman, Ford, Moore) from the sink along residual arcs, and then from all vertices without a
    path, which need valid potentials too. False if there is a negative cycle, so that the flow is not optimal.
    """
    g = borrowed(g)
    vertices = len(g.deficit)
    p = g.potential
    g.fallen[0] = 0  # newly routed tasks have no bounds
    p[:] = far
    p[sink] = 0
    queue = np.full(vertices, sink, np.int32)
    rounds = np.zeros(vertices, np.int32)
    if not _correct_labels(g, sink, queue, 1, rounds):
        return False
    waiting = 0
    for v in range(vertices):
        if p[v] == far:
            queue[waiting] = v
            waiting += 1
    return _correct_labels(g, sink, queue, waiting, rounds)


@inner
def _correct_labels(g: Graph, sink: int, queue: I32, waiting: int, rounds: I32) -> bool:
    """Corrects potentials against the residual arcs, starting with the first `waiting` vertices of the queue (V,).
    False if a vertex is processed (rounds (V,)) more often than is possible without a negative cycle."""
    vertices, p = len(queue), g.potential
    queued = np.zeros(vertices, np.uint8)
    for i in range(waiting):
        queued[queue[i]] = 1
    first = 0
    while waiting > 0:
        v = queue[first]
        first = first + 1 if first + 1 < vertices else 0
        waiting -= 1
        queued[v] = 0
        rounds[v] += 1
        if rounds[v] > vertices + 1:
            return False
        for kind in range(3):
            if kind == 0:
                start, end = g.vertex[v, INTO], g.vertex[v, INTO_END]
            elif kind == 1:
                start, end = g.vertex[v, OUT], g.vertex[v, OUT_END]
            else:
                start, end = g.vertex[v, START], g.vertex[v, START] + g.vertex[v, SIZE_IN]
            for i in range(start, end):
                if kind == 0:
                    a = g.into_arc[i]
                    if g.flow[a] >= g.capacity[a]:
                        continue
                    u = g.tail[a]
                    cost = p[v] + g.cost[a]
                elif kind == 1:
                    a = i
                    if g.flow[a] <= 0:
                        continue
                    u = g.head[a]
                    cost = p[v] - g.cost[a]
                else:
                    word = g.in_word[i]
                    now = g.now[word & TASK]
                    u = now & HEAD
                    if u >= vertices:
                        continue
                    cost = p[v] + (word >> TASK_BITS) - (now >> HEAD_BITS)
                if cost < p[u]:
                    if u == sink:
                        return False
                    p[u] = cost
                    if queued[u] == 0:
                        queued[u] = 1
                        at = first + waiting
                        queue[at if at < vertices else at - vertices] = u
                        waiting += 1
    return True
