r"""The flow network of a round: arrays of vertices and arcs, and how to read a flow back.

    supply groups ---> class aggregators ---> node groups ===> sink
         \                  \---> domains ---/                 /
          \------------------> unscheduled U -----------------/

Units of flow are tasks. Two exact reductions keep it small:

- Waiting tasks of one class that cost the same to leave waiting are one *supply group*; a group's arc to U
  carries that cost. (U has no capacity, so one vertex serves the U_j of all jobs.)
- Nodes that look the same to every waiting class (same slots, prices, domains) are one *node group* of m members;
  capacities are m-fold. A flow through a group can be dealt to the members evenly without changing its cost,
  since slot costs do not fall (extract.py does it).

The double arrow stands for the slot arcs: parallel arcs of rising cost, each a slot or a run of slots. A class that
may place only so many tasks in a domain (spread, anti-affinity over a zone) reaches its nodes through a vertex for
each domain, or through a second arc to each node where the domain is the node.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.arrays import I32, I64, mix, run_positions
from firmament_py.policy import Prices
from firmament_py.room import DomainLimit, Room

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

    Arcs come in this order: G from groups to classes, G from groups to U, Q from classes or domains to node groups,
    the rest. A pair is a class and a node group that it has an arc to, directly or through a domain; P pairs.
    """

    flow: FlowNetwork
    group_class: I64  # (G,) ascending
    group_size: I64  # (G,) tasks
    group_wait: I64  # (G,) cost of leaving one waiting
    pair_class: I64  # (P,)
    pair_node_group: I64  # (P,) ascending within a class
    arc_pair: I64  # (Q,)
    members: I64  # (N',) nodes, group after group
    member_start: I64  # (M + 1,): group m is members[member_start[m]:member_start[m + 1]]
    member_depth: I64  # (M,) how many tasks each member of a group may be sent

    def placed_from_groups(self, flow: I64) -> I64:
        """(G,) tasks of each supply group that `flow` (A,) places."""
        return flow[: len(self.group_class)]

    def placed_on_nodes(self, flow: I64) -> I64:
        """(P,) tasks of each pair."""
        groups = 2 * len(self.group_class)
        placed = np.zeros(len(self.pair_class), np.int64)
        np.add.at(placed, self.arc_pair, flow[groups : groups + len(self.arc_pair)])
        return placed


@dataclass(slots=True)
class _Arcs:
    """Columns of arcs under construction."""

    tail: list[I64]
    head: list[I64]
    capacity: list[I64]
    cost: list[I64]

    def add(self, tail: I64, head: I64, capacity: I64, cost: I64) -> None:
        self.tail.append(tail)
        self.head.append(head)
        self.capacity.append(capacity)
        self.cost.append(cost)

    def flow_network(self, supply: I64) -> FlowNetwork:
        return FlowNetwork(
            tail=np.concatenate(self.tail).astype(np.int32),
            head=np.concatenate(self.head).astype(np.int32),
            capacity=np.concatenate(self.capacity).astype(np.int64),
            unit_cost=np.concatenate(self.cost).astype(np.int64),
            supply=supply,
        )


