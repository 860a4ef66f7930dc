"""Ends nominations that cannot be fulfilled any more, so that their tasks may preempt again."""

from collections.abc import Sequence

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import leaving_tasks
from firmament_py.snapshot.job_demand import JobDemand


def end_failed_nominations(ledger: Ledger, demands: Sequence[JobDemand]) -> None:
    """Ends the nominations of tasks that their node cannot take even when all that leave it are gone, the least
    important first; and those of gangs that are not nominated completely, or no longer in one domain: a member that
    needed none, as the gang had its minimum elsewhere, needs that one once a member there has ended."""
    snapshot = ledger.snapshot
    nominated = np.flatnonzero((ledger.node_of < 0) & (ledger.nominated >= 0))
    if not len(nominated):
        return
    state = snapshot.releases.state
    leaving, released = leaving_tasks(state, snapshot)
    # one that waits for quota may have its victims on any nodes
    quota_returns = snapshot.withheld & bool((state.tasks.queue[leaving] != 0).any())
    members = np.zeros(len(ledger.node_of), np.bool_)
    for demand in demands:
        members[demand.members] = True
    for task in nominated[::-1].tolist():
        c, node = snapshot.task_class[task], ledger.nominated[task]
        asked = snapshot.requests[c] > 0
        left = ledger.free[node] + released[node]
        # without tasks that leave, it would have been placed if it could be; a member may wait for others of its gang
        pointless = not members[task] and not released[node].any() and not quota_returns[task]
        if pointless or (left[asked] < 0).any() or not snapshot.suitable[c, node]:
            ledger.nominate(task, -1)
    for demand in demands:
        waits = demand.members[ledger.nominated[demand.members] >= 0]
        where = np.where(ledger.nominated >= 0, ledger.nominated, ledger.node_of)
        idle = len(waits) > 0 and not released[ledger.nominated[waits]].any() and not quota_returns[waits].any()
        if len(waits) and (idle or not _complete(ledger, demand, where)):
            for task in waits.tolist():
                ledger.nominate(task, -1)


def _complete(ledger: Ledger, demand: JobDemand, node_of: I64) -> bool:
    """Whether a gang gets all that it lacks, in one domain if it requires that. node_of: (T,) nodes, -1: none."""
    if not demand.topology_required:
        return demand.satisfied(node_of)
    domain = np.where(node_of >= 0, ledger.snapshot.domains_for(demand)[node_of], -1)
    found = np.unique(domain[demand.members])
    return any(demand.satisfied(np.where(domain == one, node_of, -1)) for one in found[found >= 0].tolist())
