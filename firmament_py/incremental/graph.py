"""The arrays of a kept network, and what a search works with, as compiled code sees them."""

from typing import NamedTuple

from numba import njit

from firmament_py.arrays import I32, I64

FAR = 2**62
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
    tally: I64  # (10,) see the indices below
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
"""Indices of Work.tally: lengths of heap, touched, level and later; the nearest end and its distance; since somebody
set it to 0, vertices settled; arcs looked through since near arcs were gathered; length of near; how far the last
search had to look."""

FORWARD, BACKWARD = 0, 1


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
