"""Proves that an optimal flow in a part of a network is optimal in the whole network.

By linear programming duality it is if there are potentials (dual prices of vertices) at which no omitted arc has a
negative reduced cost. The part has optimal potentials, because the flow is optimal in it; they are bounded. The lowest
potential of a class is the highest total cost that one of its tasks has now, that of a domain or rack of a class the
highest that one of its tasks has there. The highest potential of a node is the cost of its next open slot, or the
highest cost at which a task that uses the node stays on it.

If no arc has a negative reduced cost with the lowest potentials of classes, domains and racks and the highest
potentials of nodes, these are potentials of the whole network: raising a node's potential raises only the reduced costs
of arcs into it, and a part omits only such arcs, the costliest slots of nodes, and preference arcs to racks, whose
potentials can be higher (network/preference_pricing.py).
"""

import numpy as np

from firmament_py.flow.certificate import lowest_potentials
from firmament_py.model.arrays import I64, smallest
from firmament_py.network.candidate_arcs import blocks
from firmament_py.network.capacities import BY_CLASS, BY_RACK, Capacities
from firmament_py.network.part import Omitted, Part, everything
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.preference_pricing import UNBOUNDED, PreferencePricing
from firmament_py.network.slot_runs import widths
from firmament_py.policy import Costs

_FEW_PAIRS = 64
"""So many pairs of a class are returned even if it has few tasks."""


def negative_reduced_costs(
    whole: Capacities,
    part: Part,
    network: PlacementNetwork,
    flow: I64,
    costs: Costs,
    offsets: I64,
    per_task: int = UNBOUNDED,
) -> Omitted:
    """Omitted arcs that can have a negative reduced cost.

    If there are none, `flow` (A,), an optimum of the network of the part, is an optimum of the whole network. The part
    can omit pairs of a class and a node, with all their slots, the costliest slots of nodes, and preference arcs, but
    no pairs that its preference arcs need (`preferred_pairs`). per_task: of the pairs of a class only so many for each
    of its tasks are returned, those of the lowest reduced costs: potentials are bounds, and one class that lacks nodes
    would otherwise get all of them.
    """
    (classes, nodes), at_class = whole.slots.shape, len(network.group_class)
    sink = at_class + classes + len(network.member_start)
    lowest = lowest_potentials(network.flow, flow, sink)
    if lowest is None:
        return everything(whole, costs)
    of_class, of_group = np.split(lowest[at_class : sink - 1], [classes])
    highest = _highest_potentials(whole, network, flow, lowest, costs, offsets)
    sizes = np.diff(network.member_start)
    deeper = np.zeros(nodes, np.bool_)
    deeper[network.members] = np.repeat(highest < of_group, sizes)
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    of_node = np.where(whole.depth > 0, slot[:, 0], UNBOUNDED)
    of_node[network.members] = np.repeat(np.maximum(highest, of_group), sizes)
    waiting = np.bincount(whole.of_rows(network.group_class), network.group_size, classes).astype(np.int64)
    pairs = np.zeros((classes, nodes), np.bool_)
    limit = np.maximum(np.minimum(waiting, UNBOUNDED // per_task) * per_task, _FEW_PAIRS)
    classes_with_tasks = np.flatnonzero(waiting)
    entries = part.entries(nodes)
    preferences = None if costs.data is None else PreferencePricing(costs.data, part, network, lowest)
    for block in blocks(len(classes_with_tasks), nodes):
        some = classes_with_tasks[block]
        cost = of_node + costs.place[some % len(costs.place)]
        cost[whole.slots[some] == 0] = UNBOUNDED
        ways = [(BY_CLASS, _tails(some, whole, network, lowest, of_class))]
        if preferences is not None:
            preferences.note(some, cost)
            ways.append((BY_RACK, preferences.potentials(some)))
        least = np.full(cost.shape, UNBOUNDED)
        for entry, tails in ways:
            np.minimum(least, cost - tails, out=least, where=entries[some] & entry == 0)
        omitted = least < 0
        for i in np.flatnonzero(omitted.sum(axis=1) > limit[some]).tolist():
            found = np.flatnonzero(omitted[i])
            omitted[i] = False
            omitted[i, found[smallest(least[i, found], int(limit[some[i]]))]] = True
        pairs[some] = omitted
    if preferences is None:
        return Omitted(pairs, deeper)
    cls, node = preferences.near
    place = np.broadcast_to(costs.place, (len(costs.place), nodes))[cls % len(costs.place), node]
    cost = np.where(whole.slots[cls, node] > 0, place + of_node[node], UNBOUNDED)
    return Omitted(pairs, deeper, *preferences.omitted(cost))


def _tails(some: I64, whole: Capacities, network: PlacementNetwork, lowest: I64, of_class: I64) -> I64:
    """(K, N) or (K, 1): the lowest potential of the vertex from which the classes `some` (K,) reach each node."""
    if not network.domain_start:
        of_classes: I64 = of_class[some, None]
        return of_classes
    tails = np.repeat(of_class[some, None], len(whole.depth), axis=1)
    for i, c in enumerate(some.tolist()):
        if c in network.domain_start:
            tails[i] = _of_tails(c, whole, network, lowest, of_class)
    return tails


def _of_tails(c: int, whole: Capacities, network: PlacementNetwork, lowest: I64, of_class: I64) -> I64:
    """(N,) the lowest potential of the vertex from which tasks of class c reach each node: its domain, or the class."""
    domain, domains = whole.shared_domains(c)
    start = network.domain_start[c]
    return np.append(lowest[start : start + domains], of_class[c])[domain]


def _highest_potentials(
    whole: Capacities, network: PlacementNetwork, flow: I64, lowest: I64, costs: Costs, offsets: I64
) -> I64:
    """(M,) the highest potential of each node group."""
    sizes, starts = np.diff(network.member_start), network.member_start[:-1]
    if not len(sizes):
        return sizes
    depth = np.maximum.reduceat(whole.depth[network.members], starts)
    slot = np.broadcast_to(costs.slot, (len(whole.depth), len(offsets)))[network.members[starts]]
    used = np.zeros(len(sizes), np.int64)
    np.add.at(used, network.pair_node_group, network.placed_on_nodes(flow))
    ends = np.cumsum(widths(offsets, depth), axis=1) * sizes[:, None]
    run = (ends <= used[:, None]).sum(axis=1)  # the arc with the next open slot
    highest: I64 = np.append(slot, np.full((len(slot), 1), UNBOUNDED), axis=1)[np.arange(len(slot)), run]

    # a task that uses a node stays there: its arc into the node must not get a positive reduced cost
    group = network.flow.head - (len(network.group_class) + len(whole.slots))
    used_arcs = np.flatnonzero((flow > 0) & (group >= 0) & (group < len(sizes)))
    bound = lowest[network.flow.tail[used_arcs]] - network.flow.unit_cost[used_arcs]
    np.minimum.at(highest, group[used_arcs], bound)
    return highest
