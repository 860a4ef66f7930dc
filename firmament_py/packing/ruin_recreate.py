"""Ruin and recreate: takes tasks off a few nodes and packs these anew, thousands of times, and keeps what is no worse.

Schrimpf et al., Record Breaking Optimization Results Using the Ruin and Recreate Principle, 2000; the blinks of the
insertion are those of Christiaens and Vanden Berghe, Slack Induction by String Removals, 2020. Each step takes a task
that is left, a few nodes that nearly fit it, and some or all of the tasks on them; these and the tasks that
are left are inserted in one of four orders, each at the node that it leaves with the least slack. A slightly worse
result is accepted now and then, less often towards the end (simulated annealing); the best of all is kept.
"""

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.problem import Packing, Problem

_NODES = 8
"""Largest number of nodes in one step; the least is 2."""

_PATIENCE = 0.25
"""The search ends when it has found nothing better for this share of its effort."""

_TEMPERATURE = 0.1
"""At the start a loss of this much of the mean value of a task is accepted with probability 1/e."""


def ruin_and_recreate(problem: Problem, packing: Packing, effort: int, target: F64, seed: int = 0) -> None:
    """Improves `packing` in place. effort: how many times a task is tried on a node, about a hundred million a second.
    target (L,): values at which nothing can be gained any more. The result depends on nothing but the arguments."""
    if not packing.left.any() or not effort:
        return
    scale = problem.value.mean()
    placed = np.ascontiguousarray(packing.placed.T)  # by node: a step looks at all classes on a few nodes
    _search(
        problem.requests,
        packing.free,
        placed,
        packing.left,
        np.ascontiguousarray(problem.slots.T),
        problem.count,
        problem.value / scale,
        problem.level,
        (target - 1e-6) / scale,
        problem.weight,
        problem.requests @ problem.weight,
        effort,
        np.random.default_rng(seed),
    )
    packing.placed[:] = placed.T


@compiled
def _search(
    requests: I64,
    free: I64,
    placed: I64,
    left: I64,
    slots: I64,
    count: I64,
    value: F64,
    level: I64,
    target: F64,
    weight: F64,
    size: F64,
    effort: int,
    rng: Generator,
) -> None:
    classes = len(left)
    levels = len(target)
    total = np.zeros(levels)  # value of what is placed, by level
    for c in range(classes):
        total[level[c]] += value[c] * (count[c] - left[c])
    best = total.copy()
    best_placed, best_left = placed.copy(), left.copy()
    moved = 0  # number of nodes that differ from the best
    changed, is_changed = np.empty(len(free), np.int64), np.zeros(len(free), np.bool_)
    some = np.empty(_NODES, np.int64)
    before, change = np.zeros((_NODES, classes), np.int64), np.zeros(levels)
    order, key = np.empty(classes, np.int64), np.empty(classes)
    spent = found = 0
    while spent < effort and spent - found < _PATIENCE * effort:
        chosen = _any_left(left, rng)
        if chosen < 0:
            break
        k = _nodes_for(chosen, requests, free, slots, weight, some, rng)
        if k == 0:
            spent += classes
            continue
        change[:] = 0.0
        _ruin(requests, free, placed, left, value, level, some, k, before, change, rng)
        spent += _recreate(
            requests, free, placed, left, slots, value, level, size, weight, some, k, chosen, order, key, change, rng
        )
        spent += classes * k
        if _accepted(change, _TEMPERATURE * (1.0 - spent / effort), rng):
            total += change
            for i in range(k):
                if not is_changed[some[i]]:
                    changed[moved], is_changed[some[i]] = some[i], True
                    moved += 1
            if _above(total, best):
                found = spent
                _copy(total, best)
                _copy(left, best_left)
                for i in range(moved):
                    _copy(placed[changed[i]], best_placed[changed[i]])
                    is_changed[changed[i]] = False
                moved = 0
                if _reached(best, target):
                    break
        else:
            _restore(requests, free, placed, left, some, k, before)
    for i in range(moved):
        n = changed[i]
        for c in range(classes):
            for r in range(requests.shape[1]):
                free[n, r] += (placed[n, c] - best_placed[n, c]) * requests[c, r]
            placed[n, c] = best_placed[n, c]
    _copy(best_left, left)


@inner
def _copy(source: I64 | F64, target: I64 | F64) -> None:
    for i in range(len(source)):  # numba compiles loops four seconds faster than an assignment to a slice
        target[i] = source[i]


@inner
def _any_left(left: I64, rng: Generator) -> int:
    """A class of which tasks are left, each as likely; -1: none."""
    found = 0
    for c in range(len(left)):
        found += left[c] > 0
    if found == 0:
        return -1
    number = int(found * rng.random())
    for c in range(len(left)):
        if left[c] > 0:
            if number == 0:
                return c
            number -= 1
    return -1


