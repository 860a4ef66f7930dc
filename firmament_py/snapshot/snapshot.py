"""The cluster at one point in time as plain arrays: the input of a round.

Numbering inside a round is dense and local: class c, node n and task t are positions in `classes`, `nodes` and
`tasks`, which hold the rows of the state's tables. If selectors of tasks distinguish labels of other tasks, a class of
the state is several classes of the round (snapshot/round_classes.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from firmament_py.model.arrays import F64, I64, NO_ROWS, U64, Bools, add_rows, distinct_rows, positions_in, values_at
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.events import GangObserved
from firmament_py.model.resources import LIMIT
from firmament_py.policy.locality import Inputs, gather
from firmament_py.queues.ranking import Ranking, by_rank, covered
from firmament_py.snapshot.domain_limits import UNLIMITED
from firmament_py.snapshot.domains import nested
from firmament_py.snapshot.expected_releases import Releases
from firmament_py.snapshot.intertask import IntertaskConstraints, nominated_in, respecting
from firmament_py.snapshot.job_demand import JobDemand, Start
from firmament_py.snapshot.neighbour_counts import NeighbourCounts, nothing_measured
from firmament_py.snapshot.preferences import Preferences
from firmament_py.snapshot.round_classes import UNSETTLED, by_class, demand_of, lacked, settled_tasks
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.task_counts import Numbering
from firmament_py.snapshot.term_budget import waiting_tasks
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState
from firmament_py.state.input_sets import NO_INPUTS
from firmament_py.state.node_index import NodeIndex


@dataclass(frozen=True, slots=True)
class Snapshot:
    """C classes with T waiting tasks, N nodes, R resources."""

    now_us: int
    resources: tuple[str, ...]  # R names
    nodes: I64  # (N,) rows of the node table
    allocatable: I64  # (N, R)
    free: I64  # (N, R) allocatable - used - reserved for nominated tasks and expected successors; may be below 0
    running: I64  # (N,) number of assumed and bound tasks, and of expected successors that do not wait yet
    classes: I64  # (C,) rows of the class table, highest effective priority first
    label_sets: I64  # (C,) rows of the label set table: one for all tasks of the class
    requests: I64  # (C, R)
    priority: I64  # (C,) effective priority (queues/ranking.py), descending
    class_priority: I64  # (C,) the priority of the class itself: for whom running tasks leave
    expected_us: I64  # (C,) expected duration of a task; 0: unknown
    never_preempts: Bools  # (C,) whether no task is evicted for one of the class
    suitable: (
        Bools  # (C, N) whether selectors, affinity and taints allow it; nowhere if no node offers a requested resource
    )
    like: I64  # (C,) numbers, equal for classes with equal requests that suit the same nodes
    intertask: IntertaskConstraints  # demands between tasks
    preferences: Preferences  # soft preferences of classes
    neighbour_counts: NeighbourCounts  # tasks on each node by trait
    tasks: I64  # (T,) rows of the task table, by class, then oldest first
    task_class: I64  # (T,) ascending
    task_age_us: I64  # (T,) >= 0
    task_created_us: I64  # (T,)
    task_uid: U64  # (T,)
    task_gang: I64  # (T,) rows of the gang table, NO_GANG: none
    withheld: Bools  # (T,) tasks that wait for their quota: they are not placed
    nominated: I64  # (T,) the node that is kept for each task while others leave it, -1: none
    settled: I64  # (T,) the node that each task has beforehand (settled_tasks in snapshot/round_classes.py), -1: none
    inputs: Inputs | None  # locations of the tasks' data; None: not needed, or there is none
    outstanding: I64  # (R,) what gangs with members on nodes have yet to take of what they needed to start
    gang_demands: list[JobDemand]  # of gangs that lack members and have waiting ones
    quota: I64  # (Q,) of gangs with a maximum: how many more of their tasks can be placed
    task_quota: I64  # (T,) which of these limits the task, -1: none
    node_index: NodeIndex
    releases: Releases

    def domains(self, key: str) -> I64:
        """(N,) each node's domain by label `key`, -1 without it."""
        return self.node_index.domains(key, self.nodes)

    def domains_for(self, demand: JobDemand) -> I64:
        """(N,) each node's domain of a gang's topology, one of which has to take all that the gang lacks, -1: none. The
        members that are placed leave no choice: all their domains are one."""
        return _of_settled(self._own_domains(demand), demand)

    def _own_domains(self, demand: JobDemand) -> I64:
        """(N,) each node's domain of a gang's topology, wherever its members are, -1: none."""
        return reduce(nested, (self.domains(key) for key in demand.domain_keys))

    def levels_for(self, demand: JobDemand) -> list[I64]:
        """(N,) each: the same for all levels of the gang's topology, the narrowest first, domains_for last. Each domain
        is within one of the next level."""
        own = self._own_domains(demand)
        levels = [_of_settled(own, demand)]
        for key in reversed(demand.narrower_keys):
            own = nested(self.domains(key), own)
            levels.append(_of_settled(np.where(levels[-1] >= 0, own, -1), demand))
        return levels[::-1]


