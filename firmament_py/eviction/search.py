"""Improves the first solution: removes a few tasks and inserts them again, thousands of times, and keeps the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.buffers import Steps, copy_of, new_scratch, new_steps
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
    add,
    apply,
    keep,
    plan,
    remove,
)
from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled_in_place, inner

if TYPE_CHECKING:
    from numpy.random import Generator

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
    nodes, count, classes = len(free), len(state.node_of), len(tasks.requests)
    scratch = new_scratch(groups, state, free, classes)
    lists = Lists(np.full(nodes, NONE), np.full(count, NONE))
    candidates = np.full((classes, _CANDIDATES), NONE)
    insert_all(tasks, groups, state, lists, free, clearing, candidates, scratch, rng)
    scratch.looked[0] = 0
    movers = int((tasks.level[tasks.cls] == 0).sum())
    seeking = int((tasks.home < 0).sum()) + min(movers, _MOVERS)
    _improve(
        tasks,
        groups,
        state,
        copy_of(state),
        copy_of(state),
        lists,
        free,
        candidates,
        movers,
        least,
        float(effort * min(_EFFORT * seeking**0.5, _EFFORT_LIMIT)),
        float(effort * (min(_PATIENCE_PER_TASK * seeking, _PATIENCE) + _FURTHER_PATIENCE_PER_TASK * seeking)),
        new_steps(state, _REMOVED),
        scratch,
        rng,
    )


@compiled_in_place
def _improve(
    tasks: Tasks,
    groups: Groups,
    state: State,
    old: State,
    best: State,
    lists: Lists,
    free: I64,
    candidates: I64,
    movers: int,
    least: float,
    limit: float,
    patience: float,
    steps: Steps,
    scratch: Scratch,
    rng: Generator,
) -> None:
    """Makes `state` the best solution found. old, best: copies of it; movers: number of tasks that are movers."""
    chosen, touched = steps.chosen, steps.touched
    waiting, moved, idle, away = _waiting(state), 0, 0, 0
    while scratch.looked[0] < limit and idle <= patience and (waiting > 0 or steps.total.sum() > least):
        scratch.looked[0] += 1
        idle += 1
        away += 1
        if moved > 0 and away > _RETURN:
            away = 0
            _return(best, state, groups, lists, steps.all_tasks, steps.changed[:moved])
            _copy(best, old, groups, steps.all_tasks, steps.changed[:moved])
            for i in range(len(steps.total)):
                steps.total[i] -= steps.excess[i]
            moved = _none_changed(moved, steps)
            waiting = _waiting(state)
        noise = rng.random() if rng.random() < 0.5 else 0.0
        k = choose(chosen, movers, tasks, state, lists, candidates, waiting, rng)
        affected = _move(tasks, groups, state, lists, free, candidates, chosen[:k], touched, noise, scratch, rng)
        _compare(chosen[:k], touched[:affected], tasks, state, old, steps)
        if not _accepted(1.0 - scratch.looked[0] / limit, steps, rng):
            _return(old, state, groups, lists, chosen[:k], touched[:affected])
            continue
        _copy(state, old, groups, chosen[:k], touched[:affected])
        waiting = _waiting(state)
        for n in touched[:affected]:
            if not steps.is_changed[n]:
                steps.changed[moved], steps.is_changed[n] = n, True
                moved += 1
        for i in range(len(steps.total)):
            steps.served[i] += steps.gain[i]
            steps.excess[i] += steps.change[i]
            steps.total[i] += steps.change[i]
        if _better(steps.served, steps.excess, steps.total):
            idle = 0
            away = 0
            _copy(state, best, groups, steps.all_tasks, steps.changed[:moved])
            moved = _none_changed(moved, steps)
    _copy(best, state, groups, steps.all_tasks, steps.changed[:moved])


@inner
def _none_changed(moved: int, steps: Steps) -> int:
    """Notes that no node differs from the best solution any more, of `moved` that did; 0."""
    for n in steps.changed[:moved]:
        steps.is_changed[n] = False
    for i in range(len(steps.served)):
        steps.served[i], steps.excess[i] = 0, 0.0
    return 0


@inner
def _compare(chosen: I64, touched: I64, tasks: Tasks, state: State, old: State, steps: Steps) -> None:
    """Fills gain, change and weight of a step that inserts tasks `chosen` again and changes nodes `touched`."""
    for i in range(len(steps.gain)):
        steps.gain[i], steps.change[i], steps.weight[i] = 0, 0.0, 0.0
        for n in touched:
            steps.change[i] += state.cost[n, i] - old.cost[n, i]
            steps.weight[i] += old.cost[n, i]
    for t in chosen:
        steps.gain[tasks.level[tasks.cls[t]]] += int(state.node_of[t] >= 0) - int(old.node_of[t] >= 0)


@inner
def _waiting(state: State) -> int:
    found = 0
    for n in state.node_of:
        found += n < 0
    return found


@inner
def _accepted(warm: float, steps: Steps, rng: Generator) -> bool:
    """Whether to accept a step: by level, first of how many more tasks are served, then of costs, which may rise by
    a share of what they were. warm: from 1 at the start to 0. An infinite cost: a node cannot take all that it has."""
    levels = len(steps.gain)
    depth = 1 + int((levels - 2) * rng.random()) if rng.random() < _PARTIAL else levels
    if steps.change[0] == np.inf:
        return False
    temperature = _TEMPERATURE * warm * rng.random()
    for i in range(depth):
        if steps.gain[i] != 0:
            return bool(steps.gain[i] > 0)
        if abs(steps.change[i]) > 1e-12 * steps.weight[i]:
            return bool(steps.change[i] <= temperature * steps.weight[i])
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
