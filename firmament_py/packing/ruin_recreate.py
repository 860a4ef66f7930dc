"""Ruin and recreate: takes tasks off a few nodes and packs these anew, thousands of times, and keeps what is no worse.

Schrimpf et al., Record Breaking Optimization Results Using the Ruin and Recreate Principle, 2000; the blinks of the
insertion are those of Christiaens and Vanden Berghe, Slack Induction by String Removals, 2020. Each step takes a task
that is left, a few nodes that nearly fit it, and some or all of the tasks on them; these, then the tasks that are left,
are inserted as they come or in one of four orders, each at the node that it leaves with the least slack. A slightly
worse result is accepted now and then, less often towards the end (simulated annealing); the best of all is kept.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.problem import Packing, Problem
from firmament_py.packing.rounding import fill
from firmament_py.packing.search_steps import above, accepted, add, choose_nodes, copy, reached, rivals, sort, uniform

_NODES = 3
"""Largest number of nodes in one step; the least is 2. Tuned with the suite `packing`, docs/performance.md."""

_OTHERS = 8
"""Of so many classes with tasks left, at random, a step inserts some besides those that it has taken off its nodes."""

_ORDERED = 0.25
"""Share of the steps that sort tasks before they insert them. That takes time, and where far more is requested than
fits the others find more."""

_STEP = 50
"""Effort of a step besides that of trying tasks on nodes."""

_PATIENCE = 0.5
"""The search ends when it has found nothing better for this share of its effort."""

_TEMPERATURE = 0.1
"""At the start a loss of this much of the mean value of a task is accepted with probability 1/e."""


def ruin_and_recreate(problem: Problem, packing: Packing, effort: int, target: F64, seed: int = 0) -> None:
    """Improves `packing` in place. effort: how many times a task is tried on a node, some 30 to 100 million a second.
    target (L,): values at which nothing can be gained any more. The result depends on nothing but the arguments."""
    if not packing.left.any() or not effort:
        return
    scale = problem.value.mean()
    _search(
        problem.requests,
        packing.free,
        packing.kinds,
        packing.cls,
        packing.number,
        packing.left,
        problem.slots > 0,
        problem.count,
        problem.value / scale,
        problem.level,
        (target - 1e-6) / scale,
        problem.weight,
        problem.requests @ problem.weight,
        effort,
        np.array([seed], np.uint64),
    )
    fill(problem, packing)


@compiled
def _search(
    requests: I64,
    free: I64,
    kinds: I64,
    cls: I64,
    number: I64,
    left: I64,
    takes: Bools,
    count: I64,
    value: F64,
    level: I64,
    target: F64,
    weight: F64,
    size: F64,
    effort: int,
    rng: U64,
) -> None:
    classes = len(left)
    levels = len(target)
    total = np.zeros(levels)  # value of what is placed, by level
    waiting, is_waiting = (
        np.empty(classes, np.int64),
        np.zeros(classes, np.bool_),
    )  # classes, also some of which none is
    lengths = np.zeros(1, np.int64)  # the number of these
    for c in range(classes):
        total[level[c]] += value[c] * (count[c] - left[c])
        if left[c] > 0:
            _wait(c, waiting, is_waiting, lengths)
    best = total.copy()
    best_kinds, best_cls, best_number, best_left = kinds.copy(), cls.copy(), number.copy(), left.copy()
    moved = 0  # number of nodes that differ from the best
    changed, is_changed = np.empty(len(free), np.int64), np.zeros(len(free), np.bool_)
    some = np.empty(_NODES, np.int64)
    before_kinds, before_free = np.zeros(_NODES, np.int64), np.zeros((_NODES, len(weight)), np.int64)
    before_cls, before_number = np.zeros((_NODES, cls.shape[1]), np.int64), np.zeros((_NODES, cls.shape[1]), np.int64)
    change = np.zeros(levels)
    order, key, is_candidate = np.empty(classes, np.int64), np.empty(classes), np.zeros(classes, np.bool_)
    spent = found = 0
    while spent < effort and spent - found < _PATIENCE * effort:
        chosen = _any_left(left, waiting, is_waiting, lengths, rng)
        if chosen < 0:
            break
        spent += _STEP + rivals(len(free)) * len(some)
        k = choose_nodes(chosen, requests, free, takes, weight, some, rng)
        if k == 0:
            continue
        for i in range(k):
            n = some[i]
            before_kinds[i] = kinds[n]
            for j in range(kinds[n]):
                before_cls[i, j], before_number[i, j] = cls[n, j], number[n, j]
            for r in range(len(weight)):
                before_free[i, r] = free[n, r]
        change[:] = 0.0
        share = 1.0 if uniform(rng) < 0.5 else 0.2 + 0.6 * uniform(rng)
        for i in range(k):
            _ruin(some[i], share, requests, free, kinds, cls, number, left, value, level, change, rng)
        candidates = 0
        for i in range(k):
            for j in range(before_kinds[i]):
                c = before_cls[i, j]
                if left[c] > 0:
                    _wait(c, waiting, is_waiting, lengths)
                    candidates = _with_candidate(c, order, is_candidate, candidates)
        candidates = _with_candidate(chosen, order, is_candidate, candidates)
        first = int(lengths[0] * uniform(rng))
        for i in range(min(lengths[0], _OTHERS)):
            c = waiting[(first + i) % lengths[0]]
            if left[c] > 0:
                candidates = _with_candidate(c, order, is_candidate, candidates)
        for i in range(candidates):
            is_candidate[order[i]] = False
        spent += _recreate(
            requests,
            free,
            kinds,
            cls,
            number,
            left,
            takes,
            value,
            level,
            size,
            weight,
            some,
            k,
            chosen,
            order,
            candidates,
            key,
            change,
            rng,
        )
        if accepted(change, _TEMPERATURE * (1.0 - spent / effort), rng):
            total += change
            for i in range(k):
                if not is_changed[some[i]]:
                    changed[moved], is_changed[some[i]] = some[i], True
                    moved += 1
            if above(total, best):
                found = spent
                copy(total, best)
                copy(left, best_left)
                for i in range(moved):
                    n = changed[i]
                    best_kinds[n] = kinds[n]
                    copy(cls[n], best_cls[n])
                    copy(number[n], best_number[n])
                    is_changed[n] = False
                moved = 0
                if reached(best, target):
                    break
        else:
            for i in range(k):
                n = some[i]
                for j in range(kinds[n]):
                    left[cls[n, j]] += number[n, j]
                kinds[n] = before_kinds[i]
                for j in range(kinds[n]):
                    cls[n, j], number[n, j] = before_cls[i, j], before_number[i, j]
                    left[cls[n, j]] -= number[n, j]
                for r in range(len(weight)):
                    free[n, r] = before_free[i, r]
    for i in range(moved):
        n = changed[i]
        for r in range(requests.shape[1]):
            for j in range(kinds[n]):
                free[n, r] += number[n, j] * requests[cls[n, j], r]
            for j in range(best_kinds[n]):
                free[n, r] -= best_number[n, j] * requests[best_cls[n, j], r]
        kinds[n] = best_kinds[n]
        copy(best_cls[n], cls[n])
        copy(best_number[n], number[n])
    copy(best_left, left)


@inner
def _wait(c: int, waiting: I64, is_waiting: Bools, lengths: I64) -> None:
    """Lists a class of which tasks are left."""
    if not is_waiting[c]:
        waiting[lengths[0]], is_waiting[c] = c, True
        lengths[0] += 1


@inner
def _with_candidate(c: int, order: I64, is_candidate: Bools, candidates: int) -> int:
    """Adds a class to the first `candidates` of `order` if it is not among them; their number."""
    if is_candidate[c]:
        return candidates
    order[candidates], is_candidate[c] = c, True
    return candidates + 1


@inner
def _any_left(left: I64, waiting: I64, is_waiting: Bools, lengths: I64, rng: U64) -> int:
    """A class of which tasks are left, each as likely; -1: none. Those of which none are leave the list."""
    while lengths[0] > 0:
        i = int(lengths[0] * uniform(rng))
        c = waiting[i]
        if left[c] > 0:
            return int(c)
        lengths[0] -= 1
        waiting[i], is_waiting[c] = waiting[lengths[0]], False
    return -1


@inner
def _ruin(
    n: int,
    share: float,
    requests: I64,
    free: I64,
    kinds: I64,
    cls: I64,
    number: I64,
    left: I64,
    value: F64,
    level: I64,
    change: F64,
    rng: U64,
) -> None:
    """Takes a share of the tasks off a node."""
    remaining = 0
    for j in range(kinds[n]):
        c, count = cls[n, j], number[n, j]
        gone = min(int(count * share + uniform(rng)), count)
        left[c] += gone
        change[level[c]] -= gone * value[c]
        for r in range(requests.shape[1]):
            free[n, r] += gone * requests[c, r]
        if gone < count:
            cls[n, remaining], number[n, remaining] = c, count - gone
            remaining += 1
    kinds[n] = remaining


@inner
def _recreate(
    requests: I64,
    free: I64,
    kinds: I64,
    cls: I64,
    number: I64,
    left: I64,
    takes: Bools,
    value: F64,
    level: I64,
    size: F64,
    weight: F64,
    some: I64,
    k: int,
    chosen: int,
    order: I64,
    candidates: int,
    key: F64,
    change: F64,
    rng: U64,
) -> int:
    """Inserts tasks of the first `candidates` classes of `order`; how many times one was tried on a node."""
    if uniform(rng) < _ORDERED:
        _sort(value, level, size, chosen, order, candidates, key, rng)
    spare = np.zeros(k)  # what is free on each node, weighted
    for i in range(k):
        for r in range(len(weight)):
            spare[i] += free[some[i], r] * weight[r]
    tries = 0
    for again in range(2):  # first some of the tasks of most classes, then what else fits, in the opposite order
        some_left = 0  # classes of which not all are inserted, although there may be room; they are the first of `order`
        for position in range(candidates):
            c = order[position] if again == 0 else order[candidates - 1 - position]
            count = left[c]
            if again == 0 and c != chosen and count > 1 and uniform(rng) < 0.3:
                count = 1 + int(count * uniform(rng))
            while count > 0:
                i = _tightest(c, requests, free, takes, spare, size[c] - 1e-9, some, k, 0.1 if again == 0 else 0.0, rng)
                tries += k
                if i < 0:
                    break
                n = some[i]
                spare[i] -= size[c]
                add(c, n, 1, kinds, cls, number)
                left[c] -= 1
                count -= 1
                change[level[c]] += value[c]
                for r in range(requests.shape[1]):
                    free[n, r] -= requests[c, r]
            if again == 0 and count == 0 and left[c] > 0:
                order[some_left] = c
                some_left += 1
        candidates = some_left
    return tries


@inner
def _sort(value: F64, level: I64, size: F64, chosen: int, order: I64, candidates: int, key: F64, rng: U64) -> None:
    """Sorts the first `candidates` of `order` by level, then in one of four ways; in three of them the chosen class is
    first."""
    way = int(4 * uniform(rng))
    for i in range(candidates):
        c = order[i]
        if way == 0:
            key[i] = -size[c] * (0.7 + 0.6 * uniform(rng))
        elif way == 1:
            key[i] = uniform(rng)
        elif way == 2:
            key[i] = -size[c] / value[c] * (0.8 + 0.4 * uniform(rng))
        else:
            key[i] = -size[c]
        key[i] += level[c] * 1e3
        if c == chosen and way != 2:
            key[i] = -1e3
    sort(order, key, candidates)


@inner
def _tightest(
    c: int,
    requests: I64,
    free: I64,
    takes: Bools,
    spare: F64,
    needed: float,
    some: I64,
    k: int,
    blink: float,
    rng: U64,
) -> int:
    """The number among `some` of the node that a task leaves with the least slack, -1: it fits on none; each is
    overlooked with probability `blink` if there is another. spare (k,): what is free on each, weighted; a task needs so
    much of it."""
    overlooked = k
    if blink > 0.0:
        overlooked = int(uniform(rng) / blink)
    found, least = -1, np.inf
    for i in range(k):
        slack = spare[i] + (1e6 if i == overlooked else 0.0)
        if slack >= least or spare[i] < needed:
            continue
        n = some[i]
        fits = True
        for r in range(requests.shape[1]):
            if free[n, r] < requests[c, r] and requests[c, r] > 0:
                fits = False
                break
        if fits and takes[c, n]:
            found, least = i, slack
    return found
