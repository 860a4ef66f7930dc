"""Water level: the level to which tasks fill the emptiest domains."""

import numpy as np

from firmament_py.model.arrays import I64


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
    open_domains = np.flatnonzero(capacity > 0)
    if not len(open_domains):
        return 0
    counts, capacity = counts[open_domains], capacity[open_domains]
    target = min(waiting, int(capacity.sum()))
    low = int(counts.min())  # takes nothing
    step = 1
    while _taken(counts, capacity, low + step) < target:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        level = (low + high) // 2
        if _taken(counts, capacity, level) < target:
            low = level
        else:
            high = level
    return high


def _taken(counts: I64, capacity: I64, level: int) -> int:
    """Number of tasks that domains take up to a level."""
    return int(np.clip(level - counts, 0, capacity).sum())
