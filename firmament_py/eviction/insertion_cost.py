"""The cost of one more task on a node, and the selection of the cheapest nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.victims import NONE, Groups, Lists, Scratch, State, Tasks, plan
from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import inner

if TYPE_CHECKING:
    from numpy.random import Generator


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
    """The cost of one more task of class c on node n; infinite if it does not fit, or raises the cost of levels above
    its own. Fills scratch.chosen with the victims. home: of the task, NONE: it has none."""
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
    """Fills `found` with the nodes of least finite cost, ascending, the first of equals; NONE: no further node."""
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
