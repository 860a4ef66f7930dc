"""Compiled shortest-path searches that move one unit of flow at a time and keep the potentials valid.

Successive shortest paths (Ahuja, Magnanti, Orlin: Network Flows, 9.7) on reduced costs, stopped early: a search ends
at the first place that can take the unit, and only vertices nearer than that get a new potential. Tasks are never
labelled. A task that flows to v is a transit v -> g for each other arc (task -> g), because its potential is what its
own arc makes it. Everything is compiled by numba at first use and cached beside this file.

Conventions: potential[v] stands for the cost of getting a unit from v to the sink, so the reduced cost of an arc
u -> v is cost + potential[v] - potential[u], and is never negative where there is residual capacity.

What makes a search short:

- It looks in a small radius first, and farther only if there is nothing. What a radius without an end raises the
  potentials by is progress, not waste.
- Of vertices with the same label the last one labelled comes first, fixed arcs come before tasks, and the arc that led
  to an end last time comes first of all: on plateaus of zero reduced cost it goes straight for an end.
- A vertex with many tasks is looked through once. Searches of one phase only raise potentials (forward) or only lower
  them (backward), so reduced costs out of (into) a vertex fall only by what its own potential moved; the arcs that
  were far away then still are, and only those that were near are looked at again.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from firmament_py.arrays import I32, I64

FAR = np.int64(2**62)
"""A label of what was not reached."""

FARTHEST = FAR // 2
"""No path is longer than this in reduced costs (network.py keeps the ranges of costs and of vertices)."""


class Graph(NamedTuple):
    """Arrays of the network and its flow, shared with the TaskNetwork that owns them. D arcs a task; V vertices."""

    arc_head: I32  # (T * D,) vertex of each task arc, V: no arc; arc a belongs to task a // D
    arc_cost: I64  # (T * D,)
    chosen: I64  # (T,) arc that carries the task's unit, -1: none
    at: I32  # (T,) head of the chosen arc, -1: none
    paid: I64  # (T,) cost of the chosen arc
    next_task: I32  # (T,) the list of the tasks at a vertex; -1 ends it
    previous_task: I32  # (T,)
    first_task: I32  # (V,)
    in_arc: I32  # (..,) task arcs into v: in_arc[in_start[v] : in_start[v] + in_size[v]]
    in_task: I32  # (..,) whose they are
    in_cost: I64  # (..,) what they cost
    in_place: I32  # (T * D,) where a task arc is among those into its head
    in_start: I64  # (V + 1,)
    in_size: I64  # (V,)
    tail: I32  # (F,) fixed arcs, from vertex to vertex
    head: I32  # (F,)
    cost: I64  # (F,)
    capacity: I64  # (F,)
    flow: I64  # (F,)
    out_arc: I32  # (F,) fixed arcs by tail: out_arc[out_start[v] : out_start[v + 1]]
    out_start: I64  # (V + 1,)
    out_place: I32  # (F,) position of an arc among those of its tail
    into_arc: I32  # (F,) fixed arcs by head
    into_start: I64  # (V + 1,)
    potential: I64  # (V + 1,) the last one is of no vertex
    deficit: I64  # (V,) units that are missing at a vertex
    way_out: I32  # (V,) fixed arc that never fills up, on a path of such arcs to the sink; -1: none


class Work(NamedTuple):
    """Scratch of searches. Between them label is FAR and lists[PLACE] is -1."""

    label: I64  # (V,)
    via: I64  # (V,) how the label came: 2a fixed arc a, 2a + 1 its reverse, -1 - a task arc a
    lists: I32  # (5, V) see the indices below
    count: I64  # (10,) see the indices below
    cursor: I32  # (2, V) forward, backward: position of the fixed arc out of v that led to an end last time
    radius: I64  # (2,) forward, backward: where to look first
    near: I32  # (..,) arcs that were near a vertex: near[start : start + size]; by arc, or by position in in_arc
    near_task: I32  # (..,) whose they are
    near_cost: I64  # (..,) their reduced costs at that time
    near_start: I64  # (V,)
    near_size: I64  # (V,) -1: not looked through in this phase
    near_range: I64  # (V,) up to which reduced cost
    near_price: I64  # (V,) potential of the vertex at that time
    near_last: I32  # (V,) forward: first task in the list at that time; those before it came later


HEAP, PLACE, TOUCHED, LEVEL, LATER = range(5)
"""Rows of Work.lists: a binary heap of labelled vertices; each one's position in it, -1: none; all that have a label;
stack of those whose label is the one being worked on; stack of those whose tasks come after their fixed arcs."""

SIZE, LABELLED, LEVELS, LATERS, END, DISTANCE, SETTLED, SCANNED, NEAR, NEEDED = range(10)
"""Indices of Work.count: lengths of heap, touched, level and later; the nearest end and its distance; since somebody
set it to 0, vertices settled; arcs looked through since near arcs were gathered; length of near; how far the last
search had to look."""

FORWARD, BACKWARD = 0, 1

_GROWTH = 4
"""Each radius is so many times the one before."""
_KEEP = 16
"""Near are arcs up to so many times what the search at hand needs."""
_PATIENCE = 10
"""When this part of all arcs has been looked through vertex by vertex, one pass over all of them pays."""


@njit(cache=True, forceinline=True)
def _sift_up(label: I64, lists: I32, i: int) -> None:
    v = lists[HEAP, i]
    key = label[v]
    while i > 0:
        up = (i - 1) >> 1
        u = lists[HEAP, up]
        if label[u] <= key:
            break
        lists[HEAP, i] = u
        lists[PLACE, u] = i
        i = up
    lists[HEAP, i] = v
    lists[PLACE, v] = i


@njit(cache=True, forceinline=True)
def _pop(label: I64, lists: I32, count: I64) -> int:
    top = lists[HEAP, 0]
    lists[PLACE, top] = -1
    count[SIZE] -= 1
    n = count[SIZE]
    if n > 0:
        v = lists[HEAP, n]
        key = label[v]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and label[lists[HEAP, child + 1]] < label[lists[HEAP, child]]:
                child += 1
            u = lists[HEAP, child]
            if label[u] >= key:
                break
            lists[HEAP, i] = u
            lists[PLACE, u] = i
            i = child
        lists[HEAP, i] = v
        lists[PLACE, v] = i
    return top


@njit(cache=True, forceinline=True)
def _label(
    label: I64, via: I64, lists: I32, count: I64, v: int, distance: int, how: int, now: int, is_end: bool
) -> None:
    """Gives v a label that is better than the one it has and than the nearest end."""
    if label[v] == FAR:
        lists[TOUCHED, count[LABELLED]] = v
        count[LABELLED] += 1
    label[v] = distance
    via[v] = how
    if is_end:
        count[END] = v
        count[DISTANCE] = distance
        return
    if lists[PLACE, v] < 0:
        if distance <= now:
            lists[LEVEL, count[LEVELS]] = v
            count[LEVELS] += 1
            return
        lists[PLACE, v] = count[SIZE]
        lists[HEAP, count[SIZE]] = v
        count[SIZE] += 1
    _sift_up(label, lists, lists[PLACE, v])


@njit(cache=True, forceinline=True)
def _next(label: I64, lists: I32, count: I64) -> int:
    """What to do next: v, follow the fixed arcs of v; -1 - v, its tasks; FAR, nothing, the nearest end is known."""
    if count[LEVELS] > 0:
        count[LEVELS] -= 1
        v = lists[LEVEL, count[LEVELS]]
    elif count[LATERS] > 0:
        count[LATERS] -= 1
        v = lists[LATER, count[LATERS]]
        return FAR if label[v] >= count[DISTANCE] else np.int64(-1 - v)
    elif count[SIZE] > 0:
        v = _pop(label, lists, count)
    else:
        return FAR
    if label[v] >= count[DISTANCE]:
        return FAR
    lists[LATER, count[LATERS]] = v
    count[LATERS] += 1
    count[SETTLED] += 1
    return np.int64(v)


@njit(cache=True)
def _begin(count: I64, bound: int) -> None:
    count[SIZE] = count[LABELLED] = count[LEVELS] = count[LATERS] = 0
    count[END] = -1
    count[DISTANCE] = bound


@njit(cache=True)
def _reprice(potential: I64, label: I64, lists: I32, count: I64, sign: int) -> None:
    """Moves the potentials of the vertices nearer than the end, and clears the labels."""
    end = count[DISTANCE]
    for i in range(count[LABELLED]):
        v = lists[TOUCHED, i]
        if label[v] < end:
            potential[v] += sign * (end - label[v])
        label[v] = FAR
        lists[PLACE, v] = -1


@njit(cache=True, forceinline=True)
def _keep_near(
    near: I32, near_task: I32, near_cost: I64, near_size: I64, count: I64, entry: int, task: int, reduced: int
) -> bool:
    """Adds to the near arcs of a vertex; if there is no room, everybody's are forgotten."""
    if count[NEAR] == len(near):
        near_size[:] = -1
        count[NEAR] = 0
        return False
    near[count[NEAR]] = entry
    near_task[count[NEAR]] = task
    near_cost[count[NEAR]] = reduced
    count[NEAR] += 1
    return True


