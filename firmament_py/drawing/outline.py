"""A network as it is to be drawn, without names: what concerns a class or a node, and of each kind of vertex only those
with the largest flow; the others of a kind become one.

Nothing here needs the state of the cluster, so that rounds go on while a large network is outlined.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.flow.certificate import UNREACHED, costs_to
from firmament_py.flow.network import FlowNetwork, Status
from firmament_py.model.arrays import I32, I64, NO_ROWS, Bools
from firmament_py.network.placement_network import PlacementNetwork, VertexKind
from firmament_py.network.telemetry import SolvedNetwork

KINDS = tuple(VertexKind)
_ENDS = KINDS.index(VertexKind.UNSCHEDULED), KINDS.index(VertexKind.SINK)


@dataclass(frozen=True, slots=True)
class Shape:
    """V vertices and A arcs with a flow (A,). kind (V,): positions in KINDS; price (V,): what one more task there would
    cost, UNREACHED if it cannot go on. group (V,): the supply group of each, -1: it is none; likewise node_group, a
    part of `members`, the positions of its nodes from member_start[m] to member_start[m + 1]; and class_vertex (C,) as
    in PlacementNetwork. ordinal (V,): the number of each vertex among those that were made with it, as the domains of
    one limit are, from 1."""

    arcs: FlowNetwork
    flow: I64
    kind: I64
    price: I64
    group: I64
    node_group: I64
    ordinal: I64
    group_class: I64
    group_size: I64
    group_wait: I64
    class_vertex: I64
    members: I64
    member_start: I64


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a shape is drawn. vertex (K,): the vertex that each stands for, the first of several; merged (K,): how
    many those are. Of L arcs: tail, head (L,), positions among the vertices; capacity, flow, and the least and the
    largest cost of the arcs, `arcs` (L,) of them, that each stands for."""

    shape: Shape
    vertex: I64
    merged: I64
    tail: I64
    head: I64
    capacity: I64
    flow: I64
    least_cost: I64
    most_cost: I64
    arcs: I64


def shape_of(solved: SolvedNetwork) -> Shape:
    """The shape of a network; without one, of the arcs on which the tasks of one class go to the cheapest slots."""
    return _of_slots(solved) if solved.network is None else _of_network(solved, solved.network)


