"""What queues used in the past: decayed means in closed form, and what follows from them.

Usage that is constant for a time changes a decayed mean by a formula of that time alone, so that the mean is exact
however rarely it is calculated, provided that it is whenever usage changes.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.queues.tree import Queues


def decayed(past: F64, usage: I64, elapsed_s: float, half_life_s: float) -> F64:
    """Mean usage with exponential decay after `elapsed_s` of constant `usage` (Kueue's consumed resources)."""
    alpha = newness(elapsed_s, half_life_s)
    return (1.0 - alpha) * past + alpha * usage


def newness(elapsed_s: float, half_life_s: float) -> float:
    """How much the last `elapsed_s` count in a decayed mean: 0 .. 1; nothing without a half-life.

    Times a job's request it is Kueue's penalty for its admission, until its usage is sampled.
    """
    return float(1.0 - 0.5 ** (elapsed_s / half_life_s)) if half_life_s > 0.0 else 0.0


def usage_score(consumed: F64, penalty: F64, resource_weights: F64, weight: F64) -> F64:
    """(K,) what K rivals have used, weighted; the lowest is admitted first (Kueue's admission fair sharing).

    `consumed` and `penalty` are (K, R), `resource_weights` (R,), `weight` (K,): 0 is infinite usage.
    """
    used: F64 = (consumed + penalty) @ resource_weights
    score: F64 = np.divide(used, weight, out=np.full(len(weight), np.inf), where=weight > 0.0)
    return score


def past_share(queues: Queues, past: F64, capacity: F64) -> F64:
    """(Q, V) decayed usage (Q, V) of each queue and all below it as a part of the capacity (V,), 0 without one."""
    total = past_total(queues, past)
    return np.divide(total, capacity, out=np.zeros_like(total), where=capacity > 0)


def past_total(queues: Queues, past: F64) -> F64:
    """(Q, V) decayed usage (Q, V) of each queue and all below it."""
    total = past.astype(np.float64)
    for level in reversed(queues.levels):
        np.add.at(total, level.parents, total[level.rows])
    return total
