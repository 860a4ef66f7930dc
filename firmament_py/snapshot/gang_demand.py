"""The demand of a gang that lacks members in a round."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.events import GangObserved

UNLIMITED = 2**40
"""The quota of a gang without a maximum: more members than any gang has."""


@dataclass(frozen=True, slots=True)
class GangDemand:
    """A gang that lacks members, in a round; tasks and nodes are numbered as in the snapshot.

    row: of the gang table. members: (M,) its waiting tasks, ascending; role: (M,) their roles. lacking: how many more
    members must be placed; lacking_of_role: the same for each role. settled: the nodes of members that run. quota: how
    many more may be placed before the gang has its maximum. begun: some members run, and need the others. task: the row
    of a single task that is treated as a gang of its own (admission/overdue_tasks.py), -1: none; then `row` is unused.
    """

    row: int
    definition: GangObserved
    members: I64
    role: I64
    lacking: int
    lacking_of_role: tuple[int, ...]
    settled: I64
    priority: int
    quota: int = UNLIMITED
    begun: bool = False
    task: int = -1

    @property
    def full(self) -> bool:
        """Whether the lacking members would exceed its maximum."""
        return self.lacking > self.quota

    @property
    def missing(self) -> int:
        """Number of members that must be created before the gang can be tried."""
        present = np.bincount(self.role, minlength=len(self.lacking_of_role))
        by_role = sum(max(need - int(present[r]), 0) for r, need in enumerate(self.lacking_of_role))
        return max(by_role, self.lacking - len(self.members))

    def core(self, order: I64 | None = None, count: int = 0) -> I64:
        """The members to place first, ascending: of each role as many as it lacks, then others up to the minimum.

        order: (M,) positions in `members`, in the order of choice; None: by class, oldest first. count: choose at least
        this number.
        """
        count = max(count, self.lacking)
        order = np.arange(len(self.members)) if order is None else order
        chosen = np.zeros(len(self.members), np.bool_)
        for r, need in enumerate(self.lacking_of_role):
            chosen[order[self.role[order] == r][:need]] = True
        others = order[~chosen[order]]
        chosen[others[: max(count - int(chosen.sum()), 0)]] = True
        return self.members[chosen]

    def satisfied(self, node_of: I64) -> bool:
        """Whether the minimums are met. node_of: (T,) the node of each task, -1: none."""
        placed = node_of[self.members] >= 0
        of_role = np.bincount(self.role[placed], minlength=len(self.lacking_of_role))
        return int(placed.sum()) >= self.lacking and all(
            int(of_role[r]) >= need for r, need in enumerate(self.lacking_of_role)
        )

    def surplus(self, node_of: I64) -> I64:
        """The youngest placed members in excess of what the gang lacks. node_of: as in `satisfied`."""
        placed = np.flatnonzero(node_of[self.members] >= 0)
        keep = np.zeros(len(self.members), np.bool_)
        for r, need in enumerate(self.lacking_of_role):
            keep[placed[self.role[placed] == r][:need]] = True
        others = placed[~keep[placed]]
        keep[others[: max(self.lacking - int(keep.sum()), 0)]] = True
        return self.members[placed[~keep[placed]]]
