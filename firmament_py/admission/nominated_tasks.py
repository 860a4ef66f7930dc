"""Places nominated tasks on the nodes that are kept for them, as soon as these have what they need."""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.placer import Placer
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.snapshot.snapshot import Snapshot


def place_nominated(placer: Placer) -> None:
    """Of each node the most important come first, then the oldest; the others wait, or are placed elsewhere. Members
    of an incomplete gang are placed only once the gang gets all members that it lacks; with constraints on other tasks,
    or if the nodes are not in one domain of a required topology, the admission of gangs does that. No gang gets more
    than its maximum."""
    ledger, snapshot = placer.ledger, placer.snapshot
    nominated = np.flatnonzero((ledger.nominated >= 0) & ~snapshot.withheld)  # by priority, then age
    nominated = nominated[ledger.within_maximum(nominated)]
    if not len(nominated):
        return
    node, cls = ledger.nominated[nominated], snapshot.task_class[nominated]
    requests = snapshot.requests[cls]
    free = ledger.free.copy()
    np.add.at(free, node, requests)  # for the most important of each node
    fits = ((free[node] >= requests) | (requests == 0)).all(axis=1) & snapshot.suitable[cls, node]
    constrained = snapshot.intertask.concerned | snapshot.intertask.counted
    incomplete = np.zeros(len(ledger.node_of), np.bool_)
    for demand in snapshot.gang_demands:
        incomplete[demand.members] = True
    ready = []
    for i in np.flatnonzero(np.isin(node, node[fits])).tolist():
        task, n = int(nominated[i]), int(node[i])
        if fits[i] and ((free[n] >= requests[i]) | (requests[i] == 0)).all():
            if incomplete[task] or not constrained[cls[i]]:
                ready.append(i)
            else:
                ledger.nominate(task, -1)
                placer.place(np.array([task]), np.arange(len(ledger.free)) == n)
                ledger.placed_by[task] = PlacedBy.NOMINATION
                if ledger.node_of[task] < 0:
                    ledger.nominate(task, n)
        free[n] -= requests[i]  # what is kept for it is not for the less important
    placed = ledger.node_of.copy()
    placed[nominated[ready]] = node[ready]
    waits, solved = np.zeros((2, len(placed)), np.bool_)
    for demand in snapshot.gang_demands:
        waits[demand.members] = not demand.satisfied(placed)
        solved[demand.members] = demand.topology_required and not _together(snapshot, demand, placed)
        solved[demand.members] |= constrained[snapshot.task_class[demand.members]].any()
    ready = [i for i in ready if not waits[nominated[i]]]
    for i in ready:
        ledger.nominate(int(nominated[i]), -1)
    if ready := [i for i in ready if not solved[nominated[i]]]:
        ledger.place(nominated[ready], node[ready], PlacedBy.NOMINATION)


def _together(snapshot: Snapshot, demand: JobDemand, node_of: I64) -> bool:
    """Whether all members that are placed by node_of (T,) are in one domain of the gang's topology."""
    at = node_of[demand.members]
    domains = np.unique(snapshot.domains_for(demand)[at[at >= 0]])
    return len(domains) == 1 and domains[0] >= 0