def _of_settled(domain: I64, demand: JobDemand) -> I64:
    """domain (N,) with those of the members that are placed as the only one; as it is if they are in none."""
    at = np.unique(domain[demand.settled])
    return np.where(np.isin(domain, at[at >= 0]), 0, -1) if (at >= 0).any() else domain


def take_snapshot(
    state: ClusterState,
    now_us: int,
    rack_labels: tuple[str, ...] | None = None,
    cpu_of: Callable[[I64], F64] = nothing_measured,
    deferred: I64 = NO_ROWS,
    ranking: Ranking | None = None,
    overdue_us: int | None = None,
) -> Snapshot:
    """The snapshot for a round at `now_us` (microseconds since the epoch).

    rack_labels: node labels, the first of which that any node has defines the racks of `inputs`; None: inputs are not
    needed. cpu_of: measured millicores, (K,), of task rows (K,), NaN: not measured. deferred: task rows to leave out.
    ranking: None: no task has a queue. overdue_us: capacity may be reserved for what is as old; None: for nothing.
    """
    waiting = waiting_tasks(state, now_us)
    if len(deferred):
        left_out = np.zeros(state.tasks.capacity, np.bool_)
        left_out[deferred] = True
        waiting = waiting[~left_out[waiting]]
    nodes = state.present_nodes()
    settled = settled_tasks(state, waiting, nodes, overdue_us)
    return _snapshot(state, now_us, waiting, settled, RunningTasks(state, nodes), rack_labels, cpu_of, ranking)


def running_snapshot(
    state: ClusterState,
    now_us: int,
    rows: I64,
    gone: I64 = NO_ROWS,
    rack_labels: tuple[str, ...] | None = None,
    cpu_of: Callable[[I64], F64] = nothing_measured,
) -> Snapshot:
    """The snapshot as if running task rows (K,) arrived at `now_us`. gone: those of them that count as gone from their
    nodes; the others run and arrive once more. Tasks that leave do not count as running, but use what they request."""
    nodes, tasks = state.present_nodes(), state.tasks
    running = RunningTasks(state, nodes, gone=gone)
    unsettled = np.full(len(rows), UNSETTLED)
    snapshot = _snapshot(state, now_us, rows, unsettled, running, rack_labels, cpu_of, None)
    at = np.searchsorted(nodes, tasks.node[gone])
    add_rows(snapshot.free, at, state.classes.requests[tasks.cls[gone]])
    np.subtract.at(snapshot.running, at, 1)
    if tasks.leaving.any():
        np.subtract.at(snapshot.running, running.where[running.leaving], 1)
    return snapshot


