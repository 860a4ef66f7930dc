"""The cheapest victims on one node for all of its tasks: the compiled core of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.numba_cache import inner

if TYPE_CHECKING:
    from numpy.random import Generator

NONE: Any = np.int64(-1)
"""No node, no task. Not a literal, for each type of which numba would compile the functions that take it again."""

_BY_RANK: Any = np.int64(0)
_BY_SIZE: Any = np.int64(1)
"""Orders in which residents are taken; not literals, either."""

_WITHIN, _POSTPONED, _VIOLATING = 0, 1, 2
"""Passes over the residents of a node: those that do not wait for a later pass, all, those that no budget permits."""


class Tasks(NamedTuple):
    """T tasks: cls, home (T,), movers first, then arrivals, the most important first. The others are of W classes, see
    Arrivals and Movers. level (W,): 0 of movers, else 1 + the number of the priority among those of arrivals, from
    the highest. away (W,): the cost of being on another node than home. Budgets that count this for class c:
    budget[budget_start[c] : budget_start[c + 1]]. share (R,): one unit as a share of the largest node."""

    cls: I64
    home: I64
    requests: I64
    priority: I64
    level: I64
    suitable: Bools
    away: F64
    budget: I64
    budget_start: I64
    share: F64


class Groups(NamedTuple):
    """K groups of residents by node, on each in ascending order of importance: rank, then value for what one takes.

    start (N + 1,): the first of each node. number (K,) of alike ones; size (K, R): requests of one; weight (K,): cost
    of evicting one within its budgets; excess (K,): beyond them, infinite: not allowed; tier (K,): the lowest level
    whose tasks may evict it; density (K,): value for what one takes. Budgets of group k:
    budget[budget_start[k] : budget_start[k + 1]]."""

    start: I64
    number: I64
    size: I64
    priority: I64
    rank: I64
    weight: F64
    excess: F64
    tier: I64
    density: F64
    budget: I64
    budget_start: I64


class State(NamedTuple):
    """node_of (T,). Of each group (K,): evicted, and violating: how many of these no budget permits. allowed (B,): what
    the others leave; cost (N, L) of what is evicted on each node, by tier, infinite: the node cannot take its tasks;
    the last is that of movers which are there and have their homes elsewhere."""

    node_of: I64
    evicted: I64
    violating: I64
    allowed: I64
    cost: F64


class Lists(NamedTuple):
    """The tasks of each node, the most important first: first (N,), after (T,); NONE: no further one."""

    first: I64
    after: I64


class Victims(NamedTuple):
    """Of one node with G groups: evicted, violating (G,), see State, and cost (L,)."""

    evicted: I64
    violating: I64
    cost: F64


class Scratch(NamedTuple):
    """Of plans for a node with G groups: chosen, and two others to compare it with. order, key, postponed (G,): the
    order in which groups are taken; need (R,): requests of the tasks so far; freed (R,): what they may use; spare (B,):
    further evictions that budgets permit. looked (1,): how many groups all plans have looked at. key_of_node (N,);
    refill (W,): when the candidates of a class may be chosen anew, see looked. tried (N,): the number of the last
    insertion that has tried each node; insertions (1,): their number."""

    chosen: Victims
    other: Victims
    best: Victims
    order: I64
    key: F64
    postponed: Bools
    need: I64
    freed: I64
    spare: I64
    looked: I64
    key_of_node: F64
    refill: I64
    tried: I64
    insertions: I64


@inner
def plan(
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
    """The least cost found of making all tasks of node n fit, and one of class c, NONE: no other; infinite if they
    cannot. home: its node, NONE: any. Fills scratch.chosen.

    Residents are taken by rank, then by value for what they take, and, if noise is above 0, by chance: then some of
    those that count against a budget come last. If budgets do not permit that, those come last, the largest first.
    """
    first = groups.start[n]
    count = groups.start[n + 1] - first
    order, postponed = scratch.order, scratch.postponed
    share = rng.random() if noise > 0.0 else 0.0
    for i in range(count):
        order[i] = i
        guarded = groups.budget_start[first + i] < groups.budget_start[first + i + 1]
        postponed[i] = guarded and rng.random() < share
    if noise > 0.0:
        _disturb(first, count, groups, order, scratch.key, noise, rng)
    total = _victims(n, c, home, tasks, groups, state, lists, free, scratch, _BY_RANK, noise, rng)
    if len(state.allowed) == 0 or not (total == np.inf or _exceeds(count, scratch)):
        return total
    keep(count, scratch.chosen, scratch.other)
    for i in range(count):
        postponed[i] = groups.budget_start[first + i] < groups.budget_start[first + i + 1]
    second = _victims(n, c, home, tasks, groups, state, lists, free, scratch, _BY_SIZE, noise, rng)
    if second < total:
        return second
    keep(count, scratch.other, scratch.chosen)
    return total


@inner
def _exceeds(count: int, scratch: Scratch) -> bool:
    found = False
    for i in range(count):
        found |= scratch.chosen.violating[i] > 0
    return found


@inner
def keep(count: int, source: Victims, target: Victims) -> None:
    """Copies what a node with so many groups has."""
    for i in range(count):
        target.evicted[i], target.violating[i] = source.evicted[i], source.violating[i]
    for i in range(len(source.cost)):
        target.cost[i] = source.cost[i]


@inner
def _victims(
    n: int,
    c: int,
    home: int,
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    scratch: Scratch,
    by_size: int,
    noise: float,
    rng: Generator,
) -> float:
    """See plan; residents are taken in scratch.order, or by size."""
    first, count = groups.start[n], groups.start[n + 1] - groups.start[n]
    evicted, violating = scratch.chosen.evicted, scratch.chosen.violating
    spare, need, freed = scratch.spare, scratch.need, scratch.freed
    for b in range(len(spare)):
        spare[b] = state.allowed[b]
    for i in range(count):
        g = first + i
        evicted[i], violating[i] = 0, 0
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            spare[groups.budget[b]] += state.evicted[g] - state.violating[g]
    for r in range(len(need)):
        need[r], freed[r] = 0, free[n, r]
    moved = tasks.away[c] if c >= 0 and home != n else 0.0
    t = lists.first[n]
    while t >= 0 or c >= 0:  # level by level: nothing is evicted for a task whose priority is not higher
        of = c if t < 0 or (c >= 0 and tasks.level[c] < tasks.level[tasks.cls[t]]) else tasks.cls[t]
        level = tasks.level[of]
        if c >= 0 and tasks.level[c] == level:
            for r in range(len(need)):
                need[r] += tasks.requests[c, r]
            c = NONE
        while t >= 0 and tasks.level[tasks.cls[t]] == level:
            for r in range(len(need)):
                need[r] += tasks.requests[tasks.cls[t], r]
            if tasks.home[t] != n:
                moved += tasks.away[tasks.cls[t]]
            t = lists.after[t]
        if lacking(need, freed) == 0:
            continue
        scratch.looked[0] += count
        if not _take(first, count, tasks.priority[of], groups, scratch, by_size, noise, rng):
            return np.inf
        _put_back(first, count, groups, scratch)
    total = moved
    for i in range(len(scratch.chosen.cost)):
        scratch.chosen.cost[i] = 0.0
    scratch.chosen.cost[-1] = moved
    for i in range(count):
        if evicted[i] > 0:
            g = first + i
            cost = (evicted[i] - violating[i]) * groups.weight[g]
            if violating[i] > 0:
                cost += violating[i] * groups.excess[g]
            scratch.chosen.cost[groups.tier[g]] += cost
            total += cost
    return total


@inner
def lacking(need: I64, freed: I64) -> int:
    """How many of the resources that are requested are exceeded."""
    found = 0
    for r in range(len(need)):
        found += need[r] > 0 and need[r] > freed[r]
    return found


@inner
def _take(
    first: int, count: int, priority: int, groups: Groups, scratch: Scratch, by_size: int, noise: float, rng: Generator
) -> bool:
    """Evicts residents of lower priority until nothing is lacking; whether that is so."""
    need, freed = scratch.need, scratch.freed
    for stage in (_WITHIN, _POSTPONED, _VIOLATING):
        if by_size == _BY_SIZE and stage == _POSTPONED:
            _take_largest(first, count, priority, groups, scratch, noise, rng)
        for at in range(count):
            i = scratch.order[at]
            if lacking(need, freed) == 0:
                return True
            if groups.priority[first + i] >= priority or (stage == _WITHIN and scratch.postponed[i]):
                continue
            gone = groups.number[first + i] - scratch.chosen.evicted[i]
            if stage == _VIOLATING:
                gone = gone if groups.excess[first + i] < np.inf else 0
            else:
                gone = min(gone, _permitted(first + i, groups, scratch))
            if gone > 0 and use_of(groups.size, first + i, need, freed) > 0.0:
                _evict(i, first + i, gone, stage == _VIOLATING, groups, scratch)
    return lacking(need, freed) == 0


@inner
def _take_largest(
    first: int, count: int, priority: int, groups: Groups, scratch: Scratch, noise: float, rng: Generator
) -> None:
    """Evicts residents within their budgets one by one, each time the one that has most of what is lacking."""
    need, freed = scratch.need, scratch.freed
    while lacking(need, freed) > 0:
        found, largest = NONE, 0.0
        for i in range(count):
            g = first + i
            if groups.priority[g] < priority and groups.number[g] > scratch.chosen.evicted[i]:
                use = use_of(groups.size, g, need, freed) * (1.0 + noise * rng.random())
                if use > largest and _permitted(g, groups, scratch) > 0:
                    found, largest = np.int64(i), use
        if found < 0:
            break
        _evict(found, first + found, 1, False, groups, scratch)


@inner
def _permitted(g: int, groups: Groups, scratch: Scratch) -> int:
    """How many evictions of group g its budgets permit."""
    least = groups.number[g]
    for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
        least = min(least, max(scratch.spare[groups.budget[b]], 0))
    return int(least)


@inner
def use_of(sizes: I64, i: int, need: I64, freed: I64) -> float:
    """The sum of the shares of what is lacking that one of sizes[i] has, 0: nothing."""
    use = 0.0
    for r in range(len(need)):
        if need[r] > 0 and need[r] > freed[r]:
            use += min(sizes[i, r] / (need[r] - freed[r]), 1.0)
    return use


@inner
def _evict(i: int, g: int, gone: int, violating: bool, groups: Groups, scratch: Scratch) -> None:
    scratch.chosen.evicted[i] += gone
    if violating:
        scratch.chosen.violating[i] += gone
    else:
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            scratch.spare[groups.budget[b]] -= gone
    for r in range(len(scratch.freed)):
        scratch.freed[r] += gone * groups.size[g, r]


@inner
def _put_back(first: int, count: int, groups: Groups, scratch: Scratch) -> None:
    """Spares what fits after all: first what violates budgets, then the most important."""
    evicted, violating = scratch.chosen.evicted, scratch.chosen.violating
    spare, need, freed = scratch.spare, scratch.need, scratch.freed
    for permitted in (False, True):
        for at in range(count - 1, -1, -1):
            i = scratch.order[at]
            g = first + i
            back = evicted[i] if permitted else violating[i]
            if back == 0:
                continue
            for r in range(len(freed)):
                if need[r] > 0 and groups.size[g, r] > 0:
                    back = min(back, (freed[r] - need[r]) // groups.size[g, r])
            evicted[i] -= back
            for r in range(len(freed)):
                freed[r] -= back * groups.size[g, r]
            unpaid = min(back, violating[i])
            violating[i] -= unpaid
            for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
                spare[groups.budget[b]] += back - unpaid


@inner
def _disturb(first: int, count: int, groups: Groups, order: I64, key: F64, noise: float, rng: Generator) -> None:
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
def apply(n: int, victims: Victims, groups: Groups, state: State) -> None:
    """Evicts these on node n, and no others."""
    first = groups.start[n]
    for i in range(groups.start[n + 1] - first):
        g = first + i
        further = (victims.evicted[i] - victims.violating[i]) - (state.evicted[g] - state.violating[g])
        state.evicted[g], state.violating[g] = victims.evicted[i], victims.violating[i]
        for b in range(groups.budget_start[g], groups.budget_start[g + 1]):
            state.allowed[groups.budget[b]] -= further
    for i in range(len(victims.cost)):
        state.cost[n, i] = victims.cost[i]


@inner
def add(t: int, n: int, state: State, lists: Lists) -> None:
    """Adds task t to node n."""
    state.node_of[t] = n
    if lists.first[n] < 0 or lists.first[n] > t:
        lists.first[n], lists.after[t] = t, lists.first[n]
        return
    before = lists.first[n]
    while lists.after[before] >= 0 and lists.after[before] < t:
        before = lists.after[before]
    lists.after[before], lists.after[t] = t, lists.after[before]


@inner
def remove(t: int, state: State, lists: Lists) -> None:
    """Takes task t from its node."""
    n = state.node_of[t]
    state.node_of[t] = NONE
    if lists.first[n] == t:
        lists.first[n] = lists.after[t]
        return
    before = lists.first[n]
    while lists.after[before] != t:
        before = lists.after[before]
    lists.after[before] = lists.after[t]
