"""Compiled shortest-path searches that move one unit of flow at a time and keep the potentials valid.

Successive shortest paths (Ahuja, Magnanti, Orlin: Network Flows, 9.7) on reduced costs, stopped early: a search ends
at the first vertex that can take the unit, and only vertices nearer than that get a new potential. Tasks are never
labelled. A task that flows to v is a transit v -> g for each other arc (task -> g), because its potential follows from
the arc that it uses. Everything is compiled by numba at first use and cached beside this file.

Conventions: potential[v] is the cost of moving a unit from v to the sink, so the reduced cost of an arc u -> v is
cost + potential[v] - potential[u], and is never negative where there is residual capacity.

Searches are short because:

- They use a small radius first, and a larger one only if they find no end. A radius without an end raises potentials,
  which later searches benefit from.
- Of vertices with the same label the last one labelled comes first, fixed arcs come before tasks, and the arc that led
  to an end last time comes first of all: on plateaus of zero reduced cost a search leads straight to an end.
- Forward, a task is inspected only if one of its other arcs may be near: `in_least` is a lower bound of their costs
  plus the potentials of their heads. It stays valid when potentials rise; `fallen` bounds by how much any has fallen
  since. So most tasks need one comparison per round.
- Backward, a vertex is scanned once per phase. Searches of a phase only lower potentials, so reduced costs into a
  vertex fall only by the change of its own potential; arcs that were far away still are, and only those that were near
  are inspected again.

They wait less for memory because cache lines are prefetched in blocks as soon as their addresses are known: a network
of many nodes does not fit the caches of a core.
"""

from firmament_py.flow.incremental.dijkstra import begin, give_label, next_step, update_potentials
from firmament_py.flow.incremental.layout import (
    BACKWARD,
    BEGIN,
    COST_SHIFT,
    COUNT,
    CURSOR,
    DISTANCE,
    END,
    FAR,
    FLOWS,
    FORWARD,
    HEAD,
    HEAD_BITS,
    INTO,
    INTO_END,
    NEAR,
    NEEDED,
    OUT,
    OUT_END,
    POTENTIAL,
    RANGE,
    REDUCED,
    RESIDUAL,
    SCANNED,
    SHORTCUT,
    SIZE_IN,
    START,
    TASK,
    TASK_BITS,
    USED,
    VERTEX_SHIFT,
    WORD,
    Graph,
    Work,
    move_task,
    push,
)
from firmament_py.flow.incremental.numba_intrinsics import prefetch
from firmament_py.model.arrays import I64
from firmament_py.numba_cache import inlined, inner

KEEP = 16
"""Arcs are near up to this multiple of what the current search needs."""

_AHEAD = 32
"""Number of tasks whose arcs are prefetched at a time."""


@inlined
def _prefetch_rows(arc: I64, in_word: I64, in_least: I64, degree: int, begin: int, end: int, bound: int) -> None:
    """Prefetches the arcs of the tasks at begin to end of in_word with another arc that may cost less than `most`."""
    for i in range(begin, end):
        if in_least[i] - (in_word[i] >> TASK_BITS) < bound:
            row = (in_word[i] & TASK) * degree
            for a in range(row, row + degree, 8):
                prefetch(arc, a)
            prefetch(arc, row + degree - 1)


@inlined
def _prefetch_tasks(now: I64, in_word: I64, begin: int, end: int) -> None:
    """Prefetches the vertices of the tasks at begin to end of in_word."""
    for i in range(begin, end):
        prefetch(now, in_word[i] & TASK)


@inlined
def _prefetch_move(g: Graph, degree: int, task: int) -> None:
    prefetch(g.now, task)
    prefetch(g.chosen, task)
    prefetch(g.arc, task * degree)
    prefetch(g.in_place, task * degree)
    prefetch(g.in_place, (task + 1) * degree - 1)


@inlined
def _prefetch_push(g: Graph, arc: int) -> None:
    prefetch(g.flow, arc)
    prefetch(g.capacity, arc)
    prefetch(g.into_place, arc)


@inlined
def _keep_near(near: I64, near_of: I64, tally: I64, word: int, reduced: int) -> bool:
    """Adds to the near arcs of a vertex; if the array is full, the near arcs of all vertices are dropped."""
    i = tally[NEAR]
    if i == len(near):
        near_of[:, COUNT] = -1
        tally[NEAR] = 0
        return False
    near[i, WORD] = word
    near[i, REDUCED] = reduced
    tally[NEAR] += 1
    return True


@inlined
def _cheapest(arc: I64, degree: int, task: int, head: int) -> int:
    """The cheapest arc of a task to `head`."""
    cheapest = -1
    for a in range(task * degree, (task + 1) * degree):
        if arc[a] & HEAD == head and (cheapest < 0 or arc[a] < arc[cheapest]):
            cheapest = a
    return cheapest


@inlined
def _by_task(task: int, v: int) -> int:
    """A Work.via: from v, V if the task is unrouted, along an arc of a task; backward, along an arc of a task to v."""
    return -1 - (v << TASK_BITS | task)


