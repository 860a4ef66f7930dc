"""Gangs: groups of tasks of which at least a minimum is placed in one round, or nothing.

This module owns what is known of gangs; which are placed is decided in admission/queue_order.py.
"""

import numpy as np

from firmament_py.model.events import GangObserved, Refusal
from firmament_py.state.keyed_table import KeyedTable

NO_GANG = -1
MAX_ROLES = 64


class GangTable(KeyedTable[GangObserved]):
    """One row a gang; `definition` has the rest. Kept until it is removed and no task refers to it any more."""

    def __init__(self) -> None:
        super().__init__()
        self._row[0] = NO_GANG
        self._removed: set[int] = set()

    def known(self, gang_id: int) -> GangObserved | None:
        """The gang as it was observed last, None if it is not known."""
        row = self._row.get(gang_id)
        return None if row is None else self._definition.get(row)

    def observe(self, gang: GangObserved) -> Refusal | bool:
        """Takes a gang as it is now; whether that changed anything, or why it makes no sense."""
        problem = _problem(gang)
        if problem is not None:
            return Refusal("gang", gang.name or str(gang.id), *problem)
        row = self._row.get(gang.id)
        if row is None:
            self.add(gang.id, gang)
            return True
        self._removed.discard(row)
        changed = self._definition[row] != gang
        self._definition[row] = gang
        return changed

    def remove(self, gang_id: int) -> None:
        """The gang's owner is gone; it is forgotten when its last task is."""
        row = self._row.get(gang_id)
        if row is not None and row != NO_GANG:
            self._removed.add(row)
            self.sweep()

    def sweep(self) -> None:
        """Forgets removed gangs without tasks."""
        gone = [row for row in self._removed if self.tasks[row] == 0]
        self._removed.difference_update(gone)
        self.remove_rows(np.array(gone, np.int64))


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
