"""The independent check of gangs: their minimums, roles, maximums and required topologies, judged by the tables.

Like audit/placements.py, of which it is a part, it shares no code with what decides: labels are read from the nodes as
they were observed, and members are counted again.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import GangObserved
from firmament_py.model.lifecycle import TaskState
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class _Case:
    """A gang with the rows of its members that are placed, and of those that would be, and the nodes of each."""

    definition: GangObserved
    there: I64
    there_on: I64
    new: I64
    new_on: I64


def gang_problems(state: ClusterState, tasks: I64, nodes: I64, sound: Bools) -> dict[str, Bools]:
    """What would be wrong with gangs if task rows `tasks` (K,) were placed on node rows `nodes` (K,), as far as
    `sound` (K,): for each complaint the placements (K,) that must not be. A gang is refused whole."""
    table = state.tasks
    holding = ((table.state == TaskState.ASSUMED) | (table.state == TaskState.BOUND)) & ~table.leaving
    found = {what: np.zeros(len(tasks), np.bool_) for what in (_FEW, _MANY, _APART)}
    for gang in {g for g in table.gang[tasks].tolist() if g >= 0}:
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
    return found


_FEW = "the gang would have less than its minimum"
_MANY = "the gang would have more than its maximum"
_APART = "the gang would be spread over more than one domain of its topology"


def _reaches(definition: GangObserved, roles: I64) -> bool:
    """Whether members of these roles are enough."""
    return len(roles) >= definition.minimum and all(
        int((roles == number).sum()) >= minimum for number, (_, minimum) in enumerate(definition.roles)
    )


def _together(state: ClusterState, case: _Case) -> bool:
    """Whether what the gang still lacks is placed where its topology allows: in one domain, or in those of the members
    that are placed; what goes beyond that may be anywhere."""
    definition, role = case.definition, state.tasks.role
    if not definition.topology_required or _reaches(definition, role[case.there]):
        return True
    affinity_domains = _domains(state, definition.topology_key, case.there_on)
    there = {home for home in affinity_domains if home is not None}
    goes_to = _domains(state, definition.topology_key, case.new_on)
    for choice in [there] if there else [{domain} for domain in set(goes_to) - {None}]:
        inside = np.array([domain in choice for domain in goes_to], np.bool_)
        if _reaches(definition, role[np.r_[case.there, case.new[inside]]]):
            return True
    return False


def _domains(state: ClusterState, key: str, nodes: I64) -> list[str | None]:
    """The value of label `key` on each of the node rows; None: it has none, or is not there."""
    observed = state.nodes.observed
    return [observed[row].labels.get(key) if row in observed else None for row in nodes.tolist()]
