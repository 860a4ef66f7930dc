"""Improves the first solution: removes a few tasks and inserts them again, thousands of times, and keeps the best."""

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.eviction_insertion import added_cost, insert_all
from firmament_py.packing.victims import (
    NONE,
    Groups,
    Lists,
    Scratch,
    State,
    Tasks,
    Victims,
    add,
    apply,
    keep,
    plan,
    remove,
)

_CANDIDATES = 24
"""In a step of the search a task is tried on so many nodes of those that were cheapest for its class at first."""

_PATIENCE_PER_TASK, _PATIENCE, _FURTHER_PATIENCE_PER_TASK = 250, 3000, 80
"""The search ends after so many steps for each task without a home that make nothing better, but no more than the
second, and so many further ones for each of these tasks: soon for a single task, for which there is little to combine.
"""

_EFFORT, _EFFORT_LIMIT = 1_000_000, 5_000_000
"""The search ends when it has looked at so many groups of residents, times the square root of the number of tasks
without a home, but no more than the second: after some 0.1 seconds for one task, and 0.5 seconds for 25 or more."""

_TEMPERATURE = 0.5
"""At the start, a change that makes the nodes it affects up to this share more expensive may be accepted."""

_PARTIAL = 0.3
"""The probability that a change is accepted whatever it means for the priorities below some level."""

_RETURN = 100
"""The search returns to the best after so many steps that make nothing better."""

_REMOVED = 8
"""Largest number of tasks that one step removes."""

_BLINK = 0.5
"""In every other step, the largest probability that a node is overlooked. In those steps, chance also changes the order
in which residents are taken."""

_SHARING = 0.3
"""The probability that the first tasks of a step leave a budget to the others."""


@compiled
def search(tasks: Tasks, groups: Groups, state: State, free: I64, rng: Generator) -> None:
    """Changes the state, in which no task is placed. free (N, R): without evictions."""
    nodes, count, levels = len(free), len(state.node_of), state.cost.shape[1]
    widest = 1
    for n in range(nodes):
        widest = max(widest, groups.start[n + 1] - groups.start[n])
    scratch = Scratch(
        Victims(np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(levels)),
        Victims(np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(levels)),
        Victims(np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(levels)),
        np.zeros(widest, np.int64),
        np.zeros(widest),
        np.zeros(widest, np.bool_),
        np.zeros(free.shape[1], np.int64),
        np.zeros(free.shape[1], np.int64),
        state.allowed.copy(),
        np.zeros(1, np.int64),
    )
    lists = Lists(np.full(nodes, NONE), np.full(count, NONE))
    candidates = np.full((len(tasks.requests), _CANDIDATES), NONE)
    insert_all(tasks, groups, state, lists, free, candidates, scratch, rng)
    touched = np.zeros(2 * _REMOVED, np.int64)
    old, best = _copy_of(state), _copy_of(state)
    moved = 0  # number of nodes that differ from the best
    changed, is_changed = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    everyone = np.arange(count)
    chosen = np.zeros(_REMOVED, np.int64)
    # by level: how much more is served than in the best, and how much more that costs
    served, excess = np.zeros(levels, np.int64), np.zeros(levels)
    total = state.cost.sum(axis=0)
    gain, change, weight = np.zeros(levels, np.int64), np.zeros(levels), np.zeros(levels)
    waiting = _waiting(state)
    idle = 0
    scratch.looked[0] = 0
    seeking = 0
    for home in tasks.home:
        seeking += home < 0
    effort = min(_EFFORT * seeking**0.5, _EFFORT_LIMIT)
    away = 0
    patience = min(_PATIENCE_PER_TASK * seeking, _PATIENCE) + _FURTHER_PATIENCE_PER_TASK * seeking
    while scratch.looked[0] < effort and idle <= patience and (waiting > 0 or total.max() > 0.0):
        scratch.looked[0] += 1
        idle += 1
        away += 1
        if moved > 0 and away > _RETURN:
            away = 0
            _return(best, state, groups, lists, everyone, changed[:moved])
            _copy(best, old, groups, everyone, changed[:moved])
            for n in changed[:moved]:
                is_changed[n] = False
            moved = 0
            total -= excess
            served[:] = 0
            excess[:] = 0.0
            waiting = _waiting(state)
        noise = rng.random() if rng.random() < 0.5 else 0.0
        k = _choose(chosen, tasks, state, candidates, waiting, rng)
        affected = _move(tasks, groups, state, lists, free, candidates, chosen[:k], touched, noise, scratch, rng)
        for i in range(levels):
            gain[i], change[i], weight[i] = 0, 0.0, 0.0
        for t in chosen[:k]:
            gain[tasks.level[tasks.cls[t]]] += int(state.node_of[t] >= 0) - int(old.node_of[t] >= 0)
        for i in range(levels):
            for n in touched[:affected]:
                change[i] += state.cost[n, i] - old.cost[n, i]
                weight[i] += old.cost[n, i]
        warm = 1.0 - scratch.looked[0] / effort
        depth = int(levels * rng.random()) if rng.random() < _PARTIAL else levels
        if change[0] == np.inf or not _accepted(
            gain[:depth], change[:depth], weight[:depth], _TEMPERATURE * warm * rng.random()
        ):
            _return(old, state, groups, lists, chosen[:k], touched[:affected])
            continue
        _copy(state, old, groups, chosen[:k], touched[:affected])
        waiting = _waiting(state)
        for n in touched[:affected]:
            if not is_changed[n]:
                changed[moved], is_changed[n] = n, True
                moved += 1
        served += gain
        excess += change
        total += change
        if _better(served, excess, total):
            idle = 0
            away = 0
            _copy(state, best, groups, everyone, changed[:moved])
            for n in changed[:moved]:
                is_changed[n] = False
            moved = 0
            served[:] = 0
            excess[:] = 0.0
    _copy(best, state, groups, everyone, changed[:moved])


