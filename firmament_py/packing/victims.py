"""The cheapest victims on one node for one task, and what evicting them leaves: the compiled core of the search."""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.numba_cache import inner

NONE: Any = np.int64(-1)
"""No node. Not a literal, for each type of which numba would compile the functions that take it again."""


class Tasks(NamedTuple):
    """T tasks: cls (T,), the most important first; the rest is of classes, see Arrivals. level (W,): number of the
    priority among all of them, 0: the highest."""

    cls: I64
    requests: I64
    priority: I64
    level: I64
    suitable: Bools


class Groups(NamedTuple):
    """K groups of residents by node, on each in ascending order of importance: rank, then value. start (N + 1,): the
    first of each node. number (K,) of alike ones; size (K, R): requests of one; weight (K,): cost of evicting one; tier
    (K,): the lowest level whose tasks may evict it;
    density (K,): value for what one takes. Numbers (K,) of the groups of each node: by_density, by rank, then density;
    by_size, those that count against no budget first, then the largest. Budgets of group k:
    budget[budget_start[k] : budget_start[k + 1]].
    """

    start: I64
    number: I64
    size: I64
    priority: I64
    rank: I64
    weight: F64
    tier: I64
    density: F64
    by_density: I64
    by_size: I64
    budget: I64
    budget_start: I64


class State(NamedTuple):
    """node_of (T,); left (K,) of each group; free (N, R); allowed (B,); cost (N, L) of what is evicted on each node, by
    tier."""

    node_of: I64
    left: I64
    free: I64
    allowed: I64
    cost: F64


class Scratch(NamedTuple):
    """Of one plan: take, other: how many of each group of a node go; order, key: another order of the groups; spare
    (B,), freed (R,). looked (1,): how many groups all plans have looked at.
    """

    take: I64
    other: I64
    order: I64
    key: F64
    spare: I64
    freed: I64
    looked: I64


@inner
def plan(
    c: int, n: int, tasks: Tasks, groups: Groups, state: State, noise: float, scratch: Scratch, rng: Generator
) -> float:
    """The least cost found of making a task of class c fit on node n, infinite if it cannot; scratch.take: how many of
    each group there must go. The residents are taken in up to three orders: by value; unless noise is below 0, by value
    for what they take; and if it is above 0, one in which chance has a part. If budgets do not permit any of these, the
    largest are taken first, so that as few as possible count against a budget."""
    first = groups.start[n]
    count = groups.start[n + 1] - first
    take, other, order, key = scratch.take, scratch.other, scratch.order, scratch.key
    for i in range(count):
        take[i] = 0
    if not tasks.suitable[c, n]:
        return np.inf
    fits = True
    for r in range(state.free.shape[1]):
        fits &= tasks.requests[c, r] == 0 or state.free[n, r] >= tasks.requests[c, r]
    if fits:
        return 0.0
    best = np.inf
    for trial in range(1 if noise < 0.0 else 2 if noise == 0.0 else 3):
        for i in range(count):
            order[i] = i if trial == 0 else groups.by_density[first + i]
        if trial == 2:
            disturb(first, count, groups, order, key, noise, rng)
        cost = victims(c, n, tasks, groups, state, scratch, False)
        if cost < best:
            best = cost
            for i in range(count):
                take[i] = other[i]
        if cost == np.inf and len(state.allowed) == 0:
            return best  # without budgets the order does not matter
    if best == np.inf:
        for i in range(count):
            order[i] = groups.by_size[first + i]
        best = min(_without_all(c, n, tasks, groups, state, scratch), best)
        if best == np.inf:
            best = victims(c, n, tasks, groups, state, scratch, True)
        for i in range(count):
            take[i] = other[i]
    return best


