"""Compiled bookkeeping of a Graph: which tasks flow to a vertex, which arcs come into it."""

import numpy as np
from numba import njit

from firmament_py.arrays import I64
from firmament_py.incremental.graph import (
    HEAD,
    HEAD_BITS,
    INTO,
    INTO_END,
    OUT,
    OUT_END,
    TASK,
    TASK_BITS,
    Graph,
    move_task,
)


@njit(cache=True)
def route(g: Graph, tasks: I64, arcs: I64) -> None:
    """Lets tasks (K,) flow through arcs (K,), -1: not at all."""
    for i in range(len(tasks)):
        move_task(g, tasks[i], arcs[i])


@njit(cache=True)
def enter(g: Graph, v: int, arc: int, degree: int) -> None:
    """Adds an arc to those into v, which has room for it."""
    i = g.in_start[v] + g.in_size[v]
    g.in_arc[i] = arc
    g.in_word[i] = (g.arc[arc] >> HEAD_BITS) << TASK_BITS | arc // degree
    g.in_place[arc] = g.in_size[v]
    g.in_size[v] += 1


@njit(cache=True)
def index_arcs(g: Graph, degree: int, slack: int) -> None:
    """Builds the arcs by head anew; every vertex gets room for `slack` and a quarter more arcs."""
    vertices = len(g.deficit)
    g.in_size[:] = 0
    for word in g.arc:
        if word & HEAD < vertices:
            g.in_size[word & HEAD] += 1
    g.in_start[0] = 0
    for v in range(vertices):
        g.in_start[v + 1] = g.in_start[v] + g.in_size[v] + g.in_size[v] // 4 + slack
    g.in_size[:] = 0
    for a in range(len(g.arc)):
        v = g.arc[a] & HEAD
        if v < vertices:
            enter(g, v, a, degree)


@njit(cache=True)
def enter_arcs(g: Graph, tasks: I64, degree: int) -> bool:
    """Adds the arcs of tasks (K,) to the index; False if a vertex has no room for them: index_arcs is due."""
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = g.arc[a] & HEAD
            if v < len(g.deficit):
                if g.in_start[v] + g.in_size[v] == g.in_start[v + 1]:
                    return False
                enter(g, v, a, degree)
    return True


@njit(cache=True)
def leave_arcs(g: Graph, tasks: I64, degree: int) -> None:
    """Takes the arcs of tasks (K,) out of the index and off the network."""
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = g.arc[a] & HEAD
            if v < len(g.deficit):
                g.in_size[v] -= 1
                end = g.in_start[v] + g.in_size[v]
                i = g.in_start[v] + g.in_place[a]
                g.in_place[g.in_arc[end]] = g.in_place[a]
                g.in_arc[i] = g.in_arc[end]
                g.in_word[i] = g.in_word[end]
                g.arc[a] = len(g.deficit)


@njit(cache=True)
def change_costs(g: Graph, tasks: I64, degree: int) -> None:
    """Tells the arcs by head, and the tasks, what arcs of tasks (K,) cost now."""
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = g.arc[a] & HEAD
            if v < len(g.deficit):
                g.in_word[g.in_start[v] + g.in_place[a]] = (g.arc[a] >> HEAD_BITS) << TASK_BITS | t
        if g.chosen[t] >= 0:
            g.now[t] = g.arc[g.chosen[t]]


@njit(cache=True)
def price(g: Graph, sink: int, far: int) -> bool:
    """Finds potentials for an optimal flow: the cost of the cheapest residual path to the sink, `far` without any.

    Label correction (Bellman, Ford, Moore) from the sink along residual arcs; False if there is a negative cycle,
    so that the flow was no optimum.
    """
    vertices = len(g.deficit)
    p = g.potential
    p[:] = far
    p[sink] = 0
    queue = np.zeros(vertices, np.int32)
    queued = np.zeros(vertices, np.uint8)
    rounds = np.zeros(vertices, np.int32)
    first, waiting = 0, 1
    queue[0] = sink
    queued[sink] = 1
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
                start, end = g.span[v, INTO], g.span[v, INTO_END]
            elif kind == 1:
                start, end = g.span[v, OUT], g.span[v, OUT_END]
            else:
                start, end = g.in_start[v], g.in_start[v] + g.in_size[v]
            for i in range(start, end):
                if kind == 0:
                    a = g.into_arc[i]
                    if g.flow[a] >= g.capacity[a]:
                        continue
                    u = g.tail[a]
                    cost = p[v] + g.cost[a]
                elif kind == 1:
                    a = g.out_arc[i]
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