@inner
def _copy_of(state: State) -> State:
    return State(
        state.node_of.copy(), state.evicted.copy(), state.violating.copy(), state.allowed.copy(), state.cost.copy()
    )


@inner
def _waiting(state: State) -> int:
    found = 0
    for n in state.node_of:
        found += n < 0
    return found


@inner
def _accepted(gain: I64, change: F64, weight: F64, temperature: float) -> bool:
    """Whether to accept a change, by level: of how many tasks are served, then of the costs that `weight` were before.
    Costs may rise by a share of `temperature`. An infinite cost: a node cannot take all that it has."""
    for i in range(len(gain)):
        if gain[i] != 0:
            return bool(gain[i] > 0)
        if abs(change[i]) > 1e-12 * weight[i]:
            return bool(change[i] <= temperature * weight[i])
    return True


@inner
def _better(served: I64, excess: F64, total: F64) -> bool:
    """Whether more is served, or the same at lower cost, at the first level that differs."""
    for i in range(len(served)):
        if served[i] != 0:
            return bool(served[i] > 0)
        if abs(excess[i]) > 1e-12 * total[i]:
            return bool(excess[i] < 0.0)
    return False


@inner
def _choose(chosen: I64, tasks: Tasks, state: State, candidates: I64, waiting: int, rng: Generator) -> int:
    """Fills `chosen` with different tasks in ascending order; their number. In half of the cases any, often some that
    are `waiting`; else one and those on one or two of the nodes that suit it."""
    k, count = 0, len(state.node_of)
    if rng.random() < 0.5:
        for number in range(1 + int(4 * rng.random() * rng.random())):
            is_waiting = waiting > 0 and number > 0 and rng.random() < 0.5
            k = _add(_any_waiting(state, waiting, rng) if is_waiting else int(count * rng.random()), chosen, k)
        return k
    t = _any_waiting(state, waiting, rng) if waiting > 0 and rng.random() < 0.7 else int(count * rng.random())
    k = _add(t, chosen, k)
    suiting = 0
    for n in candidates[tasks.cls[t]]:
        suiting += n >= 0
    if suiting == 0:
        return k
    for _ in range(1 + int(2 * rng.random())):
        n = candidates[tasks.cls[t], int(suiting * rng.random())]
        first = int(count * rng.random())
        for i in range(count):
            other = (first + i) % count
            if state.node_of[other] == n:
                k = _add(other, chosen, k)
    if waiting > 0:
        k = _add(_any_waiting(state, waiting, rng), chosen, k)
    return k


@inner
def _any_waiting(state: State, waiting: int, rng: Generator) -> int:
    """One of the `waiting` > 0 tasks that wait."""
    at = int(waiting * rng.random())
    found = 0
    for t in range(len(state.node_of)):
        if state.node_of[t] < 0:
            if at == 0:
                found = t
            at -= 1
    return found


