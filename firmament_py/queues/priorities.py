"""Priorities of tasks as other queues see them (YuniKorn's priority.policy and priority.offset).

Two tasks are compared where the paths from their queues to the root meet. On the way from its queue to the child of
that common ancestor, each queue adds its offset to the priority; one with a fence puts its offset in the place of what
it gets. So a fence hides priorities from the queues outside of it, and none from those inside.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.queues.tree import Queues

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class SeenFrom:
    """How tasks of each queue are seen: by a fixed priority, `amount` (Q,), or by their own with that added."""

    amount: I64
    fixed: Bools

    def priority(self, queue: I64, priority: I64) -> I64:
        """(K,) how tasks of queues (K,) with these priorities (K,) are seen; in 32 bits."""
        own = np.where(self.fixed[queue], 0, priority)
        return np.clip(own + self.amount[queue], _LOWEST, _HIGHEST)

    def highest(self, limit: I64, lowest: int, highest: int) -> I64:
        """(Q,) the highest own priority of tasks of each queue that are seen with at most `limit` (Q,); of fixed ones
        `highest`, which stands for all, or `lowest`, for none."""
        of_fixed = np.where(self.amount <= limit, highest, lowest)
        return np.where(self.fixed, of_fixed, limit - self.amount)


def seen_outside(queues: Queues, of: I64) -> SeenFrom:
    """Tasks of each queue as seen from outside of the queue of (Q,), itself or one above it."""
    amount, fixed = np.zeros(queues.count, np.int64), np.zeros(queues.count, np.bool_)
    inside = np.ones(queues.count, np.bool_)
    for row in queues.paths.T:
        inside = inside & (row >= 0)
        fence = inside & queues.priority_fence[row]
        amount = np.where(fence, 0, amount) + np.where(inside, queues.priority_offset[row], 0)
        fixed = fixed | fence
        inside = inside & (row != of)
    return SeenFrom(amount, fixed)


def seen_at_each_depth(queues: Queues, queue: int, priority: int) -> I64:
    """(D,) how a task of one queue is seen from outside of the queue above it at depth 0, 1, ..., that of its own."""
    found = np.zeros(int(queues.depth[queue]) + 1, np.int64)
    for depth, row in zip(range(len(found))[::-1], queues.paths[queue], strict=False):
        priority = (0 if queues.priority_fence[row] else priority) + int(queues.priority_offset[row])
        found[depth] = priority
    return found


def changes_priorities(queues: Queues) -> bool:
    """Whether any task is seen with another priority than its own."""
    return bool((queues.priority_fence | (queues.priority_offset != 0)).any())
