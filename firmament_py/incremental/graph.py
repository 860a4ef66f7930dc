"""The arrays of a kept network, and what a search works with, as compiled code sees them."""

from typing import NamedTuple

from numba import njit

from firmament_py.arrays import I32, I64

FAR = 2**62
"""A label of what was not reached."""

FARTHEST = FAR // 2
"""No path is longer than this in reduced costs (network.py keeps the ranges of costs and of vertices)."""

HEAD_BITS = 19
"""An arc of a task is one word, `cost << HEAD_BITS | head`: who reads it waits for memory once. VERTICES_MAX and one
more, for no arc, fit the low bits, COST_MAX with its sign the others."""

HEAD = (1 << HEAD_BITS) - 1

TASK_BITS = 22
"""An arc seen from its head is `cost << TASK_BITS | task`."""

TASK = (1 << TASK_BITS) - 1

VERTEX_SHIFT = 2
COST_SHIFT = VERTEX_SHIFT + HEAD_BITS
ROOM, FLOWS = 1, 2
"""A fixed arc seen from one of its ends is `cost << COST_SHIFT | other end << VERTEX_SHIFT | FLOWS? | ROOM?`."""


class Graph(NamedTuple):
    """Arrays of the network and its flow, shared with the TaskNetwork that owns them. D arcs a task; V vertices."""

    arc: I64  # (T * D,) arcs of tasks, head V: no arc; arc a belongs to task a // D
    chosen: I64  # (T,) arc that carries the task's unit, -1: none
    now: I64  # (T,) copy of the chosen arc; V: none
    next_task: I32  # (T,) the list of the tasks at a vertex; -1 ends it
    previous_task: I32  # (T,)
    first_task: I32  # (V,)
    in_arc: I32  # (..,) task arcs into v: in_arc[in_start[v] : in_start[v] + in_size[v]]
    in_word: I64  # (..,) what they cost and whose they are
    in_place: I32  # (T * D,) where a task arc is among those into its head
    in_start: I64  # (V + 1,)
    in_size: I64  # (V,)
    tail: I32  # (F,) fixed arcs, from vertex to vertex
    head: I32  # (F,)
    cost: I64  # (F,)
    capacity: I64  # (F,)
    flow: I64  # (F,)
    span: I32  # (V, 4) where the fixed arcs out of v begin and end in out_arc, and those into v in into_arc
    out_arc: I32  # (F,) fixed arcs by tail
    out_place: I32  # (F,) where an arc is in out_arc
    out_word: I64  # (F,) in the order of out_arc: heads, and what a search must know; see obey_prices and push
    into_arc: I32  # (F,) fixed arcs by head
    into_place: I32  # (F,)
    into_word: I64  # (F,) in the order of into_arc: tails, and what a search must know
    potential: I64  # (V,)
    deficit: I64  # (V,) units that are missing at a vertex
    way_out: I32  # (V,) place in out_arc of an arc that never fills up, on a path of such arcs to the sink; -1: none


class Work(NamedTuple):
    """Scratch of searches. Between them label is FAR and lists[PLACE] is -1."""

    label: I64  # (V,)
    via: I64  # (V,) how the label came: 2a fixed arc a, 2a + 1 its reverse, -1 - a task arc a
    lists: I32  # (5, V) see the indices below
    tally: I64  # (10,) see the indices below
    cursor: I32  # (V, 2) forward, backward: which fixed arc out of v led to an end last time
    radius: I64  # (2,) forward, backward: where to look first
    near: I64  # (.., 4) arcs of tasks that were near a vertex, see the indices below; near_of says which
    near_of: I64  # (V, 8) see the indices below; 8 words are a line of the cache


HEAP, PLACE, TOUCHED, LEVEL, LATER = range(5)
"""Rows of Work.lists: a binary heap of labelled vertices; each one's position in it, -1: none; all that have a label;
stack of those whose label is the one being worked on; stack of those whose tasks come after their fixed arcs."""

SIZE, LABELLED, LEVELS, LATERS, END, DISTANCE, SETTLED, SCANNED, NEAR, NEEDED = range(10)
"""Indices of Work.tally: lengths of heap, touched, level and later; the nearest end and its distance; since somebody
set it to 0, vertices settled; arcs looked through since near arcs were gathered; length of near; how far the last
search had to look."""

BEGIN, COUNT, RANGE, PRICE, LAST = range(5)
"""Columns of Work.near_of: where the near arcs of a vertex begin; how many there are, -1: it was not looked through in
this phase; up to which reduced cost; its potential at that time; forward: the first task in its list at that time,
those before it came later."""

ARC, WHOSE, WORD, REDUCED = range(4)
"""Columns of Work.near: the arc; its task; forward, itself, backward, as seen from its head; its reduced cost then."""

FORWARD, BACKWARD = 0, 1

OUT, OUT_END, INTO, INTO_END = range(4)
"""Columns of Graph.span."""


@njit(cache=True)
def move_task(g: Graph, task: int, arc: int) -> None:
    """Lets the task flow through `arc`, -1: not at all."""
    vertices = len(g.deficit)
    here = g.now[task] & HEAD
    if here < vertices:
        before, after = g.previous_task[task], g.next_task[task]
        if before >= 0:
            g.next_task[before] = after
        else:
            g.first_task[here] = after
        if after >= 0:
            g.previous_task[after] = before
    g.chosen[task] = arc
    if arc < 0:
        g.now[task] = vertices
        return
    word = g.arc[arc]
    there = word & HEAD
    first = g.first_task[there]
    g.now[task] = word
    g.previous_task[task] = -1
    g.next_task[task] = first
    if first >= 0:
        g.previous_task[first] = task
    g.first_task[there] = task


@njit(cache=True)
def show(g: Graph, a: int) -> None:
    """Tells both ends of fixed arc `a` what it is like now."""
    state = (ROOM if g.flow[a] < g.capacity[a] else 0) | (FLOWS if g.flow[a] > 0 else 0)
    g.out_word[g.out_place[a]] = g.cost[a] << COST_SHIFT | g.head[a] << VERTEX_SHIFT | state
    g.into_word[g.into_place[a]] = g.cost[a] << COST_SHIFT | g.tail[a] << VERTEX_SHIFT | state


@njit(cache=True)
def push(g: Graph, a: int, units: int) -> None:
    """Adds to the flow of fixed arc `a`."""
    g.flow[a] += units
    show(g, a)
