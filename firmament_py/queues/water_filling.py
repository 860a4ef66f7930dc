"""Water filling in integers: divides amounts among the children of each queue, from the roots downwards.

Each child gets weight x level, no less than its floor and no more than its cap, with one level for all children of a
parent such that the sum is what there is to divide. Fractions are rounded down, and the units that are left go to the
largest fractions, among equals to those that come first. So sums are preserved, and no share is off by a unit or more.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.numba_cache import compiled, inner, inner_allocating

_TIES = 1e6
"""Fractions that are equal after a multiplication by this and rounding are ties; floats differ in their last digits."""


@compiled
def divide(
    child_starts: I64,
    children: I64,
    priority: I64,
    total: I64,
    base: I64,
    unlimited: Bools,
    floor: I64,
    cap: I64,
    weight: F64,
    past: F64,
    usage_weight: float,
    share: I64,
) -> None:
    """Fills `share` (Q, V). Each queue gets `base` at once, an `unlimited` one no more than its parent has; then, the
    highest priority of queues first, what is left.

    Of that a queue gets `floor` .. `cap`, by `weight`. `past` is usage in the past as a part of the capacity, whose
    effect is that of `usage_weight`. All are (Q, V) but `priority` (Q,) and `total` (V,), which roots divide. Sums of
    `base` and of `floor` that exceed the total are given nevertheless.
    """
    queues, columns = share.shape
    exact = np.empty(queues)
    for group in range(queues + 1):
        start, stop = child_starts[group], child_starts[group + 1]
        for v in range(columns):
            whole = total[v] if group == 0 else share[group - 1, v]
            left = whole
            for i in range(start, stop):
                at_once = base[children[i], v]
                if unlimited[children[i], v]:
                    at_once = min(at_once, whole)
                share[children[i], v] = at_once
                left -= at_once
            first = start
            while first < stop:
                last = first
                while last < stop and priority[children[last]] == priority[children[first]]:
                    last += 1
                rows = children[first:last]
                if usage_weight > 0.0:
                    target = _by_usage(max(left, 0), rows, v, cap, weight, past, usage_weight, exact)
                else:
                    target = _by_level(max(left, 0), rows, v, floor, cap, weight, exact)
                left -= _rounded(target, rows, v, floor, cap, exact, share)
                first = last


@inner_allocating
def sorted_order(keys: F64) -> I64:
    """The order of keys (K,), stable. Shell's sort: compiles five seconds faster than numpy's."""
    count = len(keys)
    order = np.arange(count)
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            item = order[i]
            key = keys[item]
            j = i
            while j >= gap and (keys[order[j - gap]] > key or (keys[order[j - gap]] == key and order[j - gap] > item)):
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3
    return order


@inner_allocating
def _by_level(amount: int, rows: I64, v: int, floor: I64, cap: I64, weight: F64, exact: F64) -> int:
    """Exact shares by weight, into exact[: len(rows)]; the sum that they have in integers."""
    count = len(rows)
    levels = np.empty(2 * count)  # at which a share begins to rise, and at which it ends
    for i in range(count):
        w = weight[rows[i], v]
        levels[i] = floor[rows[i], v] / w if w > 0.0 else np.inf
        levels[count + i] = cap[rows[i], v] / w if w > 0.0 else np.inf
    level, given, slope = 0.0, 0.0, 0.0
    for i in range(count):
        given += floor[rows[i], v]
    reached = given >= amount
    for event in sorted_order(levels):
        if reached or levels[event] == np.inf:
            break
        rise = slope * (levels[event] - level)
        if given + rise >= amount:
            level += (amount - given) / slope
            reached = True
        else:
            given, level = given + rise, levels[event]
            slope += weight[rows[event % count], v] * (1.0 if event < count else -1.0)
    floors, most_of_all = 0, 0
    for i in range(count):
        low, high, w = floor[rows[i], v], cap[rows[i], v], weight[rows[i], v]
        floors += low
        most_of_all += high if w > 0.0 else low
        if w > 0.0:
            exact[i] = min(max(w * level, float(low)), float(high)) if reached else float(high)
        else:
            exact[i] = float(low)
    return max(min(amount, most_of_all), floors)


@inner
def _by_usage(amount: int, rows: I64, v: int, cap: I64, weight: F64, past: F64, usage_weight: float, exact: F64) -> int:
    """Like _by_level, with KAI's weights n + k (n - u): n is a weight's part in those of all queues that lack some.

    They change when a queue has all that it may have, so there is another round after that.
    """
    count = len(rows)
    exact[:count] = 0.0
    left = float(amount)
    while left > 0.0:
        sum_of_weights, total = 0.0, 0.0
        for i in range(count):
            if exact[i] < cap[rows[i], v]:
                sum_of_weights += weight[rows[i], v]
        if sum_of_weights == 0.0:
            break
        for i in range(count):
            if exact[i] < cap[rows[i], v]:
                total += _usage_weight(weight[rows[i], v] / sum_of_weights, past[rows[i], v], usage_weight)
        if total == 0.0:
            break
        in_round, again = left, False
        for i in range(count):
            lacking = cap[rows[i], v] - exact[i]
            if lacking > 0.0 and weight[rows[i], v] > 0.0:
                part = _usage_weight(weight[rows[i], v] / sum_of_weights, past[rows[i], v], usage_weight) / total
                if lacking <= in_round * part:
                    exact[i] = float(cap[rows[i], v])
                    left -= lacking
                    again = True
                else:
                    exact[i] += in_round * part
                    left -= in_round * part
        if not again:
            return amount
    given = 0.0
    for i in range(count):
        given += exact[i]
    return min(amount, int(np.floor(given + 0.5)))


@inner
def _usage_weight(part: float, past: float, usage_weight: float) -> float:
    return max(0.0, part + usage_weight * (part - past)) if part > 0.0 else 0.0


@inner_allocating
def _rounded(target: int, rows: I64, v: int, floor: I64, cap: I64, exact: F64, share: I64) -> int:
    """Adds integers close to exact[: len(rows)], whose sum is `target`, to the shares; returns the sum."""
    count = len(rows)
    amounts = np.empty(count, np.int64)
    fractions = np.empty(count)
    left = target
    for i in range(count):
        low, high = floor[rows[i], v], cap[rows[i], v]
        amounts[i] = min(max(np.int64(np.floor(exact[i])), low), high)
        fractions[i] = -np.floor((exact[i] - amounts[i]) * _TIES + 0.5)
        left -= amounts[i]
    order = sorted_order(fractions)
    while left != 0:  # a second time only above 2**53, where floats are coarser than units
        step = max(abs(left) // count, 1)
        before = left
        for i in order:
            low, high = floor[rows[i], v], cap[rows[i], v]
            if left > 0 and exact[i] > low:
                change = min(step, left, high - amounts[i])
            elif left < 0:
                change = -min(step, -left, amounts[i] - low)
            else:
                change = 0
            amounts[i] += change
            left -= change
        if left == before:
            break
    for i in range(count):
        share[rows[i], v] += amounts[i]
    return target - left
