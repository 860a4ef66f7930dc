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

from numba import njit

from firmament_py.arrays import I32, I64
from firmament_py.incremental.graph import (
    BACKWARD,
    DISTANCE,
    END,
    FAR,
    FORWARD,
    NEAR,
    NEEDED,
    SCANNED,
    Graph,
    Work,
    move_task,
)
from firmament_py.incremental.labels import begin, give_label, next_step, reprice

KEEP = 16
"""Near are arcs up to so many times what the search at hand needs."""


@njit(cache=True, forceinline=True)
def _keep_near(
    near: I32, near_task: I32, near_cost: I64, near_size: I64, tally: I64, entry: int, task: int, reduced: int
) -> bool:
    """Adds to the near arcs of a vertex; if there is no room, everybody's are forgotten."""
    if tally[NEAR] == len(near):
        near_size[:] = -1
        tally[NEAR] = 0
        return False
    near[tally[NEAR]] = entry
    near_task[tally[NEAR]] = task
    near_cost[tally[NEAR]] = reduced
    tally[NEAR] += 1
    return True


@njit(cache=True)
def send(g: Graph, w: Work, degree: int, task: int, vertex: int, radius: int) -> bool:
    """Routes one unit from a task that flows nowhere (or, task < 0, from a vertex) to the nearest that misses one.

    False if there is none within the radius; then the potentials have moved as far as that allows.
    """
    # locals: an array that is taken from a tuple inside of a loop is counted each time
    label, via, lists, tally, potential, deficit = w.label, w.via, w.lists, w.tally, g.potential, g.deficit
    tail, head, cost, capacity, flow, way_out = g.tail, g.head, g.cost, g.capacity, g.flow, g.way_out
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    arc_head, arc_cost, paid, next_task, at = g.arc_head, g.arc_cost, g.paid, g.next_task, g.at
    near_price, near_range, first_task, out_place = w.near_price, w.near_range, g.first_task, g.out_place
    cursor, near, near_task, near_last = w.cursor, w.near, w.near_task, w.near_last
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    vertices, nearest = len(deficit), 0
    if task >= 0:
        nearest = FAR
        for a in range(task * degree, (task + 1) * degree):
            if arc_head[a] < vertices:
                nearest = min(nearest, arc_cost[a] + potential[arc_head[a]])
        begin(tally, nearest + radius)
        for a in range(task * degree, (task + 1) * degree):
            v = arc_head[a]
            if v < vertices:
                distance = arc_cost[a] + potential[v]
                if distance < label[v] and distance < tally[DISTANCE]:
                    give_label(label, via, lists, tally, v, distance, -1 - a, -FAR, deficit[v] > 0)
    else:
        begin(tally, radius)
        give_label(label, via, lists, tally, vertex, 0, 0, -FAR, deficit[vertex] > 0)
    while True:
        step = next_step(label, lists, tally)
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
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * a, now, deficit[u] > 0)
            for i in range(into_start[v], into_start[v + 1]):
                a = into_arc[i]
                if flow[a] > 0:
                    u = tail[a]
                    distance = base - cost[a] + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * a + 1, now, deficit[u] > 0)
            continue
        v = -1 - step
        now = label[v]
        base = now - potential[v]
        need = tally[DISTANCE] - now
        if near_size[v] >= 0 and need + potential[v] - near_price[v] <= near_range[v]:
            moved = potential[v] - near_price[v]
            for i in range(near_start[v], near_start[v] + near_size[v]):
                if near_cost[i] - moved >= tally[DISTANCE] - now:
                    continue
                a = near[i]
                t = near_task[i]
                if at[t] == v:
                    u = arc_head[a]
                    distance = base + arc_cost[a] - paid[t] + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, -1 - a, now, deficit[u] > 0)
                        if way_out[u] >= 0:
                            _way_out(g, w, u, now)
            t = first_task[v]
            while t >= 0 and t != near_last[v]:
                start = base - paid[t]
                for a in range(t * degree, (t + 1) * degree):
                    u = arc_head[a]
                    if u < vertices:
                        distance = start + arc_cost[a] + potential[u]
                        if distance < tally[DISTANCE] and distance < label[u]:
                            give_label(label, via, lists, tally, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
                t = next_task[t]
            continue
        keep = now + (need * KEEP if need < FAR // (2 * KEEP) else need)
        near_start[v] = tally[NEAR]
        kept = True
        t = first_task[v]
        while t >= 0:
            tally[SCANNED] += degree
            start = base - paid[t]
            for a in range(t * degree, (t + 1) * degree):
                u = arc_head[a]
                if u < vertices:
                    distance = start + arc_cost[a] + potential[u]
                    if distance <= keep:
                        kept = kept and _keep_near(near, near_task, near_cost, near_size, tally, a, t, distance - now)
                        if distance < tally[DISTANCE] and distance < label[u]:
                            give_label(label, via, lists, tally, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
            t = next_task[t]
        if kept:
            near_size[v] = tally[NEAR] - near_start[v]
            near_price[v] = potential[v]
            near_range[v] = keep - now
            near_last[v] = first_task[v]
    end = tally[END]
    tally[NEEDED] = tally[DISTANCE] - nearest
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
    reprice(potential, label, lists, tally, 1)
    return bool(end >= 0)


@njit(cache=True)
def _way_out(g: Graph, w: Work, v: int, now: int) -> None:
    """Follows the way out of v at once: what is farther than an end that is known need not be labelled."""
    while g.way_out[v] >= 0 and w.tally[END] != v:
        a = g.way_out[v]
        u = g.head[a]
        distance = w.label[v] + g.cost[a] + g.potential[u] - g.potential[v]
        if g.flow[a] >= g.capacity[a] or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        give_label(w.label, w.via, w.lists, w.tally, u, distance, 2 * a, now, g.deficit[u] > 0)
        v = u


@njit(cache=True)
def _way_in(g: Graph, w: Work, v: int, sink: int, now: int) -> None:
    """_way_out against the arcs."""
    while g.way_out[v] >= 0:
        a = g.way_out[v]
        u = g.head[a]
        distance = w.label[v] + g.potential[v] - g.cost[a] - g.potential[u]
        if g.flow[a] <= 0 or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        give_label(w.label, w.via, w.lists, w.tally, u, distance, 2 * a + 1, now, u == sink)
        v = u


@njit(cache=True)
def fetch(g: Graph, w: Work, degree: int, sink: int, vertex: int, radius: int) -> bool:
    """Fetches one unit from the sink to a vertex that misses it, on the shortest path to there.

    False if it is longer than the radius; then the potentials have moved as far as that allows.
    """
    label, via, lists, tally, potential = w.label, w.via, w.lists, w.tally, g.potential
    tail, head, cost, capacity, flow, way_out = g.tail, g.head, g.cost, g.capacity, g.flow, g.way_out
    out_start, out_arc, into_start, into_arc = g.out_start, g.out_arc, g.into_start, g.into_arc
    in_start, in_size, in_arc, in_task, in_cost = g.in_start, g.in_size, g.in_arc, g.in_task, g.in_cost
    at, paid, cursor, near, near_task = g.at, g.paid, w.cursor, w.near, w.near_task
    near_cost, near_start, near_size = w.near_cost, w.near_start, w.near_size
    near_price, near_range, out_place = w.near_price, w.near_range, g.out_place
    begin(tally, radius)
    give_label(label, via, lists, tally, vertex, 0, 0, -FAR, False)
    while True:
        step = next_step(label, lists, tally)
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
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * a, now, u == sink)
            size = out_start[v + 1] - out_start[v]
            for j in range(size - 1, -1, -1):
                i = cursor[BACKWARD, v] + j
                a = out_arc[out_start[v] + (i if i < size else i - size)]
                if flow[a] > 0:
                    u = head[a]
                    distance = base - cost[a] - potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * a + 1, now, u == sink)
            continue
        v = -1 - step
        now = label[v]
        base = now + potential[v]
        need = tally[DISTANCE] - now
        if near_size[v] >= 0 and need + near_price[v] - potential[v] <= near_range[v]:
            moved = near_price[v] - potential[v]
            for k in range(near_start[v], near_start[v] + near_size[v]):
                if near_cost[k] - moved >= tally[DISTANCE] - now:
                    continue
                i = near[k]
                t = near_task[k]
                u = at[t]
                distance = base + in_cost[i] - paid[t] - potential[u]
                if distance < label[u] and distance < tally[DISTANCE]:
                    give_label(label, via, lists, tally, u, distance, -1 - in_arc[i], now, False)
                    if way_out[u] >= 0:
                        _way_in(g, w, u, sink, now)
            continue
        keep = now + (need * KEEP if need < FAR // (2 * KEEP) else need)
        near_start[v] = tally[NEAR]
        kept = True
        tally[SCANNED] += in_size[v]
        for i in range(in_start[v], in_start[v] + in_size[v]):
            t = in_task[i]
            u = at[t]
            if u >= 0:
                distance = base + in_cost[i] - paid[t] - potential[u]
                if distance <= keep:
                    kept = kept and _keep_near(near, near_task, near_cost, near_size, tally, i, t, distance - now)
                    if distance < tally[DISTANCE] and distance < label[u]:
                        give_label(label, via, lists, tally, u, distance, -1 - in_arc[i], now, False)
                        if way_out[u] >= 0:
                            _way_in(g, w, u, sink, now)
        if kept:
            near_size[v] = tally[NEAR] - near_start[v]
            near_price[v] = potential[v]
            near_range[v] = keep - now
    found = bool(tally[END] >= 0)
    tally[NEEDED] = tally[DISTANCE]
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
    reprice(potential, label, lists, tally, -1)
    return found
