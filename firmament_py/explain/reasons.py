"""Why tasks wait: how many nodes fail for which reason, and which nodes come closest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from firmament_py.admission.queue_order import Rejected
from firmament_py.model.arrays import I64
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.resources import TASK_SLOTS, TOKEN
from firmament_py.snapshot.intertask import IntertaskConstraints, by_class
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


class ReasonKind(IntEnum):
    """Numbers as in the contract's Reason.Kind."""

    INSUFFICIENT_RESOURCE = 1  # detail: the resource
    TOO_MANY_TASKS = 2
    UNTOLERATED_TAINT = 3  # detail, value: those of the taint
    SELECTOR_MISMATCH = 4
    AFFINITY = 5
    ANTI_AFFINITY = 6
    ANTI_AFFINITY_OF_OTHERS = 7
    SPREAD = 8
    SPREAD_LABEL_MISSING = 9
    TOKEN_TAKEN = 10  # detail: the token
    GANG_INCOMPLETE = 11  # detail: the gang, value: members that it still lacks before it can be tried
    GANG_DOES_NOT_FIT = 12  # detail: the gang, value: "fitting/needed" members
    FURTHER_AFFINITY = 13  # detail: its name
    KEPT_FREE = 14  # detail: the gang or single task that the room of these nodes is kept for
    GANG_FULL = 15  # detail: the gang, value: "placed/maximum" members


