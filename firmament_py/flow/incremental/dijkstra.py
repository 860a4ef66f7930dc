"""Compiled labels of a shortest-path search: a heap, stacks for vertices at the same distance, and potentials.

Dijkstra's algorithm on reduced costs. Of vertices with the same label the one that was labelled last comes first, and
tasks come after all fixed arcs: if many reduced costs are 0, the search leads straight to an end.
"""

from firmament_py.flow.incremental.layout import (
    DISTANCE,
    END,
    FAR,
    HEAP,
    LABELLED,
    LATER,
    LATERS,
    LEVEL,
    LEVELS,
    PLACE,
    SETTLED,
    SIZE,
    TOUCHED,
)
from firmament_py.model.arrays import I32, I64
from firmament_py.numba_cache import inlined, inner


@inlined
def _sift_up(label: I64, lists: I32, i: int) -> None:
    v = lists[HEAP, i]
    key = label[v]
    while i > 0:
        up = (i - 1) >> 1
        u = lists[HEAP, up]
        if label[u] <= key:
            break
        lists[HEAP, i] = u
        lists[PLACE, u] = i
        i = up
    lists[HEAP, i] = v
    lists[PLACE, v] = i


@inlined
def _pop(label: I64, lists: I32, tally: I64) -> int:
    top = lists[HEAP, 0]
    lists[PLACE, top] = -1
    tally[SIZE] -= 1
    n = tally[SIZE]
    if n > 0:
        v = lists[HEAP, n]
        key = label[v]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and label[lists[HEAP, child + 1]] < label[lists[HEAP, child]]:
                child += 1
            u = lists[HEAP, child]
            if label[u] >= key:
                break
            lists[HEAP, i] = u
            lists[PLACE, u] = i
            i = child
        lists[HEAP, i] = v
        lists[PLACE, v] = i
    return int(top)


@inlined
def give_label(
    label: I64, via: I64, lists: I32, tally: I64, v: int, distance: int, how: int, now: int, is_end: bool
) -> None:
    """Gives v a label that is better than the one it has and than the nearest end."""
    if label[v] == FAR:
        lists[TOUCHED, tally[LABELLED]] = v
        tally[LABELLED] += 1
    label[v] = distance
    via[v] = how
    if is_end:
        tally[END] = v
        tally[DISTANCE] = distance
        return
    if lists[PLACE, v] < 0:
        if distance <= now:
            lists[LEVEL, tally[LEVELS]] = v
            tally[LEVELS] += 1
            return
        lists[PLACE, v] = tally[SIZE]
        lists[HEAP, tally[SIZE]] = v
        tally[SIZE] += 1
    _sift_up(label, lists, lists[PLACE, v])


@inlined
def next_step(label: I64, lists: I32, tally: I64) -> int:
    """The next step: v, follow the fixed arcs of v; -1 - v, its tasks; FAR, done, as the nearest end is known."""
    if tally[LEVELS] > 0:
        tally[LEVELS] -= 1
        v = lists[LEVEL, tally[LEVELS]]
    elif tally[LATERS] > 0:
        tally[LATERS] -= 1
        v = lists[LATER, tally[LATERS]]
        return FAR if label[v] >= tally[DISTANCE] else -1 - v
    elif tally[SIZE] > 0:
        v = _pop(label, lists, tally)
    else:
        return FAR
    if label[v] >= tally[DISTANCE]:
        return FAR
    lists[LATER, tally[LATERS]] = v
    tally[LATERS] += 1
    tally[SETTLED] += 1
    return int(v)


@inner
def begin(tally: I64, bound: int) -> None:
    tally[SIZE] = tally[LABELLED] = tally[LEVELS] = tally[LATERS] = 0
    tally[END] = -1
    tally[DISTANCE] = bound


@inner
def update_potentials(potential: I64, label: I64, lists: I32, tally: I64, sign: int) -> None:
    """Updates the potentials of the vertices nearer than the end, and clears the labels."""
    end = tally[DISTANCE]
    for i in range(tally[LABELLED]):
        v = lists[TOUCHED, i]
        if label[v] < end:
            potential[v] += sign * (end - label[v])
        label[v] = FAR
        lists[PLACE, v] = -1