@inner
def victims(c: int, n: int, tasks: Tasks, groups: Groups, state: State, scratch: Scratch, by_size: bool) -> float:
    """The cost of a set of residents without which the task fits, infinite if none is found; scratch.other: how many of
    each group are in it. by_size: scratch.order is that of sizes."""
    first, count = groups.start[n], groups.start[n + 1] - groups.start[n]
    order, take, spare, freed = scratch.order, scratch.other, scratch.spare, scratch.freed
    scratch.looked[0] += count
    for b in range(len(spare)):
        spare[b] = state.allowed[b]
    lacking = 0
    for r in range(len(freed)):
        freed[r] = state.free[n, r] - tasks.requests[c, r]
        lacking += tasks.requests[c, r] > 0 and freed[r] < 0
    for i in range(count):
        take[i] = 0
    for i in range(count):  # in ascending order of importance, until the task fits
        if lacking == 0:
            break
        g = first + order[i]
        if groups.priority[g] >= tasks.priority[c]:
            continue
        gone = state.left[g] if _helps(g, c, tasks, groups, freed) else 0
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            gone = min(gone, max(spare[groups.budget[b]], 0))
        if gone == 0:
            continue
        take[order[i]] = gone
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            spare[groups.budget[b]] -= gone
        lacking = 0
        for r in range(len(freed)):
            freed[r] += gone * groups.size[g, r]
            lacking += tasks.requests[c, r] > 0 and freed[r] < 0
    if lacking > 0:
        return np.inf
    cost = 0.0
    for i in range(count - 1, -1, -1):  # back, the most important first
        k = i if by_size else order[i]
        back, g = take[k], first + k
        if back == 0:
            continue
        for r in range(len(freed)):
            if tasks.requests[c, r] > 0 and groups.size[g, r] > 0:
                back = min(back, freed[r] // groups.size[g, r])
        take[k] -= back
        for r in range(len(freed)):
            freed[r] -= back * groups.size[g, r]
        cost += take[k] * groups.weight[g]
    return cost


@inner
def _without_all(c: int, n: int, tasks: Tasks, groups: Groups, state: State, scratch: Scratch) -> float:
    """The same by evicting all that the task may evict, and putting back first those whose budgets do not permit it,
    then the others, each time the most important first (as kube-scheduler does)."""
    first, count = groups.start[n], groups.start[n + 1] - groups.start[n]
    take, spare, freed = scratch.other, scratch.spare, scratch.freed
    scratch.looked[0] += count
    for b in range(len(spare)):
        spare[b] = state.allowed[b]
    for r in range(len(freed)):
        freed[r] = state.free[n, r] - tasks.requests[c, r]
    for i in range(count):
        g = first + i
        take[i] = state.left[g] if groups.priority[g] < tasks.priority[c] else 0
        for r in range(len(freed)):
            freed[r] += take[i] * groups.size[g, r]
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            spare[groups.budget[b]] -= take[i]
    for r in range(len(freed)):
        if tasks.requests[c, r] > 0 and freed[r] < 0:
            return np.inf
    cost = 0.0
    for budgeted in (True, False):
        for i in range(count - 1, -1, -1):
            g = first + i
            back = take[i]
            if budgeted:
                exceeded = np.int64(0)
                for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
                    exceeded = max(exceeded, -spare[groups.budget[b]])
                back = min(back, exceeded)
            for r in range(len(freed)):
                if tasks.requests[c, r] > 0 and groups.size[g, r] > 0:
                    back = min(back, freed[r] // groups.size[g, r])
            take[i] -= back
            for r in range(len(freed)):
                freed[r] -= back * groups.size[g, r]
            for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
                spare[groups.budget[b]] += back
            if not budgeted:
                cost += take[i] * groups.weight[g]
        for b in range(len(spare)):
            if budgeted and spare[b] < min(state.allowed[b], 0):
                return np.inf
    return cost


@inner
def _helps(g: int, c: int, tasks: Tasks, groups: Groups, freed: I64) -> bool:
    """Whether residents of group g use what a task of class c lacks."""
    found = False
    for r in range(len(freed)):
        found |= tasks.requests[c, r] > 0 and freed[r] < 0 and groups.size[g, r] > 0
    return found


@inner
def disturb(first: int, count: int, groups: Groups, order: I64, key: F64, noise: float, rng: Generator) -> None:
    """Sorts groups of a node within each rank by density and chance (insertion sort: the order changes little)."""
    for i in range(count):
        key[i] = groups.density[first + order[i]] * (1.0 - noise + 2.0 * noise * rng.random())
    for i in range(1, count):
        j, number, value = i - 1, order[i], key[i]
        rank = groups.rank[first + number]
        while j >= 0 and groups.rank[first + order[j]] == rank and key[j] > value:
            order[j + 1], key[j + 1] = order[j], key[j]
            j -= 1
        order[j + 1], key[j + 1] = number, value


@inner
def apply(c: int, n: int, tasks: Tasks, groups: Groups, state: State, scratch: Scratch) -> None:
    """Evicts what plan has chosen, and adds the task."""
    first = groups.start[n]
    for i in range(groups.start[n + 1] - first):
        gone, g = scratch.take[i], first + i
        if gone == 0:
            continue
        state.left[g] -= gone
        for r in range(state.free.shape[1]):
            state.free[n, r] += gone * groups.size[g, r]
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            state.allowed[groups.budget[b]] -= gone
    for r in range(state.free.shape[1]):
        state.free[n, r] -= tasks.requests[c, r]


@inner
def put_back(n: int, groups: Groups, state: State) -> None:
    """Spares what fits after all, the most important first; the cost of what does not."""
    for i in range(state.cost.shape[1]):
        state.cost[n, i] = 0.0
    for g in range(groups.start[n + 1] - 1, groups.start[n] - 1, -1):
        back = groups.number[g] - state.left[g]
        if back == 0:
            continue
        for r in range(state.free.shape[1]):
            if groups.size[g, r] > 0:
                back = min(back, max(state.free[n, r], 0) // groups.size[g, r])
        state.left[g] += back
        for r in range(state.free.shape[1]):
            state.free[n, r] -= back * groups.size[g, r]
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            state.allowed[groups.budget[b]] += back
        state.cost[n, groups.tier[g]] += (groups.number[g] - state.left[g]) * groups.weight[g]


@inner
def rebuild(
    n: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    first_free: I64,
    noise: float,
    scratch: Scratch,
    rng: Generator,
) -> None:
    """Evicts anew for the tasks that node n has; infinite cost: not all of them fit any longer."""
    for g in range(groups.start[n], groups.start[n + 1]):
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            state.allowed[groups.budget[b]] += groups.number[g] - state.left[g]
        state.left[g] = groups.number[g]
    for r in range(state.free.shape[1]):
        state.free[n, r] = first_free[n, r]
    fits = True
    last = NONE
    for t in range(len(state.node_of)):
        if state.node_of[t] == n:
            if last >= 0 and tasks.priority[tasks.cls[t]] < tasks.priority[tasks.cls[last]]:
                put_back(n, groups, state)  # nothing is evicted for a task whose priority is not higher
            last = t
            if plan(tasks.cls[t], n, tasks, groups, state, noise, scratch, rng) == np.inf:
                fits = False
                break
            apply(tasks.cls[t], n, tasks, groups, state, scratch)
    put_back(n, groups, state)
    if not fits:
        state.cost[n, 0] = np.inf
