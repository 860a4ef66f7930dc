r"""The flow network of a round: arrays of vertices and arcs, and how to read a flow back.

    supply groups ---> class aggregators ---> node groups ===> sink
          \------------> unscheduled U ---------------------/

Units of flow are tasks. Two exact reductions keep it small:

- Waiting tasks of one class that cost the same to leave waiting are one *supply group*; a group's arc to U
  carries that cost. (U has no capacity, so one vertex serves the U_j of all jobs.)
- Nodes that look the same to every waiting class (same slots, same prices) are one *node group* of m members;
  capacities are m-fold. A flow through a group can be dealt to the members evenly without changing its cost,
  since slot costs do not fall (extract.py does it).

The double arrow stands for the slot arcs: parallel arcs of rising cost, each a slot or a run of slots.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.arrays import I32, I64, mix, run_positions
from firmament_py.policy import Prices

_EXACT_SLOTS = 16
"""Slots of a node that are priced one by one beyond twice the mean need; further ones in runs that double."""


@dataclass(frozen=True, slots=True)
class FlowNetwork:
    """V vertices and A arcs; supply is positive at sources, negative at the sink, and adds up to 0."""

    tail: I32  # (A,)
    head: I32  # (A,)
    capacity: I64  # (A,) >= 0
    unit_cost: I64  # (A,)
    supply: I64  # (V,)


@dataclass(frozen=True, slots=True)
class PlacementNetwork:
    """A FlowNetwork and what its arcs stand for. G supply groups, C classes, M node groups.

    Arcs come in this order: G from groups to classes, G from groups to U, P from classes to node groups, the
    slot arcs, one from U to the sink. Vertices: groups, classes, node groups, U, sink.
    """

    flow: FlowNetwork
    group_class: I64  # (G,) ascending
    group_size: I64  # (G,) tasks
    group_wait: I64  # (G,) cost of leaving one waiting
    arc_class: I64  # (P,)
    arc_node_group: I64  # (P,)
    members: I64  # (N',) nodes, group after group
    member_start: I64  # (M + 1,): group m is members[member_start[m]:member_start[m + 1]]

    def placed_from_groups(self, flow: I64) -> I64:
        """(G,) tasks of each supply group that `flow` (A,) places."""
        return flow[: len(self.group_class)]

    def placed_on_nodes(self, flow: I64) -> I64:
        """(P,) tasks on each class > node group arc."""
        groups = len(self.group_class)
        return flow[2 * groups : 2 * groups + len(self.arc_class)]


def slot_offsets(waiting: int, slots: I64) -> I64:
    """(K,) from how many further tasks on a node its slots should be priced anew, for slots (C, N).

    One by one as far as an even spread could plausibly reach, then in runs of doubling length: an upper bound on
    the number of slot arcs that does not grow with what a node could hold.
    """
    most = slots.max(axis=0, initial=0)
    open_nodes = max(int((most > 0).sum()), 1)
    exact = 2 * -(-waiting // open_nodes) + _EXACT_SLOTS
    deepest = int(most.max(initial=0))
    offsets = list(range(min(exact, max(deepest, 1))))
    step = 1
    while offsets[-1] + step < deepest:
        offsets.append(offsets[-1] + step)
        step *= 2
    return np.array(offsets, np.int64)


def build(slots: I64, prices: Prices, offsets: I64, task_class: I64) -> PlacementNetwork:
    """The network for slots (C, N), prices, slot offsets (K,) and the waiting tasks' classes (T,), ascending.

    Classes without a slot anywhere must have been left out of `task_class` (their slots rows are ignored).
    """
    classes = len(slots)
    group_class, group_wait, group_size = _supply_groups(task_class, prices.wait)
    members, member_start, first = _node_groups(slots, prices)
    sizes = np.diff(member_start)
    groups, node_groups = len(group_class), len(first)
    at_class, at_node, unscheduled = groups, groups + classes, groups + classes + node_groups
    sink = unscheduled + 1
    total = int(group_size.sum())

    group_slots = slots[:, first]
    waiting = np.bincount(task_class, minlength=classes)
    arc_class, arc_node = np.nonzero((group_slots > 0) & (waiting > 0)[:, None])
    place = np.broadcast_to(prices.place, slots.shape)[arc_class, first[arc_node]]
    arc_capacity = np.minimum(group_slots[arc_class, arc_node] * sizes[arc_node], waiting[arc_class])

    # slot arcs: run k of node group m covers slots offsets[k] .. offsets[k + 1], cut at the most it can take
    most = group_slots.max(axis=0, initial=0)
    runs = np.searchsorted(offsets, most)  # offsets[runs - 1] < most
    slot_node = np.repeat(np.arange(node_groups), runs)
    k = run_positions(runs)
    ends = np.append(offsets[1:], np.iinfo(np.int64).max)
    width = np.minimum(ends[k], most[slot_node]) - offsets[k]
    slot_cost = np.broadcast_to(prices.slot, (slots.shape[1], len(offsets)))[first[slot_node], k]

    each_group = np.arange(groups)
    arcs = [
        (each_group, at_class + group_class, group_size, np.zeros(groups, np.int64)),
        (each_group, np.full(groups, unscheduled), group_size, group_wait),
        (at_class + arc_class, at_node + arc_node, arc_capacity, place),
        (at_node + slot_node, np.full(len(k), sink), width * sizes[slot_node], slot_cost),
        (np.array([unscheduled]), np.array([sink]), np.array([total]), np.array([0])),
    ]
    tail, head, capacity, unit_cost = (np.concatenate(column) for column in zip(*arcs, strict=True))
    supply = np.zeros(sink + 1, np.int64)
    supply[:groups] = group_size
    supply[sink] = -total
    return PlacementNetwork(
        flow=FlowNetwork(
            tail.astype(np.int32),
            head.astype(np.int32),
            capacity.astype(np.int64),
            unit_cost.astype(np.int64),
            supply,
        ),
        group_class=group_class,
        group_size=group_size,
        group_wait=group_wait,
        arc_class=arc_class,
        arc_node_group=arc_node,
        members=members,
        member_start=member_start,
    )


def _supply_groups(task_class: I64, wait: I64) -> tuple[I64, I64, I64]:
    """Class, waiting cost and size of each group, (G,) each, by class, then dearest first."""
    order = np.lexsort((-wait, task_class))
    cls, cost = task_class[order], wait[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(cls) != 0) | (np.diff(cost) != 0)]) if len(cls) else order
    return cls[starts], cost[starts], np.diff(np.r_[starts, len(cls)])


def _node_groups(slots: I64, prices: Prices) -> tuple[I64, I64, I64]:
    """members, member_start and one representative of each group; nodes that nobody can use are left out."""
    usable = np.flatnonzero((slots > 0).any(axis=0))
    looks = mix(slots[:, usable], seed=1)
    if prices.place.shape[1] > 1:
        looks = looks + mix(prices.place[:, usable], seed=2)
    if prices.slot.shape[0] > 1:
        looks = looks + mix(np.ascontiguousarray(prices.slot[usable].T), seed=3)
    _, first, group, sizes = np.unique(looks, return_index=True, return_inverse=True, return_counts=True)
    members = usable[np.argsort(group, kind="stable")]
    return members, np.r_[0, np.cumsum(sizes)].astype(np.int64), usable[first]
