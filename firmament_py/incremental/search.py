"""Compiled shortest-path searches that move one unit of flow at a time and keep the potentials valid.

Successive shortest paths (Ahuja, Magnanti, Orlin: Network Flows, 9.7) on reduced costs, stopped early: a search ends
at the first place that can take the unit, and only vertices nearer than that get a new potential. Tasks are never
labelled. A task that flows to v is a transit v -> g for each other arc (task -> g), because its potential is what its
own arc makes it. Everything is compiled by numba at first use and cached beside this file.

Conventions: potential[v] stands for the cost of getting a unit from v to the sink, so the reduced cost of an arc
u -> v is cost + potential[v] - potential[u], and is never negative where there is residual capacity.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from firmament_py.arrays import I32, I64

FAR = np.int64(2**62)
"""A label of what was not reached; potentials and path costs stay below it (network.py checks the ranges)."""

ROUTED, NO_PATH = 0, 1


class Graph(NamedTuple):
    """Arrays of the network and its flow, shared with the Network that owns them. D arcs a task; V vertices."""

    arc_head: I32  # (T * D,) vertex of each task arc, V: no arc; arc a belongs to task a // D
    arc_cost: I64  # (T * D,)
    chosen: I64  # (T,) arc that carries the task's unit, -1: none
    at: I32  # (T,) head of the chosen arc, -1: none
    next_task: I32  # (T,) the list of the tasks at a vertex; -1 ends it
    previous_task: I32  # (T,)
    first_task: I32  # (V,)
    paid: I64  # (T,) cost of the chosen arc
    in_arc: I32  # (..,) task arcs into v: in_arc[in_start[v] : in_start[v] + in_size[v]]
    in_task: I32  # (..,) whose they are
    in_cost: I64  # (..,) what they cost
    in_start: I64  # (V + 1,)
    in_size: I64  # (V,)
    tail: I32  # (F,) fixed arcs, from vertex to vertex
    head: I32  # (F,)
    cost: I64  # (F,)
    capacity: I64  # (F,)
    flow: I64  # (F,)
    out_arc: I32  # (F,) fixed arcs by tail: out_arc[out_start[v] : out_start[v + 1]]
    out_start: I64  # (V + 1,)
    into_arc: I32  # (F,) fixed arcs by head
    into_start: I64  # (V + 1,)
    potential: I64  # (V + 1,) the last one is of no vertex
    deficit: I64  # (V,) units that are missing at a vertex
    way_out: I32  # (V,) fixed arc that never fills up, on a path of such arcs to the sink; -1: none


class Work(NamedTuple):
    """Scratch of a search; between searches label is FAR, place is -1."""

    label: I64  # (V,)
    via: I64  # (V,) how the label came: 2a fixed arc a, 2a + 1 its reverse, -1 - a task arc a
    heap: I32  # (V,) binary heap of labelled vertices
    place: I32  # (V,) position in the heap, -1: not there
    touched: I32  # (V,) labelled vertices, in order
    level: I32  # (V,) stack of vertices whose label is the one being worked on
    later: I32  # (V,) stack of vertices of that label whose fixed arcs were followed, but not their tasks
    count: I64  # (8,) see the indices below


SIZE, TOUCHED, LEVEL, LATER, END, DISTANCE, SETTLED, SCANNED = range(8)
"""Indices of Work.count: sizes of heap, touched, level and later; the nearest end and its distance; since somebody
set them to 0, vertices settled and tasks looked at."""


@njit(cache=True, forceinline=True)
def _sift_up(w: Work, i: int) -> None:
    v = w.heap[i]
    key = w.label[v]
    while i > 0:
        up = (i - 1) >> 1
        u = w.heap[up]
        if w.label[u] <= key:
            break
        w.heap[i] = u
        w.place[u] = i
        i = up
    w.heap[i] = v
    w.place[v] = i


@njit(cache=True, forceinline=True)
def _pop(w: Work) -> int:
    top = w.heap[0]
    w.place[top] = -1
    w.count[SIZE] -= 1
    n = w.count[SIZE]
    if n > 0:
        v = w.heap[n]
        key = w.label[v]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and w.label[w.heap[child + 1]] < w.label[w.heap[child]]:
                child += 1
            u = w.heap[child]
            if w.label[u] >= key:
                break
            w.heap[i] = u
            w.place[u] = i
            i = child
        w.heap[i] = v
        w.place[v] = i
    return top


@njit(cache=True, forceinline=True)
def _label(w: Work, v: int, distance: int, via: int, now: int) -> None:
    """Gives v a label that is better than the one it has and than the nearest end."""
    if w.label[v] == FAR:
        w.touched[w.count[TOUCHED]] = v
        w.count[TOUCHED] += 1
    w.label[v] = distance
    w.via[v] = via
    if distance <= now and w.place[v] < 0:
        w.level[w.count[LEVEL]] = v
        w.count[LEVEL] += 1
        return
    if w.place[v] < 0:
        w.heap[w.count[SIZE]] = v
        w.place[v] = w.count[SIZE]
        w.count[SIZE] += 1
    _sift_up(w, w.place[v])


@njit(cache=True, forceinline=True)
def _next(w: Work) -> int:
    """What to do next: v, follow the fixed arcs of v; -1 - v, its tasks; FAR, nothing, the nearest end is known.

    Of vertices with the same label the one that was labelled last comes first, and tasks come after all fixed arcs:
    where many reduced costs are 0 that goes straight for an end instead of around it.
    """
    if w.count[LEVEL] > 0:
        w.count[LEVEL] -= 1
        v = w.level[w.count[LEVEL]]
    elif w.count[LATER] > 0:
        w.count[LATER] -= 1
        v = w.later[w.count[LATER]]
        if w.label[v] >= w.count[DISTANCE]:
            return FAR
        return -1 - v
    elif w.count[SIZE] > 0:
        v = _pop(w)
    else:
        return FAR
    if w.label[v] >= w.count[DISTANCE]:
        return FAR
    w.later[w.count[LATER]] = v
    w.count[LATER] += 1
    w.count[SETTLED] += 1
    return v


@njit(cache=True, forceinline=True)
def _begin(w: Work, bound: int) -> None:
    w.count[SIZE] = 0
    w.count[TOUCHED] = 0
    w.count[LEVEL] = 0
    w.count[LATER] = 0
    w.count[END] = -1
    w.count[DISTANCE] = bound


@njit(cache=True)
def _reprice(g: Graph, w: Work, sign: int) -> None:
    """Moves the potentials of the vertices nearer than the end, and clears the labels."""
    end = w.count[DISTANCE]
    for i in range(w.count[TOUCHED]):
        v = w.touched[i]
        if w.label[v] < end:
            g.potential[v] += sign * (end - w.label[v])
        w.label[v] = FAR
        w.place[v] = -1


@njit(cache=True, forceinline=True)
def _end(w: Work, v: int, distance: int, via: int) -> None:
    """v is where the search ends, unless something nearer turns up."""
    if w.label[v] == FAR:
        w.touched[w.count[TOUCHED]] = v
        w.count[TOUCHED] += 1
    w.label[v] = distance
    w.via[v] = via
    w.count[END] = v
    w.count[DISTANCE] = distance


@njit(cache=True, forceinline=True)
def _offer(g: Graph, w: Work, sink: int, v: int, distance: int, via: int, now: int) -> None:
    """A way to v: an end of the forward search if v can take the unit.

    The way out of v is followed at once: what is farther than an end that is known need not be labelled.
    """
    while distance < w.label[v] and distance < w.count[DISTANCE]:
        if v == sink or g.deficit[v] > 0:
            _end(w, v, distance, via)
            return
        _label(w, v, distance, via, now)
        a = g.way_out[v]
        if a < 0 or g.flow[a] >= g.capacity[a]:
            return
        distance += g.cost[a] + g.potential[g.head[a]] - g.potential[v]
        via = 2 * a
        v = g.head[a]


@njit(cache=True, forceinline=True)
def move_task(g: Graph, task: int, arc: int) -> None:
    """Lets the task flow through `arc`, -1: not at all."""
    here = g.at[task]
    if here >= 0:
        before, after = g.previous_task[task], g.next_task[task]
        if before >= 0:
            g.next_task[before] = after
        else:
            g.first_task[here] = after
        if after >= 0:
            g.previous_task[after] = before
    g.chosen[task] = arc
    if arc < 0:
        g.at[task] = -1
        return
    there = g.arc_head[arc]
    g.paid[task] = g.arc_cost[arc]
    first = g.first_task[there]
    g.at[task] = there
    g.previous_task[task] = -1
    g.next_task[task] = first
    if first >= 0:
        g.previous_task[first] = task
    g.first_task[there] = task


@njit(cache=True)
def _forward(g: Graph, w: Work, degree: int, sink: int, task: int, vertex: int, radius: int) -> bool:
    """Routes one unit from a task that flows nowhere (or, task < 0, from a vertex) to the nearest that takes it.

    False if there is none within the radius; then the potentials have moved as far as that allows.
    """
    # locals: an array that is taken from a tuple inside of a loop is counted each time
    label, count, potential = w.label, w.count, g.potential
    tail, head, cost, capacity, flow = g.tail, g.head, g.cost, g.capacity, g.flow
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    arc_head, arc_cost, paid, next_task = g.arc_head, g.arc_cost, g.paid, g.next_task
    vertices = len(g.deficit)
    if task >= 0:
        nearest = FAR
        for a in range(task * degree, (task + 1) * degree):
            if arc_head[a] < vertices:
                nearest = min(nearest, arc_cost[a] + potential[arc_head[a]])
        _begin(w, nearest + radius)
        for a in range(task * degree, (task + 1) * degree):
            v = arc_head[a]
            if v < vertices:
                _offer(g, w, sink, v, arc_cost[a] + potential[v], -1 - a, -FAR)
    else:
        _begin(w, radius)
        _offer(g, w, sink, vertex, 0, 0, -FAR)
    while True:
        step = _next(w)
        if step == FAR:
            break
        v = step if step >= 0 else -1 - step
        now = label[v]
        base = now - potential[v]
        if step < 0:
            t = g.first_task[v]
            while t >= 0:
                count[SCANNED] += degree
                start = base - paid[t]
                for a in range(t * degree, (t + 1) * degree):
                    u = arc_head[a]
                    distance = start + arc_cost[a] + potential[u]
                    if distance < count[DISTANCE] and u < vertices and distance < label[u]:
                        _offer(g, w, sink, u, distance, -1 - a, now)
                t = next_task[t]
            continue
        for i in range(out_start[v], out_start[v + 1]):
            a = out_arc[i]
            if flow[a] < capacity[a]:
                u = head[a]
                distance = base + cost[a] + potential[u]
                if distance < label[u] and distance < count[DISTANCE]:
                    _offer(g, w, sink, u, distance, 2 * a, now)
        for i in range(into_start[v], into_start[v + 1]):
            a = into_arc[i]
            if flow[a] > 0:
                u = tail[a]
                distance = base - cost[a] + potential[u]
                if distance < label[u] and distance < count[DISTANCE]:
                    _offer(g, w, sink, u, distance, 2 * a + 1, now)
    end = count[END]
    if end >= 0:
        if end != sink:
            g.deficit[end] -= 1
        v = end
        while v != vertex:
            via = w.via[v]
            if via < 0:
                moved = (-1 - via) // degree
                v = g.at[moved]
                move_task(g, moved, -1 - via)
                if v < 0:
                    break
            elif via & 1:
                flow[via >> 1] -= 1
                v = head[via >> 1]
            else:
                flow[via >> 1] += 1
                v = tail[via >> 1]
    _reprice(g, w, 1)
    return end >= 0


@njit(cache=True, forceinline=True)
def _offer_back(g: Graph, w: Work, sink: int, v: int, distance: int, via: int, now: int) -> None:
    """A way from v: the end of the backward search if v is the sink."""
    while distance < w.label[v] and distance < w.count[DISTANCE]:
        if v == sink:
            _end(w, v, distance, via)
            return
        _label(w, v, distance, via, now)
        a = g.way_out[v]
        if a < 0 or g.flow[a] <= 0:
            return
        distance += g.potential[v] - g.cost[a] - g.potential[g.head[a]]
        via = 2 * a + 1
        v = g.head[a]


@njit(cache=True)
def _backward(g: Graph, w: Work, degree: int, sink: int, vertex: int, radius: int) -> bool:
    """Fetches one unit from the sink to a vertex that misses it, on the shortest path to there.

    False if it is longer than the radius; then the potentials have moved as far as that allows.
    """
    # locals: an array that is taken from a tuple inside of a loop is counted each time
    label, count, potential = w.label, w.count, g.potential
    tail, head, cost, capacity, flow = g.tail, g.head, g.cost, g.capacity, g.flow
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    in_start, in_size, in_task, in_cost, at, paid = g.in_start, g.in_size, g.in_task, g.in_cost, g.at, g.paid
    _begin(w, radius)
    _label(w, vertex, 0, 0, -FAR)
    while True:
        step = _next(w)
        if step == FAR:
            break
        v = step if step >= 0 else -1 - step
        now = label[v]
        base = now + potential[v]
        if step < 0:
            count[SCANNED] += in_size[v]
            for i in range(in_start[v], in_start[v] + in_size[v]):
                t = in_task[i]
                u = at[t]
                if u >= 0:
                    distance = base + in_cost[i] - paid[t] - potential[u]
                    if distance < count[DISTANCE] and distance < label[u]:
                        _offer_back(g, w, sink, u, distance, -1 - np.int64(g.in_arc[i]), now)
            continue
        for i in range(into_start[v], into_start[v + 1]):
            a = into_arc[i]
            if flow[a] < capacity[a]:
                u = tail[a]
                distance = base + cost[a] - potential[u]
                if distance < label[u] and distance < count[DISTANCE]:
                    _offer_back(g, w, sink, u, distance, 2 * a, now)
        for i in range(out_start[v], out_start[v + 1]):
            a = out_arc[i]
            if flow[a] > 0:
                u = head[a]
                distance = base - cost[a] - potential[u]
                if distance < label[u] and distance < count[DISTANCE]:
                    _offer_back(g, w, sink, u, distance, 2 * a + 1, now)
    found = count[END] >= 0
    if found:
        g.deficit[vertex] -= 1
        v = sink
        while v != vertex:
            via = w.via[v]
            if via < 0:
                move_task(g, (-1 - via) // degree, -1 - via)
                v = g.arc_head[-1 - via]
            elif via & 1:
                flow[via >> 1] -= 1
                v = tail[via >> 1]
            else:
                flow[via >> 1] += 1
                v = head[via >> 1]
    _reprice(g, w, -1)
    return found


@njit(cache=True)
def _search(g: Graph, w: Work, degree: int, sink: int, task: int, vertex: int, radius: I64) -> bool:
    """Searches in a small radius first, then farther: most of what a wide search labels it does not need.

    radius[0] is where to begin, and is left a little above what the last searches needed. Backward if task == BACK.
    """
    reach = radius[0]
    while True:
        if task == BACK:
            found = _backward(g, w, degree, sink, vertex, reach)
        else:
            found = _forward(g, w, degree, sink, task, vertex, reach)
        if found:
            radius[0] = max(1, (3 * radius[0] + reach) // 4)
            return True
        if reach >= FAR // 4:
            return False
        reach *= 4


BACK = -2


@njit(cache=True)
def route_tasks(g: Graph, w: Work, degree: int, sink: int, tasks: I64) -> int:
    """Routes the tasks (K,); how many were routed before one had no path."""
    radius = np.array([1])
    for i in range(len(tasks)):
        if not _search(g, w, degree, sink, tasks[i], -1, radius):
            return i
    return len(tasks)


@njit(cache=True)
def route_excess(g: Graph, w: Work, degree: int, sink: int, vertices: I64) -> int:
    """Routes a unit from each of vertices (K,); how many were routed before one had no path."""
    radius = np.array([1])
    for i in range(len(vertices)):
        if not _search(g, w, degree, sink, -1, vertices[i], radius):
            return i
    return len(vertices)


@njit(cache=True)
def fill_deficits(g: Graph, w: Work, degree: int, sink: int, vertices: I64) -> int:
    """Fetches what each of the vertices (K,) misses; how many were filled before one had no path."""
    radius = np.array([1])
    for i in range(len(vertices)):
        while g.deficit[vertices[i]] > 0:
            if not _search(g, w, degree, sink, BACK, vertices[i], radius):
                return i
    return len(vertices)
