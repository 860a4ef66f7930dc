"""The waiting jobs of queues: gangs, which need their minimum at once, and runs of alike single tasks."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.resources import LIMIT
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Jobs:
    """J jobs with K tasks. queue (J,); local_queue (J,): its row where past use decides on the order, else -1; request
    (J, R): what a gang's lacking members request together, at least what it needs to start, or one of alike tasks;
    priority, created_us (J,); count (J,): of alike tasks, 1 of a gang; suitable (J, F): flavors whose nodes may take
    all of it; preemptible (J,): whether all of it is; complete (J,): whether a gang has all members that it needs. rows
    (K,): tasks, by job; start (J + 1,): the first of each job."""

    queue: I64
    local_queue: I64
    request: I64
    priority: I64
    created_us: I64
    count: I64
    suitable: Bools
    preemptible: Bools
    complete: Bools
    rows: I64
    start: I64

    def of_tasks(self, values: I64) -> I64:
        """(K,) the values (J,) of the jobs of tasks."""
        return np.repeat(values, np.diff(self.start))


def waiting_jobs(state: ClusterState, use: QueueUse, rows: I64, *, single: bool = False) -> Jobs:
    """The jobs of waiting task rows (K,), each of which has a queue. Members that a gang does not need are single; all
    if `single`."""
    tasks, cls = state.tasks, state.tasks.cls
    needed, missing = np.zeros((2, len(rows)), np.bool_)
    if not single:
        needed, missing = _needed_members(state, use, rows)  # those that their gang lacks come first
    gang = np.where(needed, tasks.gang[rows], -1)
    queue = use.queue_of(rows)
    counts = use.queues.tree.usage_half_life_s > 0.0
    by_past_use = np.array([counts and each.by_past_use for each in use.queues.definitions], np.bool_)
    local = np.where(by_past_use[queue], use.local_queue_of(rows), -1)
    priority = state.classes.priority[cls[rows]]
    created_us = tasks.created_us[rows].copy()
    for_gang = np.flatnonzero(gang >= 0)
    if len(for_gang):  # one place in one queue: that of its first member
        gangs, first, of_member = np.unique(gang[for_gang], return_index=True, return_inverse=True)
        of_member = of_member.reshape(-1)
        highest = np.full(len(gangs), np.iinfo(np.int64).min)
        np.maximum.at(highest, of_member, priority[for_gang])
        since_us = np.array([state.gangs.definition(g).created_us for g in gangs.tolist()], np.int64)
        priority[for_gang], created_us[for_gang] = highest[of_member], since_us[of_member]
        queue[for_gang] = queue[for_gang[first]][of_member]
        local[for_gang] = local[for_gang[first]][of_member]
    gangs_first = (gang, gang < 0) if len(for_gang) else ()
    order = np.lexsort((tasks.uid[rows], cls[rows], *gangs_first, created_us, -priority, local, queue))
    rows, gang, queue, local = rows[order], gang[order], queue[order], local[order]
    alike, reserved = np.where(gang >= 0, -2 - gang, cls[rows]), _nominated_flavors(state, use, rows)
    changes = (np.diff(queue) != 0) | (np.diff(local) != 0) | (np.diff(alike) != 0)
    changes |= (reserved[1:] != reserved[:-1]).any(axis=1) & (gang[1:] < 0)
    begins = np.flatnonzero(np.r_[True, changes][: len(rows)])
    start = np.r_[begins, len(rows)].astype(np.int64)
    alone = gang[begins] < 0
    # while it is nominated, this tells that no other task takes its node: it need not be within what queues deserve
    firm = tasks.unevictable[rows] & (tasks.nominated[rows] < 0)
    request, preemptible = use.requests(cls[rows[begins]]), ~firm[begins]
    if len(rows):
        preemptible = np.logical_and.reduceat(~firm, begins)
    if len(for_gang):
        request = np.where(alone[:, None], request, np.add.reduceat(use.requests(cls[rows]), begins))
        for job in np.flatnonzero(np.isin(gang[begins], _not_started(state))).tolist():
            start_amounts = dict(state.gangs.definition(int(gang[begins[job]])).start_amounts)
            request[job] = np.maximum(request[job], use.amounts(start_amounts, 0))
        asking = _without_nodes(state, state.gangs.staged - set(tasks.gang[tasks.nominees].tolist()))
        for job in np.flatnonzero(np.isin(gang[begins], asking)).tolist():  # those nominated keep it already
            keeps = dict(state.gangs.definition(int(gang[begins[job]])).keeps)
            request[job] = np.maximum(request[job], use.amounts(keeps, 0))
    return Jobs(
        queue=queue[begins],
        local_queue=local[begins],
        request=use.counted(queue[begins], request),
        priority=priority[order][begins],
        created_us=created_us[order][begins],
        count=np.where(alone, np.diff(start), 1),
        suitable=_suitable(state, use, rows, start, reserved),
        preemptible=preemptible,
        complete=alone | ~missing[order][begins],
        rows=rows,
        start=start,
    )


def beyond_start(state: ClusterState, use: QueueUse, rows: I64) -> Bools:
    """(K,) which of the waiting task rows (K,) are of gangs that have not started, beyond what these need to start."""
    waits = np.isin(state.tasks.gang[rows], _without_nodes(state, state.gangs.with_start_amounts | state.gangs.staged))
    if waits.any():
        waits[waits] = ~_needed_members(state, use, rows[waits])[0]
    return waits


def _not_started(state: ClusterState) -> list[int]:
    """Rows of the gangs that need amounts of resources to start, and none of whose tasks has a node."""
    return _without_nodes(state, state.gangs.with_start_amounts)


def _without_nodes(state: ClusterState, gangs: Set[int]) -> list[int]:
    """Rows of these gangs none of whose tasks has a node."""
    tasks, rows = state.tasks, sorted(gangs)
    if not rows:
        return rows
    started = set(tasks.gang[(tasks.node >= 0) & ~tasks.leaving & np.isin(tasks.gang, rows)].tolist())
    return [row for row in rows if row not in started]


def _needed_members(state: ClusterState, use: QueueUse, rows: I64) -> tuple[Bools, Bools]:
    """(K,) which task rows (K,) are members that their gangs lack: of each as many as it lacks, the largest ones if
    they differ, so that what is admitted suffices for any of them; and further ones within what it needs to start.
    (K,) which are of gangs that lack more members than there are."""
    tasks = state.tasks
    needed, missing = np.zeros((2, len(rows)), np.bool_)
    ganged = np.flatnonzero(tasks.gang[rows] >= 0)
    if not len(ganged):
        return needed, missing
    there = np.flatnonzero((tasks.gang >= 0) & (tasks.node >= 0) & ~tasks.leaving)
    placed = np.bincount(tasks.gang[there], minlength=state.gangs.capacity)
    requests = state.classes.requests[tasks.cls[rows[ganged]]]
    size = (requests / np.maximum(requests.max(axis=0), 1)).sum(axis=1)
    ganged = ganged[np.lexsort((tasks.uid[rows[ganged]], -size, tasks.gang[rows[ganged]]))]
    gangs, first, count = np.unique(tasks.gang[rows[ganged]], return_index=True, return_counts=True)
    for gang, begin, number in zip(gangs.tolist(), first.tolist(), count.tolist(), strict=True):
        definition, members = state.gangs.definition(gang), ganged[begin : begin + number]
        lacking = definition.minimum - int(placed[gang])
        for r, (_, minimum) in enumerate(definition.roles):
            of_role = members[tasks.role[rows[members]] == r]
            running = there[tasks.gang[there] == gang]
            of_role_lacking = max(minimum - int((tasks.role[running] == r).sum()), 0)
            missing[members] |= of_role_lacking > len(of_role)
            needed[of_role[:of_role_lacking]] = True
            lacking -= min(of_role_lacking, len(of_role))
        others = members[~needed[members]]
        missing[members] |= lacking > len(others)
        needed[others[: max(lacking, 0)]] = True
        if definition.start_amounts and not placed[gang]:
            order = np.r_[members[needed[members]], members[~needed[members]]]
            together = use.requests(tasks.cls[rows[order]]).cumsum(axis=0)
            within = together <= use.amounts(dict(definition.start_amounts), LIMIT)
            needed[order[within.all(axis=1)]] = True
    return needed, missing


def _suitable(state: ClusterState, use: QueueUse, rows: I64, start: I64, reserved: Bools) -> Bools:
    """(J, F) of which flavors some node suits all classes of each job, and whose own taints these tolerate. Of these,
    only those on which any of its tasks (K,) is nominated, `reserved` (K, F): so it takes the place that others leave,
    and not another one."""
    flavors = use.flavors.nodes
    jobs = len(start) - 1
    suitable = np.ones((jobs, len(flavors)), np.bool_)
    tainted = [(f, flavor.taints) for f, flavor in enumerate(use.queues.tree.flavors) if flavor.taints]
    if (len(flavors) < 2 and not tainted) or not jobs:
        return suitable
    classes, of_task = np.unique(state.tasks.cls[rows], return_inverse=True)
    of_class = np.empty((len(classes), len(flavors)), np.bool_)
    for i, cls in enumerate(classes.tolist()):
        demand = state.classes.demand(cls)
        selected, taint = state.node_index.evaluate(demand, use.nodes)
        of_class[i] = (flavors & (selected & (taint < 0))).any(axis=1)
        of_class[i, [f for f, taints in tainted if demand.untolerated(taints) is not None]] = False
    by_task = of_class[of_task.reshape(-1)]
    suitable = np.logical_and.reduceat(by_task, start[:-1], axis=0)
    only = suitable & np.logical_or.reduceat(reserved, start[:-1], axis=0)
    found: Bools = np.where(only.any(axis=1, keepdims=True), only, suitable)
    return found


def _nominated_flavors(state: ClusterState, use: QueueUse, rows: I64) -> Bools:
    """(K, F) the flavors on which waiting task rows (K,), each of which has a queue, are nominated."""
    tasks, resources = state.tasks, max(len(use.queues.resources), 1)
    found = np.zeros((len(rows), len(use.queues.flavors)), np.bool_)
    some = np.flatnonzero(tasks.nominated[rows] >= 0)
    if len(some):
        place = use.choices.kind(rows[some], use.position(tasks.nominated[rows[some]]))
        columns = use.choices.columns(use.queue_of(rows[some]), place)
        task, r = np.nonzero((columns >= 0) & (use.requests(tasks.cls[rows[some]]) > 0))
        found[some[task], columns[task, r] // resources] = True
    return found
