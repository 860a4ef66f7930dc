"""The first solution of the search: each task on the node where evicting residents for it costs least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.insertion_cost import added_cost, cheapest
from firmament_py.eviction.moves import place_by_moves
from firmament_py.eviction.node_heap import build, sift_down
from firmament_py.eviction.victims import NONE, Groups, Lists, Scratch, State, Tasks, add, apply
from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled

if TYPE_CHECKING:
    from numpy.random import Generator

_MOVES = 64
"""Limit on the tasks of a node that move so that one task fits."""

_SLACK = 8.0
"""First only moves at the lower bound of their cost are accepted; once there are none, up to this many times as much.
"""


@compiled
def insert_all(
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    clearing: F64,
    candidates: I64,
    scratch: Scratch,
    rng: Generator,
) -> None:
    """Inserts the tasks in their order, each where it costs least. clearing (W, N): lower bounds on the cost of the
    moves after which a task of each class fits, see clearing_costs; without columns: nothing may move. candidates
    (W, ...): filled with the cheapest nodes of each class."""
    cost, heap, is_heap = np.full(len(free), np.inf), np.arange(len(free)), False
    last, moves = NONE, clearing.shape[1] > 0
    moved, order, at, some, slack = np.zeros(_MOVES, np.int64), np.zeros(0, np.int64), 0, False, 1.0
    for t in range(len(state.node_of)):
        c, home = tasks.cls[t], tasks.home[t]
        if tasks.level[c] == 0:
            add(t, home, state, lists)
            continue
        if c != last:  # the costs of all nodes, once for each class
            last, is_heap = c, False
            for i in range(len(cost)):
                cost[i] = added_cost(i, c, NONE, tasks, groups, state, lists, free, 0.0, scratch, rng)
                scratch.key_of_node[i] = min(cost[i], clearing[c, i]) if moves else cost[i]
            cheapest(scratch.key_of_node, candidates[c])
            if moves:
                order, at, some, slack = np.argsort(clearing[c], kind="mergesort"), 0, False, 1.0
        if home >= 0 and added_cost(home, c, home, tasks, groups, state, lists, free, 0.0, scratch, rng) <= 0.0:
            add(t, home, state, lists)
            apply(home, scratch.chosen, groups, state)
            cost[home], is_heap = -np.inf, False  # a lower bound; it is calculated again before it is used
            continue
        if not is_heap:
            build(heap, cost)
            is_heap = True
        while True:
            n = heap[0]
            if moves and cost[n] > 0.0:
                placed = False
                while not placed and slack < np.inf:
                    if at == len(order) or clearing[c, order[at]] == np.inf:
                        slack, at, some = slack if some else np.inf if slack > 1.0 else _SLACK, 0, False
                        continue
                    limit = max(np.ceil(clearing[c, order[at]] - 0.01), 1.0) * slack * 1.01  # a move costs about 1
                    placed = place_by_moves(
                        t, order[at], tasks, groups, state, lists, free, candidates, limit, moved, scratch, rng
                    )
                    some |= placed
                    at += 1
                if placed:
                    break
            if cost[n] == np.inf:
                break
            before = cost[n]
            cost[n] = added_cost(n, c, NONE, tasks, groups, state, lists, free, 0.0, scratch, rng)
            if cost[n] <= before:  # otherwise it was calculated before a budget had less left, or the node more tasks
                add(t, n, state, lists)
                apply(n, scratch.chosen, groups, state)
                cost[n] = -np.inf
                break
            sift_down(heap, cost, 0)
