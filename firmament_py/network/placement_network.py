"""What a round's flow network stands for: the meaning of its vertices, arcs and flow."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from firmament_py.flow.network import FlowNetwork
from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.network.preference_arcs import DataArcs


class VertexKind(StrEnum):
    """What a vertex stands for."""

    TASKS = "tasks"  # a supply group
    CLASS = "class"  # a class, or a row of several classes that are alike
    NODES = "nodes"  # a node group
    UNSCHEDULED = "unscheduled"
    SINK = "sink"
    DOMAIN = "domain"
    PAIR = "pair"
    RACK = "rack"  # a class in a rack


@dataclass(frozen=True, slots=True)
class PlacementNetwork:
    """A FlowNetwork and what its arcs stand for. G supply groups, C classes, M node groups.

    Arcs come in this order: G from groups to classes, G from groups to U, Q from pools to pairs, E from groups to
    racks, L from groups to pairs, the rest. A pair is a class and a node group that it has an arc to, directly or
    through vertices between; P pairs. A pool is a class (0 .. C-1), or a class in a rack (from C on).
    """

    flow: FlowNetwork
    group_class: I64  # (G,) ascending
    group_size: I64  # (G,) tasks
    group_wait: I64  # (G,) cost of leaving one waiting
    group_set: I64  # (G,) the input set that its tasks read, -1: none
    group_anywhere: I64  # (G,) cost of its data on the way through its class
    pair_class: I64  # (P,)
    pair_node_group: I64  # (P,) ascending within a class
    arc_pair: I64  # (Q,)
    pair_capacity: I64  # (P,) number of tasks that it has slots for
    arc_pool: I64  # (Q,)
    data: DataArcs  # the E and the L arcs; rack_pool counts from 0
    members: I64  # (N',) nodes, group after group
    member_start: I64  # (M + 1,): group m is members[member_start[m]:member_start[m + 1]]
    member_depth: I64  # (M,) largest number of tasks for each member of a group
    domain_start: Mapping[int, int]  # row with a limit shared by nodes -> vertex of the first of its domains
    rack_start: int  # vertex of the first class in a rack
    through: "Through"
    class_vertex: I64  # (C,) the vertex through which tasks of each class reach nodes
    kinds: tuple[tuple[VertexKind, int], ...]  # runs of vertices of one kind, each with its first vertex, ascending

    def placed_from_groups(self, flow: I64) -> I64:
        """(G,) tasks of each supply group that `flow` (A,) places."""
        groups = len(self.group_class)
        placed: I64 = np.subtract(self.group_size, flow[groups : 2 * groups])
        return placed

    def placed_on_nodes(self, flow: I64) -> I64:
        """(P,) tasks of each pair."""
        placed = np.zeros(len(self.pair_class), np.int64)
        np.add.at(placed, self.arc_pair, self.flow_from_pools(flow))
        np.add.at(placed, self.data.near_pair, self.flow_to_nodes(flow))
        return placed

    def excess(self, flow: I64) -> I64:
        """(P,) number of tasks by which `flow` (A,) exceeds each pair's slots.

        Several paths lead into a pair whose nodes hold data, so only a separate vertex enforces the bound by its slots.
        Few pairs need one: they are found by solving without, and the network is built again with these vertices.
        """
        excess: I64 = np.maximum(self.placed_on_nodes(flow) - self.pair_capacity, 0)
        return excess

    def of_members(self, pairs: Bools, shape: tuple[int, int]) -> Bools:
        """shape = (C, N): the classes and nodes of some pairs (P,)."""
        cls, group = self.pair_class[pairs], self.pair_node_group[pairs]
        sizes = np.diff(self.member_start)[group]
        found = np.zeros(shape, np.bool_)
        found[
            np.repeat(cls, sizes), self.members[np.repeat(self.member_start[group], sizes) + run_positions(sizes)]
        ] = True
        return found

    def flow_from_pools(self, flow: I64) -> I64:
        """(Q,) flow (A,) from pools to pairs."""
        start = 2 * len(self.group_class)
        return flow[start : start + len(self.arc_pair)]

    def flow_to_racks(self, flow: I64) -> I64:
        """(E,) flow (A,) from supply groups to racks."""
        start = 2 * len(self.group_class) + len(self.arc_pair)
        return flow[start : start + len(self.data.rack_group)]

    def flow_to_nodes(self, flow: I64) -> I64:
        """(L,) flow (A,) from supply groups to pairs."""
        start = 2 * len(self.group_class) + len(self.arc_pair) + len(self.data.rack_group)
        return flow[start : start + len(self.data.near_group)]


@dataclass(frozen=True, slots=True)
class Through:
    """Arcs (E,) from the vertices of classes to those of the domains of a row that they share, or to the row's."""

    cls: I64
    domain: I64  # -1: the row
    arc: I64  # positions in the flow
