"""What a gang that lacks members needs of a round."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.events import GangObserved

UNLIMITED = 2**40
"""More members than any gang has: it has no maximum."""


@dataclass(frozen=True, slots=True)
class GangDemand:
    """A gang that lacks members, in a round. Tasks are numbered as in the snapshot.

    members: its waiting tasks, ascending. role: the role of each. lacking: how many more of the gang must be placed in
    all; lacking_of_role: the same for each role. settled: nodes (N,) numbers where members are already. quota: how many
    more may be placed before it has its maximum. begun: members are on nodes, and of no use without the others. task:
    the row of a task that is in no gang and counts as one of its own (admission/overdue_tasks.py); then `row` is no
    gang's, either.
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
        """Whether what it lacks would exceed its maximum: members that are placed leave no place for those needed."""
        return self.lacking > self.quota

    @property
    def missing(self) -> int:
        """Members that would have to come before the gang can be tried."""
        present = np.bincount(self.role, minlength=len(self.lacking_of_role))
        by_role = sum(max(need - int(present[r]), 0) for r, need in enumerate(self.lacking_of_role))
        return max(by_role, self.lacking - len(self.members))

    def core(self, order: I64 | None = None, count: int = 0) -> I64:
        """As many members as it lacks, ascending: of each role the first that it lacks, then the first of the rest.

        order: positions in `members`, the first first; None: by class, and of a class the oldest. count: more than it
        lacks.
        """
        count = max(count, self.lacking)
        order = np.arange(len(self.members)) if order is None else order
        chosen = np.zeros(len(self.members), np.bool_)
        for r, need in enumerate(self.lacking_of_role):
            chosen[order[self.role[order] == r][:need]] = True
        rest = order[~chosen[order]]
        chosen[rest[: max(count - int(chosen.sum()), 0)]] = True
        return self.members[chosen]

    def satisfied(self, node_of: I64) -> bool:
        """Whether enough members are placed, node_of (T,) as in `Ledger`."""
        placed = node_of[self.members] >= 0
        of_role = np.bincount(self.role[placed], minlength=len(self.lacking_of_role))
        return int(placed.sum()) >= self.lacking and all(
            int(of_role[r]) >= need for r, need in enumerate(self.lacking_of_role)
        )

    def surplus(self, node_of: I64) -> I64:
        """Placed members beyond what the gang lacks, the youngest first to go."""
        placed = np.flatnonzero(node_of[self.members] >= 0)
        keep = np.zeros(len(self.members), np.bool_)
        for r, need in enumerate(self.lacking_of_role):
            keep[placed[self.role[placed] == r][:need]] = True
        rest = placed[~keep[placed]]
        keep[rest[: max(self.lacking - int(keep.sum()), 0)]] = True
        return self.members[placed[~keep[placed]]]
