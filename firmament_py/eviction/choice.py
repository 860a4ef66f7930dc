"""Which tasks a step of the search of evictions removes and inserts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firmament_py.eviction.victims import Lists, State, Tasks
from firmament_py.model.arrays import I64
from firmament_py.numba_cache import inner

if TYPE_CHECKING:
    from numpy.random import Generator

_RETURNS = 0.1
"""The probability that a step considers the return of a mover to its home."""

_ARRIVALS = 0.8
"""The probability that a step chooses among arrivals only."""


@inner
def choose(
    chosen: I64,
    movers: int,
    tasks: Tasks,
    state: State,
    lists: Lists,
    candidates: I64,
    waiting: int,
    rng: Generator,
) -> int:
    """Fills `chosen` with different tasks in ascending order; their number. One of three neighbourhoods: some random
    tasks, many of them waiting; a task with those on one or two of its candidate nodes; a mover that is away, with the
    arrivals on its home. waiting: how many tasks are on no node."""
    k, count = 0, len(state.node_of)
    if movers > 0 and rng.random() < _RETURNS:
        t = int(movers * rng.random())
        for i in range(movers):  # the next one that is away
            if state.node_of[(t + i) % movers] != tasks.home[(t + i) % movers]:
                t = (t + i) % movers
                break
        k = _add(t, chosen, k)
        other = lists.first[tasks.home[t]]
        while other >= 0:
            if other >= movers:
                k = _add(other, chosen, k)
            other = lists.after[other]
        return _add(_any_waiting(state, waiting, rng), chosen, k) if waiting > 0 else k
    first = movers if movers > 0 and rng.random() < _ARRIVALS else 0
    if rng.random() < 0.5:
        for number in range(1 + int(4 * rng.random() * rng.random())):
            is_waiting = waiting > 0 and number > 0 and rng.random() < 0.5
            t = _any_waiting(state, waiting, rng) if is_waiting else first + int((count - first) * rng.random())
            k = _add(t, chosen, k)
        return k
    t = (
        _any_waiting(state, waiting, rng)
        if waiting > 0 and rng.random() < 0.7
        else int(first + (count - first) * rng.random())
    )
    k = _add(t, chosen, k)
    suiting = 0
    for n in candidates[tasks.cls[t]]:
        suiting += n >= 0
    if suiting == 0:
        return k
    for number in range(1 + int(2 * rng.random())):
        n = candidates[tasks.cls[t], int(suiting * rng.random())]
        if movers > 0 and number > 0:  # any node: its tasks may block a chain of moves
            n = np.int64(len(lists.first) * rng.random())
        there = 0
        other = lists.first[n]
        while other >= 0:
            there += 1
            other = lists.after[other]
        skipped = int(max(there - len(chosen), 0) * rng.random())
        other = lists.first[n]
        while other >= 0:
            skipped -= 1
            if skipped < 0:
                k = _add(other, chosen, k)
            other = lists.after[other]
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
