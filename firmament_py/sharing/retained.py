"""Quota that gangs keep between their tasks: what was admitted keeps its quota until it ends.

A queue uses the larger of what the tasks of such a gang use and what the gang keeps. So the quota of a task that has
ended is for the task that follows it, and for no other. That one needs no quota beside this: it is admitted although
its queue takes no new tasks, or has less quota by now.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.queues import Stop
from firmament_py.queues.tree import Queues
from firmament_py.sharing.flavors import Flavors
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Retained:
    """G gangs for which quota is kept beyond what their tasks on nodes use. gang (G,): rows, ascending; queue (G,):
    rows of queues; task (G,): row of one of its tasks on nodes, -1: none; node (G,): row of its node, or of another one
    of the flavors of the quota, -1: one that is gone; amounts (G, R): of each resource that quotas name; started (G,):
    whether any of its tasks is, or was, on a node."""

    gang: I64
    queue: I64
    task: I64
    node: I64
    amounts: I64
    started: Bools

    def of(self, gang: I64) -> I64:
        """(K,) positions of gangs (K,), -1: nothing is kept for it."""
        if not len(self.gang):
            return np.full(len(gang), -1)
        at = np.minimum(np.searchsorted(self.gang, gang), len(self.gang) - 1)
        return np.where(self.gang[at] == gang, at, -1)

    def within(self, state: ClusterState, rows: I64, queue: I64, requests: I64) -> Bools:
        """(K,) which of the waiting task rows (K,) of queues (K,), with requests (K, R), have a place in what their
        gangs keep: as many as fit, by their ids."""
        at = self.of(state.tasks.gang[rows])
        found = (at >= 0) & (queue == self.queue[at]) & self.started[at] if len(self.gang) else at >= 0
        some = np.flatnonzero(found)
        some = some[np.lexsort((state.tasks.uid[rows[some]], at[some]))]
        left = self.amounts.copy()
        for k in some.tolist():
            found[k] = bool((requests[k] <= left[at[k]]).all())
            left[at[k]] -= requests[k] * found[k]
        return found


def retained_by(state: ClusterState, queues: Queues, flavors: Flavors, requests: I64) -> Retained:
    """What gangs keep now. requests (C, R): of the classes of the class table.

    A gang of a queue that drains keeps nothing, nor does one that asks for what it will keep, and has no task on a node
    or nominated to one. What nominated tasks of that one request is reserved for them anyway. A gang all of whose tasks
    are leaving keeps its quota, unless it says otherwise: its owner may start it again.
    """
    tasks, gangs = state.tasks, state.gangs.keeping()
    if not len(gangs):
        return Retained(gangs, gangs, gangs, gangs, np.zeros((0, len(queues.resources)), np.int64), gangs > 0)
    definitions = [state.gangs.definition(row) for row in gangs.tolist()]
    queue = queues.rows_of(np.array([each.queue for each in definitions], np.uint64))
    names, stated = queues.resources, (dict(each.keeps) for each in definitions)
    lacking = np.array([[of.get(name, 0) for name in names] for of in stated], np.int64).reshape(len(gangs), len(names))
    rows = np.flatnonzero((tasks.node >= 0) & np.isin(tasks.gang, gangs))
    of_gang = np.searchsorted(gangs, tasks.gang[rows])
    counts = tasks.queue_row[rows] == queue[of_gang]
    np.subtract.at(lacking, of_gang[counts], requests[tasks.cls[rows[counts]]])
    there = np.bincount(of_gang, minlength=len(gangs))
    staged = np.array([each.staged for each in definitions], np.bool_)
    reserved, of_reserved = _nominated(state, gangs[staged])
    of_reserved = np.flatnonzero(staged)[of_reserved]
    np.subtract.at(lacking, of_reserved, requests[tasks.cls[reserved]])
    staged &= there == 0
    absent = staged & (np.bincount(of_reserved, minlength=len(gangs)) == 0)
    node = state.node_rows([each.keeps_on for each in definitions])
    task = np.full(len(gangs), -1)
    task[of_reserved], node[of_reserved] = reserved, tasks.nominated[reserved]
    task[of_gang], node[of_gang] = rows, tasks.node[rows]
    lacking = np.maximum(lacking, 0)
    lacking[absent | (queue < 0) | np.append(_drains(queues), True)[queue]] = 0
    if flavors.kinds > 1:
        lacking[node < 0] = 0  # of which flavor it is cannot be known
    some = np.flatnonzero(lacking.any(axis=1))
    return Retained(gangs[some], queue[some], task[some], node[some], lacking[some], ~staged[some])


def _nominated(state: ClusterState, gangs: I64) -> tuple[I64, I64]:
    """(K,) rows of waiting tasks of gangs (G,), ascending rows, that are nominated, and (K,) positions of the gangs."""
    tasks = state.tasks
    rows = tasks.nominees if len(gangs) else np.zeros(0, np.int64)
    rows = rows[np.isin(tasks.gang[rows], gangs)]
    return rows, np.searchsorted(gangs, tasks.gang[rows])


def takes_those_who_started(queues: Queues) -> Bools:
    """(Q,) which queues take tasks of gangs that have started: also those that only take no new ones."""
    stopped = np.array([queue.stop is not Stop.NONE for queue in queues.definitions], np.bool_)
    for level in queues.levels:
        stopped[level.rows] |= stopped[level.parents]
    takes: Bools = queues.leaf & (queues.open | stopped) & ~_drains(queues)
    return takes


def _drains(queues: Queues) -> Bools:
    """(Q,) whether what runs in each queue is evicted."""
    drains = np.array([queue.stop is Stop.HOLD_AND_DRAIN for queue in queues.definitions], np.bool_)
    for level in queues.levels:
        drains[level.rows] |= drains[level.parents]
    return drains
