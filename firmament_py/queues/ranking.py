"""What the queues of tasks decide before anything is placed: the order of tasks, and the nodes that their quotas cover.

Tasks of a higher rank go first, whatever their priorities: ranks and priorities are one number, the *effective
priority*, so that all that follows knows a single order.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools

_STEP = 2**33
"""A step of rank: more than the difference between any two priorities, which have 32 bits."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """By row of the task table (capacity,): rank >= 0; flavor: number of the nodes that may take it, -1: any of those
    that suit it; withheld: it is not placed in this round, but others may be preempted for it. nodes (F, N): the nodes
    of each flavor, in the order of the snapshot's."""

    rank: I64
    flavor: I64
    withheld: Bools
    nodes: Bools
    priority: I64 | None = None
    """(capacity,) the priority of tasks where queues compete; None: that of their classes."""

    def kind(self, rows: I64) -> I64:
        """(K,) equal for task rows (K,) of the same rank, flavor and, if it is not that of their class, priority."""
        kind: I64 = self.rank[rows] * (len(self.nodes) + 1) + self.flavor[rows] + 1
        return kind if self.priority is None else effective_priority(kind, self.priority[rows])


def effective_priority(rank: I64, priority: I64) -> I64:
    """One number for rank and priority, each (K,)."""
    return rank * _STEP + priority


def own_priority(effective: int) -> int:
    """The priority that an effective priority is made of."""
    return (effective + _STEP // 2) % _STEP - _STEP // 2


def by_rank(ranking: Ranking | None, rows: I64, priority: I64) -> I64:
    """(K,) effective priorities of task rows (K,), whose classes have these priorities (K,)."""
    if ranking is None:
        return priority
    return effective_priority(ranking.rank[rows], priority if ranking.priority is None else ranking.priority[rows])


def covered(ranking: Ranking, rows: I64, suitable: Bools) -> Bools:
    """suitable (K, N) on those nodes alone that quotas cover for task rows (K,)."""
    if not len(ranking.nodes):
        return suitable
    nodes = np.vstack([ranking.nodes, np.ones(ranking.nodes.shape[1], np.bool_)])  # the last row for -1
    return suitable & nodes[ranking.flavor[rows]]
