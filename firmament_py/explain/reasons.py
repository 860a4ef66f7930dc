"""Why tasks wait: reasons of nodes and gangs, and reserved capacity."""

from collections.abc import Sequence

import numpy as np

from firmament_py.admission.rejections import Rejected
from firmament_py.explain.budget_reasons import BudgetReasons
from firmament_py.explain.gang_status import full_gangs, gang_reasons
from firmament_py.explain.nearest_nodes import free_for, intertask_of
from firmament_py.explain.node_reasons import node_reasons
from firmament_py.explain.quota_reasons import waiting_for_quota
from firmament_py.explain.reason import Reason, ReasonKind, Waiting, signature_of
from firmament_py.explain.wakeups import ENDED_BY, Unreported, ending
from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.changes import NOTHING
from firmament_py.queues.ranking import Ranking, covered, own_priority
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
    ranking: Ranking | None = None,
    *,
    now_us: int = 0,
    within_budgets: bool = False,
    unsaid: I64 = NO_ROWS,
    provisional: I64 = NO_ROWS,
) -> list[Waiting]:
    """All waiting tasks by class; a class is divided by gang, and by labels that selectors of other tasks distinguish.
    Marks the reasons of the tasks as reported at `now_us`, and notes what can end them. rejected: the gangs that the
    round did not place. deferred, delayed: (K,) rows of tasks that it did not consider, and of those that wait for a
    node that costs less; reasons that were reported for the former before stay. shortages: those of quota; ranking:
    the nodes that it covers. within_budgets: disruption budgets limit preemption. Nothing is said of nodes for tasks
    that are left out for a while because a placement failed: nodes may take them; nor, yet, for tasks `unsaid` (K,), or
    provisional (K,): these have their places."""
    tasks = state.tasks
    rows = tasks.waiting
    if not len(rows):
        return []
    # one that comes last in its queue does so until what it awaited then: by now, it may wait for quota alone
    state.wait_for(rows[~(tasks.passed_over | tasks.without_victims)[rows]], NOTHING, anew=True)
    answer = waiting_for_quota(state, shortages, now_us)
    rows = np.setdiff1d(rows, shortages.rows, assume_unique=True)
    later = tasks.not_before_us[rows] > now_us
    if len(provisional):
        later |= np.isin(rows, provisional)
    postponed, rows = rows[later], rows[~later]
    state.wait_for(postponed, ENDED_BY[Unreported.POSTPONED])
    for cls, count in zip(*np.unique(tasks.cls[postponed], return_counts=True), strict=True):
        answer.append(Waiting(int(cls), int(count), (), NO_ROWS))
    for why, some in ((DEFERRED, deferred), (DELAYED, delayed)):
        signature = signature_of((why,))
        for cls in np.unique(tasks.cls[some]).tolist():
            of_class = some[tasks.cls[some] == cls]
            before = tasks.reported[of_class]
            unreported = of_class[before == 0 if why is DEFERRED else before != signature]
            tasks.note(unreported, reported=signature)
            answer.append(Waiting(cls, len(of_class), (why,), unreported))
        state.wait_for(some, ENDED_BY[why.kind])
        rows = np.setdiff1d(rows, some, assume_unique=True)
    if not len(rows):
        return answer
    rows, starts = by_class(state, rows, apart=tasks.gang[rows])
    of_gang = {r.demand.key: gang_reasons(r.demand.gang.name, r) for r in rejected if r.demand.gang is not None}
    full = full_gangs(state, tasks.gang[rows[starts]].tolist())
    holders = reservation_holders_among(state, rejected)
    first, nodes = rows[starts], state.present_nodes()
    left, nothing = unreserved(state)[nodes], np.zeros(len(nodes), np.bool_)
    awaited = (tasks.nominated[rows] >= 0) | (state.successors.nodes_for(rows) >= 0)
    budgets = BudgetReasons(state, nodes, now_us) if within_budgets and len(state.budgets) else None
    of_classes, nominated = (tasks.cls[first], tasks.label_set[first]), nominated_in(state, nodes)
    running = RunningTasks(state, nodes)
    together = IntertaskConstraints(state, nodes, *of_classes, running, nominated, respecting(state, first))
    for c, (of_class, own) in enumerate(zip(np.split(rows, starts[1:]), np.split(awaited, starts[1:]), strict=True)):
        cls, gang = int(tasks.cls[of_class[0]]), int(tasks.gang[of_class[0]])
        free, intertask, number = left, together, c
        if own.all():  # what is kept for themselves is theirs
            free, intertask, number = unreserved(state, of_class)[nodes], intertask_of(state, of_class), 0
        reasons: tuple[Reason, ...]
        unexplained = nothing
        if gang in full:  # reasons of nodes do not matter
            reasons = (full[gang],)
        elif gang in of_gang:
            reasons = (*of_gang[gang], *node_reasons(state, int(of_class[0]), free, intertask, number)[0])
        else:
            reserved_for = _reserved_for(state, cls, holders)
            reasons, unexplained = node_reasons(state, int(of_class[0]), free, intertask, number, reserved_for)
            if ranking is not None and unexplained.any():
                _, of_flavor = np.unique(ranking.flavor[of_class], return_index=True)
                unexplained = covered(ranking, of_class[of_flavor], unexplained)
        alone = gang < 0 and not own.any() and not intertask.concerned[number]
        if budgets is not None and alone and not tasks.queue[of_class].any():
            reasons = (*reasons, *budgets.of(int(of_class[0]), free))
        state.wait_for(of_class, ending(of_gang.get(gang, reasons)))
        state.wait_for(of_class[own], ENDED_BY[Unreported.NOMINATED])
        if ranking is not None and len(ranking.nodes):
            state.wait_for(of_class, ENDED_BY[Unreported.OTHER_NODES])
        if unexplained.any() or not len(nodes):
            state.wait_for(of_class, ENDED_BY[Unreported.UNEXPLAINED])
        signature = signature_of(reasons, len(state.nodes.observed))
        unreported = of_class[tasks.reported[of_class] != signature]
        unreported = np.setdiff1d(unreported, unsaid, assume_unique=True) if len(unsaid) else unreported
        tasks.note(unreported, reported=signature)
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
    return node_reasons(state, row, free, intertask_of(state, np.array([row])), 0, reserved_for)[0]


def reservation_holders_among(state: ClusterState, rejected: list[Rejected]) -> list[tuple[int, str]]:
    """Priority and name of each gang and single task that a round reserved capacity for."""
    demands = [r.demand for r in rejected if r.reserves]
    names = [str(state.tasks.name[d.row]) if d.gang is None else d.gang.name for d in demands]
    return [(own_priority(d.priority), name) for d, name in zip(demands, names, strict=True)]


def _reserved_for(state: ClusterState, cls: int, reservation_holders: Sequence[tuple[int, str]]) -> str:
    """Names of the holders whose reserved capacity tasks of class row `cls` may not use."""
    return ", ".join(name for priority, name in reservation_holders if priority >= state.classes.priority[cls])
