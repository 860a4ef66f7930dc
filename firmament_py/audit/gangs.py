"""The independent check of gangs: their minimums, roles, maximums and required topologies, from the state tables.

Like audit/placements.py, which calls it, it shares no code with the code that places: labels are read from the observed
nodes, and members are counted again.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import GangObserved
from firmament_py.model.lifecycle import ASSUMED, BOUND
from firmament_py.model.resources import TASK_SLOTS
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


@dataclass(frozen=True, slots=True)
class _Case:
    """A gang, with the task rows and node rows of its placed members and of those to be placed."""

    definition: GangObserved
    there: I64
    there_on: I64
    new: I64
    new_on: I64


def gang_problems(state: ClusterState, tasks: I64, nodes: I64, sound: Bools) -> dict[str, Bools]:
    """Constraints of gangs that placing task rows `tasks` (K,) on node rows `nodes` (K,), where `sound` (K,), breaks:
    complaint -> the placements (K,) to refuse. A gang is refused as a whole."""
    table = state.tasks
    gangs = {g for g in table.gang[tasks].tolist() if g >= 0}
    if not gangs:
        return {}
    holding = ((table.state == ASSUMED) | (table.state == BOUND)) & ~table.leaving
    found = {what: np.zeros(len(tasks), np.bool_) for what in (_FEW, _MANY, _APART, _POOR)}
    for gang in gangs:
        mine = table.gang[tasks] == gang
        there = np.flatnonzero(holding & (table.gang == gang))
        new = mine & sound
        case = _Case(state.gangs.definition(gang), there, table.node[there], tasks[new], nodes[new])
        if not _reaches(case.definition, table.role[np.r_[case.there, case.new]]):
            found[_FEW] |= mine
        elif 0 < case.definition.maximum < len(case.there) + len(case.new):
            found[_MANY] |= mine
        elif not _together(state, case):
            found[_APART] |= mine
        elif not len(case.there) and not _may_start(state, case.definition, tasks):
            found[_POOR] |= mine
    return found


_FEW = "the gang would have less than its minimum"
_MANY = "the gang would have more than its maximum"
_POOR = "the gang would start although less is free than it needs to start"
_APART = "the gang would be spread over more than one domain of its topology"


def _reaches(definition: GangObserved, roles: I64) -> bool:
    """Whether members of these roles meet the minimums."""
    return len(roles) >= definition.minimum and all(
        int((roles == number).sum()) >= minimum for number, (_, minimum) in enumerate(definition.roles)
    )


def _may_start(state: ClusterState, definition: GangObserved, arriving: I64) -> bool:
    """Whether as much was free in the cluster before the round as a gang needs to start. arriving: (K,) the tasks that
    the round places."""
    table, observed = state.tasks, state.nodes.observed
    on = np.setdiff1d(np.flatnonzero(table.node >= 0), arriving)
    for name, amount in definition.start_amounts:
        left = {row: node.allocatable.get(name, 0) for row, node in observed.items()}
        for cls, node in zip(table.cls[on].tolist(), table.node[on].tolist(), strict=True):
            if node in left:
                left[node] -= 1 if name == TASK_SLOTS else state.classes.definition(cls).requests.get(name, 0)
        if sum(max(free, 0) for free in left.values()) < amount:
            return False
    return True


def _together(state: ClusterState, case: _Case) -> bool:
    """Whether the new members are in one domain of the topology that the gang requires, or in those of its placed
    members."""
    if not case.definition.topology_required:
        return True
    keys = case.definition.domain_keys
    there, goes_to = set(_domains(state, keys, case.there_on)) - {None}, set(_domains(state, keys, case.new_on))
    return goes_to <= there if there else None not in goes_to and len(goes_to) <= 1


def scattered_gangs(state: ClusterState, waits: I64, nodes: I64) -> list[str]:
    """Names of gangs whose members among task rows (K,), which wait for node rows (K,), would not be in one domain of
    the topology that the gang requires."""
    table = state.tasks
    holding = ((table.state == ASSUMED) | (table.state == BOUND)) & ~table.leaving
    found = []
    for gang in np.unique(table.gang[waits][table.gang[waits] != NO_GANG]).tolist():
        there, mine = np.flatnonzero(holding & (table.gang == gang)), table.gang[waits] == gang
        definition = state.gangs.definition(gang)
        if not _together(state, _Case(definition, there, table.node[there], waits[mine], nodes[mine])):
            found.append(definition.name or str(definition.id))
    return found


def _domains(state: ClusterState, keys: tuple[str, ...], nodes: I64) -> list[tuple[str, ...] | None]:
    """The values of labels `keys` on each of the node rows; None if the node lacks one of them or is absent."""
    observed = state.nodes.observed
    labels = [observed[row].labels if row in observed else {} for row in nodes.tolist()]
    return [tuple(of[key] for key in keys) if all(key in of for key in keys) else None for of in labels]


def halved_gangs(state: ClusterState, leave: I64) -> list[str]:
    """Names of gangs that task rows (K,) would leave with some members, but fewer than their minimum."""
    tasks = state.tasks
    gone = tasks.leaving.copy()
    gone[leave] = True
    holding = (tasks.state == ASSUMED) | (tasks.state == BOUND)
    found = []
    for row in np.unique(tasks.gang[leave][tasks.gang[leave] != NO_GANG]).tolist():
        stay, definition = np.flatnonzero((tasks.gang == row) & holding & ~gone), state.gangs.definition(row)
        needs_all = definition.disrupted_whole or len(stay) < definition.minimum
        for number, (_, minimum) in enumerate(definition.roles):
            needs_all |= int((tasks.role[stay] == number).sum()) < minimum
        if needs_all and len(stay):
            found.append(definition.name or str(definition.id))
    return found
