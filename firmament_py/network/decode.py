"""Turns a flow into counts of tasks of each class on each node, and, if tasks of a class differ, a node per task."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.network.placement_network import PlacementNetwork


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """count[i] > 0 tasks of class cls[i] go to node node[i]; sorted by class; pairs are unique. (K,) each."""

    cls: I64
    node: I64
    count: I64

    def where(self, some: Bools) -> "NodeCounts":
        """The entries for which `some` (K,) is true."""
        return NodeCounts(self.cls[some], self.node[some], self.count[some])


def spread_over_members(network: PlacementNetwork, flow: I64, *, fill: bool = False) -> NodeCounts:
    """Distributes the flow into each node group over its members: evenly, or, with fill, one member after the other,
    each up to its depth.

    Members take tasks round-robin, class by class, each class continuing where the previous one stopped. So every
    member gets its share of each class and of the total, rounded down or up: within every capacity, at the same cost as
    the flow through the group, and with a mix of classes that needs the least repair when resources are counted.
    """
    placed = network.placed_on_nodes(flow)
    used = np.flatnonzero(placed)
    # by node group, so that each class continues where the previous one stopped
    used = used[np.lexsort((network.pair_class[used], network.pair_node_group[used]))]
    cls, group, amount = network.pair_class[used], network.pair_node_group[used], placed[used]
    size = np.diff(network.member_start)[group]
    before = np.cumsum(amount) - amount
    first_of_group = np.r_[True, np.diff(group) != 0][: len(group)]
    start = before - np.repeat(before[first_of_group], np.diff(np.r_[np.flatnonzero(first_of_group), len(group)]))

    if fill:
        depth = network.member_depth[group]
        touched = (start + amount - 1) // depth - start // depth + 1  # members that get tasks
        entry = np.repeat(np.arange(len(used)), touched)
        number = start[entry] // depth[entry] + run_positions(touched)
        end = np.minimum((start + amount)[entry], (number + 1) * depth[entry])
        count = end - np.maximum(start[entry], number * depth[entry])
    else:
        touched = np.minimum(amount, size)
        entry = np.repeat(np.arange(len(used)), touched)
        number = run_positions(touched)
        count = amount[entry] // size[entry] + (number < amount[entry] % size[entry])
        number = (start[entry] + number) % size[entry]
    member = network.member_start[group[entry]] + number
    order = np.argsort(cls[entry], kind="stable")
    return NodeCounts(cls[entry][order], network.members[member][order], count[order])


def placed_tasks(network: PlacementNetwork, flow: I64, order: I64) -> I64:
    """Positions of the tasks that the flow places, ascending: the oldest of each supply group; `order` (T,) lists tasks
    group after group."""
    sizes = network.group_size
    return np.sort(order[run_positions(sizes) < np.repeat(network.placed_from_groups(flow), sizes)])


@dataclass(frozen=True, slots=True)
class Assignment:
    """The node of each task in a flow, for networks in which tasks of one class differ. K placed tasks."""

    task: I64  # (K,) positions
    cls: I64  # (K,)
    node: I64  # (K,)
    saving: I64  # (K,) additional cost of any other placement

    def where(self, some: Bools) -> "Assignment":
        """The entries for which `some` (K,) is true."""
        return Assignment(self.task[some], self.cls[some], self.node[some], self.saving[some])

    def select(self, accepted: NodeCounts, nodes: int, wait: I64) -> I64:
        """Positions in K of the tasks that get the places of `accepted`, part of the distributed counts: if a node
        cannot take all of its tasks, those with the highest waiting cost, then those that save most, then the oldest.
        """
        key = self.cls * nodes + self.node
        order = np.lexsort((self.task, -self.saving, -wait[self.task], key))
        places = accepted.cls * nodes + accepted.node
        by_key = np.argsort(places)
        starts = np.searchsorted(key[order], places[by_key])
        count = accepted.count[by_key]
        selected: I64 = order[np.repeat(starts, count) + run_positions(count)]
        return selected


def assign(network: PlacementNetwork, flow: I64, order: I64, spread: NodeCounts) -> Assignment:
    """Follows each task of `order` (T,), group after group, along the flow to one of the places in `spread`.

    Tasks on an arc to a node go to that node. Tasks that enter a pool can leave it on any arc, and tasks of one class
    in a node group can go to any of its members.
    """
    groups, pools, data = len(network.group_class), int(network.arc_pool.max(initial=-1)) + 1, network.data
    amount = np.concatenate([network.flow_to_nodes(flow), network.flow_to_racks(flow), flow[:groups]])
    no_pair = np.full(groups + len(data.rack_group), -1, np.int64)
    first_rack = pools - data.pools
    group = np.concatenate([data.near_group, data.rack_group, np.arange(groups)])
    pair = np.concatenate([data.near_pair, no_pair])
    pool = np.concatenate([np.full(len(data.near_group), -1), first_rack + data.rack_pool, network.group_class])
    cost = np.concatenate([data.near_cost, data.rack_cost, network.group_anywhere])

    taken = np.flatnonzero(amount)
    taken = taken[np.argsort(group[taken], kind="stable")]
    first_arc = np.repeat(taken, amount[taken])  # of each placed task, group after group
    sizes = network.group_size
    task = order[run_positions(sizes) < np.repeat(network.placed_from_groups(flow), sizes)]
    of_task = pair[first_arc]
    pooled = np.flatnonzero(of_task < 0)
    pooled = pooled[np.argsort(pool[first_arc[pooled]], kind="stable")]
    out = network.flow_from_pools(flow)
    leaving = np.flatnonzero(out)
    leaving = leaving[np.argsort(network.arc_pool[leaving], kind="stable")]
    of_task[pooled] = np.repeat(network.arc_pair[leaving], out[leaving])

    member_group = np.repeat(np.arange(len(network.member_depth)), np.diff(network.member_start))
    node_group = np.full(int(network.members.max(initial=-1)) + 1, -1, np.int64)
    node_group[network.members] = member_group
    by_pair = np.argsort(of_task, kind="stable")
    places = np.lexsort((node_group[spread.node], spread.cls))  # as pairs are numbered
    node = np.empty(len(task), np.int64)
    node[by_pair] = np.repeat(spread.node[places], spread.count[places])
    saving = network.group_anywhere[group[first_arc]] - cost[first_arc]
    return Assignment(task, network.pair_class[of_task], node, saving)
