"""The demand of a job that lacks tasks in a round: of a gang, or of a single task, which is a job of minimum 1."""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.events import GangObserved
from firmament_py.snapshot.domain_limits import UNLIMITED
from firmament_py.state.gangs import NO_GANG


@dataclass(frozen=True, slots=True)
class Start:
    """What must be free before a gang starts: amounts (R,), and (resource, amount) of those that no node offers."""

    amounts: I64
    unoffered: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JobDemand:
    """A job that lacks tasks, in a round: all that it lacks are placed, or none. Tasks and nodes are numbered as in the
    snapshot.

    row: of the gang in its table, or of the single task in that of tasks. gang: None: a single task. created_us:
    microseconds since the epoch. members: (M,) its waiting tasks, ascending; role: (M,) their roles. lacking: how many
    more members must be placed; lacking_of_role: the same for each role. settled: the nodes of members that run. quota:
    how many more may be placed before the gang has its maximum. begun: some members run, and need the others. start:
    what must be free before the first is placed, None: that does not matter, or some are placed.
    """

    row: int
    gang: GangObserved | None
    created_us: int
    members: I64
    role: I64
    lacking: int
    lacking_of_role: tuple[int, ...]
    settled: I64
    priority: int
    quota: int = UNLIMITED
    begun: bool = False
    start: Start | None = None

    @classmethod
    def of_task(cls, row: int, member: int, created_us: int, priority: int) -> "JobDemand":
        """That of the single task in this row, number `member` of the snapshot."""
        return cls(row, None, created_us, np.array([member]), np.zeros(1, np.int64), 1, (), NO_ROWS, priority)

    @property
    def key(self) -> int:
        """A number that no other job has: the row of a gang, or one below NO_GANG."""
        return self.row if self.gang is not None else NO_GANG - 1 - self.row

    @property
    def age(self) -> tuple[int, int]:
        """By which jobs are ordered, the oldest first; gangs of the same time by id."""
        return self.created_us, 0 if self.gang is None else self.gang.id

    @property
    def topology_key(self) -> str:
        """The node label one domain of which takes all that it lacks; empty: none."""
        return "" if self.gang is None else self.gang.topology_key

    @property
    def topology_required(self) -> bool:
        return self.gang is not None and self.gang.topology_required

    @property
    def domain_keys(self) -> tuple[str, ...]:
        """The node labels whose values together name a domain of its topology."""
        return () if self.gang is None else self.gang.domain_keys

    @property
    def narrower_keys(self) -> tuple[str, ...]:
        """Labels of narrower domains, which are tried before, the narrowest first."""
        return () if self.gang is None else self.gang.narrower_keys

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

    def only(self, some: Bools) -> "JobDemand":
        """The same with some (M,) of its waiting members."""
        return self if some.all() else replace(self, members=self.members[some], role=self.role[some])

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