def slot_offsets(waiting: int, depth: I64) -> I64:
    """(K,) from how many further tasks on a node its slots should be priced anew, for nodes of `depth` (N,).

    One by one as far as an even spread could plausibly reach, then in runs of doubling length: an upper bound on
    the number of slot arcs that does not grow with what a node could hold.
    """
    open_nodes = max(int((depth > 0).sum()), 1)
    exact = 2 * -(-waiting // open_nodes) + _EXACT_SLOTS
    deepest = int(depth.max(initial=0))
    offsets = list(range(min(exact, max(deepest, 1))))
    step = 1
    while offsets[-1] + step < deepest:
        offsets.append(offsets[-1] + step)
        step *= 2
    return np.array(offsets, np.int64)


def build(room: Room, prices: Prices, offsets: I64, task_class: I64) -> PlacementNetwork:
    """The network for the room there is, prices, slot offsets (K,) and the waiting tasks' classes (T,), ascending.

    Of the limits of each class the first that spans nodes and the first by node are built in; of the others demands
    are kept by `Peers.trim`, and wishes are left to the next solve.
    Classes without a slot anywhere must have been left out of `task_class`.
    """
    slots, classes = room.slots, len(room.slots)
    group_class, group_wait, group_size = _supply_groups(task_class, prices.wait)
    members, member_start, first = _node_groups(room, prices)
    sizes = np.diff(member_start)
    groups, node_groups = len(group_class), len(first)
    at_class, at_node = groups, groups + classes
    unscheduled = groups + classes + node_groups
    sink = unscheduled + 1
    total = int(group_size.sum())

    each_group = np.arange(groups)
    arcs = _Arcs([], [], [], [])
    arcs.add(each_group, at_class + group_class, group_size, np.zeros(groups, np.int64))
    arcs.add(each_group, np.full(groups, unscheduled), group_size, group_wait)

    # each class to the node groups that have slots for it, through domains where those are limited
    group_slots = slots[:, first]
    waiting = np.bincount(task_class, minlength=classes)
    pair_class, pair_node = np.nonzero((group_slots > 0) & (waiting > 0)[:, None])
    place = np.broadcast_to(prices.place, slots.shape)[pair_class, first[pair_node]]
    capacity = np.minimum(group_slots[pair_class, pair_node] * sizes[pair_node], waiting[pair_class])
    tail = at_class + pair_class
    wanted = capacity.copy()  # of each pair: how much of its capacity costs nothing extra
    extra = np.zeros(len(capacity), np.int64)  # what the rest costs more
    vertices, domain_arcs = sink + 1, _Arcs([], [], [], [])
    for c, limits_of_class in room.limits.items():
        mine = slice(*np.searchsorted(pair_class, (c, c + 1)).tolist())
        spanning = [limit for limit in limits_of_class if not limit.is_per_node]
        per_node = [limit for limit in limits_of_class if limit.is_per_node]
        if per_node:
            domain = per_node[0].domain[first[pair_node[mine]]]
            wanted[mine] = np.minimum(
                np.where(
                    domain >= 0, np.append(per_node[0].wanted, 0)[domain] * sizes[pair_node[mine]], capacity[mine]
                ),
                capacity[mine],
            )
            extra[mine] = per_node[0].beyond
        if spanning:
            limit = spanning[0]
            domain = limit.domain[first[pair_node[mine]]]
            tail[mine] = np.where(domain >= 0, vertices + domain, tail[mine])
            d = np.unique(domain[domain >= 0])
            for amount, cost in ((limit.wanted[d], 0), (limit.most[d] - limit.wanted[d], limit.beyond)):
                domain_arcs.add(np.full(len(d), at_class + c), vertices + d, amount, np.full(len(d), cost))
            vertices += len(limit.most)
    beyond = np.flatnonzero(wanted < capacity)
    arcs.add(tail, at_node + pair_node, wanted, place)
    arcs.add(tail[beyond], at_node + pair_node[beyond], (capacity - wanted)[beyond], (place + extra)[beyond])
    arc_pair = np.concatenate([np.arange(len(pair_class)), beyond])

    # slot arcs: run k of node group m covers slots offsets[k] .. offsets[k + 1], cut at the most it can take
    most = room.depth[first]
    runs = np.searchsorted(offsets, most)  # offsets[runs - 1] < most
    slot_node = np.repeat(np.arange(node_groups), runs)
    k = run_positions(runs)
    ends = np.append(offsets[1:], np.iinfo(np.int64).max)
    width = np.minimum(ends[k], most[slot_node]) - offsets[k]
    slot_cost = np.broadcast_to(prices.slot, (slots.shape[1], len(offsets)))[first[slot_node], k]
    arcs.add(at_node + slot_node, np.full(len(k), sink), width * sizes[slot_node], slot_cost)
    for d_tail, d_head, d_capacity, d_cost in zip(
        domain_arcs.tail, domain_arcs.head, domain_arcs.capacity, domain_arcs.cost, strict=True
    ):
        arcs.add(d_tail, d_head, d_capacity, d_cost)
    arcs.add(np.array([unscheduled]), np.array([sink]), np.array([total]), np.array([0]))

    supply = np.zeros(vertices, np.int64)
    supply[:groups] = group_size
    supply[sink] = -total
    return PlacementNetwork(
        flow=arcs.flow_network(supply),
        group_class=group_class,
        group_size=group_size,
        group_wait=group_wait,
        pair_class=pair_class,
        pair_node_group=pair_node,
        arc_pair=arc_pair,
        members=members,
        member_start=member_start,
        member_depth=room.depth[first],
    )


def _supply_groups(task_class: I64, wait: I64) -> tuple[I64, I64, I64]:
    """Class, waiting cost and size of each group, (G,) each, by class, then dearest first."""
    order = np.lexsort((-wait, task_class))
    cls, cost = task_class[order], wait[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(cls) != 0) | (np.diff(cost) != 0)]) if len(cls) else order
    return cls[starts], cost[starts], np.diff(np.r_[starts, len(cls)])


def _node_groups(room: Room, prices: Prices) -> tuple[I64, I64, I64]:
    """members, member_start and one representative of each group; nodes that nobody can use are left out."""
    usable = np.flatnonzero(room.depth)
    looks = mix(np.vstack([room.slots[:, usable], room.depth[None, usable]]), seed=1)
    if prices.place.shape[1] > 1:
        looks = looks + mix(prices.place[:, usable], seed=2)
    if prices.slot.shape[0] > 1:
        looks = looks + mix(np.ascontiguousarray(prices.slot[usable].T), seed=3)
    rows = [_look_of_limit(limit)[usable] for of_class in room.limits.values() for limit in of_class]
    if rows:
        looks = looks + mix(np.stack(rows), seed=5)
    _, first, group, sizes = np.unique(looks, return_index=True, return_inverse=True, return_counts=True)
    members = usable[np.argsort(group, kind="stable")]
    return members, np.r_[0, np.cumsum(sizes)].astype(np.int64), usable[first]


def _look_of_limit(limit: DomainLimit) -> I64:
    """(N,): nodes may share a group if they share a domain, or if each is a domain and these are alike."""
    if not limit.is_per_node:
        return limit.domain
    alike = limit.most * (int(limit.wanted.max(initial=0)) + 1) + limit.wanted
    return np.append(alike, -1)[limit.domain]
