"""What one more task costs on a node, and the nodes where something costs least."""

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import inner
from firmament_py.packing.victims import NONE, Groups, Lists, Scratch, State, Tasks, plan


@inner
def added_cost(
    n: int,
    c: int,
    home: int,
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
    expensive; scratch.chosen: with which victims. home: its node, NONE: any."""
    before = float(state.cost[n].sum())
    if before == np.inf or not tasks.suitable[c, n]:
        return np.inf
    cost = plan(n, c, home, tasks, groups, state, lists, free, noise, scratch, rng) - before
    for i in range(tasks.level[c]):
        if scratch.chosen.cost[i] > state.cost[n, i] * (1.0 + 1e-12):
            return np.inf
    return cost


@inner
def cheapest(cost: F64, found: I64) -> None:
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
