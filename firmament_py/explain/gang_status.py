"""How far gangs are: members that are there, placed, and missing."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.events import GangObserved
from firmament_py.model.lifecycle import TaskState
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class GangStanding:
    """How far a gang is. missing: members that have to come before it can be tried."""

    definition: GangObserved
    present: int
    placed: int
    missing: int


def gang_standing(state: ClusterState, row: int) -> GangStanding | None:
    """The standing of the gang of a task; None: it is in none."""
    tasks, gang = state.tasks, int(state.tasks.gang[row])
    if gang < 0:
        return None
    definition = state.gangs.definition(gang)
    mine = (tasks.gang == gang) & ~tasks.leaving
    placed = mine & ((tasks.state == TaskState.ASSUMED) | (tasks.state == TaskState.BOUND))
    present = placed | (mine & (tasks.state == TaskState.WAITING))
    of_role = np.bincount(tasks.role[present], minlength=len(definition.roles))
    by_role = sum(max(minimum - int(of_role[r]), 0) for r, (_, minimum) in enumerate(definition.roles))
    missing = max(definition.minimum - int(present.sum()), by_role, 0)
    return GangStanding(definition, int(present.sum()), int(placed.sum()), missing)