@inlined
def _task_of(via: int) -> int:
    return (-1 - via) & TASK


@inlined
def _other_end(via: int) -> int:
    return (-1 - via) >> TASK_BITS


@inlined
def _before(g: Graph, via: int, direction: int) -> int:
    """The vertex that a label came from."""
    if via < 0:
        return _other_end(via)
    return int(g.tail[via >> 1] if (via & 1) == direction else g.head[via >> 1])


@inlined
def _change_flow(g: Graph, w: Work, degree: int, direction: int, end: int, vertex: int) -> None:
    """Sends one unit along the path of labels that leads to `end` from `vertex`, or from an unrouted task."""
    nowhere, v = len(g.deficit), end
    while v != vertex and v != nowhere:
        via = w.via[v]
        if via < 0:
            _prefetch_move(g, degree, _task_of(via))
        else:
            _prefetch_push(g, via >> 1)
        v = _before(g, via, direction)
    v = end
    while v != vertex and v != nowhere:
        via = w.via[v]
        u = _before(g, via, direction)
        if via < 0:
            head = v if direction == FORWARD else u
            move_task(g, _task_of(via), _cheapest(g.arc, degree, _task_of(via), head))
        else:
            push(g, via >> 1, -1 if via & 1 else 1)
            if (via & 1) == direction:
                g.vertex[u, CURSOR + direction] = (via >> 1) - g.vertex[u, OUT]
        v = u


@inner
def augment_forward(g: Graph, w: Work, degree: int, task: int, vertex: int, radius: int) -> bool:
    """Routes one unit from an unrouted task (or, task < 0, from a vertex) to the nearest vertex with a deficit.

    False if there is none within the radius; then the potentials have changed by as much as the radius allows.
    """
    label, via, lists, tally, potential, deficit = w.label, w.via, w.lists, w.tally, g.potential, g.deficit
    places, out_word, into_word, into_arc = g.vertex, g.out_word, g.into_word, g.into_arc
    arc, in_word, in_least, fallen = g.arc, g.in_word, g.in_least, g.fallen[0]
    vertices, nearest = len(deficit), 0
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
                    how = _by_task(task, vertices)
                    give_label(label, via, lists, tally, v, distance, how, -FAR, deficit[v] > 0)
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
            prefetch(in_word, places[v, START])
            prefetch(in_least, places[v, START])
            first, size = places[v, OUT], places[v, OUT_END] - places[v, OUT]
            for j in range(size - 1, -1, -1):  # the last one pushed is followed first
                i = places[v, CURSOR + FORWARD] + j
                i = first + (i if i < size else i - size)
                word = out_word[i]
                if word & RESIDUAL:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base + (word >> COST_SHIFT) + potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * i, now, deficit[u] > 0)
            for i in range(places[v, INTO], places[v, INTO_END]):
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
        first, last = places[v, START], places[v, START] + places[v, USED]
        for i in range(first, last):
            if (i - first) % _AHEAD == 0:
                bound = tally[DISTANCE] - base + fallen
                _prefetch_rows(arc, in_word, in_least, degree, i, min(i + _AHEAD, last), bound)
            start = base - (in_word[i] >> TASK_BITS)
            if start + in_least[i] - fallen >= tally[DISTANCE]:
                continue
            t = in_word[i] & TASK
            least = FAR
            for a in range(t * degree, (t + 1) * degree):
                u = arc[a] & HEAD
                if u < vertices and u != v:
                    through = (arc[a] >> HEAD_BITS) + potential[u]
                    least = min(least, through)
                    distance = start + through
                    if distance < tally[DISTANCE] and distance < label[u]:
                        how = _by_task(t, v)
                        give_label(label, via, lists, tally, u, distance, how, now, deficit[u] > 0)
                        if places[u, SHORTCUT] >= 0:
                            _shortcut_to_sink(g, w, u, now)
            in_least[i] = least + fallen
    end = tally[END]
    tally[NEEDED] = tally[DISTANCE] - nearest
    if end >= 0:
        deficit[end] -= 1
        _change_flow(g, w, degree, FORWARD, end, vertex)
    update_potentials(potential, label, lists, tally, 1)
    return bool(end >= 0)


@inner
def _shortcut_to_sink(g: Graph, w: Work, v: int, now: int) -> None:
    """Follows the shortcut of v at once: vertices farther than a known end need no label."""
    while g.vertex[v, SHORTCUT] >= 0 and w.tally[END] != v:
        a = g.vertex[v, SHORTCUT]
        word = g.out_word[a]
        u = word >> VERTEX_SHIFT & HEAD
        distance = w.label[v] + (word >> COST_SHIFT) + g.potential[u] - g.potential[v]
        if not word & RESIDUAL or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        how = 2 * a
        give_label(w.label, w.via, w.lists, w.tally, u, distance, how, now, g.deficit[u] > 0)
        v = u


