"""The arrays of an incremental network and the scratch arrays of searches, as compiled code accesses them."""

from typing import NamedTuple

from firmament_py.model.arrays import I32, I64
from firmament_py.numba_cache import inlined, inner

FAR = 2**62
"""The label of an unreached vertex."""

FARTHEST = FAR // 2
"""No path is longer than this in reduced costs (network/build.py keeps the ranges of costs and of vertices)."""

HEAD_BITS = 19
"""An arc of a task is one word, `cost << HEAD_BITS | head`, so that reading it needs one memory access. VERTICES_MAX
plus one, for no arc, fits the low bits, COST_MAX with its sign the others."""

HEAD = (1 << HEAD_BITS) - 1

TASK_BITS = 22
"""An arc seen from its head is `cost << TASK_BITS | task`."""

TASK = (1 << TASK_BITS) - 1

VERTEX_SHIFT = 2
COST_SHIFT = VERTEX_SHIFT + HEAD_BITS
RESIDUAL, FLOWS = 1, 2
"""A fixed arc seen from one of its ends is `cost << COST_SHIFT | other end << VERTEX_SHIFT | FLOWS? | RESIDUAL?`."""


class Graph(NamedTuple):
    """Arrays of the network and its flow, shared with the TaskNetwork that owns them. D arcs per task; V vertices."""

    arc: I64  # (T * D,) arcs of tasks, head V: no arc; arc a belongs to task a // D
    chosen: I64  # (T,) arc that carries the task's unit, -1: none
    now: I64  # (T,) copy of the chosen arc; V: none
    in_arc: I32  # (..,) task arcs by head, those that carry units first
    in_word: I64  # (..,) their costs and tasks
    in_least: I64  # (..,) of a task at v: its arcs to elsewhere, with the potentials of their heads, cost in_least -
    # fallen or more
    in_place: I32  # (T * D,) position of a task arc among those into its head
    vertex: I32  # (V + 1, 16) positions of a vertex's data, see the indices below; a row is a cache line
    tail: I32  # (F,) fixed arcs, from vertex to vertex, ordered by tail
    head: I32  # (F,)
    cost: I64  # (F,)
    capacity: I64  # (F,)
    flow: I64  # (F,)
    out_word: I64  # (F,) heads, and other data of an arc for searches; see show
    into_arc: I32  # (F,) fixed arcs by head
    into_place: I32  # (F,) position of an arc in into_arc
    into_word: I64  # (F,) in the order of into_arc: tails, and data for searches
    potential: I64  # (V,)
    fallen: I64  # (1,) no potential has fallen by more than the growth of this value
    deficit: I64  # (V,) units that a vertex lacks


class Work(NamedTuple):
    """Scratch arrays of searches. Between searches label is FAR and lists[PLACE] is -1."""

    label: I64  # (V,)
    via: I64  # (V,) origin of the label: 2a fixed arc a, 2a + 1 its reverse, below 0 a task, see augment._by_task
    lists: I32  # (5, V) see the indices below
    tally: I64  # (10,) see the indices below
    radius: I64  # (2,) forward, backward: the first radius
    near: I64  # (.., 2) arcs of tasks that were near a vertex, see the indices below; near_of says which
    near_of: I64  # (V, 4) see the indices below


HEAP, PLACE, TOUCHED, LEVEL, LATER = range(5)
"""Rows of Work.lists: a binary heap of labelled vertices; the position of each in it, -1: none; all labelled vertices;
stack of those with the current label; stack of those whose tasks are processed after their fixed arcs."""

SIZE, LABELLED, LEVELS, LATERS, END, DISTANCE, SETTLED, SCANNED, NEAR, NEEDED = range(10)
"""Indices of Work.tally: lengths of heap, touched, level and later; the nearest end and its distance; vertices settled
since the last reset; arcs scanned since near arcs were gathered; length of near; the radius that the last search
needed."""

BEGIN, COUNT, RANGE, POTENTIAL = range(4)
"""Columns of Work.near_of: start of the near arcs of a vertex; their number, -1: it was not scanned in this phase; the
reduced cost up to which arcs are near; its potential at that time."""

WORD, REDUCED = range(2)
"""Columns of Work.near: the arc as seen from its head; its reduced cost when it was added."""

FORWARD, BACKWARD = 0, 1

OUT, OUT_END, INTO, INTO_END, START, SIZE_IN, USED, SHORTCUT, CURSOR = range(9)
"""Columns of Graph.vertex: start and end of the fixed arcs out of it; start and end of those into it in into_arc; start
of the task arcs into it in in_arc (free places follow up to the START of the next vertex); their number; the number of
those, the first ones, that carry units: the tasks at the vertex, stored contiguously for fast scans; a fixed arc that
never fills up, on a path of such arcs to the sink, -1: none; at CURSOR + FORWARD and CURSOR + BACKWARD the fixed arc
that led to an end last time."""

UNKNOWN = -(2**61)
"""An in_least without information: below all sums of costs and potentials."""


@inner
def _swap(g: Graph, i: int, j: int) -> None:
    """Swaps two arcs into the same vertex, at i and j of in_arc."""
    if i != j:
        a, b = g.in_arc[i], g.in_arc[j]
        g.in_arc[i], g.in_arc[j] = b, a
        g.in_word[i], g.in_word[j] = g.in_word[j], g.in_word[i]
        g.in_least[i], g.in_least[j] = g.in_least[j], g.in_least[i]
        g.in_place[a], g.in_place[b] = g.in_place[b], g.in_place[a]


@inner
def move_task(g: Graph, task: int, arc: int) -> None:
    """Routes the task through `arc`, -1: unrouted."""
    vertices, vertex = len(g.deficit), g.vertex
    here = g.now[task] & HEAD
    if here < vertices:
        start = vertex[here, START]
        i = start + g.in_place[g.chosen[task]]
        vertex[here, USED] -= 1
        _swap(g, i, start + vertex[here, USED])
    g.chosen[task] = arc
    if arc < 0:
        g.now[task] = vertices
        return
    word = g.arc[arc]
    there = word & HEAD
    g.now[task] = word
    start = vertex[there, START]
    _swap(g, start + g.in_place[arc], start + vertex[there, USED])
    g.in_least[start + vertex[there, USED]] = UNKNOWN
    vertex[there, USED] += 1


@inlined
def _state(g: Graph, a: int) -> int:
    return (RESIDUAL if g.flow[a] < g.capacity[a] else 0) | (FLOWS if g.flow[a] > 0 else 0)


@inner
def show(g: Graph, a: int) -> None:
    """Updates the copies of fixed arc `a` at both of its ends."""
    state = _state(g, a)
    g.out_word[a] = g.cost[a] << COST_SHIFT | g.head[a] << VERTEX_SHIFT | state
    g.into_word[g.into_place[a]] = g.cost[a] << COST_SHIFT | g.tail[a] << VERTEX_SHIFT | state


@inner
def push(g: Graph, a: int, units: int) -> None:
    """Adds to the flow of fixed arc `a`."""
    g.flow[a] += units
    state = _state(g, a)
    i = g.into_place[a]
    g.out_word[a] = g.out_word[a] & ~(RESIDUAL | FLOWS) | state
    g.into_word[i] = g.into_word[i] & ~(RESIDUAL | FLOWS) | state