@njit(cache=True)
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
    first = g.first_task[there]
    g.at[task] = there
    g.paid[task] = g.arc_cost[arc]
    g.previous_task[task] = -1
    g.next_task[task] = first
    if first >= 0:
        g.previous_task[first] = task
    g.first_task[there] = task


@njit(cache=True)
def _forward(g: Graph, w: Work, degree: int, task: int, vertex: int, radius: int) -> bool:
    """Routes one unit from a task that flows nowhere (or, task < 0, from a vertex) to the nearest that misses one.

    False if there is none within the radius; then the potentials have moved as far as that allows.
    """
    # locals: an array that is taken from a tuple inside of a loop is counted each time
    label, via, lists, count, potential, deficit = w.label, w.via, w.lists, w.count, g.potential, g.deficit
    tail, head, cost, capacity, flow, way_out = g.tail, g.head, g.cost, g.capacity, g.flow, g.way_out
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    arc_head, arc_cost, paid, next_task, at = g.arc_head, g.arc_cost, g.paid, g.next_task, g.at
    near_price, near_range, first_task, out_place = w.near_price, w.near_range, g.first_task, g.out_place
    cursor, near, near_task, near_last = w.cursor, w.near, w.near_task, w.near_last
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    vertices, nearest = len(deficit), np.int64(0)
    if task >= 0:
        nearest = FAR
        for a in range(task * degree, (task + 1) * degree):
            if arc_head[a] < vertices:
                nearest = min(nearest, arc_cost[a] + potential[arc_head[a]])
        _begin(count, nearest + radius)
        for a in range(task * degree, (task + 1) * degree):
            v = arc_head[a]
            if v < vertices:
                distance = arc_cost[a] + potential[v]
                if distance < label[v] and distance < count[DISTANCE]:
                    _label(label, via, lists, count, v, distance, -1 - a, -FAR, deficit[v] > 0)
    else:
        _begin(count, radius)
        _label(label, via, lists, count, vertex, 0, 0, -FAR, deficit[vertex] > 0)
    while True:
        step = _next(label, lists, count)
        if step == FAR:
            break
        if step >= 0:
            v = step
            now = label[v]
            base = now - potential[v]
            size = out_start[v + 1] - out_start[v]
            for j in range(size - 1, -1, -1):  # pushed last is followed first
                i = cursor[FORWARD, v] + j
                a = out_arc[out_start[v] + (i if i < size else i - size)]
                if flow[a] < capacity[a]:
                    u = head[a]
                    distance = base + cost[a] + potential[u]
                    if distance < label[u] and distance < count[DISTANCE]:
                        _label(label, via, lists, count, u, distance, 2 * a, now, deficit[u] > 0)
            for i in range(into_start[v], into_start[v + 1]):
                a = into_arc[i]
                if flow[a] > 0:
                    u = tail[a]
                    distance = base - cost[a] + potential[u]
                    if distance < label[u] and distance < count[DISTANCE]:
                        _label(label, via, lists, count, u, distance, 2 * a + 1, now, deficit[u] > 0)
            continue
        v = -1 - step
        now = label[v]
        base = now - potential[v]
        need = count[DISTANCE] - now
        if near_size[v] >= 0 and need + potential[v] - near_price[v] <= near_range[v]:
            moved = potential[v] - near_price[v]
            for i in range(near_start[v], near_start[v] + near_size[v]):
                if near_cost[i] - moved >= count[DISTANCE] - now:
                    continue
                a = np.int64(near[i])
                t = near_task[i]
                if at[t] == v:
                    u = arc_head[a]
                    distance = base + arc_cost[a] - paid[t] + potential[u]
                    if distance < label[u] and distance < count[DISTANCE]:
                        _label(label, via, lists, count, u, distance, -1 - a, now, deficit[u] > 0)
                        if way_out[u] >= 0:
                            _way_out(g, w, u, now)
            t = first_task[v]
            while t >= 0 and t != near_last[v]:
                start = base - paid[t]
                for a in range(t * degree, (t + 1) * degree):
                    u = arc_head[a]
                    if u < vertices:
                        distance = start + arc_cost[a] + potential[u]
                        if distance < count[DISTANCE] and distance < label[u]:
                            _label(label, via, lists, count, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
                t = next_task[t]
            continue
        keep = now + (need * _KEEP if need < FAR // (2 * _KEEP) else need)
        near_start[v] = count[NEAR]
        kept = True
        t = first_task[v]
        while t >= 0:
            count[SCANNED] += degree
            start = base - paid[t]
            for a in range(t * degree, (t + 1) * degree):
                u = arc_head[a]
                if u < vertices:
                    distance = start + arc_cost[a] + potential[u]
                    if distance <= keep:
                        kept = kept and _keep_near(near, near_task, near_cost, near_size, count, a, t, distance - now)
                        if distance < count[DISTANCE] and distance < label[u]:
                            _label(label, via, lists, count, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
            t = next_task[t]
        if kept:
            near_size[v] = count[NEAR] - near_start[v]
            near_price[v] = potential[v]
            near_range[v] = keep - now
            near_last[v] = first_task[v]
    end = count[END]
    count[NEEDED] = count[DISTANCE] - nearest
    if end >= 0:
        deficit[end] -= 1
        v = end
        while v != vertex:
            how = via[v]
            if how < 0:
                t = (-1 - how) // degree
                v = at[t]
                move_task(g, t, -1 - how)
                if v < 0:
                    break
                if near_last[v] == t:
                    near_size[v] = -1  # who came later is not known any more
            elif how & 1:
                flow[how >> 1] -= 1
                v = head[how >> 1]
            else:
                flow[how >> 1] += 1
                v = tail[how >> 1]
                cursor[FORWARD, v] = out_place[how >> 1]
    _reprice(potential, label, lists, count, 1)
    return end >= 0


@njit(cache=True)
def _way_out(g: Graph, w: Work, v: int, now: int) -> None:
    """Follows the way out of v at once: what is farther than an end that is known need not be labelled."""
    while g.way_out[v] >= 0 and w.count[END] != v:
        a = g.way_out[v]
        u = g.head[a]
        distance = w.label[v] + g.cost[a] + g.potential[u] - g.potential[v]
        if g.flow[a] >= g.capacity[a] or distance >= w.label[u] or distance >= w.count[DISTANCE]:
            return
        _label(w.label, w.via, w.lists, w.count, u, distance, 2 * a, now, g.deficit[u] > 0)
        v = u


@njit(cache=True)
def _way_in(g: Graph, w: Work, v: int, sink: int, now: int) -> None:
    """_way_out against the arcs."""
    while g.way_out[v] >= 0:
        a = g.way_out[v]
        u = g.head[a]
        distance = w.label[v] + g.potential[v] - g.cost[a] - g.potential[u]
        if g.flow[a] <= 0 or distance >= w.label[u] or distance >= w.count[DISTANCE]:
            return
        _label(w.label, w.via, w.lists, w.count, u, distance, 2 * a + 1, now, u == sink)
        v = u


@njit(cache=True)
def _backward(g: Graph, w: Work, degree: int, sink: int, vertex: int, radius: int) -> bool:
    """Fetches one unit from the sink to a vertex that misses it, on the shortest path to there.

    False if it is longer than the radius; then the potentials have moved as far as that allows.
    """
    label, via, lists, count, potential = w.label, w.via, w.lists, w.count, g.potential
    tail, head, cost, capacity, flow, way_out = g.tail, g.head, g.cost, g.capacity, g.flow, g.way_out
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    in_start, in_size, in_arc, in_task, in_cost = g.in_start, g.in_size, g.in_arc, g.in_task, g.in_cost
    at, paid, cursor, near, near_task = g.at, g.paid, w.cursor, w.near, w.near_task
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    near_price, near_range, out_place = w.near_price, w.near_range, g.out_place
    _begin(count, radius)
    _label(label, via, lists, count, vertex, 0, 0, -FAR, False)
    while True:
        step = _next(label, lists, count)
        if step == FAR:
            break
        if step >= 0:
            v = step
            now = label[v]
            base = now + potential[v]
            for i in range(into_start[v], into_start[v + 1]):
                a = into_arc[i]
                if flow[a] < capacity[a]:
                    u = tail[a]
                    distance = base + cost[a] - potential[u]
                    if distance < label[u] and distance < count[DISTANCE]:
                        _label(label, via, lists, count, u, distance, 2 * a, now, u == sink)
            size = out_start[v + 1] - out_start[v]
            for j in range(size - 1, -1, -1):
                i = cursor[BACKWARD, v] + j
                a = out_arc[out_start[v] + (i if i < size else i - size)]
                if flow[a] > 0:
                    u = head[a]
                    distance = base - cost[a] - potential[u]
                    if distance < label[u] and distance < count[DISTANCE]:
                        _label(label, via, lists, count, u, distance, 2 * a + 1, now, u == sink)
            continue
        v = -1 - step
        now = label[v]
        base = now + potential[v]
        need = count[DISTANCE] - now
        if near_size[v] >= 0 and need + near_price[v] - potential[v] <= near_range[v]:
            moved = near_price[v] - potential[v]
            for k in range(near_start[v], near_start[v] + near_size[v]):
                if near_cost[k] - moved >= count[DISTANCE] - now:
                    continue
                i = near[k]
                t = near_task[k]
                u = at[t]
                distance = base + in_cost[i] - paid[t] - potential[u]
                if distance < label[u] and distance < count[DISTANCE]:
                    _label(label, via, lists, count, u, distance, -1 - np.int64(in_arc[i]), now, False)
                    if way_out[u] >= 0:
                        _way_in(g, w, u, sink, now)
            continue
        keep = now + (need * _KEEP if need < FAR // (2 * _KEEP) else need)
        near_start[v] = count[NEAR]
        kept = True
        count[SCANNED] += in_size[v]
        for i in range(in_start[v], in_start[v] + in_size[v]):
            t = in_task[i]
            u = at[t]
            if u >= 0:
                distance = base + in_cost[i] - paid[t] - potential[u]
                if distance <= keep:
                    kept = kept and _keep_near(near, near_task, near_cost, near_size, count, i, t, distance - now)
                    if distance < count[DISTANCE] and distance < label[u]:
                        _label(label, via, lists, count, u, distance, -1 - np.int64(in_arc[i]), now, False)
                        if way_out[u] >= 0:
                            _way_in(g, w, u, sink, now)
        if kept:
            near_size[v] = count[NEAR] - near_start[v]
            near_price[v] = potential[v]
            near_range[v] = keep - now
    found = count[END] >= 0
    count[NEEDED] = count[DISTANCE]
    if found:
        g.deficit[vertex] -= 1
        v = sink
        while v != vertex:
            how = via[v]
            if how < 0:
                move_task(g, (-1 - how) // degree, -1 - how)
                v = g.arc_head[-1 - how]
            elif how & 1:
                flow[how >> 1] -= 1
                v = tail[how >> 1]
                cursor[BACKWARD, v] = out_place[how >> 1]
            else:
                flow[how >> 1] += 1
                v = head[how >> 1]
    _reprice(potential, label, lists, count, -1)
    return found


@njit(cache=True)
def _learn(w: Work, direction: int, needed: int) -> None:
    """Remembers how far searches had to look lately: most of the next ones will not have to look much farther."""
    w.radius[direction] = min(max(w.radius[direction] * 7 // 8 + needed // 4, 1), FARTHEST // 2**10)


@njit(cache=True)
def _gather_near(g: Graph, w: Work, degree: int, direction: int) -> None:
    """Finds the near arcs of all vertices in one pass over the tasks, if there is room for them."""
    arc_head, arc_cost, potential, at, paid = g.arc_head, g.arc_cost, g.potential, g.at, g.paid
    in_start, in_place, near, near_task = g.in_start, g.in_place, w.near, w.near_task
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    within = w.radius[direction] * _KEEP
    vertices = len(near_size)
    w.count[SCANNED] = 0
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
    w.count[NEAR] = total if total <= len(near) else 0
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
    w.count[NEAR] = 0
    w.count[SCANNED] = 0


@njit(cache=True)
def route(g: Graph, w: Work, degree: int, tasks: I64, vertices: I64) -> bool:
    """Routes a unit from each of tasks (K,), then from each of vertices (L,). False: one of them has no path."""
    _start_phase(w)
    for i in range(len(tasks) + len(vertices)):
        task, vertex = (tasks[i], -1) if i < len(tasks) else (-1, vertices[i - len(tasks)])
        if w.count[SCANNED] > len(g.arc_head) // _PATIENCE:
            _gather_near(g, w, degree, FORWARD)
        reach = w.radius[FORWARD]
        while not _forward(g, w, degree, task, vertex, reach):
            if reach == FARTHEST:
                return False
            reach = min(reach * _GROWTH, FARTHEST)
        _learn(w, FORWARD, w.count[NEEDED])
    return True


@njit(cache=True)
def fill(g: Graph, w: Work, degree: int, sink: int, vertices: I64) -> bool:
    """Fetches what each of the vertices (K,) misses. False: one of them has no path."""
    _start_phase(w)
    for vertex in vertices:
        while g.deficit[vertex] > 0:
            if w.count[SCANNED] > len(g.arc_head) // _PATIENCE:
                _gather_near(g, w, degree, BACKWARD)
            reach = w.radius[BACKWARD]
            while not _backward(g, w, degree, sink, vertex, reach):
                if reach == FARTHEST:
                    return False
                reach = min(reach * _GROWTH, FARTHEST)
            _learn(w, BACKWARD, w.count[NEEDED])
    return True
