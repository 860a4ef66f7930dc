"""Water level: the level to which tasks fill the emptiest domains."""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.snapshot.domain_limits import UNLIMITED


def water_level(counts: I64, capacity: I64, waiting: int) -> int:
    """The highest count that the emptiest domains, with counts (D,), can reach with `waiting` tasks and `capacity`
    (D,)."""
    if not len(counts):
        return 0
    low, high = int(counts.min()), int((counts + capacity).min())
    while low < high:  # a higher level takes more tasks
        level = (low + high + 1) // 2
        if int(np.maximum(level - counts, 0).sum()) <= waiting:
            low = level
        else:
            high = level - 1
    return low


def fill_level(counts: I64, capacity: I64, waiting: int) -> int:
    """The lowest level to which domains with counts (D,) and `capacity` (D,) must be filled to take `waiting` >= 1
    tasks, or all that there is capacity for. Domains without capacity do not matter."""
    return int(fill_levels(counts[None], capacity[None], np.array([waiting]))[0])


def fill_levels(counts: I64, capacity: I64, waiting: I64) -> I64:
    """(K,) the `fill_level` of each row of counts (K, D) and `capacity` (K, D), for `waiting` (K,) tasks."""
    target = np.minimum(waiting, capacity.sum(axis=1))
    is_open = (capacity > 0) & (target > 0)[:, None]
    high: I64 = np.where(is_open, counts + capacity, 0).max(axis=1, initial=0)  # takes the target
    low = np.minimum(np.where(is_open, counts, UNLIMITED).min(axis=1, initial=UNLIMITED), high)  # takes nothing
    while (high - low > 1).any():
        level = (low + high) // 2
        taken = np.clip(level[:, None] - counts, 0, capacity).sum(axis=1)
        low, high = np.where(taken < target, level, low), np.where(taken < target, high, level)
    return high
