"""Moves by the integer program that `poseidon rebalance --goal pack` uses (firmament_py/rebalance/joining.py)."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.defragmentation.machines import PIECE, SIDE, Moves, Tasks
from firmament_py.model.arrays import I64
from firmament_py.rebalance.joining import Joining, Takes

_TREE_NODES, _SECONDS = 20_000, 4.5


def joined_plan(free: I64, tasks: Tasks, limit: int) -> Moves:
    """A NUMA node is a row of capacity; a task on one of them can run in two ways on each machine, others in one."""
    machines, both = len(free), tasks.both
    kinds, kind = np.unique(np.column_stack([tasks.cores.sum(axis=1), both]), axis=0, return_inverse=True)
    single = np.repeat(kinds[:, 1] == 0, 2 * machines)
    of_kind, place = np.repeat(np.arange(len(kinds)), 2 * machines), np.tile(np.arange(2 * machines), len(kinds))
    way = np.flatnonzero(single | (place % 2 == 0))  # those on both NUMA nodes are numbered by the first
    number = np.full(len(place), -1)
    number[way] = np.arange(len(way))
    cores = np.where(single, kinds[of_kind, 0], kinds[of_kind, 0] // 2)
    second = way[~single[way]]
    ways = Takes(
        np.concatenate([number[way], number[second]]),
        np.concatenate([place[way], place[second] + 1]),
        np.concatenate([cores[way], cores[second]]),
    )
    side = np.where(both, 0, tasks.cores.argmax(axis=1))
    way_of = number[kind.reshape(-1) * 2 * machines + 2 * tasks.machine + side]  # (T,)
    there = np.bincount(way_of, minlength=len(way))
    rows = np.arange(2 * machines)
    joining = Joining(
        free=free.reshape(-1),
        kind=of_kind[way],
        ways=ways,
        there=there,
        may_arrive=SIDE // cores[way],
        pieces=Takes(rows, rows, np.full(2 * machines, PIECE)),
        number=np.full(2 * machines, SIDE // PIECE),
        clears=np.zeros((2, 0), np.int64),
    )
    found = joining.best(limit, int((free // PIECE).sum()), 0, _TREE_NODES, _SECONDS)
    if found is None:
        return np.zeros((0, 3), np.int64)
    by_way = np.argsort(way_of, kind="stable")
    among = np.arange(len(by_way)) - np.searchsorted(way_of[by_way], way_of[by_way])
    movers = by_way[among < found.leave[way_of[by_way]]]
    to = place[way][np.repeat(np.arange(len(way)), found.arrive)]
    return np.column_stack([movers, to // 2, to % 2])