@dataclass(frozen=True, slots=True)
class Reason:
    kind: ReasonKind
    nodes: int
    detail: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks of one class that wait. `news` (K,) are rows of those whose reasons were not told yet."""

    cls: int
    count: int
    reasons: tuple[Reason, ...]
    news: I64


def reasons(
    state: ClusterState, cls: int, intertask: IntertaskConstraints, c: int, kept_for: str = ""
) -> tuple[Reason, ...]:
    """Why nodes do not take a further task of class row `cls`, number `c` of `intertask`, as things stand.

    Judged in kube-scheduler's order, so that a node fails for a taint, else for a selector, else for tokens, else for
    each resource that it has too little of, else for a further demand, else for what other tasks demand. A node that
    would take one is in none, unless somebody, kept_for, keeps room free.
    """
    nodes = state.present_nodes()
    demand = state.classes.demand(cls)
    selected, taint = state.node_index.evaluate(replace(demand, further=()), nodes)
    result = []
    numbers, counts = np.unique(taint[taint >= 0], return_counts=True)
    by_taint: dict[tuple[str, str], int] = {}
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        found = state.node_index.taint(number)
        by_taint[found.key, found.value] = by_taint.get((found.key, found.value), 0) + count
    result += [Reason(ReasonKind.UNTOLERATED_TAINT, n, key, value) for (key, value), n in by_taint.items()]
    mismatched = int(((taint < 0) & ~selected).sum())
    if mismatched:
        result.append(Reason(ReasonKind.SELECTOR_MISMATCH, mismatched))
    left = (taint < 0) & selected

    lacks = _lacks(state, cls, nodes) > 0
    names = state.resources.names
    for r in (r for r in range(len(names)) if names[r].startswith(TOKEN)):
        taken = int((lacks[:, r] & left).sum())
        if taken:
            result.append(Reason(ReasonKind.TOKEN_TAKEN, taken, names[r].removeprefix(TOKEN)))
            left &= ~lacks[:, r]
    for resource, count in zip(names, lacks[left].sum(axis=0).tolist(), strict=True):
        if count and resource == TASK_SLOTS:
            result.append(Reason(ReasonKind.TOO_MANY_TASKS, count))
        elif count:
            result.append(Reason(ReasonKind.INSUFFICIENT_RESOURCE, count, resource))
    lacking = state.classes.lacking(cls) if left.any() else {}
    result += [Reason(ReasonKind.INSUFFICIENT_RESOURCE, int(left.sum()), resource) for resource in lacking]
    left &= ~lacks.any(axis=1) & (not lacking)
    for name, terms in demand.further:
        unmet = ~state.node_index.evaluate(NodeDemand(affinity=(terms,)), nodes)[0] & left
        if unmet.any():
            result.append(Reason(ReasonKind.FURTHER_AFFINITY, int(unmet.sum()), name))
            left &= ~unmet
    if intertask.concerns(c):
        for name, fails in intertask.failures(c).items():
            failing = int((fails & left).sum())
            if failing:
                result.append(Reason(_INTERTASK_REASONS[name], failing))
                left &= ~fails
    if kept_for and left.any():
        result.append(Reason(ReasonKind.KEPT_FREE, int(left.sum()), kept_for))
    return tuple(result)


_INTERTASK_REASONS = {
    "label": ReasonKind.SPREAD_LABEL_MISSING,
    "spread": ReasonKind.SPREAD,
    "affinity": ReasonKind.AFFINITY,
    "anti_affinity": ReasonKind.ANTI_AFFINITY,
    "others": ReasonKind.ANTI_AFFINITY_OF_OTHERS,
}


def waiting_classes(state: ClusterState, rejected: list[Rejected]) -> list[Waiting]:
    """All classes with waiting tasks, apart where other tasks treat their labels apart and by gang; marks `news` as
    told. rejected: the gangs that the round did not place."""
    tasks = state.tasks
    rows = np.flatnonzero(tasks.state == TaskState.WAITING)
    if not len(rows):
        return []
    rows, starts = by_class(state, rows, apart=tasks.gang[rows])
    of_gang = {r.claim.row: _gang_reason(r) for r in rejected}
    full = full_gangs(state, tasks.gang[rows[starts]].tolist())
    reservation_holders = reservation_holders_among(state, rejected)
    first = rows[starts]
    nodes = state.present_nodes()
    intertask = IntertaskConstraints(state, nodes, tasks.cls[first], tasks.label_set[first], RunningTasks(state, nodes))
    answer = []
    for c, of_class in enumerate(np.split(rows, starts[1:])):
        cls = int(tasks.cls[of_class[0]])
        gang = int(tasks.gang[of_class[0]])
        if gang in full:  # nodes do not matter
            why: tuple[Reason, ...] = (full[gang],)
        else:
            why = reasons(
                state, cls, intertask, c, "" if gang in of_gang else _kept_for(state, cls, reservation_holders)
            )
            if gang in of_gang:
                why = (of_gang[gang], *why)
        signature = np.uint64(hash((why, len(state.nodes.observed))) & (2**63 - 1) | 1)
        news = of_class[tasks.reported[of_class] != signature]
        tasks.reported[news] = signature
        answer.append(Waiting(cls, len(of_class), why, news))
    return answer


def reservation_holders_among(state: ClusterState, rejected: list[Rejected]) -> list[tuple[int, str]]:
    """Priority and name of the gangs and single tasks that a round kept room for."""
    names = state.tasks.name
    demands = [r.claim for r in rejected if r.reserves]
    return [(d.priority, d.definition.name if d.task < 0 else str(names[d.task])) for d in demands]


def _kept_for(state: ClusterState, cls: int, reservation_holders: Sequence[tuple[int, str]]) -> str:
    """The gangs and single tasks whose room a task of class row `cls` may not have."""
    return ", ".join(name for priority, name in reservation_holders if priority >= state.classes.priority[cls])


def full_gangs(state: ClusterState, gangs: Iterable[int]) -> dict[int, Reason]:
    """Of gang rows (-1: none) those of which no further member may be placed, since their maximum forbids it."""
    limited = {g: d for g in set(gangs) - {NO_GANG} if (d := state.gangs.definition(g)).maximum}
    if not limited:
        return {}
    tasks = state.tasks
    holds = (tasks.state == TaskState.ASSUMED) | (tasks.state == TaskState.BOUND)
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


def _gang_reason(rejected: Rejected) -> Reason:
    name = rejected.claim.definition.name
    if rejected.missing:
        return Reason(ReasonKind.GANG_INCOMPLETE, 0, name, str(rejected.missing))
    return Reason(ReasonKind.GANG_DOES_NOT_FIT, 0, name, f"{rejected.fitted}/{rejected.claim.lacking}")


def reasons_of_task(
    state: ClusterState, row: int, reservation_holders: Sequence[tuple[int, str]] = ()
) -> tuple[Reason, ...]:
    """`reasons` for one task row, or that its gang is full. keepers: priority and name of who keeps room."""
    full = full_gangs(state, [int(state.tasks.gang[row])])
    if full:
        return tuple(full.values())
    cls = int(state.tasks.cls[row])
    return reasons(state, cls, _intertask_of_task(state, row), 0, _kept_for(state, cls, reservation_holders))


def _intertask_of_task(state: ClusterState, row: int) -> IntertaskConstraints:
    """With one class, number 0: that of the task."""
    tasks, nodes, one = state.tasks, state.present_nodes(), slice(row, row + 1)
    return IntertaskConstraints(state, nodes, tasks.cls[one], tasks.label_set[one], RunningTasks(state, nodes))


def nearest(state: ClusterState, cls: int, most: int = 3) -> list[tuple[str, dict[str, int]]]:
    """The suitable nodes that lack least for a task of class row `cls`, with what they lack: (name, amounts); of a
    token, 1.

    Least is judged by the largest lacking share of a request. Nodes that lack nothing come first, with {}.
    """
    nodes = state.present_nodes()
    selected, taint = state.node_index.evaluate(state.classes.demand(cls), nodes)
    nodes = nodes[selected & (taint < 0)]
    lacks, lacking = _lacks(state, cls, nodes), state.classes.lacking(cls)
    share = (lacks / np.maximum(state.classes.requests[cls], 1)).max(axis=1, initial=1.0 if lacking else 0.0)
    return [
        (
            state.nodes.observed[int(nodes[i])].name,
            {
                name.removeprefix(TOKEN): 1 if name.startswith(TOKEN) else int(v)
                for name, v in (*zip(state.resources.names, lacks[i], strict=True), *lacking.items())
                if v > 0
            },
        )
        for i in np.lexsort((nodes, share))[:most].tolist()
    ]


def fitting_nodes(state: ClusterState, row: int) -> int:
    """How many nodes would take a further task like task row `row` as things stand."""
    cls, nodes = int(state.tasks.cls[row]), state.present_nodes()
    if state.classes.lacking(cls):
        return 0
    selected, taint = state.node_index.evaluate(state.classes.demand(cls), nodes)
    fits = selected & (taint < 0) & _intertask_of_task(state, row).allowed(0)
    return int((fits & (_lacks(state, cls, nodes) <= 0).all(axis=1)).sum())


def _lacks(state: ClusterState, cls: int, nodes: I64) -> I64:
    """(len(nodes), R): how much of what the class requests is missing; <= 0 where there is enough."""
    request = state.classes.requests[cls]
    free = state.nodes.allocatable[nodes] - state.nodes.used[nodes]
    return np.where(request > 0, request - np.maximum(free, 0), 0)
