"""Why tasks wait: reasons of nodes and gangs, and reserved capacity."""

from collections.abc import Sequence

import numpy as np

from firmament_py.admission.rejections import Rejected
from firmament_py.explain.gang_status import full_gangs, gang_reasons
from firmament_py.explain.nearest_nodes import free_for, intertask_of
from firmament_py.explain.node_reasons import node_reasons
from firmament_py.explain.quota_reasons import waiting_for_quota
from firmament_py.explain.reason import Reason, ReasonKind, Waiting, signature_of
from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.lifecycle import WAITING
from firmament_py.queues.ranking import own_priority
from firmament_py.sharing.shortage import NO_SHORTAGES, Shortages
from firmament_py.snapshot.intertask import IntertaskConstraints, nominated_in, respecting
from firmament_py.snapshot.round_classes import by_class
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState

DEFERRED = Reason(ReasonKind.DEFERRED, 0)
DELAYED = Reason(ReasonKind.DELAYED, 0)


def waiting_classes(
    state: ClusterState,
    rejected: list[Rejected],
    deferred: I64 = NO_ROWS,
    delayed: I64 = NO_ROWS,
    shortages: Shortages = NO_SHORTAGES,
    postponed: I64 = NO_ROWS,
) -> list[Waiting]:
    """All waiting tasks by class; a class is divided by gang, and by labels that selectors of other tasks distinguish.
    Marks the reasons of the tasks as reported. rejected: the gangs that the round did not place. deferred, delayed:
    (K,) rows of tasks that it did not consider, and of those that wait for a node that costs less; reasons that were
    reported for the former before stay. shortages: those of quota. postponed: (K,) rows of tasks that are left out for
    a while because a placement failed: nothing is said of nodes, which may take them."""
    tasks = state.tasks
    rows = np.flatnonzero(tasks.state == WAITING)
    if not len(rows):
        return []
    answer = waiting_for_quota(state, shortages)
    rows = np.setdiff1d(rows, shortages.rows, assume_unique=True)
    postponed = np.intersect1d(postponed, rows, assume_unique=True)
    rows = np.setdiff1d(rows, postponed, assume_unique=True)
    for cls, count in zip(*np.unique(tasks.cls[postponed], return_counts=True), strict=True):
        answer.append(Waiting(int(cls), int(count), (), NO_ROWS))
    for why, some in ((DEFERRED, deferred), (DELAYED, delayed)):
        signature = signature_of((why,))
        for cls in np.unique(tasks.cls[some]).tolist():
            of_class = some[tasks.cls[some] == cls]
            before = tasks.reported[of_class]
            unreported = of_class[before == 0 if why is DEFERRED else before != signature]
            tasks.reported[unreported] = signature
            answer.append(Waiting(cls, len(of_class), (why,), unreported))
        rows = np.setdiff1d(rows, some, assume_unique=True)
    if not len(rows):
        return answer
    rows, starts = by_class(state, rows, apart=tasks.gang[rows])
    of_gang = {r.demand.key: gang_reasons(r.demand.gang.name, r) for r in rejected if r.demand.gang is not None}
    full = full_gangs(state, tasks.gang[rows[starts]].tolist())
    holders = reservation_holders_among(state, rejected)
    first, nodes = rows[starts], state.present_nodes()
    left = unreserved(state)[nodes]
    awaited = (tasks.nominated[rows] >= 0) | (state.successors.nodes_for(rows) >= 0)
    of_classes, nominated = (tasks.cls[first], tasks.label_set[first]), nominated_in(state, nodes)
    running = RunningTasks(state, nodes)
    together = IntertaskConstraints(state, nodes, *of_classes, running, nominated, respecting(state, first))
    for c, (of_class, own) in enumerate(zip(np.split(rows, starts[1:]), np.split(awaited, starts[1:]), strict=True)):
        cls, gang = int(tasks.cls[of_class[0]]), int(tasks.gang[of_class[0]])
        free, intertask, number = left, together, c
        if own.all():  # what is kept for themselves is theirs
            free, intertask, number = unreserved(state, of_class)[nodes], intertask_of(state, of_class), 0
        reasons: tuple[Reason, ...]
        if gang in full:  # reasons of nodes do not matter
            reasons = (full[gang],)
        elif gang in of_gang:
            reasons = (*of_gang[gang], *node_reasons(state, cls, free, intertask, number))
        else:
            reasons = node_reasons(state, cls, free, intertask, number, _reserved_for(state, cls, holders))
        signature = signature_of(reasons, len(state.nodes.observed))
        unreported = of_class[tasks.reported[of_class] != signature]
        tasks.reported[unreported] = signature
        answer.append(Waiting(cls, len(of_class), reasons, unreported))
    return answer


def reasons_of_task(
    state: ClusterState, row: int, reservation_holders: Sequence[tuple[int, str]] = ()
) -> tuple[Reason, ...]:
    """Why one task row waits. reservation_holders: see `reservation_holders_among`."""
    full = full_gangs(state, [int(state.tasks.gang[row])])
    if full:
        return tuple(full.values())
    cls = int(state.tasks.cls[row])
    free, reserved_for = free_for(state, row)[state.present_nodes()], _reserved_for(state, cls, reservation_holders)
    return node_reasons(state, cls, free, intertask_of(state, np.array([row])), 0, reserved_for)


def reservation_holders_among(state: ClusterState, rejected: list[Rejected]) -> list[tuple[int, str]]:
    """Priority and name of each gang and single task that a round reserved capacity for."""
    demands = [r.demand for r in rejected if r.reserves]
    names = [str(state.tasks.name[d.row]) if d.gang is None else d.gang.name for d in demands]
    return [(own_priority(d.priority), name) for d, name in zip(demands, names, strict=True)]


def _reserved_for(state: ClusterState, cls: int, reservation_holders: Sequence[tuple[int, str]]) -> str:
    """Names of the holders whose reserved capacity tasks of class row `cls` may not use."""
    return ", ".join(name for priority, name in reservation_holders if priority >= state.classes.priority[cls])
