"""Why tasks wait for the quota of their queues."""

import numpy as np

from firmament_py.explain.reason import Reason, ReasonKind, Waiting
from firmament_py.explain.wakeups import ENDED_BY
from firmament_py.model.arrays import NO_ROWS, U64
from firmament_py.model.lifecycle import WAITING
from firmament_py.queues.tree import Queues
from firmament_py.sharing.shortage import Cause, Shortages
from firmament_py.state.cluster import ClusterState

AMOUNTS_STEP_US = 60_000_000
"""After which time an amount that has changed is reported again, microseconds."""

_KINDS = {
    Cause.UNKNOWN: ReasonKind.QUEUE_UNKNOWN,
    Cause.STOPPED: ReasonKind.QUEUE_STOPPED,
    Cause.NO_FLAVOR: ReasonKind.NO_FLAVOR,
    Cause.BEHIND: ReasonKind.QUEUE_BEHIND,
    Cause.OVER_QUOTA: ReasonKind.OVER_QUOTA,
}


def quota_reason(queues: Queues, shortages: Shortages, i: int) -> Reason:
    """Of the task at position i."""
    cause, queue, resource = Cause(int(shortages.cause[i])), int(shortages.queue[i]), int(shortages.resource[i])
    name = queues.definitions[queue].name if queue >= 0 else ""
    value = ""
    if cause is Cause.OVER_QUOTA and resource >= 0:
        value = f"{shortages.names[resource]}: {int(shortages.lacking[i])}"
    return Reason(_KINDS[cause], 0, name, value)


def waiting_for_quota(state: ClusterState, shortages: Shortages, now_us: int) -> list[Waiting]:
    """Tasks that wait for quota, by class and reason. Marks the reasons as reported, and notes what can end them. An
    amount that has changed is reported again AMOUNTS_STEP_US after the last one: it changes with all that runs."""
    if not len(shortages.rows):
        return []
    tasks, rows = state.tasks, shortages.rows
    for cause, kind in _KINDS.items():
        state.wait_for(rows[shortages.cause == cause], ENDED_BY[kind])
    signatures = _signatures(shortages)
    outdated = tasks.reported_amount[rows] != shortages.lacking
    new = (tasks.reported[rows] != signatures) | (outdated & (tasks.reported_us[rows] + AMOUNTS_STEP_US <= now_us))
    tasks.note(rows, reported=signatures)
    tasks.note(rows[new], reported_us=now_us, reported_amount=shortages.lacking[new])
    answer = []
    for cls, count in zip(*np.unique(tasks.cls[rows[~new]], return_counts=True), strict=True):
        answer.append(Waiting(int(cls), int(count), (), NO_ROWS))
    at = np.flatnonzero(new)
    columns = np.stack([tasks.cls[rows[at]], signatures[at].astype(np.int64), shortages.lacking[at]])
    at, columns = at[order := np.lexsort(columns[::-1])], columns[:, order]
    begins = np.flatnonzero(np.r_[True, (np.diff(columns, axis=1) != 0).any(axis=0)][: len(at)])
    for some in np.split(at, begins[1:]) if len(at) else ():
        reason = quota_reason(state.queues, shortages, int(some[0]))
        answer.append(Waiting(int(tasks.cls[rows[some[0]]]), len(some), (reason,), rows[some]))
    return answer


def amounts_due_us(state: ClusterState, shortages: Shortages) -> int:
    """When the first amount that has changed since it was reported is reported again; 0: none has."""
    tasks, rows = state.tasks, shortages.rows
    outdated = rows[(tasks.state[rows] == WAITING) & (tasks.reported_amount[rows] != shortages.lacking)]
    return int(tasks.reported_us[outdated].min()) + AMOUNTS_STEP_US if len(outdated) else 0


def _signatures(shortages: Shortages) -> U64:
    """(K,) numbers of reasons without amounts, equal for equal ones; other reasons have none of them."""
    number = (shortages.cause * 2**32 + shortages.queue + 1) * 2**12 + shortages.resource + 1
    signatures: U64 = (2 * number + 2).astype(np.uint64)  # even: those of other reasons are odd
    return signatures
