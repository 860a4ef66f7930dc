"""The engine as the scheduler of a replay, with the bridge's part of delayed preemption in virtual time.

Rounds are real: they decide placements, victims and nominations. As the bridge does, victims get a notice, and count as
leaving from then on; they keep running until it is over. One that can save its work does so and exits; the others leave
when the notice is over, if a pod is still nominated on one of their nodes. Otherwise they keep running as before.
Nominated pods keep their nodes, whatever the priority of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.loads.openi.cluster import Cluster, State
from benchmarks.loads.openi.rules import Timeline
from benchmarks.loads.openi.workload import GROUPS, MINUTE, QUEUES, RESOURCES, URGENT, Workload
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.model.events import (
    ClassDefined,
    Event,
    GangObserved,
    GangRemoved,
    NodeObserved,
    QueuesObserved,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.options import EngineOptions, Preempting
from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota, ReclaimRules, Sharing, Within
from firmament_py.policy import registry

BEGIN_US = 1_700_000_000_000_000
"""The beginning of the replay, microseconds since the epoch."""

_POOL = "pool"
_SLOTS = 250
_NOWHERE = -1
_RESERVE_AFTER = 30 * MINUTE
"""How long a gang or a task waits before capacity is reserved for it: waits of hours are usual in overload."""


@dataclass(slots=True)
class _Announced:
    """A victim that keeps running for now. nodes: of its pods."""

    preemptor: int
    nodes: frozenset[int]
    for_quota: bool


class Bridge:
    """notice_us: 0: victims leave at once; None: nothing is preempted."""

    def __init__(self, cluster: Cluster, timeline: Timeline, notice_us: int | None, every_us: int) -> None:
        self._cluster, self._load, self._timeline = cluster, cluster.load, timeline
        self._notice_us = notice_us
        self.every_us = every_us
        preempting = Preempting.OFF if notice_us is None else Preempting.WITHIN_BUDGETS
        self.engine = Engine(
            registry.load("bin-packing", {"by": "amount"}),
            SOLVERS["or-tools"](),
            options=EngineOptions(preempting=preempting, reserve_after_us=_RESERVE_AFTER),
        )
        self._classes: dict[tuple[int, ...], int] = {}
        jobs = len(self._load.queue)
        self._first_uid: I64 = np.zeros(jobs, np.int64)  # of the pods of each job; they follow each other
        self._job_of: list[int] = [-1]  # by uid
        self._nominated: dict[int, int] = {}  # uid -> node
        self._announced: dict[int, _Announced] = {}
        self._new: list[int] = []  # jobs whose pods are created before the next round
        self.rounds = self.dropped = 0
        self.seconds: list[float] = []
        self.stage_seconds: dict[str, float] = {}
        nodes = _nodes(self._load)
        self._apply([QueuesObserved(queue_tree(self._load)), *nodes])
        self._ids = tuple(node.id for node in nodes)
        rows = self.engine.state.node_rows(self._ids)
        self._number_of_row = np.full(int(rows.max()) + 1, _NOWHERE)
        self._number_of_row[rows] = np.arange(len(rows))

    # -- what changes -----------------------------------------------------------------------------------------

    def arrived(self, jobs: Sequence[int]) -> None:
        self._new += jobs

    def ended(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self._announced.pop(job, None)
        self._apply([TasksRemoved(self._uids(jobs)), *(GangRemoved(j + 1) for j in jobs if self._load.pods[j] > 1)])

    def due(self, what: str, job: int) -> None:
        """A victim has saved its work, or its notice is over."""
        if (announced := self._announced.get(job)) is not None:
            self._evict(job, announced.preemptor, saved=what == "saved")

    def round(self) -> int | None:
        now_us = BEGIN_US + self._cluster.now_us
        self._create(self._new)
        self._new = []
        result = self.engine.run_round(now_us)
        if result is not None:
            self._note(result)
            self._carry_out(result)
        wake_us = self.engine.scheduler.wake_us(now_us)
        return wake_us - BEGIN_US if wake_us else None

    # -- decisions --------------------------------------------------------------------------------------------

    def _carry_out(self, result: RoundResult) -> None:
        state, preemption = self.engine.state, result.preemption
        uids = state.tasks.uid[result.tasks].astype(np.int64).tolist()
        self._start(uids, self._node_numbers(result.nodes))
        nominated = state.tasks.uid[preemption.nominated[0]].astype(np.int64).tolist()
        unnominated = state.tasks.uid[preemption.unnominated].astype(np.int64).tolist()
        for uid in (*uids, *unnominated):
            self._nominated.pop(uid, None)
        self._nominated.update(zip(nominated, self._node_numbers(preemption.nominated[1]).tolist(), strict=True))
        if nominated or unnominated:
            self._observe_waiting(nominated + unnominated)
        victims = state.tasks.uid[preemption.victims].astype(np.int64).tolist()
        preemptors = state.tasks.uid[preemption.preemptors].astype(np.int64).tolist()
        if victims:
            self._tell(dict(zip(victims, preemptors, strict=True)))
        self._spare()

    def _start(self, uids: list[int], nodes: I64) -> None:
        on: dict[int, dict[int, int]] = {}
        for uid, node in zip(uids, nodes.tolist(), strict=True):
            on.setdefault(self._job_of[uid], {})[uid] = node
        for job, pods in on.items():
            self._cluster.start(job, np.array([pods[uid] for uid in sorted(pods)]))
            self._timeline.at(self._cluster.end_us(job), "end", job, int(self._cluster.attempt[job]))
        if on:
            self._observe_running(list(on))

    def _tell(self, victims: dict[int, int]) -> None:
        """Announces evictions: victim -> preemptor, uids; jobs leave as a whole."""
        cluster, now_us = self._cluster, self._cluster.now_us
        preemptor_of = {self._job_of[uid]: self._job_of[by] for uid, by in victims.items()}
        cluster.measures.preemptions += len(set(preemptor_of.values()))
        chosen = np.bincount([self._job_of[uid] for uid in victims])
        for job, preemptor in preemptor_of.items():
            if chosen[job] != self._load.pods[job]:
                cluster.violated("jobs are preempted as a whole", f"job {job}: {chosen[job]} pods")
            nodes = frozenset(cluster.nodes[job].tolist())
            nominated_nodes = {self._nominated.get(uid, _NOWHERE) for uid in self._uids([preemptor]).tolist()}
            self._announced[job] = _Announced(preemptor, nodes, for_quota=not nodes & nominated_nodes)
            if not self._notice_us:
                self._evict(job, preemptor, saved=False)
                continue
            cluster.measures.announced += 1
            attempt = int(cluster.attempt[job])
            if self._load.checkpoints[job] and self._load.save_us[job] < self._notice_us:
                self._timeline.at(now_us + int(self._load.save_us[job]), "saved", job, attempt)
            else:
                self._timeline.at(now_us + self._notice_us, "notice over", job, attempt)
        self._observe_running([job for job in preemptor_of if job in self._announced])

    def _spare(self) -> None:
        """Victims that no nominated pod needs any more keep running."""
        if not self._announced:
            return
        nominated_nodes = set(self._nominated.values())
        nominated = {self._job_of[uid] for uid in self._nominated}
        spared = [
            job
            for job, announced in self._announced.items()
            if not announced.nodes & nominated_nodes and not (announced.for_quota and announced.preemptor in nominated)
        ]
        for job in spared:
            del self._announced[job]
            self._cluster.measures.spared += 1
        if spared:
            self._observe_running(spared)

    def _evict(self, job: int, preemptor: int, *, saved: bool) -> None:
        """All pods of a job end, and are created anew."""
        del self._announced[job]
        gone = self._uids([job])
        self._cluster.evict(job, preemptor, int(self._load.pods[job]), saved=saved)
        self._apply([TasksRemoved(gone)])
        self._new.append(job)

    # -- messages ---------------------------------------------------------------------------------------------

    def _create(self, jobs: Sequence[int]) -> None:
        """New pods of jobs wait."""
        load, events = self._load, list[Event]()
        for job in jobs:
            self._first_uid[job] = len(self._job_of)
            self._job_of += [job] * int(load.pods[job])
            key = (*load.request[job].tolist(), int(load.priority[job]))
            if key not in self._classes:
                self._classes[key] = len(self._classes) + 1
                requests = dict(zip(RESOURCES, key, strict=False))
                events.append(
                    ClassDefined(self._classes[key], requests, priority=key[-1], never_preempts=key[-1] < URGENT)
                )
            if load.pods[job] > 1:
                created_us = BEGIN_US + int(load.arrival_us[job])
                events.append(
                    GangObserved(job + 1, int(load.pods[job]), created_us, name=f"jobs/{job}", disrupted_whole=True)
                )
        self._apply(events)
        self._observe(np.asarray(jobs), running=False)

    def _observe_running(self, jobs: list[int]) -> None:
        if jobs:
            self._observe(np.array(jobs), running=True)

    def _observe_waiting(self, uids: list[int]) -> None:
        self._observe(np.unique([self._job_of[uid] for uid in uids if self._is_current(uid)]), running=False)

    def _is_current(self, uid: int) -> bool:
        job = self._job_of[uid]
        return bool(self._cluster.state[job] == State.WAITING and uid >= self._first_uid[job])

    def _observe(self, jobs: I64, *, running: bool) -> None:
        """Sends the state of all pods of jobs."""
        load, cluster = self._load, self._cluster
        if not len(jobs):
            return
        of = np.repeat(jobs, load.pods[jobs])
        uid = self._uids(jobs.tolist())
        nowhere = np.full(len(of), _NOWHERE)
        at = np.concatenate([cluster.nodes[job] for job in jobs.tolist()]) if running else nowhere
        nominated_nodes = nowhere if running else np.array([self._nominated.get(u, _NOWHERE) for u in uid.tolist()])
        named, number = np.unique(
            np.concatenate([at, nominated_nodes]), return_inverse=True
        )  # the nodes that the message names
        without = int(named[0] == _NOWHERE)
        at, nominated_nodes = (number + 1 - without).reshape(2, -1)
        cls = [self._classes[(*load.request[job].tolist(), int(load.priority[job]))] for job in jobs.tolist()]
        self._apply(
            [
                TasksObserved(
                    uid=uid,
                    class_id=np.repeat(np.array(cls, np.uint64), load.pods[jobs]),
                    job_id=(of + 1).astype(np.uint64),
                    created_us=BEGIN_US + load.arrival_us[of],
                    node=at,
                    names=[f"jobs/{u}" for u in uid.tolist()],
                    nodes=tuple(self._ids[n] for n in named[without:].tolist()),
                    leaving=np.array([job in self._announced for job in of.tolist()]),
                    gang_id=np.where(load.pods[of] > 1, of + 1, 0).astype(np.uint64),
                    started_us=np.where(at > 0, BEGIN_US + cluster.started_us[of], 0),
                    nominated=nominated_nodes,
                    unevictable=np.where(at > 0, ~load.preemptible[of], nominated_nodes > 0),
                    queue_id=(load.queue[of] + 1).astype(np.uint64),
                )
            ]
        )

    def _uids(self, jobs: Sequence[int]) -> np.ndarray:
        pods = self._load.pods
        return np.concatenate(
            [np.arange(self._first_uid[j], self._first_uid[j] + pods[j]) for j in jobs] or [np.zeros(0, np.int64)]
        ).astype(np.uint64)

    def _node_numbers(self, rows: I64) -> I64:
        return self._number_of_row[rows]

    def _apply(self, events: Sequence[Event]) -> None:
        outcome = self.engine.apply(events)
        if outcome.refused or outcome.unknown_classes or outcome.unknown_gangs or outcome.unknown:
            raise RuntimeError(f"the engine refuses the replay: {outcome}")

    def _note(self, result: RoundResult) -> None:
        self.rounds += 1
        self.dropped += result.stats.dropped
        self.seconds.append(result.stats.seconds)
        for stage, seconds in result.stats.stage_seconds.items():
            self.stage_seconds[stage] = self.stage_seconds.get(stage, 0.0) + seconds


def queue_tree(load: Workload) -> QueueTree:
    """Queues by weight and guarantee below one queue for each group, of the scheduler's own kind; none reclaims from
    another one."""
    gpu = RESOURCES[0]
    group_ids = [len(QUEUES) + 1 + group for group in range(len(GROUPS))]
    groups = [
        QueueDefinition(
            group_ids[group],
            f"group-{name}",
            quotas=(Quota(name, gpu, int(load.group_gpus[group])),),
            unlimited=True,
            fence=True,
        )
        for group, name in enumerate(GROUPS)
    ]
    queues = [
        QueueDefinition(
            row + 1,
            name,
            group_ids[group],
            quotas=(Quota(GROUPS[group], gpu, int(load.guarantee[row]), limit=int(load.limit[row])),),
            weight=weight,
            within=Within.LOWER_PRIORITY,
            fence=True,
            unlimited=True,
        )
        for row, (name, group, weight) in enumerate(QUEUES)
    ]
    flavors = tuple(Flavor(name, {_POOL: name}) for name in GROUPS)
    return QueueTree((*groups, *queues), flavors, Sharing.PROPORTIONAL, reclaim_rules=ReclaimRules.FAIR_SHARE)


def _nodes(load: Workload) -> list[NodeObserved]:
    return [
        NodeObserved(
            _node_id(number),
            _node_id(number),
            {**dict(zip(RESOURCES, row.tolist(), strict=True)), "pods": _SLOTS},
            {_POOL: GROUPS[load.node_group[number]]},
        )
        for number, row in enumerate(load.capacity)
    ]


def _node_id(number: int) -> str:
    return f"node-{number:03d}"
