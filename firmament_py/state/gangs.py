"""Gangs: groups of tasks of which at least a minimum is placed in one round, or nothing.

This module owns what is known of gangs; which are placed is decided in admission/queue_order.py.
"""

from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import GangObserved, Refusal
from firmament_py.state.table import Table

NO_GANG = -1
MAX_ROLES = 64


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
