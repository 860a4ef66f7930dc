"""Compiled adjacency of a Graph: the tasks that flow to a vertex, and the arcs into it."""

import numpy as np

from firmament_py.flow.incremental.layout import (
    HEAD,
    HEAD_BITS,
    SHORTCUT,
    SIZE_IN,
    START,
    TASK_BITS,
    UNKNOWN,
    USED,
    Graph,
    move_task,
    show,
)
from firmament_py.flow.incremental.numba_intrinsics import borrowed, prefetch
from firmament_py.model.arrays import I32, I64
from firmament_py.numba_cache import compiled, inlined, inner

_AHEAD = 16
"""Number of tasks whose arcs' heads are prefetched at a time."""


@compiled
def assign(g: Graph, tasks: I64, arcs: I64) -> None:
    """Routes tasks (K,) through arcs (K,), -1: unrouted."""
    g = borrowed(g)
    for i in range(len(tasks)):
        move_task(g, tasks[i], arcs[i])


@inner
def enter(g: Graph, v: int, arc: int, degree: int) -> None:
    """Adds an arc to those into v, which must have a free place for it."""
    i = g.vertex[v, START] + g.vertex[v, SIZE_IN]
    g.in_arc[i] = arc
    g.in_word[i] = (g.arc[arc] >> HEAD_BITS) << TASK_BITS | arc // degree
    g.in_place[arc] = g.vertex[v, SIZE_IN]
    g.vertex[v, SIZE_IN] += 1


@compiled
def refresh(g: Graph, arcs: I64) -> None:
    """Updates the copies of fixed arcs (K,) at both of their ends."""
    g = borrowed(g)
    for a in arcs:
        show(g, a)


@compiled
def find_shortcuts(g: Graph, sink: int, units: int, length: int) -> None:
    """Finds paths to the sink of at most `length` fixed arcs that `units` cannot fill, from the sink backward."""
    g = borrowed(g)
    g.vertex[:, SHORTCUT] = -1
    wide = np.flatnonzero(g.capacity >= units)
    reached = np.zeros(len(g.deficit), np.bool_)
    reached[sink] = True
    for _ in range(length):
        changed = False
        before = reached.copy()
        for a in wide:
            if before[g.head[a]] and not reached[g.tail[a]]:
                g.vertex[g.tail[a], SHORTCUT] = a
                reached[g.tail[a]] = changed = True
        if not changed:
            return


@compiled
def index_arcs(g: Graph, degree: int, slack: int) -> None:
    """Rebuilds the index of arcs by head; every vertex gets free places for `slack` and a quarter more arcs."""
    g = borrowed(g)
    vertices = len(g.deficit)
    size = np.zeros(vertices, np.int64)
    for word in g.arc:
        if word & HEAD < vertices:
            size[word & HEAD] += 1
    g.vertex[:, START : USED + 1] = 0
    for v in range(vertices):
        g.vertex[v + 1, START] = g.vertex[v, START] + size[v] + size[v] // 4 + slack
    for a in g.chosen:
        if a >= 0:
            v = g.arc[a] & HEAD
            enter(g, v, a, degree)
            g.vertex[v, USED] += 1
    for a in range(len(g.arc)):
        v = g.arc[a] & HEAD
        if v < vertices and g.chosen[a // degree] != a:
            enter(g, v, a, degree)


@compiled
def enter_arcs(g: Graph, tasks: I64, degree: int) -> bool:
    """Adds the arcs of tasks (K,) to the index; False if a vertex has too few free places: index_arcs is due."""
    g = borrowed(g)
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = g.arc[a] & HEAD
            if v < len(g.deficit):
                if g.vertex[v, START] + g.vertex[v, SIZE_IN] == g.vertex[v + 1, START]:
                    return False
                enter(g, v, a, degree)
    return True


@compiled
def leave_arcs(g: Graph, tasks: I64, degree: int) -> None:
    """Removes the arcs of tasks (K,), with their units, from the index and the network."""
    g = borrowed(g)
    arc, in_arc, in_word, in_place, vertex = g.arc, g.in_arc, g.in_word, g.in_place, g.vertex
    vertices = len(g.deficit)
    for i in range(len(tasks)):
        if i % _AHEAD == 0:
            _prefetch_places(g, tasks[i : i + _AHEAD], degree)
        t = tasks[i]
        for a in range(t * degree, (t + 1) * degree):
            v = arc[a] & HEAD
            if v < vertices:
                start, place = vertex[v, START], in_place[a]
                vertex[v, SIZE_IN] -= 1
                last = vertex[v, SIZE_IN]
                if g.chosen[t] == a:
                    vertex[v, USED] -= 1
                    _put(in_arc, in_word, in_place, start, vertex[v, USED], place)
                    g.in_least[start + place] = g.in_least[start + vertex[v, USED]]
                    place = vertex[v, USED]
                if place < last:
                    _put(in_arc, in_word, in_place, start, last, place)
                arc[a] = vertices
        g.chosen[t] = -1
        g.now[t] = vertices


@inlined
def _put(in_arc: I32, in_word: I64, in_place: I32, start: int, place: int, other: int) -> None:
    """Moves an arc into a vertex from one place of the index to another."""
    a = in_arc[start + place]
    in_place[a] = other
    in_arc[start + other] = a
    in_word[start + other] = in_word[start + place]


@inlined
def _prefetch_places(g: Graph, tasks: I64, degree: int) -> None:
    """Prefetches the memory that leave_arcs accesses for tasks (K,), indices first."""
    arc, in_arc, in_word, in_place, vertex = g.arc, g.in_arc, g.in_word, g.in_place, g.vertex
    vertices = len(g.deficit)
    for t in tasks:
        prefetch(g.chosen, t)
        prefetch(g.now, t)
        for a in range(t * degree, (t + 1) * degree, 8):
            prefetch(arc, a)
            prefetch(in_place, a)
        prefetch(arc, (t + 1) * degree - 1)
        prefetch(in_place, (t + 1) * degree - 1)
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = arc[a] & HEAD
            if v < vertices:
                i, last = vertex[v, START] + in_place[a], vertex[v, START] + vertex[v, SIZE_IN] - 1
                prefetch(in_arc, i)
                prefetch(in_word, i)
                prefetch(in_arc, last)
                prefetch(in_word, last)
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = arc[a] & HEAD
            if v < vertices:
                prefetch(in_place, in_arc[vertex[v, START] + vertex[v, SIZE_IN] - 1])


@compiled
def change_costs(g: Graph, tasks: I64, degree: int) -> None:
    """Updates the costs of arcs of tasks (K,) in the index by head and in the tasks."""
    g = borrowed(g)
    for t in tasks:
        for a in range(t * degree, (t + 1) * degree):
            v = g.arc[a] & HEAD
            if v < len(g.deficit):
                i = g.vertex[v, START] + g.in_place[a]
                g.in_word[i] = (g.arc[a] >> HEAD_BITS) << TASK_BITS | t
                g.in_least[i] = UNKNOWN
        if g.chosen[t] >= 0:
            g.now[t] = g.arc[g.chosen[t]]
