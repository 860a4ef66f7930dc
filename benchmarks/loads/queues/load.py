"""Trees of queues over the cluster and the tasks of `loads/engine.py`: jobs of alike single tasks, each in a leaf.

Popularity and guarantees of the leaves are drawn independently, so some request a multiple of their guarantee and
others a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.harness.runner import Options
from benchmarks.loads.engine import START_US, EngineLoad, LoadSpec
from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.events import QueuesObserved, TasksObserved
from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota, Reclaim, ReclaimRules, Sharing

SHARINGS = {sharing.name.lower().replace("_", "-"): sharing for sharing in Sharing}
"""Name in a suite -> sharing; hierarchical-drf for HIERARCHICAL_DRF."""

QUOTAS = ("cpu", "memory")
"""The resources that quotas name."""

NO_LIMIT = 2**59

_FLAVOR = "all"
_SECOND_US = 1_000_000
_LEVELS = 4
_RULES = {
    Sharing.CLASSICAL: ReclaimRules.QUOTA,
    Sharing.FAIR: ReclaimRules.QUOTA,
    Sharing.PROPORTIONAL: ReclaimRules.FAIR_SHARE,
    Sharing.HIERARCHICAL_DRF: ReclaimRules.DESERVED,
}


@dataclass(frozen=True, slots=True)
class QueuesSpec:
    """Sizes. The tasks are those of LoadSpec, in jobs of at most `job` alike ones. guaranteed: the sum of the leaves'
    guarantees as a part of the capacity; limit: limits of every eighth leaf and every fourth queue below the root, as a
    multiple of their guarantee, 0: none."""

    nodes: int
    pods: int
    classes: int
    queues: int
    sharing: Sharing
    fill: float = 0.7
    running: int = 0
    guaranteed: float = 1.0
    limit: float = 4.0
    job: int = 20
    seed: int = 0

    def scaled(self, options: Options) -> QueuesSpec:
        """All sizes at the chosen scale."""
        return replace(
            self,
            nodes=options.scaled(self.nodes),
            pods=options.scaled(self.pods),
            running=options.scaled(self.running),
            queues=options.scaled(self.queues, _LEVELS),
            classes=min(self.classes, options.scaled(self.pods)),
        )


class QueuesLoad:
    """Q queues, the root first and parents before children; T tasks, the running ones first; quotas of R resources.

    parent (Q,), -1 of the root; leaf (Q,); weight (Q,); guarantee, limit (Q, R): of inner queues the guarantee is the
    sum of those below. capacity (R,): what the tasks can use; with a single class, in whole tasks. queue, created_us
    (T,), requests (T, R). Ids of queues are rows plus 1.
    """

    def __init__(self, spec: QueuesSpec) -> None:
        self.spec = spec
        self.base = EngineLoad(
            LoadSpec(spec.nodes, spec.pods, spec.classes, spec.fill, running=spec.running, seed=spec.seed)
        )
        rng = np.random.default_rng(spec.seed)
        self.parent = tree_of(spec.queues)
        self.leaf: Bools = ~np.isin(np.arange(spec.queues), self.parent)
        self.weight: F64 = rng.integers(1, 5, spec.queues).astype(np.float64)
        columns = [self.base.resources.index(name) for name in QUOTAS]
        self._observed = self.base.tasks()
        cls = self._observed.class_id.astype(np.int64) - 1
        self.requests: I64 = self.base.requests[cls][:, columns]
        self.capacity: I64 = self.base.allocatable[:, columns].sum(axis=0)
        unit = np.ones(len(QUOTAS), np.int64)
        if spec.classes == 1:
            unit, request = self.base.requests[0, columns], self.base.requests[0]
            asked = request > 0
            self.capacity = (self.base.allocatable[:, asked] // request[asked]).min(axis=1).sum() * unit
        self.guarantee = self._guarantees(rng, unit)
        self.limit = self._limits()
        self.job, self.queue, self.created_us = self._jobs(rng, cls)

    def _guarantees(self, rng: np.random.Generator, unit: I64) -> I64:
        part = np.where(self.leaf, rng.lognormal(0.0, 0.7, self.spec.queues), 0.0)
        of_unit = self.spec.guaranteed * part[:, None] / part.sum() * (self.capacity // unit)
        return self.below(np.floor(of_unit).astype(np.int64) * unit)

    def _limits(self) -> I64:
        spec, limit = self.spec, np.full(self.guarantee.shape, NO_LIMIT)
        if spec.limit:
            number = np.arange(spec.queues)
            some = (self.leaf & (number % 8 == 0)) | ((self.parent == 0) & (number % 4 == 0))
            limit[some] = (spec.limit * self.guarantee[some]).astype(np.int64)
        limit[0] = self.capacity
        return limit

    def _jobs(self, rng: np.random.Generator, cls: I64) -> tuple[I64, I64, I64]:
        """(T,) job, queue and time of creation of each task. Jobs of a queue are created at different seconds."""
        runs = self.base.running
        job = np.empty(len(cls), np.int64)
        jobs = 0
        for some in (np.arange(runs), np.arange(runs, len(cls))):
            order = some[np.argsort(cls[some], kind="stable")]
            begins = np.r_[True, np.diff(cls[order]) != 0][: len(order)]
            place = np.arange(len(order)) - np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
            job[order] = jobs - 1 + np.cumsum(place % self.spec.job == 0)
            jobs = int(job[order].max(initial=jobs - 1)) + 1
        popularity = rng.lognormal(0.0, 1.0, int(self.leaf.sum()))
        queue = rng.choice(np.flatnonzero(self.leaf), jobs, p=popularity / popularity.sum())
        since_us = START_US - rng.permutation(jobs) * _SECOND_US
        return job, queue[job], since_us[job]

    def below(self, amounts: I64) -> I64:
        """(Q, ...) amounts of each queue itself (Q, ...), and of all below it."""
        total = amounts.copy()
        for row in range(len(self.parent) - 1, 0, -1):
            total[self.parent[row]] += total[row]
        return total

    def tree(self) -> QueueTree:
        """Where sharing goes by quota, the root has what no leaf is guaranteed."""
        spec, sharing = self.spec, self.spec.sharing
        nominal = self.guarantee.copy()
        nominal[0] = self.capacity
        if by_quota(sharing):
            nominal[~self.leaf] = 0
            nominal[0] = self.capacity - self.guarantee[0]
        queues = tuple(
            QueueDefinition(
                id=row + 1,
                name=f"queue-{row}",
                parent=int(self.parent[row]) + 1,
                quotas=tuple(
                    Quota(_FLAVOR, name, int(nominal[row, r]), limit=_stated(self.limit[row, r]))
                    for r, name in enumerate(QUOTAS)
                ),
                weight=float(self.weight[row]),
                reclaim=Reclaim.ANY,
            )
            for row in range(spec.queues)
        )
        return QueueTree(queues, (Flavor(_FLAVOR),), sharing, reclaim_rules=_RULES[sharing])

    def queues(self) -> QueuesObserved:
        return QueuesObserved(self.tree())

    def tasks(self, *, queued: bool) -> TasksObserved:
        """All tasks; queued: in their queues, otherwise in none."""
        return replace(
            self._observed,
            job_id=(self.job + 1).astype(np.uint64),
            created_us=self.created_us,
            queue_id=(self.queue + 1).astype(np.uint64) if queued else None,
        )


def _stated(limit: int) -> int | None:
    return int(limit) if limit < NO_LIMIT else None


def by_quota(sharing: Sharing) -> bool:
    """Whether a tree admits no more than the sum of its quotas."""
    return sharing in (Sharing.CLASSICAL, Sharing.FAIR)


def tree_of(queues: int) -> I64:
    """(Q,) parents in a tree of depth 4, -1 of the root: the second and the third level have about the cube root of Q
    children for each queue above, the fourth has all others."""
    if queues < _LEVELS:
        raise ValueError(f"queues is {queues}; a tree of depth {_LEVELS} has at least {_LEVELS}")
    parent = np.full(queues, -1)
    fan = max(round(queues ** (1 / 3)), 1)
    start, above = 1, np.zeros(1, np.int64)
    for level in range(1, _LEVELS):
        left = _LEVELS - 1 - level  # levels further down, each of at least one queue
        count = min(len(above) * fan, queues - start - left) if left else queues - start
        rows = np.arange(start, start + count)
        parent[rows] = above[(rows - start) % len(above)]
        start, above = start + count, rows
    return parent
