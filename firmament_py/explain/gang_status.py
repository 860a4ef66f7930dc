"""The status of gangs: members that exist, run and are missing, and why a gang as a whole waits."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from firmament_py.admission.rejections import Rejected
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.arrays import I64
from firmament_py.model.events import GangObserved
from firmament_py.model.lifecycle import ASSUMED, BOUND, WAITING
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


@dataclass(frozen=True, slots=True)
class GangStanding:
    """present: members that wait or run; placed: members that run; missing: members that must be created before the
    gang can be tried."""

    definition: GangObserved
    present: int
    placed: int
    missing: int


def gang_standing(state: ClusterState, row: int) -> GangStanding | None:
    """The standing of the gang of a task row; None if it is in no gang."""
    tasks, gang = state.tasks, int(state.tasks.gang[row])
    if gang < 0:
        return None
    return _standing(state, gang, np.flatnonzero(tasks.gang == gang))


def gang_standings(state: ClusterState) -> list[GangStanding]:
    """The standing of every gang that has tasks."""
    gang = state.tasks.gang
    members = np.flatnonzero(gang >= 0)
    members = members[np.argsort(gang[members], kind="stable")]
    gangs, starts = np.unique(gang[members], return_index=True)
    return [
        _standing(state, gang, rows)
        for gang, rows in zip(gangs.tolist(), np.split(members, starts[1:]) if len(starts) else [], strict=True)
    ]


def _standing(state: ClusterState, gang: int, rows: I64) -> GangStanding:
    """`rows`: (K,) all task rows of a gang row."""
    tasks, definition = state.tasks, state.gangs.definition(gang)
    rows = rows[~tasks.leaving[rows]]
    placed = (tasks.state[rows] == ASSUMED) | (tasks.state[rows] == BOUND)
    present = rows[placed | (tasks.state[rows] == WAITING)]
    of_role = np.bincount(tasks.role[present], minlength=len(definition.roles))
    by_role = sum(max(minimum - int(of_role[r]), 0) for r, (_, minimum) in enumerate(definition.roles))
    missing = max(definition.minimum - len(present), by_role, 0)
    return GangStanding(definition, len(present), int(placed.sum()), missing)


def gang_reasons(name: str, rejected: Rejected) -> tuple[Reason, ...]:
    """Why a round did not place the gang `name`."""
    lacking = rejected.demand.lacking
    if rejected.missing:
        return (Reason(ReasonKind.GANG_INCOMPLETE, 0, name, str(rejected.missing)),)
    if rejected.shortage:
        return (cannot_start(name, rejected.shortage),)
    unfit = Reason(ReasonKind.GANG_DOES_NOT_FIT, 0, name, f"{rejected.fitted}/{lacking}")
    return (unfit,) if rejected.at_best < 0 else (unfit, not_by_preemption(name, rejected.at_best, lacking))


def cannot_start(name: str, shortage: Iterable[tuple[str, int]]) -> Reason:
    """Not enough is free for a gang to start."""
    lacking = ", ".join(f"{resource}: {amount}" for resource, amount in shortage)
    return Reason(ReasonKind.GANG_CANNOT_START, 0, name, lacking)


def not_by_preemption(name: str, at_best: int, lacking: int) -> Reason:
    """No evictions and moves make all members fit that a gang lacks, only `at_best` of them."""
    return Reason(ReasonKind.NOT_BY_PREEMPTION, 0, name, f"{at_best}/{lacking}")


def full_gangs(state: ClusterState, gangs: Iterable[int]) -> dict[int, Reason]:
    """Those of the gang rows (-1: none) that have reached their maximum."""
    limited = {g: d for g in set(gangs) - {NO_GANG} if (d := state.gangs.definition(g)).maximum}
    if not limited:
        return {}
    tasks = state.tasks
    holds = tasks.on_nodes
    placed = np.flatnonzero((tasks.gang >= 0) & holds & ~tasks.leaving)
    placed = placed[np.argsort(tasks.gang[placed], kind="stable")]
    found = {}
    for gang, definition in limited.items():
        there = placed[slice(*np.searchsorted(tasks.gang[placed], (gang, gang + 1)).tolist())]
        of_role = np.bincount(tasks.role[there], minlength=len(definition.roles))
        needed = sum(max(minimum - int(of_role[r]), 0) for r, (_, minimum) in enumerate(definition.roles))
        if len(there) + max(needed, 1) > definition.maximum:
            value = f"{len(there)}/{definition.maximum}"
            found[gang] = Reason(ReasonKind.GANG_FULL, 0, definition.name, value)
    return found