@inner
def _shortcut_from_sink(g: Graph, w: Work, v: int, sink: int, now: int) -> None:
    """_shortcut_to_sink in the reverse direction."""
    while g.vertex[v, SHORTCUT] >= 0:
        a = g.vertex[v, SHORTCUT]
        word = g.out_word[a]
        u = word >> VERTEX_SHIFT & HEAD
        distance = w.label[v] + g.potential[v] - (word >> COST_SHIFT) - g.potential[u]
        if not word & FLOWS or distance >= w.label[u] or distance >= w.tally[DISTANCE]:
            return
        how = 2 * a + 1
        give_label(w.label, w.via, w.lists, w.tally, u, distance, how, now, u == sink)
        v = u


@inner
def augment_backward(g: Graph, w: Work, degree: int, sink: int, vertex: int, radius: int) -> bool:
    """Routes one unit from the sink to a vertex with a deficit, on a shortest path.

    False if it is longer than the radius; then the potentials have changed by as much as the radius allows.
    """
    label, via, lists, tally, potential = w.label, w.via, w.lists, w.tally, g.potential
    places, out_word, into_word, into_arc = g.vertex, g.out_word, g.into_word, g.into_arc
    in_word, here = g.in_word, g.now
    near, near_of, vertices = w.near, w.near_of, len(label)
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
            prefetch(in_word, places[v, START])
            for i in range(places[v, INTO], places[v, INTO_END]):
                word = into_word[i]
                if word & RESIDUAL:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base + (word >> COST_SHIFT) - potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * into_arc[i], now, u == sink)
            first, size = places[v, OUT], places[v, OUT_END] - places[v, OUT]
            for j in range(size - 1, -1, -1):
                i = places[v, CURSOR + BACKWARD] + j
                i = first + (i if i < size else i - size)
                word = out_word[i]
                if word & FLOWS:
                    u = word >> VERTEX_SHIFT & HEAD
                    distance = base - (word >> COST_SHIFT) - potential[u]
                    if distance < label[u] and distance < tally[DISTANCE]:
                        give_label(label, via, lists, tally, u, distance, 2 * i + 1, now, u == sink)
            continue
        v = -1 - step
        now = label[v]
        base = now + potential[v]
        need = tally[DISTANCE] - now
        if near_of[v, COUNT] >= 0 and need + near_of[v, POTENTIAL] - potential[v] <= near_of[v, RANGE]:
            moved = near_of[v, POTENTIAL] - potential[v]
            for i in range(near_of[v, BEGIN], near_of[v, BEGIN] + near_of[v, COUNT]):
                if near[i, REDUCED] - moved < need:
                    prefetch(here, near[i, WORD] & TASK)
            for i in range(near_of[v, BEGIN], near_of[v, BEGIN] + near_of[v, COUNT]):
                if near[i, REDUCED] - moved >= tally[DISTANCE] - now:
                    continue
                task_now = here[near[i, WORD] & TASK]
                u = task_now & HEAD
                distance = base + (near[i, WORD] >> TASK_BITS) - (task_now >> HEAD_BITS) - potential[u]
                if distance < label[u] and distance < tally[DISTANCE]:
                    how = _by_task(near[i, WORD] & TASK, v)
                    give_label(label, via, lists, tally, u, distance, how, now, u == sink)
                    if places[u, SHORTCUT] >= 0:
                        _shortcut_from_sink(g, w, u, sink, now)
            continue
        keep = now + (need * KEEP if need < FAR // (2 * KEEP) else need)
        near_of[v, BEGIN] = tally[NEAR]
        complete = True
        tally[SCANNED] += places[v, SIZE_IN]
        end = places[v, START] + places[v, SIZE_IN]
        for i in range(places[v, START], end):
            if (i - places[v, START]) % (4 * _AHEAD) == 0:
                _prefetch_tasks(here, in_word, i, min(i + 4 * _AHEAD, end))
            word = in_word[i]
            task_now = here[word & TASK]
            u = task_now & HEAD
            if u < vertices:
                distance = base + (word >> TASK_BITS) - (task_now >> HEAD_BITS) - potential[u]
                if distance <= keep:
                    complete = complete and _keep_near(near, near_of, tally, word, distance - now)
                    if distance < tally[DISTANCE] and distance < label[u]:
                        how = _by_task(word & TASK, v)
                        give_label(label, via, lists, tally, u, distance, how, now, u == sink)
                        if places[u, SHORTCUT] >= 0:
                            _shortcut_from_sink(g, w, u, sink, now)
        if complete:
            near_of[v, COUNT] = tally[NEAR] - near_of[v, BEGIN]
            near_of[v, POTENTIAL] = potential[v]
            near_of[v, RANGE] = keep - now
    found = bool(tally[END] >= 0)
    tally[NEEDED] = tally[DISTANCE]
    if found:
        g.deficit[vertex] -= 1
        _change_flow(g, w, degree, BACKWARD, sink, vertex)
    update_potentials(potential, label, lists, tally, -1)
    return found
