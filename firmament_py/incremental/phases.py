"""Compiled phases of a repair: all searches forward, then all searches backward."""

from numba import njit

from firmament_py.arrays import I64
from firmament_py.incremental.graph import BACKWARD, FARTHEST, FORWARD, NEAR, NEEDED, SCANNED, Graph, Work
from firmament_py.incremental.search import KEEP, fetch, send

_GROWTH = 4
"""Each radius is so many times the one before."""

_PATIENCE = 3
"""When one in so many arcs has been looked through vertex by vertex, one pass over all of them pays."""


@njit(cache=True)
def _learn(w: Work, direction: int, needed: int) -> None:
    """Remembers how far searches had to look lately: most of the next ones will not have to look much farther."""
    w.radius[direction] = min(max((7 * w.radius[direction] + 2 * needed) // 8, 1), FARTHEST // 2**10)


@njit(cache=True)
def _gather_near(g: Graph, w: Work, degree: int, direction: int) -> None:
    """Finds the near arcs of all vertices in one pass over the tasks, if there is room for them."""
    arc_head, arc_cost, potential, at, paid = g.arc_head, g.arc_cost, g.potential, g.at, g.paid
    in_start, in_place, near, near_task = g.in_start, g.in_place, w.near, w.near_task
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    within = w.radius[direction] * KEEP
    vertices = len(near_size)
    w.tally[SCANNED] = 0
    near_size[:] = 0
    for t in range(len(at)):
        here = at[t]
        if here >= 0:
            limit = within + paid[t] + potential[here]
            for a in range(t * degree, (t + 1) * degree):
                u = arc_head[a]
                if u < vertices and arc_cost[a] + potential[u] <= limit:
                    near_size[here if direction == FORWARD else u] += 1
    total = 0
    for v in range(vertices):
        near_start[v] = total
        total += near_size[v]
    w.tally[NEAR] = total if total <= len(near) else 0
    near_size[:] = 0 if total <= len(near) else -1
    if total > len(near):
        return
    for t in range(len(at)):
        here = at[t]
        if here >= 0:
            limit = within + paid[t] + potential[here]
            for a in range(t * degree, (t + 1) * degree):
                u = arc_head[a]
                if u < vertices and arc_cost[a] + potential[u] <= limit:
                    v = here if direction == FORWARD else u
                    i = near_start[v] + near_size[v]
                    near[i] = a if direction == FORWARD else in_start[u] + in_place[a]
                    near_task[i] = t
                    near_cost[i] = arc_cost[a] + potential[u] - (limit - within)
                    near_size[v] += 1
    w.near_price[:] = potential[:-1]
    w.near_range[:] = within
    w.near_last[:] = g.first_task


@njit(cache=True)
def _start_phase(w: Work) -> None:
    w.near_size[:] = -1
    w.tally[NEAR] = 0
    w.tally[SCANNED] = 0


@njit(cache=True)
def route(g: Graph, w: Work, degree: int, tasks: I64, vertices: I64) -> bool:
    """Routes a unit from each of tasks (K,), then from each of vertices (L,). False: one of them has no path."""
    _start_phase(w)
    for i in range(len(tasks) + len(vertices)):
        task, vertex = (tasks[i], -1) if i < len(tasks) else (-1, vertices[i - len(tasks)])
        if w.tally[SCANNED] > len(g.arc_head) // _PATIENCE:
            _gather_near(g, w, degree, FORWARD)
        reach = w.radius[FORWARD]
        while not send(g, w, degree, task, vertex, reach):
            if reach == FARTHEST:
                return False
            reach = min(reach * _GROWTH, FARTHEST)
        _learn(w, FORWARD, w.tally[NEEDED])
    return True


@njit(cache=True)
def fill(g: Graph, w: Work, degree: int, sink: int, vertices: I64) -> bool:
    """Fetches what each of the vertices (K,) misses. False: one of them has no path."""
    _start_phase(w)
    for vertex in vertices:
        while g.deficit[vertex] > 0:
            if w.tally[SCANNED] > len(g.arc_head) // _PATIENCE:
                _gather_near(g, w, degree, BACKWARD)
            reach = w.radius[BACKWARD]
            while not fetch(g, w, degree, sink, vertex, reach):
                if reach == FARTHEST:
                    return False
                reach = min(reach * _GROWTH, FARTHEST)
            _learn(w, BACKWARD, w.tally[NEEDED])
    return True
