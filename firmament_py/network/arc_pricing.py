"""Proves that a flow in a part of a network is an optimum of the whole.

Linear programming duality: it is if all vertices have costs at which no arc with room is cheaper than the difference
between its ends, and no arc with flow dearer. In the part there are such costs if the flow is an optimum there. The
lowest price of a class is what a task of it pays at most now; the highest price of a node is what its next open slot
costs, or what somebody who uses it can still pay. If with these no pair that was left out would be a bargain, they are
costs for the whole: raising a node's price makes only arcs into it dearer, and what is left out of a node is nothing
but pairs and its dearest slots.
"""

import numpy as np

from firmament_py.flow.certificate import lowest_potentials
from firmament_py.model.arrays import I64, Bools
from firmament_py.network.build import PlacementNetwork
from firmament_py.network.candidate_arcs import widths
from firmament_py.network.capacities import Capacities
from firmament_py.policy import Costs

_ANY = 2**61
"""A price that nobody pays; what has to be added to it still fits 64 bits."""


def negative_reduced_costs(
    whole: Capacities, part: Capacities, network: PlacementNetwork, flow: I64, costs: Costs, offsets: I64
) -> tuple[Bools, Bools]:
    """What the part of the room leaves out of the whole and somebody might pay less for: pairs (C, N), and nodes (N,)
    that should be deeper.

    Neither: `flow` (A,), an optimum of the network of the part, is one of the network of the whole. The part lacks
    pairs, whole ones, of classes without limits that nodes share, and the dearest slots of nodes. There must be no
    costs of data.
    """
    (classes, nodes), at_class = whole.slots.shape, len(network.group_class)
    sink = at_class + classes + len(network.member_start)
    lowest = lowest_potentials(network.flow, flow, sink)
    if lowest is None:
        return whole.slots > 0, whole.depth > 0
    of_class, of_group = np.split(lowest[at_class : sink - 1], [classes])
    highest = _highest_prices(whole, network, flow, lowest, costs, offsets)
    sizes = np.diff(network.member_start)
    deeper = np.zeros(nodes, np.bool_)
    deeper[network.members] = np.repeat(highest < of_group, sizes)
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    of_node = np.where(whole.depth > 0, slot[:, 0], _ANY)
    of_node[network.members] = np.repeat(np.maximum(highest, of_group), sizes)
    pairs = np.zeros((classes, nodes), np.bool_)
    for c in np.unique(network.group_class).tolist():
        cheap = np.flatnonzero(of_node < of_class[c] - costs.place[c if len(costs.place) > 1 else 0])
        pairs[c, cheap] = (whole.slots[c, cheap] > 0) & (part.slots[c, cheap] == 0)
    return pairs, deeper


def _highest_prices(
    whole: Capacities, network: PlacementNetwork, flow: I64, lowest: I64, costs: Costs, offsets: I64
) -> I64:
    """(M,) the highest price that each node group can have."""
    sizes, starts = np.diff(network.member_start), network.member_start[:-1]
    if not len(sizes):
        return sizes
    depth = np.maximum.reduceat(whole.depth[network.members], starts)
    slot = np.broadcast_to(costs.slot, (len(whole.depth), len(offsets)))[network.members[starts]]
    used = np.zeros(len(sizes), np.int64)
    np.add.at(used, network.pair_node_group, network.placed_on_nodes(flow))
    ends = np.cumsum(widths(offsets, depth), axis=1) * sizes[:, None]
    run = (ends <= used[:, None]).sum(axis=1)  # the one with the next open slot
    highest: I64 = np.append(slot, np.full((len(slot), 1), _ANY), axis=1)[np.arange(len(slot)), run]

    start = 2 * len(network.group_class)
    pools = slice(start, start + len(network.arc_pair))
    there = np.flatnonzero(flow[pools] > 0)
    pays = lowest[network.flow.tail[pools][there]] - network.flow.unit_cost[pools][there]
    np.minimum.at(highest, network.pair_node_group[network.arc_pair[there]], pays)
    return highest
