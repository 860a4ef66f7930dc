r"""The flow network of a round: arrays of vertices and arcs, and the meaning of its flow.

    supply groups ---> class aggregators ---> node groups ===> sink
         \                  \---> domains ---/                 /
          \------------------> unscheduled U -----------------/

Units of flow are tasks. Two exact reductions keep it small:

- Waiting tasks of one class with the same cost of waiting are one *supply group*; the group's arc to U has that
  cost. (U has no capacity limit, so one vertex replaces the U_j of all jobs.)
- Nodes with equal signatures (the same slots, costs and domains for every waiting class) are one *node group* of m
  members; capacities are m-fold. A flow through a group can be spread over the members evenly without changing its
  cost, since slot costs do not fall (network/decode.py).

The double arrow stands for the slot arcs: parallel arcs of increasing cost, each a slot or a run of slots. A class with
a limit on its tasks per domain (spread, anti-affinity over a zone) reaches its nodes through a vertex for each domain,
or through a second arc to each node if the domain is the node.

A class here is a row of `Capacities`: it can stand for several classes (network/alike.py), each a vertex with limited
arcs to the domains that they share.

If a policy has costs of data, tasks of one class and waiting cost that read the same data are a supply group, with
preference arcs besides the arc to their class (network/preference_arcs.py); nodes and racks at the head of such an arc
are not grouped.
"""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.flow.network import FlowNetwork
from firmament_py.model.arrays import I64, NO_ROWS, Bools, run_positions
from firmament_py.network.capacities import BY_CLASS, BY_RACK, Capacities, SharedLimits, built_in
from firmament_py.network.node_groups import node_groups
from firmament_py.network.placement_network import PlacementNetwork, Through, VertexKind
from firmament_py.network.preference_arcs import NO_DATA_ARCS, DataArcs, data_arcs
from firmament_py.network.supply_groups import supply_groups
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import DomainLimit


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

    def number(self) -> int:
        return sum(len(tail) for tail in self.tail)

    def followed_by(self, other: "_Arcs") -> "_Arcs":
        return _Arcs(
            self.tail + other.tail, self.head + other.head, self.capacity + other.capacity, self.cost + other.cost
        )

    def flow_network(self, supply: I64) -> FlowNetwork:
        return FlowNetwork(
            tail=np.concatenate(self.tail).astype(np.int32),
            head=np.concatenate(self.head).astype(np.int32),
            capacity=np.concatenate(self.capacity).astype(np.int64),
            unit_cost=np.concatenate(self.cost).astype(np.int64),
            supply=supply,
        )


def build(
    capacities: Capacities, costs: Costs, offsets: I64, task_class: I64, over_capacity: Bools | None = None
) -> PlacementNetwork:
    """The network for capacities, costs, slot offsets (K,) and the waiting tasks' classes (T,), ascending.

    Of the limits of each class the first that spans nodes and the first per node are built in; of the others,
    `IntertaskConstraints.trim` enforces constraints, and preferences are left to the next solve. Classes without slots
    must not be in `task_class`. Costs are those of all nodes, also if the capacities are a part. over_capacity: classes
    and nodes (C, N), of all nodes, to be bounded by their slots even if arcs that bypass the class lead there; see
    `PlacementNetwork.excess`.
    """
    nodes = capacities.nodes
    if nodes is None:
        return _Build(capacities, costs, offsets, task_class, over_capacity).network()
    over_capacity = None if over_capacity is None else over_capacity[:, nodes]
    network = _Build(capacities, _on_nodes(costs, nodes), offsets, task_class, over_capacity).network()
    return replace(network, members=nodes[network.members])


def _on_nodes(costs: Costs, nodes: I64) -> Costs:
    """The costs of `nodes` (K,) alone."""
    place = costs.place if costs.place.shape[1] == 1 else costs.place[:, nodes]
    data = None if costs.data is None else costs.data.on(nodes)
    return replace(costs, place=place, slot=costs.slot if len(costs.slot) == 1 else costs.slot[nodes], data=data)