@inner
def _nodes_for(chosen: int, requests: I64, free: I64, slots: I64, weight: F64, some: I64, rng: Generator) -> int:
    """Fills `some` with different nodes; the first can take a task of class `chosen` if others go. Their number."""
    nodes = len(free)
    target_nodes = min(2 + int((_NODES - 1) * rng.random()), nodes)
    rivals = min(max(nodes // 100, 3), 20)  # of so many nodes at random the one that lacks least is taken
    k = 0
    for _ in range(2 * target_nodes):
        if k == target_nodes:
            break
        least, nearest = np.inf, -1
        for _ in range(rivals):
            n = int(nodes * rng.random())
            if k == 0 and slots[n, chosen] == 0:
                continue
            lacking = 0.0
            for r in range(len(weight)):
                lacking += max(requests[chosen, r] - free[n, r], 0) * weight[r]
            for i in range(k):
                if some[i] == n:
                    lacking = np.inf
            if lacking < least:
                least, nearest = lacking, n
        if nearest >= 0:
            some[k] = nearest
            k += 1
    return k


@inner
def _ruin(
    requests: I64,
    free: I64,
    placed: I64,
    left: I64,
    value: F64,
    level: I64,
    some: I64,
    k: int,
    before: I64,
    change: F64,
    rng: Generator,
) -> None:
    """Takes all or a random part of the tasks off the nodes."""
    share = 1.0 if rng.random() < 0.5 else 0.2 + 0.6 * rng.random()
    for i in range(k):
        n = some[i]
        for c in range(len(left)):
            before[i, c] = count = placed[n, c]
            if count == 0:
                continue
            gone = min(int(count * share + rng.random()), count)
            placed[n, c] -= gone
            left[c] += gone
            change[level[c]] -= gone * value[c]
            for r in range(requests.shape[1]):
                free[n, r] += gone * requests[c, r]


@inner
def _recreate(
    requests: I64,
    free: I64,
    placed: I64,
    left: I64,
    slots: I64,
    value: F64,
    level: I64,
    size: F64,
    weight: F64,
    some: I64,
    k: int,
    chosen: int,
    order: I64,
    key: F64,
    change: F64,
    rng: Generator,
) -> int:
    """Inserts tasks that are left; how many times one was tried on a node."""
    way = int(4 * rng.random())
    candidates = 0
    for c in range(len(left)):
        if left[c] == 0:
            continue
        order[candidates] = c
        if way == 0:
            key[candidates] = -size[c] * (0.7 + 0.6 * rng.random())
        elif way == 1:
            key[candidates] = rng.random()
        elif way == 2:
            key[candidates] = -size[c] / value[c] * (0.8 + 0.4 * rng.random())
        else:
            key[candidates] = -size[c]
        key[candidates] += level[c] * 1e3
        if c == chosen and way != 2:
            key[candidates] = -1e3
        candidates += 1
    _sort(order, key, candidates)
    spare = np.zeros(k)  # what is free on each node, weighted
    for i in range(k):
        for r in range(len(weight)):
            spare[i] += free[some[i], r] * weight[r]
    tries = 0
    for again in range(2):  # first some of the tasks of most classes, then whatever fits, in the opposite order
        for number in range(candidates):
            c = order[number] if again == 0 else order[candidates - 1 - number]
            count = left[c]
            if again == 0 and c != chosen and count > 1 and rng.random() < 0.3:
                count = 1 + int(count * rng.random())
            while count > 0:
                i = _tightest(c, requests, free, placed, slots, spare, some, k, 0.1 if again == 0 else 0.0, rng)
                tries += k
                if i < 0:
                    break
                n = some[i]
                spare[i] -= size[c]
                placed[n, c] += 1
                left[c] -= 1
                count -= 1
                change[level[c]] += value[c]
                for r in range(requests.shape[1]):
                    free[n, r] -= requests[c, r]
    return tries


@inner
def _tightest(
    c: int,
    requests: I64,
    free: I64,
    placed: I64,
    slots: I64,
    spare: F64,
    some: I64,
    k: int,
    blink: float,
    rng: Generator,
) -> int:
    """The number among `some` of the node that a task leaves with the least slack, -1: it fits on none; each is
    overlooked with probability `blink` if there is another. spare (k,): what is free on each, weighted."""
    overlooked = k
    if blink > 0.0:
        overlooked = int(rng.random() / blink)
    found, least = -1, np.inf
    for i in range(k):
        slack = spare[i] + (1e6 if i == overlooked else 0.0)
        if slack >= least:
            continue
        n = some[i]
        fits = placed[n, c] < slots[n, c]
        for r in range(requests.shape[1]):
            fits &= free[n, r] >= requests[c, r] or requests[c, r] == 0
        if fits:
            found, least = i, slack
    return found


@inner
def _sort(order: I64, key: F64, count: int) -> None:
    """Sorts the first `count` of `order` by `key`, both in place (insertion sort; few classes are left)."""
    for i in range(1, count):
        c, value = order[i], key[i]
        j = i - 1
        while j >= 0 and key[j] > value:
            order[j + 1], key[j + 1] = order[j], key[j]
            j -= 1
        order[j + 1], key[j + 1] = c, value


@inner
def _accepted(change: F64, temperature: float, rng: Generator) -> bool:
    """Whether a change of the values of the levels is no loss, or a small one that is accepted."""
    for gain in change:
        if gain > 1e-9:
            return True
        if gain < -1e-9:
            return temperature > 0.0 and bool(rng.random() < np.exp(gain / temperature))
    return True


@inner
def _above(one: F64, other: F64) -> bool:
    """Whether values are higher at the first level at which they differ."""
    for i in range(len(one)):
        if abs(one[i] - other[i]) > 1e-9:
            return bool(one[i] > other[i])
    return False


@inner
def _reached(values: F64, target: F64) -> bool:
    """Whether no value is below its target."""
    reached = True
    for i in range(len(values)):
        reached &= bool(values[i] >= target[i])
    return reached


@inner
def _restore(requests: I64, free: I64, placed: I64, left: I64, some: I64, k: int, before: I64) -> None:
    """Undoes a step: the nodes hold what they held before."""
    for i in range(k):
        n = some[i]
        for c in range(len(left)):
            added = placed[n, c] - before[i, c]
            if added:
                placed[n, c] -= added
                left[c] += added
                for r in range(requests.shape[1]):
                    free[n, r] += added * requests[c, r]
