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

from firmament_py.arrays import I64
from firmament_py.incremental.graph import (
    ARC,
    BACKWARD,
    BEGIN,
    COST_SHIFT,
    COUNT,
    DISTANCE,
    END,
    FAR,
    FLOWS,
    FORWARD,
    HEAD,
    HEAD_BITS,
    INTO,
    INTO_END,
    LAST,
    NEAR,
    NEEDED,
    OUT,
    OUT_END,
    PRICE,
    RANGE,
    REDUCED,
    ROOM,
    SCANNED,
    TASK,
    TASK_BITS,
    VERTEX_SHIFT,
    WHOSE,
    WORD,
    Graph,
    Work,
    move_task,
    push,
)
from firmament_py.incremental.labels import begin, give_label, next_step, reprice

KEEP = 16
"""Near are arcs up to so many times what the search at hand needs."""


@njit(cache=True, forceinline=True)
def _keep_near(near: I64, near_of: I64, tally: I64, arc: int, task: int, word: int, reduced: int) -> bool:
    """Adds to the near arcs of a vertex; if there is no room, everybody's are forgotten."""
    i = tally[NEAR]
    if i == len(near):
        near_of[:, COUNT] = -1
        tally[NEAR] = 0
        return False
    near[i, ARC] = arc
    near[i, WHOSE] = task
    near[i, WORD] = word
    near[i, REDUCED] = reduced
    tally[NEAR] += 1
    return True


