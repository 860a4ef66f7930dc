"""Compiled phases of a repair: all searches forward, then all searches backward."""

from firmament_py.flow.incremental.augment import KEEP, augment_backward, augment_forward
from firmament_py.flow.incremental.layout import (
    BACKWARD,
    BEGIN,
    COUNT,
    FARTHEST,
    FORWARD,
    HEAD,
    HEAD_BITS,
    NEAR,
    NEEDED,
    POTENTIAL,
    RANGE,
    REDUCED,
    SCANNED,
    TASK_BITS,
    UNKNOWN,
    WORD,
    Graph,
    Work,
)
from firmament_py.flow.incremental.numba_intrinsics import borrowed
from firmament_py.model.arrays import I64
from firmament_py.numba_cache import compiled, inner

_GROWTH = 4
"""Each radius is this multiple of the one before."""

_FALLEN_MAX = 2**59
"""Graph.fallen is reset when it reaches this value, because it is added to distances."""

_PATIENCE = 3
"""After one in this number of arcs has been scanned vertex by vertex, one pass over all of them is faster."""


@inner
def _learn(w: Work, direction: int, needed: int) -> None:
    """Records the radius that recent searches needed: most of the next ones will not need a much larger one."""
    w.radius[direction] = min(max((7 * w.radius[direction] + 2 * needed) // 8, 1), FARTHEST // 2**10)


@inner
def _gather_near(g: Graph, w: Work, degree: int) -> None:
    """Finds the near arcs of all vertices in one pass over the tasks, if they fit the array."""
    arc, potential, now, near, near_of = g.arc, g.potential, g.now, w.near, w.near_of
    within = w.radius[BACKWARD] * KEEP
    vertices = len(near_of)
    w.tally[SCANNED] = 0
    near_of[:, COUNT] = 0
    for t in range(len(now)):
        here = now[t] & HEAD
        if here < vertices:
            limit = within + (now[t] >> HEAD_BITS) + potential[here]
            for a in range(t * degree, (t + 1) * degree):
                u = arc[a] & HEAD
                if u < vertices and (arc[a] >> HEAD_BITS) + potential[u] <= limit:
                    near_of[u, COUNT] += 1
    total = 0
    for v in range(vertices):
        near_of[v, BEGIN] = total
        total += near_of[v, COUNT]
    w.tally[NEAR] = total if total <= len(near) else 0
    near_of[:, COUNT] = 0 if total <= len(near) else -1
    if total > len(near):
        return
    for t in range(len(now)):
        here = now[t] & HEAD
        if here < vertices:
            limit = within + (now[t] >> HEAD_BITS) + potential[here]
            for a in range(t * degree, (t + 1) * degree):
                v, cost = arc[a] & HEAD, arc[a] >> HEAD_BITS
                if v < vertices and cost + potential[v] <= limit:
                    i = near_of[v, BEGIN] + near_of[v, COUNT]
                    near[i, WORD] = cost << TASK_BITS | t
                    near[i, REDUCED] = cost + potential[v] - (limit - within)
                    near_of[v, COUNT] += 1
    near_of[:, POTENTIAL] = potential
    near_of[:, RANGE] = within


@inner
def _start_phase(w: Work) -> None:
    w.near_of[:, COUNT] = -1
    w.tally[NEAR] = 0
    w.tally[SCANNED] = 0


@compiled
def route_excess(g: Graph, w: Work, degree: int, tasks: I64, vertices: I64) -> bool:
    """Routes a unit from each of tasks (K,), then from each of vertices (L,). False if one of them has no path."""
    g, w = borrowed(g), borrowed(w)
    _start_phase(w)
    for i in range(len(tasks) + len(vertices)):
        task, vertex = (tasks[i], -1) if i < len(tasks) else (-1, vertices[i - len(tasks)])
        reach = w.radius[FORWARD]
        while not augment_forward(g, w, degree, task, vertex, reach):
            if reach == FARTHEST:
                return False
            reach = min(reach * _GROWTH, FARTHEST)
        _learn(w, FORWARD, w.tally[NEEDED])
    return True


@inner
def _note_fall(g: Graph, before: I64) -> None:
    """Records by how much potentials have fallen at most since `before` (V,)."""
    g.fallen[0] += (before - g.potential).max()
    if g.fallen[0] > _FALLEN_MAX:
        g.fallen[0] = 0
        g.in_least[:] = UNKNOWN


@compiled
def fill_deficits(g: Graph, w: Work, degree: int, sink: int, vertices: I64) -> bool:
    """Routes units to the vertices (K,) until they have no deficit. False if one of them has no path."""
    g, w = borrowed(g), borrowed(w)
    _start_phase(w)
    before = g.potential.copy()
    for vertex in vertices:
        while g.deficit[vertex] > 0:
            if w.tally[SCANNED] > len(g.arc) // _PATIENCE:
                _gather_near(g, w, degree)
            reach = w.radius[BACKWARD]
            while not augment_backward(g, w, degree, sink, vertex, reach):
                if reach == FARTHEST:
                    _note_fall(g, before)
                    return False
                reach = min(reach * _GROWTH, FARTHEST)
            _learn(w, BACKWARD, w.tally[NEEDED])
    _note_fall(g, before)
    return True
