"""Gangs: groups of tasks of which at least a minimum is placed in one round, or nothing.

This module owns what is known of gangs; which are placed is decided in admission.py.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import GangObserved, Refusal
from firmament_py.state.table import Table

NO_GANG = -1
MAX_ROLES = 64
UNLIMITED = 2**40


class GangTable(Table):
    """One row a gang; `definition` has the rest. Kept until it is removed and no task refers to it any more."""

    FIELDS: ClassVar = {"id": (np.uint64, 0), "tasks": (np.int64, 0)}
    id: U64
    tasks: I64  # rows of the task table that refer to the gang

    def __init__(self) -> None:
        super().__init__()
        self._row: dict[int, int] = {}
        self._definition: dict[int, GangObserved] = {}
        self._removed: set[int] = set()

    def definition(self, row: int) -> GangObserved:
        return self._definition[row]

    def known(self, gang_id: int) -> GangObserved | None:
        """The gang as it was observed last, None if it is not known."""
        row = self._row.get(gang_id)
        return None if row is None else self._definition[row]

    def observe(self, gang: GangObserved) -> Refusal | bool:
        """Takes a gang as it is now; whether that changed anything, or why it makes no sense."""
        problem = _problem(gang)
        if problem is not None:
            return Refusal("gang", gang.name or str(gang.id), *problem)
        row = self._row.get(gang.id)
        if row is None:
            row = self._row[gang.id] = int(self.allocate(1)[0])
            self.id[row] = gang.id
        self._removed.discard(row)
        changed = self._definition.get(row) != gang
        self._definition[row] = gang
        return changed

    def remove(self, gang_id: int) -> None:
        """The gang's owner is gone; it is forgotten when its last task is."""
        row = self._row.get(gang_id)
        if row is not None:
            self._removed.add(row)
            self.sweep()

    def find(self, ids: U64) -> I64:
        """Rows of gangs `ids` (K,) -> (K,): NO_GANG for id 0, -2 where unknown."""
        unique, inverse = np.unique(ids, return_inverse=True)
        rows = np.array([NO_GANG if i == 0 else self._row.get(i, -2) for i in unique.tolist()], np.int64)
        return rows[inverse] if len(unique) else np.zeros(0, np.int64)

    def sweep(self) -> None:
        """Forgets removed gangs without tasks."""
        gone = [row for row in self._removed if self.tasks[row] == 0]
        for row in gone:
            self._removed.discard(row)
            del self._row[int(self.id[row])], self._definition[row]
        if gone:
            self.release(np.array(gone, np.int64))


@dataclass(frozen=True, slots=True)
class Claim:
    """A gang that lacks members, in a round. Tasks are numbered as in the snapshot.

    members: its waiting tasks, ascending. role: the role of each. lacking: how many more of the gang must be placed in
    all; lacking_of_role: the same for each role. settled: nodes (N,) numbers where members are already. quota: how many
    more may be placed before it has its maximum. begun: members are on nodes, and of no use without the others. task:
    the row of a task that is in no gang and counts as one of its own (lone.py); then `row` is no gang's, either.
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
        """Whether enough members are placed, node_of (T,) as in `Placing`."""
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


def _problem(gang: GangObserved) -> tuple[str, str] | None:
    """(field, reason) of the first thing that makes no sense."""
    if gang.id == 0:
        return "id", "must not be 0"
    if gang.minimum < 0:
        return "minimum", f"is {gang.minimum}; give 0 or more"
    if gang.maximum < 0:
        return "maximum", f"is {gang.maximum}; give 0 for none, or more"
    needed = max(gang.minimum, sum(minimum for _, minimum in gang.roles))
    if 0 < gang.maximum < needed:
        return "maximum", f"is {gang.maximum}, but at least {needed} are needed; give {needed} or more, or 0 for none"
    if len(gang.roles) > MAX_ROLES:
        return "roles", f"has {len(gang.roles)} entries; at most {MAX_ROLES} are possible"
    if any(minimum < 0 for _, minimum in gang.roles):
        return "roles", "has a minimum below 0"
    if gang.topology_required and not gang.topology_key:
        return "topology_key", "is empty, but the topology is required; name a node label"
    return None