@njit(cache=True)
def send(g: Graph, w: Work, degree: int, task: int, vertex: int, radius: int) -> bool:
    """Routes one unit from a task that flows nowhere (or, task < 0, from a vertex) to the nearest that misses one.

    False if there is none within the radius; then the potentials have moved as far as that allows.
    """
    # locals: an array that is taken from a tuple inside of a loop is counted each time
    label, via, lists, tally, potential, deficit = w.label, w.via, w.lists, w.tally, g.potential, g.deficit
    span, out_word, out_arc, into_word, into_arc = g.span, g.out_word, g.out_arc, g.into_word, g.into_arc
    arc, here, next_task, first_task, way_out = g.arc, g.now, g.next_task, g.first_task, g.way_out
    near, near_of, cursor, vertices, nearest = w.near, w.near_of, w.cursor, len(deficit), 0
    if task >= 0:
        nearest = FAR
        for a in range(task * degree, (task + 1) * degree):
            v = arc[a] & HEAD
            if v < vertices:
                nearest = min(nearest, (arc[a] >> HEAD_BITS) + potential[v])
        begin(tally, nearest + radius)
        for a in range(task * degree, (task + 1) * degree):
            v = arc[a] & HEAD
            if v < vertices:
                distance = (arc[a] >> HEAD_BITS) + potential[v]
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
            first, size = span[v, OUT], span[v, OUT_END] - span[v, OUT]
            for j in range(size - 1, -1, -1):  # pushed last is followed first
                i = cursor[v, FORWARD] + j
                i = first + (i if i < size else i - size)
                word = out_word[i]
                if word & ROOM:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base + (word >> COST_SHIFT) + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * out_arc[i], now, deficit[u] > 0)
            for i in range(span[v, INTO], span[v, INTO_END]):
                word = into_word[i]
                if word & FLOWS:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base - (word >> COST_SHIFT) + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * into_arc[i] + 1, now, deficit[u] > 0)
            continue
        v = -1 - step
        now = label[v]
        base = now - potential[v]
        need = tally[DISTANCE] - now
        if near_of[v, COUNT] >= 0 and need + potential[v] - near_of[v, PRICE] <= near_of[v, RANGE]:
            moved = potential[v] - near_of[v, PRICE]
            for i in range(near_of[v, BEGIN], near_of[v, BEGIN] + near_of[v, COUNT]):
                if near[i, REDUCED] - moved >= tally[DISTANCE] - now:
                    continue
                task_now = here[near[i, WHOSE]]
                if task_now & HEAD == v:
                    u = near[i, WORD] & HEAD
                    distance = base + (near[i, WORD] >> HEAD_BITS) - (task_now >> HEAD_BITS) + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, -1 - near[i, ARC], now, deficit[u] > 0)
                        if way_out[u] >= 0:
                            _way_out(g, w, u, now)
            t = first_task[v]
            while t >= 0 and t != near_of[v, LAST]:
                start = base - (here[t] >> HEAD_BITS)
                for a in range(t * degree, (t + 1) * degree):
                    u = arc[a] & HEAD
                    if u < vertices:
                        distance = start + (arc[a] >> HEAD_BITS) + potential[u]
                        if distance < tally[DISTANCE] and distance < label[u]:
                            give_label(label, via, lists, tally, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
                t = next_task[t]
            continue
        keep = now + (need * KEEP if need < FAR // (2 * KEEP) else need)
        near_of[v, BEGIN] = tally[NEAR]
        kept = True
        t = first_task[v]
        while t >= 0:
            tally[SCANNED] += degree
            start = base - (here[t] >> HEAD_BITS)
            for a in range(t * degree, (t + 1) * degree):
                word = arc[a]
                u = word & HEAD
                if u < vertices:
                    distance = start + (word >> HEAD_BITS) + potential[u]
                    if distance <= keep:
                        kept = kept and _keep_near(near, near_of, tally, a, t, word, distance - now)
                        if distance < tally[DISTANCE] and distance < label[u]:
                            give_label(label, via, lists, tally, u, distance, -1 - a, now, deficit[u] > 0)
                            if way_out[u] >= 0:
                                _way_out(g, w, u, now)
            t = next_task[t]
        if kept:
            near_of[v, COUNT] = tally[NEAR] - near_of[v, BEGIN]
            near_of[v, PRICE] = potential[v]
            near_of[v, RANGE] = keep - now
            near_of[v, LAST] = first_task[v]
    end = tally[END]
    tally[NEEDED] = tally[DISTANCE] - nearest
    if end >= 0:
        deficit[end] -= 1
        v = end
        while v != vertex:
            how = via[v]
            if how < 0:
                t = (-1 - how) // degree
                v = here[t] & HEAD
                move_task(g, t, -1 - how)
                if v == vertices:
                    break
                if near_of[v, LAST] == t:
                    near_of[v, COUNT] = -1  # who came later is not known any more
            elif how & 1:
                push(g, how >> 1, -1)
                v = g.head[how >> 1]
            else:
                push(g, how >> 1, 1)
                v = g.tail[how >> 1]
                cursor[v, FORWARD] = g.out_place[how >> 1] - span[v, OUT]
    reprice(potential, label, lists, tally, 1)
    return bool(end >= 0)


@njit(cache=True)
def _way_out(g: Graph, w: Work, v: int, now: int) -> None:
    """Follows the way out of v at once: what is farther than an end that is known need not be labelled."""
    while g.way_out[v] >= 0 and w.tally[END] != v:
        word = g.out_word[g.way_out[v]]
        u = word >> VERTEX_SHIFT & HEAD
        distance = w.label[v] + (word >> COST_SHIFT) + g.potential[u] - g.potential[v]
        if not word & ROOM or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        how = 2 * g.out_arc[g.way_out[v]]
        give_label(w.label, w.via, w.lists, w.tally, u, distance, how, now, g.deficit[u] > 0)
        v = u


@njit(cache=True)
def _way_in(g: Graph, w: Work, v: int, sink: int, now: int) -> None:
    """_way_out against the arcs."""
    while g.way_out[v] >= 0:
        word = g.out_word[g.way_out[v]]
        u = word >> VERTEX_SHIFT & HEAD
        distance = w.label[v] + g.potential[v] - (word >> COST_SHIFT) - g.potential[u]
        if not word & FLOWS or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        how = 2 * g.out_arc[g.way_out[v]] + 1
        give_label(w.label, w.via, w.lists, w.tally, u, distance, how, now, u == sink)
        v = u


@njit(cache=True)
def fetch(g: Graph, w: Work, degree: int, sink: int, vertex: int, radius: int) -> bool:
    """Fetches one unit from the sink to a vertex that misses it, on the shortest path to there.

    False if it is longer than the radius; then the potentials have moved as far as that allows.
    """
    label, via, lists, tally, potential = w.label, w.via, w.lists, w.tally, g.potential
    span, out_word, out_arc, into_word, into_arc = g.span, g.out_word, g.out_arc, g.into_word, g.into_arc
    in_start, in_size, in_arc, in_word, here, way_out = g.in_start, g.in_size, g.in_arc, g.in_word, g.now, g.way_out
    near, near_of, cursor, vertices = w.near, w.near_of, w.cursor, len(label)
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
            for i in range(span[v, INTO], span[v, INTO_END]):
                word = into_word[i]
                if word & ROOM:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base + (word >> COST_SHIFT) - potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * into_arc[i], now, u == sink)
            first, size = span[v, OUT], span[v, OUT_END] - span[v, OUT]
            for j in range(size - 1, -1, -1):
                i = cursor[v, BACKWARD] + j
                i = first + (i if i < size else i - size)
                word = out_word[i]
                if word & FLOWS:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base - (word >> COST_SHIFT) - potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * out_arc[i] + 1, now, u == sink)
            continue
        v = -1 - step
        now = label[v]
        base = now + potential[v]
        need = tally[DISTANCE] - now
        if near_of[v, COUNT] >= 0 and need + near_of[v, PRICE] - potential[v] <= near_of[v, RANGE]:
            moved = near_of[v, PRICE] - potential[v]
            for i in range(near_of[v, BEGIN], near_of[v, BEGIN] + near_of[v, COUNT]):
                if near[i, REDUCED] - moved >= tally[DISTANCE] - now:
                    continue
                task_now = here[near[i, WHOSE]]
                u = task_now & HEAD
                distance = base + (near[i, WORD] >> TASK_BITS) - (task_now >> HEAD_BITS) - potential[u]
                if distance < label[u] and distance < tally[DISTANCE]:
                    give_label(label, via, lists, tally, u, distance, -1 - near[i, ARC], now, False)
                    if way_out[u] >= 0:
                        _way_in(g, w, u, sink, now)
            continue
        keep = now + (need * KEEP if need < FAR // (2 * KEEP) else need)
        near_of[v, BEGIN] = tally[NEAR]
        kept = True
        tally[SCANNED] += in_size[v]
        for i in range(in_start[v], in_start[v] + in_size[v]):
            word = in_word[i]
            task_now = here[word & TASK]
            u = task_now & HEAD
            if u < vertices:
                distance = base + (word >> TASK_BITS) - (task_now >> HEAD_BITS) - potential[u]
                if distance <= keep:
                    kept = kept and _keep_near(near, near_of, tally, in_arc[i], word & TASK, word, distance - now)
                    if distance < tally[DISTANCE] and distance < label[u]:
                        give_label(label, via, lists, tally, u, distance, -1 - in_arc[i], now, False)
                        if way_out[u] >= 0:
                            _way_in(g, w, u, sink, now)
        if kept:
            near_of[v, COUNT] = tally[NEAR] - near_of[v, BEGIN]
            near_of[v, PRICE] = potential[v]
            near_of[v, RANGE] = keep - now
    found = bool(tally[END] >= 0)
    tally[NEEDED] = tally[DISTANCE]
    if found:
        g.deficit[vertex] -= 1
        v = sink
        while v != vertex:
            how = via[v]
            if how < 0:
                move_task(g, (-1 - how) // degree, -1 - how)
                v = g.arc[-1 - how] & HEAD
            elif how & 1:
                push(g, how >> 1, -1)
                v = g.tail[how >> 1]
                cursor[v, BACKWARD] = g.out_place[how >> 1] - span[v, OUT]
            else:
                push(g, how >> 1, 1)
                v = g.head[how >> 1]
    reprice(potential, label, lists, tally, -1)
    return found
