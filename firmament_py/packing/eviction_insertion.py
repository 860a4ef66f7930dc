"""The first solution of the search: each task on the node where evicting residents for it costs least."""

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import inner
from firmament_py.packing.victims import NONE, Groups, Lists, Scratch, State, Tasks, add, apply, plan


@inner
def insert_all(
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    scratch: Scratch,
    rng: Generator,
) -> None:
    """Inserts the tasks in their order, each where it costs least. candidates (W, ...): fills in the cheapest nodes of
    each class."""
    cost = np.full(len(free), np.inf)
    last = NONE
    for t in range(len(state.node_of)):
        c = tasks.cls[t]
        if c != last:  # the costs of all nodes, once for each class
            last = c
            for i in range(len(cost)):
                cost[i] = added_cost(i, c, tasks, groups, state, lists, free, 0.0, scratch, rng)
            _cheapest(cost, candidates[c])
        home = tasks.home[t]
        if home >= 0 and added_cost(home, c, tasks, groups, state, lists, free, 0.0, scratch, rng) <= 0.0:
            add(t, home, state, lists)
            apply(home, scratch.chosen, groups, state)
            cost[home] = -np.inf  # at least; it is calculated again before it is used
            continue
        while True:
            n = NONE
            for i in range(len(cost)):
                if cost[i] < np.inf and (n < 0 or cost[i] < cost[n]):
                    n = np.int64(i)
            if n < 0:
                break
            before = cost[n]
            cost[n] = added_cost(n, c, tasks, groups, state, lists, free, 0.0, scratch, rng)
            if cost[n] <= before:  # otherwise it was calculated before a budget had less left, or the node more tasks
                add(t, n, state, lists)
                apply(n, scratch.chosen, groups, state)
                cost[n] = -np.inf
                break


@inner
def added_cost(
    n: int,
    c: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    noise: float,
    scratch: Scratch,
    rng: Generator,
) -> float:
    """What one more task of class c costs on node n, infinite if it cannot be there or makes more important ones more
    expensive; scratch.chosen: with which victims."""
    before = float(state.cost[n].sum())
    if before == np.inf or not tasks.suitable[c, n]:
        return np.inf
    cost = plan(n, c, tasks, groups, state, lists, free, noise, scratch, rng) - before
    for i in range(tasks.level[c]):
        if scratch.chosen.cost[i] > state.cost[n, i] * (1.0 + 1e-12):
            return np.inf
    return cost


@inner
def _cheapest(cost: F64, found: I64) -> None:
    """Fills `found` with the nodes of least finite cost, -1: no further one; the first of those that cost the same."""
    size = 0
    found[:] = NONE
    for n in range(len(cost)):
        if cost[n] == np.inf or (size == len(found) and cost[n] >= cost[found[size - 1]]):
            continue
        i = min(size, len(found) - 1)
        size = min(size + 1, len(found))
        while i > 0 and cost[found[i - 1]] > cost[n]:
            found[i] = found[i - 1]
            i -= 1
        found[i] = n
