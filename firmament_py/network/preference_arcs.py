r"""Preference arcs of a network: from supply groups to the nodes and racks that hold their data.

    supply group --near--------------------> pair
         \--rack--> (class, rack) vertex --> pair ---> node group
          \-------> class --> .. ----------> pair

A pair is a class and a node group that has slots for it. All tasks of a class in a rack's vertex, or in the vertex of
the class, are interchangeable from there on: these vertices are *pools*.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, U32, Bools, runs
from firmament_py.policy.locality import DataCosts, of_groups

_OF_RACK = 3
"""So many nodes of each rack of a class, at least, are in the part of a network."""

_FURTHER = 5
"""So many preference arcs of each input set, besides those that its tasks probably need, are in the part of a network.
A missing one costs another solve."""

_LEFT = 0.05
"""They need no further arcs once no greater share of them is left."""


@dataclass(frozen=True, slots=True)
class DataArcs:
    """L arcs from groups to pairs, E from groups to racks of their class, K from those Q racks to pairs."""

    near_group: I64  # (L,)
    near_pair: I64  # (L,)
    near_cost: I64  # (L,)
    rack_group: I64  # (E,)
    rack_pool: I64  # (E,) 0 .. Q-1
    rack_cost: I64  # (E,)
    pool_class: I64  # (Q,)
    pool_in_rack: I64  # (Q,)
    pool: I64  # (K,)
    pool_pair: I64  # (K,)

    @property
    def pools(self) -> int:
        """Number of classes in racks, Q."""
        return len(self.pool_class)

    def enters(self, pairs: int) -> I64:
        """(pairs,) number of these arcs that lead into each pair."""
        return np.bincount(self.near_pair, minlength=pairs) + np.bincount(self.pool_pair, minlength=pairs)


_EMPTY = np.zeros(0, np.int64)
NO_DATA_ARCS = DataArcs(*[_EMPTY] * 10)


def node_columns(data: DataCosts) -> I64:
    """(2, N) equal columns for nodes that can share a group: the node itself if it has a preference arc, and its rack
    if that has one."""
    nodes = len(data.rack)
    named = np.full(nodes, -1, np.int64)
    named[data.near_node] = data.near_node
    return np.stack([named, _named_rack(data)])


def lots_of(nodes: int) -> U32:
    """(N,) the random number of each node, always the same."""
    return np.random.default_rng(1).integers(0, 2**32, nodes, np.uint32)


def nodes_by_rack(data: DataCosts) -> tuple[I64, I64, I64]:
    """The nodes (N,) rack by rack, where each rack begins among them, (K,), and its number, (K,); -1: those in none."""
    by_rack = np.argsort(data.rack, kind="stable")
    starts, _ = runs(data.rack[by_rack])
    return by_rack, starts, data.rack[by_rack[starts]]


def likely_arcs(data: DataCosts, task_class: I64, slots: I64, first: I64) -> tuple[Bools, Bools]:
    """Whether each preference arc to a node (L,) and to a rack (M,) is among those of least cost of its set that lead
    to slots, (C, N), for waiting tasks of classes (T,); the first slot of nodes costs `first` (N or 1,). All, if these
    would be half of them."""
    sets, nodes, racks = len(data.anywhere), len(data.rack), int(data.rack.max(initial=-1)) + 1
    of_rack = np.zeros((len(slots), racks + 1), np.int64)
    by_rack, starts, rack = nodes_by_rack(data)
    of_rack[:, rack] = np.add.reduceat(slots[:, by_rack], starts, axis=1)
    reads = np.flatnonzero(data.of_task >= 0)
    cls = np.zeros(sets, np.int64)
    cls[data.of_task[reads]] = task_class[reads]  # of one of its tasks: few sets have tasks of several

    of_set = np.concatenate([data.near_set, data.rack_set])
    there = np.concatenate([slots[cls[data.near_set], data.near_node], of_rack[cls[data.rack_set], data.rack_id]])
    cost = np.concatenate([data.near_cost + np.broadcast_to(first, nodes)[data.near_node], data.rack_cost])
    some = np.flatnonzero(there)
    some = some[_by_set_and_cost(of_set[some], cost[some], sets)]
    starts, run = runs(of_set[some])
    head = np.concatenate([data.near_node, nodes + data.rack_id])[some]
    capacity = np.concatenate([slots.max(axis=0), of_rack.max(axis=0)]).astype(np.float64)
    tasks = np.bincount(data.of_task[reads], minlength=sets)[of_set[some[starts]]]
    needed = _expected_ranks(starts, head, capacity, tasks) + _FURTHER
    in_part = np.zeros(len(of_set), np.bool_)
    likely = np.arange(len(some)) - starts[run] < needed[run]
    in_part[some[likely | (2 * np.count_nonzero(likely) > len(some))]] = True
    near, in_racks = np.split(in_part, [len(data.near_set)])
    return near, in_racks


def _expected_ranks(starts: I64, head: I64, capacity: F64, tasks: I64) -> I64:
    """(S,) how many of its arcs, which begin at `starts` (S,) and lead to `head` (K,), each set probably needs for its
    `tasks` (S,): all sets try their first arc, what finds no capacity (V,) there the second, and so on."""
    count = np.diff(np.append(starts, len(head)))
    left, ranks = tasks.astype(np.float64), np.zeros(len(starts), np.int64)
    for rank in range(int(count.max(initial=0))):
        trying = np.flatnonzero((left > _LEFT * tasks) & (count > rank))
        if not len(trying):
            break
        ranks[trying] = rank + 1
        at = head[starts[trying] + rank]
        asked = np.bincount(at, left[trying], len(capacity))
        taken = np.minimum(asked, capacity)
        capacity -= taken
        left[trying] *= 1 - (taken / np.maximum(asked, 1e-9))[at]
    return ranks


def _by_set_and_cost(of_set: I64, cost: I64, sets: int) -> I64:
    """(K,) the order by set, and by cost up to a factor if both do not fit one integer; several times as fast as
    np.lexsort."""
    bits = 62 - sets.bit_length()
    key = (of_set << bits) + (cost >> max(int(cost.max(initial=0)).bit_length() - bits, 0))
    order: I64 = np.argsort(key, kind="stable")
    return order


def preferred_pairs(data: DataCosts, task_class: I64, slots: I64, cost: I64) -> tuple[Bools, Bools]:
    """(C, N) each, pairs that preference arcs of waiting tasks of classes (T,) need: those at the head of one; and, of
    each rack at the head of one, the _OF_RACK nodes of least cost (C or 1, N or 1) with slots (C, N), random ones at a
    tie."""
    sets, lots = len(data.anywhere), lots_of(len(data.rack))
    reads = data.of_task >= 0
    cls, of_set = np.divmod(np.unique(task_class[reads] * sets + data.of_task[reads]), sets)
    near, of_racks = np.zeros((2, *slots.shape), np.bool_)
    entry, reader = of_groups(of_set, data.near_set, sets)
    near[cls[reader], data.near_node[entry]] = True
    entry, reader = of_groups(of_set, data.rack_set, sets)
    named = np.zeros((len(slots), int(data.rack.max(initial=-1)) + 1), np.bool_)
    named[cls[reader], data.rack_id[entry]] = True
    by_rack = np.argsort(data.rack, kind="stable")
    by_rack = by_rack[np.searchsorted(data.rack[by_rack], 0) :]  # those in racks
    cost = np.broadcast_to(cost, (len(cost), len(data.rack)))
    for c in np.flatnonzero(named.any(axis=1)).tolist():
        some = by_rack[named[c, data.rack[by_rack]] & (slots[c, by_rack] > 0)]
        if not len(some):
            continue
        # an odd factor permutes the lots: each class has others
        key = (cost[c % len(cost), some] << 32) + lots[some] * np.uint32(2 * c + 1)
        starts, run = runs(data.rack[some])
        for _ in range(_OF_RACK):
            least = key == np.minimum.reduceat(key, starts)[run]
            of_racks[c, some[least]], key[least] = True, np.iinfo(np.int64).max
    near &= slots > 0
    return near, of_racks


def data_arcs(
    data: DataCosts,
    group_class: I64,
    group_set: I64,
    pair_class: I64,
    pair_node_group: I64,
    pair_by_rack: Bools,
    node_group: I64,
    first: I64,
) -> DataArcs:
    """The arcs of supply groups (G,) with sets, given the pairs (P,) and whether they have an arc from their rack, the
    group of each node (N,), -1: none, and the first node of each group (M,)."""
    sets, groups = len(data.anywhere), len(first)
    classes = int(group_class.max(initial=-1)) + 1
    pair_of = np.full((classes, groups + 1), -1, np.int64)
    pair_of[pair_class, pair_node_group] = np.arange(len(pair_class))

    entry, near_group = of_groups(group_set, data.near_set, sets)
    near_pair = pair_of[group_class[near_group], node_group[data.near_node[entry]]]
    near_cost = data.near_cost[entry]
    there = near_pair >= 0
    near_group, near_pair, near_cost = near_group[there], near_pair[there], near_cost[there]

    racks = int(data.rack.max(initial=-1)) + 1
    rack_of_group = _named_rack(data)[first]
    entry, rack_group = of_groups(group_set, data.rack_set, sets)
    has_pool = np.zeros((classes, racks + 1), np.bool_)
    has_pool[group_class[rack_group], data.rack_id[entry]] = True
    has_pool[:, racks] = False  # nodes outside all racks have rack -1
    pool_pair = np.flatnonzero(pair_by_rack & has_pool[pair_class, rack_of_group[pair_node_group]])
    key = pair_class[pool_pair] * racks + rack_of_group[pair_node_group[pool_pair]]
    pools, pool = np.unique(key, return_inverse=True)
    number = np.full(classes * racks, -1, np.int64)
    number[pools] = np.arange(len(pools))
    rack_pool = number[group_class[rack_group] * racks + data.rack_id[entry]]
    there = rack_pool >= 0
    return DataArcs(
        near_group,
        near_pair,
        near_cost,
        rack_group[there],
        rack_pool[there],
        data.rack_cost[entry][there],
        *np.divmod(pools, max(racks, 1)),
        pool.reshape(-1).astype(np.int64),
        pool_pair,
    )


def _named_rack(data: DataCosts) -> I64:
    """(N,) the rack of each node, -1 if no arc leads to it."""
    named = np.zeros(int(data.rack.max(initial=-1)) + 2, np.bool_)
    named[data.rack_id] = True
    named[-1] = False
    return np.where(named[data.rack], data.rack, -1)