@inner
def _add(t: int, chosen: I64, k: int) -> int:
    """Adds t to the first k of `chosen`, ascending, if it is not there and there is space; how many there are then."""
    i = k
    while i > 0 and chosen[i - 1] > t:
        i -= 1
    if k == len(chosen) or (i > 0 and chosen[i - 1] == t):
        return k
    for j in range(k, i, -1):
        chosen[j] = chosen[j - 1]
    chosen[i] = t
    return k + 1


@inner
def _move(
    tasks: Tasks,
    groups: Groups,
    state: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    chosen: I64,
    touched: I64,
    noise: float,
    scratch: Scratch,
    rng: Generator,
) -> int:
    """Removes the chosen tasks and inserts them again where that costs least. Fills `touched` with the nodes that
    change; their number."""
    affected = 0
    blink = _BLINK * rng.random() if noise > 0.0 else 0.0
    for t in chosen:
        n = state.node_of[t]
        if n >= 0:
            remove(t, state, lists)
            if not _contains(touched, affected, n):
                touched[affected] = n
                affected += 1
    for n in touched[:affected]:
        if plan(n, NONE, tasks, groups, state, lists, free, noise, scratch, rng) == np.inf:
            scratch.chosen.cost[0] = np.inf
        apply(n, scratch.chosen, groups, state)
    for i in range(1, len(chosen)):  # tasks of one priority in any order
        j = int((i + 1) * rng.random())
        if tasks.priority[tasks.cls[chosen[i]]] == tasks.priority[tasks.cls[chosen[j]]]:
            chosen[i], chosen[j] = chosen[j], chosen[i]
    # now and then the first tasks leave a budget to the others, though that makes them more expensive
    sharers, withheld, budget = np.int64(0), np.int64(0), np.int64(0)
    if len(state.allowed) > 0 and len(chosen) > 1 and rng.random() < _SHARING:
        sharers = np.int64(1 + (len(chosen) - 1) * rng.random())
        budget = np.int64(len(state.allowed) * rng.random())
        withheld = max(state.allowed[budget], np.int64(0))
        state.allowed[budget] -= withheld
    for number in range(len(chosen)):
        t = chosen[number]
        if withheld > 0 and number == sharers:
            state.allowed[budget] += withheld
            withheld = np.int64(0)
        c = tasks.cls[t]
        found, least = NONE, np.inf
        for i in range(-1, _CANDIDATES + affected + 4):
            n = NONE
            if i < 0:
                n = tasks.home[t]
            elif i < _CANDIDATES:
                n = candidates[c, i]
            elif i < _CANDIDATES + affected:
                n = touched[i - _CANDIDATES]
            else:
                n = np.int64(len(free) * rng.random())
            if n < 0 or rng.random() < blink:
                continue
            cost = added_cost(n, c, tasks, groups, state, lists, free, noise, scratch, rng)
            cost *= 1.0 + 0.2 * noise * rng.random()
            if cost < least:
                found, least = n, cost
                keep(groups.start[n + 1] - groups.start[n], scratch.chosen, scratch.best)
        if found >= 0:
            add(t, found, state, lists)
            apply(found, scratch.best, groups, state)
            if not _contains(touched, affected, found):
                touched[affected] = found
                affected += 1
    return affected


@inner
def _contains(numbers: I64, count: int, n: int) -> bool:
    found = False
    for i in range(count):
        found |= numbers[i] == n
    return found


@inner
def _copy(source: State, target: State, groups: Groups, tasks: I64, nodes: I64) -> None:
    """Copies what belongs to some tasks and nodes."""
    for t in tasks:
        target.node_of[t] = source.node_of[t]
    for n in nodes:
        for i in range(source.cost.shape[1]):
            target.cost[n, i] = source.cost[n, i]
        for g in range(groups.start[n], groups.start[n + 1]):
            target.evicted[g], target.violating[g] = source.evicted[g], source.violating[g]
    for b in range(len(source.allowed)):
        target.allowed[b] = source.allowed[b]


@inner
def _return(source: State, state: State, groups: Groups, lists: Lists, tasks: I64, nodes: I64) -> None:
    """Makes the state that of the source, from which it differs in no more than some tasks and nodes."""
    for t in tasks:
        if state.node_of[t] != source.node_of[t]:
            if state.node_of[t] >= 0:
                remove(t, state, lists)
            if source.node_of[t] >= 0:
                add(t, source.node_of[t], state, lists)
    _copy(source, state, groups, tasks, nodes)
