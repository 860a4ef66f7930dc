"""Where tasks' input data is, as a policy sees it, and what a policy answers: preference arcs.

Tasks that read the same data share an *input set*. Both sides are sparse: a set names the nodes and racks that hold
some of it; all others are far away. A rack is a domain of a node label.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.model.locality import BlockReplicas


@dataclass(frozen=True, slots=True)
class Inputs:
    """S input sets of T waiting tasks on N nodes in D racks. All int64; pairs are ascending and unique."""

    of_task: I64  # (T,) the set that each task reads, -1: none
    total: I64  # (S,) bytes of the set
    near_set: I64  # (L,) node near_node[i] holds near_bytes[i] > 0 of set near_set[i]
    near_node: I64  # (L,)
    near_bytes: I64  # (L,)
    rack: I64  # (N,) rack of each node, -1: in none
    rack_set: I64  # (M,) rack rack_id[i] holds rack_bytes[i] > 0 of set rack_set[i], on whichever of its nodes
    rack_id: I64  # (M,)
    rack_bytes: I64  # (M,)

    def of_tasks(self, of_task: I64) -> "Inputs":
        """The same for other tasks, whose sets `of_task` (T',) numbers as here; sets that none reads are left out."""
        used = np.zeros(len(self.total), np.bool_)
        used[of_task[of_task >= 0]] = True
        near, rack = used[self.near_set], used[self.rack_set]
        number = np.append(np.cumsum(used) - 1, -1)
        return Inputs(
            number[of_task],
            self.total[used],
            number[self.near_set[near]],
            self.near_node[near],
            self.near_bytes[near],
            self.rack,
            number[self.rack_set[rack]],
            self.rack_id[rack],
            self.rack_bytes[rack],
        )


@dataclass(frozen=True, slots=True)
class DataCosts:
    """What the data of S sets costs, beside Costs.place and Costs.slot: for a task of set s on node n the least of
    anywhere[s], the cost of a rack arc to n's rack, and the cost of a near arc to n. All int64; costs 0 .. COST_MAX.
    """

    of_task: I64  # (T,) the set of each task, -1: none, its data costs nothing anywhere
    anywhere: I64  # (S,)
    near_set: I64  # (L,) arcs to nodes
    near_node: I64  # (L,)
    near_cost: I64  # (L,)
    rack: I64  # (N,) rack of each node, -1: in none
    rack_set: I64  # (M,) arcs to racks
    rack_id: I64  # (M,)
    rack_cost: I64  # (M,)

    def on(self, nodes: I64) -> "DataCosts":
        """The costs of `nodes` (K,), ascending, alone, numbered from 0, without arcs to racks of other nodes."""
        position = np.full(len(self.rack), -1, np.int64)
        position[nodes] = np.arange(len(nodes))
        has_node = np.zeros(int(self.rack.max(initial=-1)) + 2, np.bool_)
        has_node[self.rack[nodes]] = True
        part = self.only(position[self.near_node] >= 0, has_node[self.rack_id])
        return replace(part, near_node=position[part.near_node], rack=self.rack[nodes])

    def only(self, near: Bools, racks: Bools) -> "DataCosts":
        """The costs with some of the arcs to nodes, near (L,), and to racks (M,)."""
        return replace(
            self,
            near_set=self.near_set[near],
            near_node=self.near_node[near],
            near_cost=self.near_cost[near],
            rack_set=self.rack_set[racks],
            rack_id=self.rack_id[racks],
            rack_cost=self.rack_cost[racks],
        )

    def at(self, sets: I64, nodes: I64) -> I64:
        """(K,) what the data of tasks of sets (K,), -1: none, costs on nodes (K,)."""
        costs = np.append(self.anywhere, 0)[sets]
        racks, width = self.rack[nodes], int(self.rack.max(initial=-1)) + 1
        for of_set, where, cost, at, size in (
            (self.rack_set, self.rack_id, self.rack_cost, racks, width),
            (self.near_set, self.near_node, self.near_cost, nodes, len(self.rack)),
        ):
            if not len(cost):
                continue
            key = of_set * size + where
            if (key[1:] <= key[:-1]).any():  # else in order, as those of a policy that keeps the order of inputs
                order = np.lexsort((cost, key))
                key, cost = key[order], cost[order]
            asked = np.where((sets >= 0) & (at >= 0), sets * size + at, -1)
            first = np.minimum(np.searchsorted(key, asked), len(key) - 1)
            found = key[first] == asked
            costs[found] = np.minimum(costs[found], cost[first[found]])
        return costs

    def excess(self, sets: I64, nodes: I64) -> I64:
        """(K,) what the same costs more than where it costs least."""
        least = self.anywhere.copy()
        np.minimum.at(least, self.rack_set, self.rack_cost)
        np.minimum.at(least, self.near_set, self.near_cost)
        excess: I64 = self.at(sets, nodes) - np.append(least, 0)[sets]
        return excess

    def row(self, s: int) -> I64:
        """(N,) what the data of a task of set s costs on each node; -1: no set, 0 everywhere."""
        if s < 0:
            return np.zeros(len(self.rack), np.int64)
        mine = self.rack_set == s
        of_rack = np.full(int(self.rack.max(initial=-1)) + 2, self.anywhere[s])
        np.minimum.at(of_rack, self.rack_id[mine], self.rack_cost[mine])
        of_rack[-1] = self.anywhere[s]
        costs: I64 = of_rack[self.rack]
        mine = self.near_set == s
        np.minimum.at(costs, self.near_node[mine], self.near_cost[mine])
        return costs


Check = Callable[[str, I64, tuple[int, ...], int, int], None]
"""Raises unless the array of that name has this shape and stays in this range, ends included."""


def check(data: DataCosts, tasks: int, nodes: int, cost_max: int, sound: Check) -> None:
    """Applies `sound` to every field of a policy's answer for `tasks` tasks and `nodes` nodes; costs 0 .. cost_max."""
    sets = len(data.anywhere) if isinstance(data.anywhere, np.ndarray) and data.anywhere.ndim == 1 else 0
    sound("data.anywhere", data.anywhere, (sets,), 0, cost_max)
    sound("data.of_task", data.of_task, (tasks,), -1, sets - 1)
    sound("data.rack", data.rack, (nodes,), -1, nodes - 1)
    racks = int(data.rack.max(initial=-1))
    for kind, of_set, at, cost, highest in (
        ("near", data.near_set, data.near_node, data.near_cost, nodes - 1),
        ("rack", data.rack_set, data.rack_id, data.rack_cost, racks),
    ):
        arcs = len(of_set) if isinstance(of_set, np.ndarray) and of_set.ndim == 1 else 0
        sound(f"data.{kind}_set", of_set, (arcs,), 0, sets - 1)
        sound(f"data.{kind}_{'node' if kind == 'near' else 'id'}", at, (arcs,), 0, highest)
        sound(f"data.{kind}_cost", cost, (arcs,), 0, cost_max)


def gather(of_task: I64, sets: int, blocks: BlockReplicas, rack: I64) -> Inputs:
    """Bytes by node and by rack: a block counts once where it has several replicas in one place."""
    total = _sum(blocks.block_set, blocks.block_bytes, sets)
    near = _once(blocks.replica_block, blocks.replica_node, blocks)
    racks = _once(blocks.replica_block, blocks.replica_rack, blocks)
    rack = rack.copy()
    rack.flags.writeable = False  # policies see this array itself, and copies of the others
    return Inputs(of_task, total, *near, rack, *racks)


def _once(block: I64, at: I64, blocks: BlockReplicas) -> tuple[I64, I64, I64]:
    """Set, place and bytes (K,) each of every place that holds some of a set, ascending."""
    width = int(at.max(initial=-1)) + 1
    somewhere = at >= 0
    # several times faster than np.unique
    key = np.sort(block[somewhere] * width + at[somewhere])
    if not len(key):
        return key, key, key
    block, at = np.divmod(key[np.r_[True, np.diff(key) != 0]], width)
    key = blocks.block_set[block] * width + at
    order = np.argsort(key)
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    stored = np.add.reduceat(blocks.block_bytes[block[order]], starts)
    of_set, at = np.divmod(key[order[starts]], width)
    return of_set[stored > 0], at[stored > 0], stored[stored > 0]


def _sum(index: I64, amounts: I64, size: int) -> I64:
    """(size,) exact sums of amounts by index."""
    result = np.zeros(size, np.int64)
    np.add.at(result, index, amounts)
    return result


def of_groups(group_set: I64, of_set: I64, sets: int) -> tuple[I64, I64]:
    """For entries of sets (K,) and supply groups with a set (G,), -1 for none: every (entry, group) of equal set."""
    order = np.argsort(group_set, kind="stable")
    bounds = np.searchsorted(group_set[order], np.arange(sets + 1))
    count = np.diff(bounds)[of_set]
    entry = np.repeat(np.arange(len(of_set)), count)
    return entry, order[bounds[of_set[entry]] + run_positions(count)]
