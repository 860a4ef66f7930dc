"""From a flow to counts of tasks of each class on each node."""

from dataclasses import dataclass

import numpy as np

from firmament_py.arrays import I64, run_positions
from firmament_py.network import PlacementNetwork


@dataclass(frozen=True, slots=True)
class Allotment:
    """count[i] > 0 tasks of class cls[i] go to node node[i]; sorted by class; no pair twice. (K,) each."""

    cls: I64
    node: I64
    count: I64


def deal(network: PlacementNetwork, flow: I64, *, fill: bool = False) -> Allotment:
    """Deals the flow into each node group to its members, as evenly as cards, or, with fill, one member after the
    other, each as many as it may be sent.

    Classes are dealt one after the other, each going on where the one before stopped. So every member gets its
    share of each class and of the total, rounded down or up: within every capacity, at the same cost as the flow
    through the group, and with the mix of classes that leaves the least to repair when resources are counted.
    """
    placed = network.placed_on_nodes(flow)
    used = np.flatnonzero(placed)
    # group by node group to know where dealing goes on, classes in order
    used = used[np.lexsort((network.pair_class[used], network.pair_node_group[used]))]
    cls, group, amount = network.pair_class[used], network.pair_node_group[used], placed[used]
    size = np.diff(network.member_start)[group]
    before = np.cumsum(amount) - amount
    first_of_group = np.r_[True, np.diff(group) != 0][: len(group)]
    start = before - np.repeat(before[first_of_group], np.diff(np.r_[np.flatnonzero(first_of_group), len(group)]))

    if fill:
        depth = network.member_depth[group]
        touched = (start + amount - 1) // depth - start // depth + 1  # members that get any
        entry = np.repeat(np.arange(len(used)), touched)
        turn = start[entry] // depth[entry] + run_positions(touched)
        end = np.minimum((start + amount)[entry], (turn + 1) * depth[entry])
        count = end - np.maximum(start[entry], turn * depth[entry])
    else:
        touched = np.minimum(amount, size)
        entry = np.repeat(np.arange(len(used)), touched)
        turn = run_positions(touched)
        count = amount[entry] // size[entry] + (turn < amount[entry] % size[entry])
        turn = (start[entry] + turn) % size[entry]
    member = network.member_start[group[entry]] + turn
    order = np.argsort(cls[entry], kind="stable")
    return Allotment(cls[entry][order], network.members[member][order], count[order])
