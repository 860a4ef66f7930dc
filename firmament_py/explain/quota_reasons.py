"""Why tasks wait for the quota of their queues."""

import numpy as np

from firmament_py.explain.reason import Reason, ReasonKind, Waiting
from firmament_py.model.arrays import NO_ROWS, U64
from firmament_py.queues.tree import Queues
from firmament_py.sharing.shortage import Cause, Shortages
from firmament_py.state.cluster import ClusterState

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


def waiting_for_quota(state: ClusterState, shortages: Shortages) -> list[Waiting]:
    """Tasks that wait for quota, by class and reason. Marks the reasons as reported; amounts change too often to be
    reported again when they do."""
    if not len(shortages.rows):
        return []
    tasks, rows = state.tasks, shortages.rows
    signatures = _signatures(shortages)
    new = tasks.reported[rows] != signatures
    tasks.reported[rows] = signatures
    answer = []
    for cls, count in zip(*np.unique(tasks.cls[rows[~new]], return_counts=True), strict=True):
        answer.append(Waiting(int(cls), int(count), (), NO_ROWS))
    at = np.flatnonzero(new)
    at = at[np.lexsort((signatures[at], tasks.cls[rows[at]]))]
    differs = (np.diff(tasks.cls[rows[at]]) != 0) | (np.diff(signatures[at]) != 0)
    begins = np.flatnonzero(np.r_[True, differs][: len(at)])
    for some in np.split(at, begins[1:]) if len(at) else ():
        reason = quota_reason(state.queues, shortages, int(some[0]))
        answer.append(Waiting(int(tasks.cls[rows[some[0]]]), len(some), (reason,), rows[some]))
    return answer


def _signatures(shortages: Shortages) -> U64:
    """(K,) numbers of reasons without amounts, equal for equal ones; other reasons have none of them."""
    number = (shortages.cause * 2**32 + shortages.queue + 1) * 2**12 + shortages.resource + 1
    signatures: U64 = (2 * number + 2).astype(np.uint64)  # even: those of other reasons are odd
    return signatures