def _snapshot(
    state: ClusterState,
    now_us: int,
    waiting: I64,
    settled: I64,
    running: RunningTasks,
    rack_labels: tuple[str, ...] | None,
    cpu_of: Callable[[I64], F64],
    ranking: Ranking | None,
) -> Snapshot:
    """The snapshot with the task rows `waiting` (T,) to be placed beside those that run. settled: of settled_tasks."""
    tasks, given = state.tasks, waiting
    waiting, starts = by_class(state, waiting, None if ranking is None else ranking.kind(waiting), settled)
    classes, label_sets = tasks.cls[waiting[starts]], tasks.label_set[waiting[starts]]
    begins = np.zeros(len(waiting), np.int64)
    begins[starts] = 1
    task_class = begins.cumsum() - 1
    oldest_us = np.minimum.reduceat(tasks.created_us[waiting], starts) if len(starts) else starts
    first, own = waiting[starts], state.classes.priority[classes]
    priority = by_rank(ranking, first, own)
    by_priority = np.lexsort((np.arange(len(classes)), oldest_us, -priority))
    place = np.empty_like(by_priority)
    place[by_priority] = np.arange(len(place))
    classes, label_sets, task_class = classes[by_priority], label_sets[by_priority], place[task_class]
    priority, first = priority[by_priority], first[by_priority]
    order = np.lexsort((tasks.uid[waiting], tasks.created_us[waiting], task_class))
    waiting, task_class = waiting[order], task_class[order]

    nodes = state.present_nodes()
    suitable, like = _suitable(state, first, nodes, values_at(given, settled, first) >= 0)
    if ranking is not None:
        suitable = covered(ranking, first, suitable)
        like = distinct_rows(np.column_stack([like, ranking.flavor[first]]))[1]
    allocatable = state.nodes.allocatable[nodes]
    withheld = np.zeros(len(waiting), np.bool_) if ranking is None else ranking.withheld[waiting]
    gangs = _gangs(state, waiting, nodes, priority[task_class])
    nominated = _nominated(state, waiting, nodes)
    there, yields_to = nominated >= 0, respecting(state, first)
    others_respect = nominated_in(state, nodes, but=waiting).beside(state, waiting[there], nominated[there])
    return Snapshot(
        now_us=now_us,
        resources=state.resources.names,
        nodes=nodes,
        allocatable=allocatable,
        free=unreserved(state)[nodes],
        running=_tasks_on(state, waiting)[nodes],
        classes=classes,
        label_sets=label_sets,
        requests=state.classes.requests[classes],
        priority=priority,
        class_priority=state.classes.priority[classes],
        expected_us=state.classes.expected_us[classes],
        never_preempts=state.classes.never_preempts[classes],
        suitable=suitable,
        like=like,
        intertask=IntertaskConstraints(state, nodes, classes, label_sets, running, others_respect, yields_to),
        preferences=Preferences(state, nodes, classes, label_sets, running),
        neighbour_counts=NeighbourCounts(state, nodes, classes, running, cpu_of),
        tasks=waiting,
        task_class=task_class,
        task_age_us=np.maximum(now_us - tasks.created_us[waiting], 0),
        task_created_us=tasks.created_us[waiting],
        task_uid=tasks.uid[waiting],
        task_gang=tasks.gang[waiting],
        withheld=withheld,
        nominated=nominated,
        settled=values_at(given, settled, waiting),
        inputs=None if rack_labels is None else _inputs(state, waiting, nodes, rack_labels),
        outstanding=_outstanding(state),
        gang_demands=gangs.demands,
        quota=np.array(gangs.quota, np.int64),
        task_quota=gangs.task_quota,
        node_index=state.node_index,
        releases=Releases(state, nodes, now_us),
    )


def _tasks_on(state: ClusterState, waiting: I64) -> I64:
    """(capacity of the node table,) assumed and bound tasks, and expected successors that are not among task rows
    `waiting` (T,)."""
    if not len(state.successors):
        return state.nodes.tasks
    expected, _ = state.successors.reserved(waiting)
    return state.nodes.tasks + np.bincount(expected, minlength=len(state.nodes.tasks))


def _suitable(state: ClusterState, first: I64, nodes: I64, settled: Bools) -> tuple[Bools, I64]:
    """See Snapshot: suitable (C, N) and like (C,), of classes with the task rows `first` (C,). Nothing suits a class
    that is `settled` (C,): its tasks are placed. Of many classes, most have the same demands on nodes."""
    kinds = Numbering[tuple[NodeDemand, bytes, bool]]()
    classes = state.tasks.cls[first]
    nowhere = [bool(state.classes.lacking(row)) or there for row, there in zip(classes.tolist(), settled, strict=True)]
    like = np.array(
        [
            kinds.number((demand_of(state, row), request.tobytes(), bool(none)))
            for row, request, none in zip(first.tolist(), state.classes.requests[classes], nowhere, strict=True)
        ],
        np.int64,
    )
    rows: dict[tuple[NodeDemand, bool], Bools] = {}
    for demand, _, lacking in kinds:
        if (demand, lacking) not in rows:
            selected, taint = state.node_index.evaluate(demand, nodes)
            rows[demand, lacking] = selected & (taint < 0) & (not lacking)
    of_kind = np.array([rows[demand, lacking] for demand, _, lacking in kinds]).reshape(len(kinds), len(nodes))
    return of_kind.astype(np.bool_, copy=False)[like], like


