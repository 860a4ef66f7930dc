"""Gangs: groups of tasks of which a round places at least a minimum, or none.

This table holds their definitions; admission/queue_order.py decides the order in which they are placed.
"""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.events import GangObserved, Refusal
from firmament_py.state.table import KeyedTable

NO_GANG = -1
MAX_ROLES = 64
MAX_LEVELS = 16
"""Of a topology."""


class GangTable(KeyedTable[GangObserved]):
    """One row per gang; `definition` has its other fields. A row stays until the gang is removed and has no tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._row[0] = NO_GANG
        self._removed: set[int] = set()
        self.with_start_amounts: set[int] = set()
        """Rows of gangs that need amounts of resources to start."""
        self._keeping: set[int] = set()
        self.staged: set[int] = set()
        """Rows of gangs that have not started, and ask for all that they will keep."""

    def known(self, gang_id: int) -> GangObserved | None:
        """The gang as last observed, None if it is unknown."""
        row = self._row.get(gang_id)
        return None if row is None else self._definition.get(row)

    def observe(self, gang: GangObserved) -> tuple[Refusal | None, bool]:
        """Adds or updates a gang unless it is invalid; returns why it is refused, and whether anything has changed."""
        problem = _problem(gang)
        if problem is not None:
            return Refusal("gang", gang.name or str(gang.id), *problem), False
        row = self._row.get(gang.id)
        if row is None:
            row = self.add(gang.id, gang)
            self._note_start(row, gang)
            return None, True
        self._removed.discard(row)
        self._note_start(row, gang)
        changed = self._definition[row] != gang
        self._definition[row] = gang
        return None, changed

    def _note_start(self, row: int, gang: GangObserved) -> None:
        (self.with_start_amounts.add if gang.start_amounts else self.with_start_amounts.discard)(row)
        (self._keeping.add if gang.keeps else self._keeping.discard)(row)
        (self.staged.add if gang.staged else self.staged.discard)(row)

    def keeping(self) -> I64:
        """(G,) rows, ascending, of gangs that keep quota of their queues."""
        return np.array(sorted(self._keeping), np.int64)

    def remove(self, gang_id: int) -> None:
        """Removes a gang whose owner no longer exists, as soon as no task refers to it."""
        row = self._row.get(gang_id)
        if row is not None and row != NO_GANG:
            self._removed.add(row)
            self._keeping.discard(row)
            self.sweep()

    def sweep(self) -> None:
        """Drops removed gangs without tasks."""
        if not self._removed:
            return
        gone = [row for row in self._removed if self.tasks[row] == 0]
        self._removed.difference_update(gone)
        self.with_start_amounts.difference_update(gone)
        self._keeping.difference_update(gone)
        self.staged.difference_update(gone)
        self.remove_rows(np.array(gone, np.int64))


def _problem(gang: GangObserved) -> tuple[str, str] | None:
    """Field and reason of the first invalid value; None if all are valid."""
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
        return "roles", f"has {len(gang.roles)} entries; give at most {MAX_ROLES}"
    if any(minimum < 0 for _, minimum in gang.roles):
        return "roles", "has a minimum below 0"
    if gang.topology_required and not gang.topology_key:
        return "topology_key", "is empty, but the topology is required; name a node label"
    if any(amount < 0 for _, amount in gang.start_amounts):
        return "start_amounts", "has an amount below 0"
    if any(amount < 0 for _, amount in gang.keeps):
        return "keeps", "has an amount below 0"
    keys = (*gang.narrower_keys, gang.topology_key, *gang.outer_keys)
    if len(keys) > 1 and ("" in keys or len(set(keys)) < len(keys)):
        return (
            "narrower_keys",
            "with topology_key and outer_keys, has an empty or repeated label; name different node labels",
        )
    if len(keys) > MAX_LEVELS:
        return "narrower_keys", f"has, with outer_keys, {len(keys) - 1} entries; give at most {MAX_LEVELS - 1}"
    return None