def outlined(shape: Shape, limit: int, classes: I64 | None = None, node: int = -1) -> Outline:
    """classes (K,): only what the tasks of these go through; None: all. node: only the way to the node at this
    position, -1: all. limit: that many vertices of each kind, at least 1, and one more for all others."""
    some = np.ones(len(shape.kind), np.bool_)
    if classes is not None:
        begin = np.isin(np.append(shape.group_class, -1)[shape.group], classes)
        begin[shape.class_vertex[classes]] = True
        some &= _reached(begin, shape.arcs.tail, shape.arcs.head)
    if node >= 0:
        of_member = np.repeat(np.arange(len(shape.member_start) - 1), np.diff(shape.member_start))
        end = np.isin(shape.node_group, of_member[shape.members == node])
        some &= _reached(end, shape.arcs.head, shape.arcs.tail) | (shape.kind == _ENDS[1])

    # which vertices stand for themselves, and the number of each in the outline
    through = np.zeros(len(shape.kind), np.int64)
    np.add.at(through, shape.arcs.tail, shape.flow)
    np.add.at(through, shape.arcs.head, shape.flow)
    alone = np.zeros(len(shape.kind), np.bool_)
    for kind in range(len(KINDS)):
        of_kind = np.flatnonzero(some & (shape.kind == kind))
        best = of_kind[np.lexsort((of_kind, shape.price[of_kind], -through[of_kind]))]
        alone[best[: limit if kind not in _ENDS else None]] = True
    key = np.where(alone, np.arange(len(shape.kind)), len(shape.kind) + shape.kind)
    key[~some] = -1
    keys, first, number, merged = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    left_out = int(len(keys) > 0 and keys[0] < 0)  # what is not drawn at all
    number = number.reshape(-1) - left_out

    # arcs between the same two
    shown = np.flatnonzero(some[shape.arcs.tail] & some[shape.arcs.head])
    tail, head = number[shape.arcs.tail[shown]], number[shape.arcs.head[shown]]
    pair, of_arc, count = np.unique(tail * len(keys) + head, return_inverse=True, return_counts=True)
    of_arc = of_arc.reshape(-1)
    capacity, flow = np.zeros(len(pair), np.int64), np.zeros(len(pair), np.int64)
    np.add.at(capacity, of_arc, np.minimum(shape.arcs.capacity[shown], UNREACHED // max(len(shown), 1)))
    np.add.at(flow, of_arc, shape.flow[shown])
    least, largest = np.full(len(pair), np.iinfo(np.int64).max), np.full(len(pair), np.iinfo(np.int64).min)
    np.minimum.at(least, of_arc, shape.arcs.unit_cost[shown])
    np.maximum.at(largest, of_arc, shape.arcs.unit_cost[shown])
    ends = pair // max(len(keys), 1), pair % max(len(keys), 1)
    return Outline(shape, first[left_out:], merged[left_out:], *ends, capacity, flow, least, largest, count)


def _reached(begin: Bools, tail: I32, head: I32) -> Bools:
    """(V,) the vertices to which arcs lead from those of `begin` (V,), these included."""
    reached = begin.copy()
    while True:
        new = head[reached[tail] & ~reached[head]]
        if not len(new):
            return reached
        reached[new] = True


def _of_network(solved: SolvedNetwork, network: PlacementNetwork) -> Shape:
    arcs, solution = network.flow, solved.solution
    starts = np.array([start for _, start in network.kinds])
    run = np.searchsorted(starts, np.arange(len(arcs.supply)), side="right") - 1
    kind = np.array([KINDS.index(of_run) for of_run, _ in network.kinds])[run]
    found = None
    flow = np.zeros(len(arcs.tail), np.int64)
    if solution is not None and solution.status is Status.OPTIMAL:
        flow = solution.flow
        found = costs_to(arcs, flow, int((kind == _ENDS[1]).argmax()))
    price = np.full(len(kind), UNREACHED) if found is None else found
    group, node_group = (
        np.where(kind == KINDS.index(of), np.arange(len(kind)) - starts[run], -1)
        for of in (VertexKind.TASKS, VertexKind.NODES)
    )
    of_groups = network.group_class, network.group_size, network.group_wait, network.class_vertex
    return Shape(
        arcs,
        flow,
        kind,
        price,
        group,
        node_group,
        np.arange(len(kind)) - starts[run] + 1,
        *of_groups,
        members=network.members,
        member_start=network.member_start,
    )


def _of_slots(solved: SolvedNetwork) -> Shape:
    """Tasks of each waiting cost > class > nodes > sink, and what is left to U. No price is known."""
    sent, cls = solved.sent, int(solved.task_class[0])
    nodes, count = (NO_ROWS, NO_ROWS) if sent is None else (sent.node, sent.count)
    wait, size = np.unique(solved.task_wait, return_counts=True)
    groups, used = len(wait), len(nodes)
    at_class, at_node = groups, groups + 1
    unscheduled, sink = at_node + used, at_node + used + 1
    by_wait = np.argsort(-wait)  # those that cost largest to leave waiting are placed first
    before = np.cumsum(size[by_wait]) - size[by_wait]
    placed = np.zeros(groups, np.int64)
    placed[by_wait] = np.clip(int(count.sum()) - before, 0, size[by_wait])
    each, all_nodes = np.arange(groups), at_node + np.arange(used)
    none = np.zeros(used, np.int64)
    tail = np.r_[each, each, np.full(used, at_class), all_nodes, unscheduled]
    head = np.r_[np.full(groups, at_class), np.full(groups, unscheduled), all_nodes, np.full(used, sink), sink]
    cost = np.r_[np.zeros(groups, np.int64), wait, solved.sent_cost, none, 0]
    flow = np.r_[placed, size - placed, count, count, int((size - placed).sum())]
    capacity = np.r_[size, size, count, count, len(solved.task_wait)]
    supply = np.r_[size, 0, none, 0, -len(solved.task_wait)]
    kind = np.repeat([KINDS.index(each) for each in VertexKind][:5], [groups, 1, used, 1, 1])
    vertices = np.arange(len(kind))
    return Shape(
        FlowNetwork(tail.astype(np.int32), head.astype(np.int32), capacity, cost, supply),
        flow,
        kind,
        np.full(len(kind), UNREACHED),
        np.where(vertices < groups, vertices, -1),
        np.where((vertices >= at_node) & (vertices < unscheduled), vertices - at_node, -1),
        np.ones(len(kind), np.int64),
        np.full(groups, cls),
        size,
        wait,
        np.full(len(solved.classes), at_class),
        members=nodes,
        member_start=np.arange(used + 1),
    )
