"""Improves the first solution: removes a few tasks and inserts them again, thousands of times, and keeps the best."""

import numpy as np
from numpy.random import Generator

from firmament_py.eviction.choice import choose
from firmament_py.eviction.insertion import insert_all
from firmament_py.eviction.insertion_cost import added_cost
from firmament_py.eviction.moves import count_move, may_leave, moving_cost, refill
from firmament_py.eviction.victims import (
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
from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled, inner, inner_allocating

_CANDIDATES = 24
"""Number of nodes, the cheapest for its class at first, on which a step of the search tries a task."""

_PATIENCE_PER_TASK, _PATIENCE, _FURTHER_PATIENCE_PER_TASK = 250, 3000, 80
"""The search ends after this many steps without an improvement: the first for each task without a home, up to the
second, plus the third for each of them. For a single task it ends soon, since there is little to combine."""

_MOVERS = 8
"""Limit on the movers that count like tasks without a home: chains of moves take more steps to find."""

_EFFORT, _EFFORT_LIMIT = 1_000_000, 5_000_000
"""The search ends when plans have visited this many groups of residents: the first times the square root of the number
of tasks without a home, up to the second; after some 0.1 seconds for one task, and 0.5 seconds for 25 or more."""

_TEMPERATURE = 0.5
"""At the start, a change may be accepted that raises the cost of the affected nodes by up to this share."""

_PARTIAL = 0.3
"""The probability that a change is judged only by the priorities above a random level."""

_RETURN = 100
"""The search returns to the best solution after this many steps without an improvement."""

_REMOVED = 16
"""Largest number of tasks that one step removes. Tuned with the suite `preemption`, up to 200 nodes: with 4 or 8,
victims lose 3 to 7 % more run time on 200 nodes, and with 4, a pod on 20 nodes is not served; 32 change nothing."""

_LOOKED = 20
"""Where tasks may move, trying one on a node takes about as long as visiting this many groups."""

_BLINK = 0.25
"""In every other step, the largest probability that a node is overlooked. In those steps, chance also changes the order
in which residents are taken. Tuned with the suite `preemption`, six seeds: with 0.15 and 0.35, fewer are served on 20,
and on 200 or 1,000 nodes; with 0.5, victims lose 5 % more run time on 200 nodes."""

_SHARING = 0.3
"""The probability that the first tasks of a step leave a budget to the others."""


@compiled
def search(
    tasks: Tasks,
    groups: Groups,
    state: State,
    free: I64,
    clearing: F64,
    least: float,
    effort: float,
    rng: Generator,
) -> None:
    """Fills the state, in which no task is placed. free (N, R): without evictions. clearing: see insert_all. least: the
    search ends once all tasks are served at this cost or less. effort: multiplies the limits on steps."""
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
        np.zeros(nodes),
        np.zeros(len(tasks.requests), np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(1, np.int64),
    )
    lists = Lists(np.full(nodes, NONE), np.full(count, NONE))
    candidates = np.full((len(tasks.requests), _CANDIDATES), NONE)
    insert_all(tasks, groups, state, lists, free, clearing, candidates, scratch, rng)
    touched = np.zeros(2 * _REMOVED, np.int64)
    old, best = _copy_of(state), _copy_of(state)
    moved = 0  # number of nodes that differ from the best
    changed, is_changed = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    all_tasks = np.arange(count)
    movers = 0
    while movers < count and tasks.level[tasks.cls[movers]] == 0:
        movers += 1
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
    seeking += min(movers, _MOVERS)
    part = effort
    effort *= min(_EFFORT * seeking**0.5, _EFFORT_LIMIT)
    away = 0
    patience = part * (min(_PATIENCE_PER_TASK * seeking, _PATIENCE) + _FURTHER_PATIENCE_PER_TASK * seeking)
    while scratch.looked[0] < effort and idle <= patience and (waiting > 0 or total.sum() > least):
        scratch.looked[0] += 1
        idle += 1
        away += 1
        if moved > 0 and away > _RETURN:
            away = 0
            _return(best, state, groups, lists, all_tasks, changed[:moved])
            _copy(best, old, groups, all_tasks, changed[:moved])
            for n in changed[:moved]:
                is_changed[n] = False
            moved = 0
            total -= excess
            served[:] = 0
            excess[:] = 0.0
            waiting = _waiting(state)
        noise = rng.random() if rng.random() < 0.5 else 0.0
        k = choose(chosen, movers, tasks, state, lists, candidates, waiting, rng)
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
        depth = 1 + int((levels - 2) * rng.random()) if rng.random() < _PARTIAL else levels
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
            _copy(state, best, groups, all_tasks, changed[:moved])
            for n in changed[:moved]:
                is_changed[n] = False
            moved = 0
            served[:] = 0
            excess[:] = 0.0
    _copy(best, state, groups, all_tasks, changed[:moved])


@inner_allocating
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
            if tasks.level[tasks.cls[t]] == 0 and n != tasks.home[t]:
                count_move(t, -1, tasks, state)
            if not _contains(touched, affected, n):
                touched[affected] = n
                affected += 1
    for n in touched[:affected]:
        if plan(n, NONE, NONE, tasks, groups, state, lists, free, noise, scratch, rng) == np.inf:
            scratch.chosen.cost[0] = np.inf
        apply(n, scratch.chosen, groups, state)
    for i in range(1, len(chosen)):  # tasks of one priority, and movers, in any order
        j = int((i + 1) * rng.random())
        one, other = tasks.level[tasks.cls[chosen[i]]], tasks.level[tasks.cls[chosen[j]]]
        if one == other or one == 0 or other == 0:
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
        c, home = tasks.cls[t], tasks.home[t]
        moves = tasks.level[c] == 0
        found, least = NONE, np.inf
        scratch.insertions[0] += 1
        for i in range(-1, _CANDIDATES + affected + 4):
            n = NONE
            if i < 0:
                n = home
            elif i < _CANDIDATES:
                n = candidates[c, i]
            elif i < _CANDIDATES + affected:
                n = touched[i - _CANDIDATES]
            else:
                n = np.int64(len(free) * rng.random())
            if n < 0 or scratch.tried[n] == scratch.insertions[0]:
                continue
            scratch.tried[n] = scratch.insertions[0]
            if rng.random() < blink:
                continue
            cost = np.inf
            if not moves or n == home:
                cost = added_cost(n, c, home, tasks, groups, state, lists, free, noise, scratch, rng)
            elif may_leave(t, tasks, state):
                cost = moving_cost(n, t, tasks, groups, state, lists, free, scratch, rng)
            cost *= 1.0 + 0.2 * noise * rng.random()
            if cost < least:
                found, least = n, cost
                keep(groups.start[n + 1] - groups.start[n], scratch.chosen, scratch.best)
            if tasks.level[0] == 0:
                scratch.looked[0] += _LOOKED
            if i < 0 and moves and cost <= 0.0:
                break
        if moves and found < 0 and may_leave(t, tasks, state):  # for the next attempt
            refill(t, tasks, groups, state, lists, free, candidates, scratch, rng)
        if found >= 0:
            add(t, found, state, lists)
            apply(found, scratch.best, groups, state)
            if moves and found != home:
                count_move(t, 1, tasks, state)
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
