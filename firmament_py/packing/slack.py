"""The slack that a task would leave on a node, by which searches choose the tightest."""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.numba_cache import inner


@inner
def slack_left(c: int, n: int, requests: I64, free: I64, placed: I64, slots: I64, weight: F64) -> float:
    """What one more task of class c leaves free on node n, weighted; infinite if it does not fit."""
    if placed[c, n] >= slots[c, n]:
        return np.inf
    slack = 0.0
    for r in range(len(weight)):
        left_over = free[n, r] - requests[c, r]
        if left_over < 0 and requests[c, r] > 0:
            return np.inf
        slack += left_over * weight[r]
    return slack
