"""Water level: the level to which tasks can fill the emptiest domains."""

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