def _nominated(state: ClusterState, waiting: I64, nodes: I64) -> I64:
    """(T,) which of the node rows `nodes` (N,) reserves what each of the task rows `waiting` requests, -1: none."""
    nominated = state.tasks.nominated[waiting]
    if len(state.successors):
        nominated = np.where(nominated < 0, state.successors.nodes_for(waiting), nominated)
    return positions_in(nodes, state.nodes.capacity)[nominated] if (nominated >= 0).any() else nominated


def _inputs(state: ClusterState, waiting: I64, nodes: I64, rack_labels: tuple[str, ...]) -> Inputs | None:
    """The locations on `nodes` of the data of the task rows `waiting`, None if they read none."""
    rows, of_task = np.unique(state.tasks.inputs[waiting], return_inverse=True)
    if not rows.any():
        return None
    without = int(rows[0] == NO_INPUTS)
    rack, rack_of = state.node_index.racks(rack_labels, nodes)
    position = positions_in(nodes, state.nodes.capacity)
    placed = state.inputs.placed(rows[without:], rack, position, state.node_index.rows_by_name(), rack_of)
    return gather(of_task.reshape(-1).astype(np.int64) - without, len(rows) - without, placed, rack)


@dataclass(slots=True)
class _Gangs:
    """See Snapshot."""

    demands: list[JobDemand]
    quota: list[int]
    task_quota: I64


def _gangs(state: ClusterState, waiting: I64, nodes: I64, priority: I64) -> _Gangs:
    """The demands and quotas of the gangs that have members among the task rows `waiting` (T,), which have these
    effective priorities (T,)."""
    tasks, gangs = state.tasks, state.gangs
    answer = _Gangs([], [], np.full(len(waiting), -1, np.int64))
    (ganged,) = (tasks.gang[waiting] >= 0).nonzero()
    if not len(ganged):
        return answer
    rows, index = np.unique(tasks.gang[waiting[ganged]], return_inverse=True)
    by_gang = np.split(ganged[np.argsort(index, kind="stable")], np.cumsum(np.bincount(index))[:-1])
    holding = tasks.on_nodes
    placed = np.flatnonzero((tasks.gang >= 0) & holding & ~tasks.leaving)
    placed = placed[np.argsort(tasks.gang[placed], kind="stable")]
    bounds = np.searchsorted(tasks.gang[placed], np.stack([rows, rows + 1]))
    position = positions_in(nodes, state.nodes.capacity)
    for row, members, low, high in zip(rows.tolist(), by_gang, *bounds.tolist(), strict=True):
        definition, there = gangs.definition(row), placed[low:high]
        lacking, lacking_of_role = lacked(state, row, there)
        quota = UNLIMITED
        if definition.maximum:
            quota = max(definition.maximum - len(there), 0)
            answer.task_quota[members] = len(answer.quota)
            answer.quota.append(quota)
        if lacking > 0:
            settled = position[tasks.node[there]]
            answer.demands.append(
                JobDemand(
                    row,
                    definition,
                    definition.created_us,
                    members,
                    tasks.role[waiting[members]],
                    lacking,
                    lacking_of_role,
                    settled[settled >= 0],
                    int(priority[members].max()),
                    quota,
                    begun=len(there) > 0,
                    start=None if len(there) else _start(state, definition),
                )
            )
    return answer


def _start(state: ClusterState, gang: GangObserved) -> Start | None:
    """What must be free before a gang starts; None: that does not matter."""
    if not gang.start_amounts:
        return None
    unoffered = tuple((name, amount) for name, amount in gang.start_amounts if amount and name not in state.resources)
    return Start(state.resources.vector(dict(gang.start_amounts), LIMIT), unoffered)


def _outstanding(state: ClusterState) -> I64:
    """(R,) what gangs with members on nodes have yet to take of what they needed to start."""
    tasks, found = state.tasks, np.zeros(len(state.resources), np.int64)
    rows = sorted(state.gangs.with_start_amounts)
    if not rows:
        return found
    placed = np.flatnonzero(tasks.on_nodes & ~tasks.leaving & np.isin(tasks.gang, rows))
    for row in np.unique(tasks.gang[placed]).tolist():
        definition, members = state.gangs.definition(row), placed[tasks.gang[placed] == row]
        if len(members) >= definition.minimum:  # else it has lost members, and may not get others
            amounts = state.resources.vector(dict(definition.start_amounts), LIMIT)
            found += np.maximum(amounts - state.classes.requests[tasks.cls[members]].sum(axis=0), 0)
    return found
