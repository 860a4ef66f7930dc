"""Moves of running tasks to other nodes: the nodes that they fit best, and moves that clear a node for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.insertion_cost import added_cost, cheapest
from firmament_py.eviction.victims import (
    NONE,
    Groups,
    Lists,
    Scratch,
    State,
    Tasks,
    add,
    apply,
    lacking,
    plan,
    remove,
    use_of,
)
from firmament_py.model.arrays import I64
from firmament_py.numba_cache import inner

if TYPE_CHECKING:
    from numpy.random import Generator

_TIE = 1e-3
"""Of nodes that cost the same, the one with the least free capacity after the move is chosen: each costs this share of
the moving cost, times the share of the node that remains free."""


@inner
def count_move(t: int, sign: int, tasks: Tasks, state: State) -> None:
    """Counts one move of task t from its home against its budgets (sign 1), or one less (-1)."""
    c = tasks.cls[t]
    for b in range(tasks.budget_start[c], tasks.budget_start[c + 1]):
        state.allowed[tasks.budget[b]] -= sign


@inner
def may_leave(t: int, tasks: Tasks, state: State) -> bool:
    """Whether all budgets permit task t to leave its home."""
    c = tasks.cls[t]
    least = 1
    for b in range(tasks.budget_start[c], tasks.budget_start[c + 1]):
        least = min(least, state.allowed[tasks.budget[b]])
    return least > 0


@inner
def moving_cost(
    n: int,
    t: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    scratch: Scratch,
    rng: Generator,
) -> float:
    """The cost of mover t on node n, not its home; infinite if it does not fit. A bit more where more remains free."""
    c = tasks.cls[t]
    cost = added_cost(n, c, NONE, tasks, groups, state, lists, free, 0.0, scratch, rng)
    if cost == np.inf:
        return cost
    left = 0.0
    for r in range(len(scratch.need)):
        if tasks.requests[c, r] > 0:
            left += (scratch.freed[r] - scratch.need[r]) * tasks.share[r]
    return float(cost + _TIE * tasks.away[c] * left)


@inner
def refill(
    t: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    scratch: Scratch,
    rng: Generator,
) -> bool:
    """Sets the candidates of the class of mover t to its best nodes now, unless a recent attempt found none; whether
    there are any."""
    c, nodes = tasks.cls[t], len(free)
    if scratch.looked[0] < scratch.refill[c]:
        return False
    for n in range(nodes):
        scratch.key_of_node[n] = moving_cost(n, t, tasks, groups, state, lists, free, scratch, rng)
    scratch.key_of_node[tasks.home[t]] = np.inf
    cheapest(scratch.key_of_node, candidates[c])
    scratch.looked[0] += nodes
    if candidates[c, 0] < 0:
        scratch.refill[c] = scratch.looked[0] + nodes
        return False
    return True


@inner
def relocate(
    t: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    scratch: Scratch,
    rng: Generator,
) -> bool:
    """Places mover t, which has been removed from its home, on the best candidate of its class, without further
    evictions; whether it fits on any."""
    c = tasks.cls[t]
    if not may_leave(t, tasks, state):
        return False
    for attempt in range(2):
        if attempt == 1 and not refill(t, tasks, groups, state, lists, free, candidates, scratch, rng):
            return False
        found, least = NONE, 2.0 * tasks.away[c]
        for n in candidates[c]:
            if n >= 0 and n != tasks.home[t]:
                cost = moving_cost(n, t, tasks, groups, state, lists, free, scratch, rng)
                if cost < least:
                    found, least = n, cost
        if found >= 0:
            _settle(t, found, tasks, groups, state, lists, free, scratch, rng)
            count_move(t, 1, tasks, state)
            return True
    return False


@inner
def place_by_moves(
    t: int,
    n: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    limit: float,
    moved: I64,
    scratch: Scratch,
    rng: Generator,
) -> bool:
    """Places task t, which is on no node, on node n, and moves tasks from there to other nodes without further
    evictions; whether that is possible at a cost of at most `limit`: otherwise the state is as before. moved (K,): a
    buffer; at most K tasks move."""
    c, count = tasks.cls[t], 0
    scratch.looked[0] += 1
    if state.cost[n].sum() == np.inf or not tasks.suitable[c, n]:
        return False
    fits = False
    while not fits:
        other = _most_useful(n, c, tasks, groups, state, lists, free, scratch)
        if other < 0 or count == len(moved):
            break
        remove(other, state, lists)
        moved[count] = other
        count += 1
        fits = added_cost(n, c, NONE, tasks, groups, state, lists, free, 0.0, scratch, rng) <= 0.0
    if fits:
        _settle(t, n, tasks, groups, state, lists, free, scratch, rng)
        cost = 0.0
        for i in range(count - 1, -1, -1):  # a later, larger one may have made it needless to move earlier ones
            k = tasks.cls[moved[i]]
            if added_cost(n, k, n, tasks, groups, state, lists, free, 0.0, scratch, rng) <= 0.0:
                _settle(moved[i], n, tasks, groups, state, lists, free, scratch, rng)
            else:
                cost += tasks.away[k]
        fits = cost <= limit * (1.0 + 1e-9)
        for i in range(count):
            if fits and state.node_of[moved[i]] < 0:
                fits = relocate(moved[i], tasks, groups, state, lists, free, candidates, scratch, rng)
    if not fits:
        if state.node_of[t] >= 0:
            remove(t, state, lists)
        for i in range(count):
            other = moved[i]
            to = state.node_of[other]
            if to == n:
                continue
            if to >= 0:
                remove(other, state, lists)
                _plan_again(to, tasks, groups, state, lists, free, scratch, rng)
                count_move(other, -1, tasks, state)
            add(other, n, state, lists)
        _plan_again(n, tasks, groups, state, lists, free, scratch, rng)
    return fits


@inner
def _most_useful(
    n: int, c: int, tasks: Tasks, groups: Groups, state: State, lists: Lists, free: I64, scratch: Scratch
) -> int:
    """The mover with its home on node n that frees most of what one more task of class c lacks there, relative to its
    moving cost; NONE: nothing is lacking, or no mover frees any of it."""
    need, freed = scratch.need, scratch.freed
    for r in range(len(need)):
        need[r], freed[r] = tasks.requests[c, r], free[n, r]
        for g in range(groups.start[n], groups.start[n + 1]):
            freed[r] += state.evicted[g] * groups.size[g, r]
    t = lists.first[n]
    while t >= 0:
        for r in range(len(need)):
            need[r] += tasks.requests[tasks.cls[t], r]
        t = lists.after[t]
    found, greatest = NONE, 0.0
    if lacking(need, freed) == 0:
        return int(found)
    t = lists.first[n]
    while t >= 0:
        k = tasks.cls[t]
        if tasks.level[k] == 0 and tasks.home[t] == n and may_leave(t, tasks, state):
            use = use_of(tasks.requests, k, need, freed) / tasks.away[k]
            if use > greatest:
                found, greatest = np.int64(t), use
        t = lists.after[t]
    return int(found)


@inner
def _settle(
    t: int,
    n: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    scratch: Scratch,
    rng: Generator,
) -> None:
    """Adds task t, for which node n needs no further evictions, and plans the victims of n again."""
    add(t, n, state, lists)
    _plan_again(n, tasks, groups, state, lists, free, scratch, rng)


@inner
def _plan_again(
    n: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    scratch: Scratch,
    rng: Generator,
) -> None:
    plan(n, NONE, NONE, tasks, groups, state, lists, free, 0.0, scratch, rng)
    apply(n, scratch.chosen, groups, state)
