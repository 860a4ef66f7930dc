"""Reduced costs of the preference arcs that a part of a network omits (network/arc_pricing.py).

An arc from a supply group into a pair, or into the vertex of its class in a rack (a pool), has a negative reduced cost
if the group's potential is more than the arc's cost above that of its head. The head of an arc to a pair has what it
costs to be on its node, a pool the least of that on its nodes: if a task uses the pool, its lowest potential is the
same, and otherwise it can be raised to it.
"""

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.network.part import Part
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.preference_arcs import nodes_by_rack
from firmament_py.policy.locality import DataCosts, of_groups

UNBOUNDED = 2**61
"""A potential above all costs; the sum with a cost fits 64 bits."""


class PreferencePricing:
    """Of an optimal flow in the network of a part, with the lowest potentials of its vertices (V,)."""

    def __init__(self, data: DataCosts, part: Part, network: PlacementNetwork, lowest: I64) -> None:
        self._data = data
        of_supply = lowest[: len(network.group_class)]
        self._near, reader = _omitted(part.near, data.near_set, network, len(data.anywhere))
        self._near_class = network.group_class[reader]
        self._near_needed = of_supply[reader] - data.near_cost[self._near]
        self._racks, reader = _omitted(part.racks, data.rack_set, network, len(data.anywhere))
        self._rack, self._rack_class = data.rack_id[self._racks], network.group_class[reader]
        self._rack_needed = of_supply[reader] - data.rack_cost[self._racks]

        shape = int(network.group_class.max(initial=-1)) + 1, int(data.rack.max(initial=-1)) + 2
        self._of_pools = np.full(shape, -UNBOUNDED)
        pools = lowest[network.rack_start : network.rack_start + network.data.pools]
        self._of_pools[network.data.pool_class, network.data.pool_in_rack] = pools
        self._least = np.full(shape, UNBOUNDED)
        self._by_rack, self._starts, self._rack_of_start = nodes_by_rack(data)

    def potentials(self, classes: I64) -> I64:
        """(K, N) the lowest potential of each of `classes` (K,) in the rack of each node; -UNBOUNDED: no vertex."""
        found: I64 = self._of_pools[classes].take(self._data.rack, axis=1)
        return found

    def note(self, classes: I64, cost: I64) -> None:
        """What it costs tasks of `classes` (K,) to be on each node, (K, N); UNBOUNDED without slots."""
        if len(self._racks):
            least = np.minimum.reduceat(cost.take(self._by_rack, axis=1), self._starts, axis=1)
            self._least[np.ix_(classes, self._rack_of_start)] = least

    def omitted(self, cost: I64) -> tuple[Bools, Bools]:
        """Whether each arc to a node (L,) and to a rack (M,) is omitted and has a negative reduced cost. cost (K,):
        what it costs to be on the node of each arc `near`."""
        near, racks = np.zeros(len(self._data.near_set), np.bool_), np.zeros(len(self._data.rack_set), np.bool_)
        near[self._near[cost < self._near_needed]] = True
        racks[self._racks[self._least[self._rack_class, self._rack] < self._rack_needed]] = True
        return near, racks

    @property
    def near(self) -> tuple[I64, I64]:
        """Class and node (K,) of every omitted arc of a supply group to a node."""
        return self._near_class, self._data.near_node[self._near]


def _omitted(in_part: Bools | None, of_set: I64, network: PlacementNetwork, sets: int) -> tuple[I64, I64]:
    """Positions (K,) of the omitted ones of preference arcs, of sets (L,), and supply groups (K,) that have them."""
    some = np.zeros(0, np.int64) if in_part is None else np.flatnonzero(~in_part)
    entry, group = of_groups(network.group_set, of_set[some], sets)
    return some[entry], group