class _Build:
    """One network under construction: numbers the vertices, then adds arcs kind by kind."""

    def __init__(
        self, capacities: Capacities, costs: Costs, offsets: I64, task_class: I64, over_capacity: Bools | None
    ) -> None:
        self._capacities = capacities
        self._over_capacity = over_capacity
        self._costs = costs
        self._offsets = offsets
        self._waiting = np.bincount(capacities.of_rows(task_class), minlength=len(capacities.slots))
        self._group_class, self._group_wait, self._group_set, self._group_size = supply_groups(task_class, costs)
        far = np.zeros(0, np.int64) if costs.data is None else costs.data.anywhere
        self._anywhere = np.append(far, 0)[self._group_set]
        self._members, self._member_start, self._first = node_groups(capacities, costs)
        self._sizes = np.diff(self._member_start)
        self._at_class = len(self._group_class)
        self._at_node = self._at_class + len(capacities.slots)
        self._unscheduled = self._at_node + len(self._first)
        self._sink = self._unscheduled + 1
        self._vertices = self._sink + 1  # grows with domains
        classes = len(capacities.slots if capacities.row_of is None else capacities.row_of)
        self._entry = self._at_class + capacities.of_rows(np.arange(classes))
        """(C,) the vertex through which tasks of each class reach nodes."""
        self._kinds = [
            (VertexKind.TASKS, 0),
            (VertexKind.CLASS, self._at_class),
            (VertexKind.NODES, self._at_node),
            (VertexKind.UNSCHEDULED, self._unscheduled),
            (VertexKind.SINK, self._sink),
            (VertexKind.CLASS, self._vertices),
        ]
        for shared in capacities.shared.values():
            self._entry[shared.classes] = self._vertices + np.arange(len(shared.classes))
            self._vertices += len(shared.classes)
        self._domain_start: dict[int, int] = {}
        self._rack_start = self._vertices
        self._through: list[tuple[I64, I64, I64]] = []  # classes, domains, positions among the unread arcs
        self._arcs = _Arcs([], [], [], [])
        self._unread = _Arcs([], [], [], [])  # arcs whose flow is not read, after all others

    def network(self) -> PlacementNetwork:
        self._add_supply()
        pair_class, pair_node, pair_capacity, arc_pair, arc_pool, data = self._add_pairs()
        self._add_slots()
        total = int(self._group_size.sum())
        self._unread.add(np.array([self._unscheduled]), np.array([self._sink]), np.array([total]), np.array([0]))
        through = [np.concatenate(column) for column in zip(*self._through, strict=True)] or [NO_ROWS] * 3
        supply = np.zeros(self._vertices, np.int64)
        supply[: len(self._group_size)] = self._group_size
        supply[self._sink] = -total
        return PlacementNetwork(
            flow=self._arcs.followed_by(self._unread).flow_network(supply),
            group_class=self._group_class,
            group_size=self._group_size,
            group_wait=self._group_wait,
            group_set=self._group_set,
            group_anywhere=self._anywhere,
            pair_class=pair_class,
            pair_node_group=pair_node,
            arc_pair=arc_pair,
            pair_capacity=pair_capacity,
            arc_pool=arc_pool,
            data=data,
            members=self._members,
            member_start=self._member_start,
            member_depth=self._capacities.depth[self._first],
            domain_start=self._domain_start,
            rack_start=self._rack_start,
            through=Through(through[0], through[1], self._arcs.number() + through[2]),
            class_vertex=self._entry,
            kinds=tuple(self._kinds),
        )

    def _add_supply(self) -> None:
        """Arcs of each supply group to its class, at the cost of remote data, and to U at the cost of waiting."""
        groups = np.arange(len(self._group_class))
        self._arcs.add(groups, self._entry[self._group_class], self._group_size, self._anywhere)
        self._arcs.add(groups, np.full(len(groups), self._unscheduled), self._group_size, self._group_wait)

    def _add_pairs(self) -> tuple[I64, I64, I64, I64, I64, DataArcs]:
        """Arcs of each class to the node groups that have slots for it, through domains if these are limited."""
        slots = self._capacities.slots[:, self._first]
        pair_class, pair_node = np.nonzero((slots > 0) & (self._waiting > 0)[:, None])
        place = np.broadcast_to(self._costs.place, self._capacities.slots.shape)[pair_class, self._first[pair_node]]
        capacity = np.minimum(slots[pair_class, pair_node] * self._sizes[pair_node], self._waiting[pair_class])
        tail = self._at_class + pair_class
        base = capacity.copy()  # of each pair: the part of its capacity without extra cost
        extra = np.zeros(len(capacity), np.int64)  # the extra cost of the remaining capacity
        for c, limits in self._capacities.limits.items():
            mine = slice(*np.searchsorted(pair_class, (c, c + 1)).tolist())
            nodes = pair_node[mine]
            for limit in (limit for limit in built_in(limits) if limit.is_per_node):
                domain = limit.domain[self._first[nodes]]
                soft_limit = np.append(limit.soft_limit, 0)[domain] * self._sizes[nodes]
                base[mine] = np.where(domain >= 0, np.minimum(soft_limit, capacity[mine]), capacity[mine])
                extra[mine] = limit.soft_limit_cost
            for limit in (limit for limit in built_in(limits) if not limit.is_per_node):
                domain = limit.domain[self._first[nodes]]
                tail[mine] = np.where(domain >= 0, self._vertices + domain, tail[mine])
                self._add_domains(c, limit)
        for k, shared in self._capacities.shared.items():
            mine = slice(*np.searchsorted(pair_class, (k, k + 1)).tolist())
            domain = shared.domain[self._first[pair_node[mine]]]
            tail[mine] = np.where(domain >= 0, self._vertices + domain, tail[mine])
            self._add_shared_domains(k, shared)
        head = self._at_node + pair_node
        data = self._data_arcs(pair_class, pair_node)
        if data.pools or len(data.near_pair):
            # several paths lead into these pairs: a bound or extra cost for all of them needs a vertex
            tight = base < capacity
            if self._over_capacity is not None:
                tight |= self._over_capacity[pair_class, self._first[pair_node]]
            gated = np.flatnonzero((data.enters(len(pair_class)) > 0) & tight)
            gate = self._vertices + np.arange(len(gated))
            self._kinds.append((VertexKind.PAIR, self._vertices))
            self._vertices += len(gated)
            self._unread.add(gate, head[gated], base[gated], place[gated])
            further = (capacity - base)[gated]
            some = np.flatnonzero(further)
            self._unread.add(gate[some], head[gated[some]], further[some], (place + extra)[gated[some]])
            head[gated], base[gated], place[gated] = gate, capacity[gated], 0
        by_class = self._with_entry(BY_CLASS, pair_class, pair_node)
        direct, above = np.flatnonzero(by_class), np.flatnonzero(by_class & (base < capacity))
        self._arcs.add(tail[direct], head[direct], base[direct], place[direct])
        self._arcs.add(tail[above], head[above], (capacity - base)[above], (place + extra)[above])
        self._add_data(data, head, capacity, place)
        arc_pair = np.concatenate([direct, above, data.pool_pair])
        arc_pool = np.concatenate([pair_class[direct], pair_class[above], len(self._waiting) + data.pool])
        return pair_class, pair_node, slots[pair_class, pair_node] * self._sizes[pair_node], arc_pair, arc_pool, data

    def _with_entry(self, entry: np.uint8, pair_class: I64, pair_node: I64) -> Bools:
        """(P,) whether pairs have that entry."""
        entries = self._capacities.entries
        if entries is None:
            return np.ones(len(pair_class), np.bool_)
        found: Bools = entries[pair_class, self._first[pair_node]] & entry > 0
        return found

    def _data_arcs(self, pair_class: I64, pair_node: I64) -> DataArcs:
        if self._costs.data is None:
            return NO_DATA_ARCS
        node_group = np.full(self._capacities.slots.shape[1], -1, np.int64)
        node_group[self._members] = np.repeat(np.arange(len(self._sizes)), self._sizes)
        by_rack = self._with_entry(BY_RACK, pair_class, pair_node)
        return data_arcs(
            self._costs.data,
            self._group_class,
            self._group_set,
            pair_class,
            pair_node,
            by_rack,
            node_group,
            self._first,
        )

    def _add_data(self, data: DataArcs, head: I64, capacity: I64, place: I64) -> None:
        """Arcs of (class, rack) vertices to pairs, groups to racks, groups to pairs; head (P,): entry of each pair."""
        self._rack_start = self._vertices
        self._kinds.append((VertexKind.RACK, self._vertices))
        rack = self._vertices + np.arange(data.pools)
        self._vertices += data.pools
        pair = data.pool_pair
        self._arcs.add(rack[data.pool], head[pair], capacity[pair], place[pair])
        self._arcs.add(data.rack_group, rack[data.rack_pool], self._group_size[data.rack_group], data.rack_cost)
        group, pair = data.near_group, data.near_pair
        self._arcs.add(group, head[pair], self._group_size[group], data.near_cost + place[pair])

    def _add_domains(self, c: int, limit: DomainLimit) -> None:
        """Arcs of class c to the vertices of its domains: up to the soft limit at no cost, beyond it at an extra cost.

        All domains have a vertex, also those without a pair in this network, because arc_pricing.py needs a potential
        for each.
        """
        domains = len(limit.maximum)
        tail, head = np.full(domains, self._at_class + c), self._vertices + np.arange(domains)
        self._unread.add(tail, head, limit.soft_limit, np.zeros(domains, np.int64))
        self._unread.add(tail, head, limit.maximum - limit.soft_limit, np.full(domains, limit.soft_limit_cost))
        self._domain_start[c] = self._vertices
        self._kinds.append((VertexKind.DOMAIN, self._vertices))
        self._vertices += domains

    def _add_shared_domains(self, k: int, shared: SharedLimits) -> None:
        """Arcs of the classes of row k to the vertices of its domains, as in `_add_domains`, and to the vertex of the
        row, from which tasks reach the nodes in none of these domains."""
        classes, domains = shared.maximum.shape
        tail, head = (
            np.repeat(self._entry[shared.classes], domains),
            np.tile(self._vertices + np.arange(domains), classes),
        )
        cls, domain = np.repeat(shared.classes, domains), np.tile(np.arange(domains), classes)
        base = shared.soft_limit.ravel()
        further, cost = (shared.maximum - shared.soft_limit).ravel(), np.repeat(shared.soft_limit_cost, domains)
        start = self._unread.number()
        self._unread.add(tail, head, base, np.zeros(len(tail), np.int64))
        self._unread.add(tail, head, further, cost)
        to_row = np.full(classes, self._at_class + k), np.full(classes, self._waiting[k]), np.zeros(classes, np.int64)
        self._unread.add(self._entry[shared.classes], *to_row)
        self._through.append(
            (
                np.concatenate([cls, cls, shared.classes]),
                np.concatenate([domain, domain, np.full(classes, -1)]),
                start + np.arange(2 * len(tail) + classes),
            )
        )
        self._domain_start[k] = self._vertices
        self._kinds.append((VertexKind.DOMAIN, self._vertices))
        self._vertices += domains

    def _add_slots(self) -> None:
        """Run k of node group m covers slots offsets[k] .. offsets[k + 1], cut off at the depth of the nodes."""
        depth, nodes = self._capacities.depth[self._first], self._capacities.slots.shape[1]
        runs = np.searchsorted(self._offsets, depth)  # offsets[runs - 1] < depth
        group = np.repeat(np.arange(len(depth)), runs)
        k = run_positions(runs)
        ends = np.append(self._offsets[1:], np.iinfo(np.int64).max)
        width = np.minimum(ends[k], depth[group]) - self._offsets[k]
        cost = np.broadcast_to(self._costs.slot, (nodes, len(self._offsets)))[self._first[group], k]
        if self._costs.data is not None and len(k):
            # preference arcs make many node groups: runs of one cost become one arc
            starts = np.flatnonzero(np.r_[True, (np.diff(group) != 0) | (np.diff(cost) != 0)])
            group, k, cost, width = group[starts], k[starts], cost[starts], np.add.reduceat(width, starts)
        self._unread.add(self._at_node + group, np.full(len(k), self._sink), width * self._sizes[group], cost)
