"""The clusters of `loads/jobs` with two queues instead of priorities: the running tasks are of one that uses all, the
jobs of another, which is guaranteed a part."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from benchmarks.loads.jobs.check import Decision, World
from benchmarks.loads.jobs.load import GPU, NOWHERE, START_US, JobsLoad, JobsSpec
from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import Event, QueuesObserved, TasksObserved
from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota, Reclaim, ReclaimRules, Sharing

TOP, OWNER, ARRIVING = 1, 2, 3
"""Ids of queues: the root, that of the running tasks, and that of the jobs."""

_RULES = {
    Sharing.CLASSICAL: ReclaimRules.QUOTA,
    Sharing.FAIR: ReclaimRules.QUOTA,
    Sharing.PROPORTIONAL: ReclaimRules.FAIR_SHARE,
    Sharing.HIERARCHICAL_DRF: ReclaimRules.DESERVED,
}


@dataclass(frozen=True, slots=True)
class ReclaimLoad(JobsLoad):
    """A load of GPUs alone, all of whose tasks have the same priority. guarantee: GPUs of the arriving queue; that
    of the other one is the rest."""

    sharing: Sharing = Sharing.CLASSICAL
    guarantee: int = 0

    @classmethod
    def of(cls, spec: JobsSpec, sharing: Sharing, guarantee: int) -> ReclaimLoad:
        """The load of these sizes. guarantee: as above, at most the GPUs of the cluster."""
        load = JobsLoad.generate(replace(spec, preemptible=0))
        columns = {field.name: getattr(load, field.name) for field in fields(load)}
        return cls(**columns, sharing=sharing, guarantee=guarantee)

    @property
    def total(self) -> int:
        """GPUs of the cluster."""
        return int(self.allocatable[:, 0].sum())

    @property
    def guaranteed_jobs(self) -> int:
        """How many of the jobs the guarantee suffices for."""
        return min(self.spec.jobs, self.guarantee // (self.spec.size * self.spec.each))

    def cluster(self) -> list[Event]:
        """Queues, nodes, classes and running tasks."""
        return [QueuesObserved(self.tree()), *JobsLoad.cluster(self)]

    def tree(self) -> QueueTree:
        by_quota = self.sharing in (Sharing.CLASSICAL, Sharing.FAIR)

        def queue(identifier: int, name: str, parent: int, nominal: int) -> QueueDefinition:
            quota = Quota("all", GPU, nominal)
            return QueueDefinition(identifier, name, parent, (quota,), reclaim=Reclaim.ANY)

        queues = (
            queue(TOP, "top", 0, 0 if by_quota else self.total),
            queue(OWNER, "owner", TOP, self.total - self.guarantee),
            queue(ARRIVING, "arriving", TOP, self.guarantee),
        )
        return QueueTree(queues, (Flavor("all"),), self.sharing, reclaim_rules=_RULES[self.sharing])

    def observed(self, tasks: I64, cls: I64, job: I64, node: I64, since_us: I64) -> TasksObserved:
        """As of JobsLoad, in their queues."""
        queue = np.where(job < self.spec.jobs, ARRIVING, OWNER).astype(np.uint64)
        return replace(JobsLoad.observed(self, tasks, cls, job, node, since_us), queue_id=queue)

    def created_anew(self, world: World) -> list[Event]:
        """Tasks in place of the victims, which wait in the queue of these, as controllers create them."""
        gone = np.flatnonzero(world.gone)
        new = len(world.cls) + np.arange(len(gone))
        nowhere, since_us = np.full(len(gone), NOWHERE), np.full(len(gone), START_US + 3600 * 1_000_000)
        return [self.observed(new, world.cls[gone], world.job[gone], nowhere, since_us)] if len(gone) else []


class ReclaimWorld(World):
    """Checks victims by the rules of queues: both keep what is guaranteed to them."""

    def __init__(self, load: ReclaimLoad) -> None:
        super().__init__(load)
        self._reclaim = load

    def _wrong_victims(self, decision: Decision) -> list[str]:
        load, victims = self._reclaim, decision.victims
        problems = []
        if len(np.unique(victims)) < len(victims):
            problems.append("a task is preempted twice")
        if self.gone[victims].any() or (self.node[victims] == NOWHERE).any():
            problems.append("a task is preempted that does not run")
        if (self.job[victims] < load.spec.jobs).any():
            problems.append("a task of the arriving queue is preempted")
        left = ~self.gone & (self.node != NOWHERE)
        left[victims] = False
        remains, guaranteed = self._gpus(left & (self.job >= load.spec.jobs)), load.total - load.guarantee
        if len(victims) and remains < guaranteed:
            problems.append(f"the queue of the victims keeps {remains} of its guaranteed {guaranteed} GPUs")
        if len(victims) and self._gpus(self.served) > load.guarantee:
            problems.append("tasks are preempted for more than the guarantee of their queue")
        return problems

    def _gpus(self, some: Bools) -> int:
        requests: I64 = self._reclaim.requests[self.cls[some], 0]
        return int(requests.sum())

    @property
    def evicted_in_vain(self) -> int:
        """How many victims would still fit on their nodes beside all that runs there or is expected."""
        load = self._reclaim
        free = load.allocatable[:, 0].copy()
        for on, some in ((self.node, ~self.gone & (self.node != NOWHERE)), (self.nominated, self.nominated != NOWHERE)):
            np.subtract.at(free, on[some], load.requests[self.cls[some], 0])
        gone = np.flatnonzero(self.gone)
        return int((free[self.node[gone]] >= load.requests[self.cls[gone], 0]).sum())
