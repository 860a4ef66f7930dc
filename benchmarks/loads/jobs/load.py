"""Clusters whose capacity running tasks use, and jobs that need it: the scale tests of KAI 0.17 with priorities instead
of queues, and a cluster of tasks of many sizes.

The tasks of a job are a gang: all of them run or none. A job of one task is a single task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.events import ClassDefined, Event, GangObserved, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
"""When the jobs are created."""

ROUND_S = 1
"""Seconds until the first round, and between rounds."""

GPU = "nvidia.com/gpu"
LOWER, HIGHER = 0, 1000
"""Priorities: of running tasks that may be preempted, and of the jobs and the other running tasks."""

NOWHERE = -1

_GPUS = 8
_MIXED = {"cpu": 16_000, "memory": 64 * 2**30}
_MILLICORES = (500, 1000, 2000, 3000, 4000, 6000, 8000)
_GIB_PER_CORE = (1, 2, 3)
_YOUNGEST_S, _OLDEST_S = 60.0, 30 * 86400.0


@dataclass(frozen=True, slots=True)
class JobsSpec:
    """Sizes. Nodes of 8 GPUs run `running` tasks of `running_gpus` each; if `mixed`, nodes of 16 cores and 64 GiB are
    full of tasks of 0.5 to 8 cores. preemptible: how many of the running tasks have a lower priority than the jobs, on
    as few nodes as possible; -1: all. movable: whether the running tasks may move. Jobs have `size` tasks of `each`
    GPUs, or cores, and arrive together or one by one."""

    nodes: int
    jobs: int
    size: int
    each: int
    running: int = 8
    running_gpus: int = 1
    preemptible: int = -1
    movable: bool = False
    mixed: bool = False
    one_by_one: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class JobsLoad:
    """N nodes, C classes, R resources, P running tasks. The last class is that of the jobs' tasks.

    allocatable (N, R); requests (C, R), priority (C,); of running tasks node (P,), cls (P,), run_s (P,): for how long
    they have run. Tasks are numbered from 0: the running ones, then job after job. Jobs are numbered from 0, then each
    running task is a job of its own. Ids of the engine are these numbers plus 1.
    """

    spec: JobsSpec
    resources: tuple[str, ...]
    allocatable: I64
    requests: I64
    priority: I64
    node: I64
    cls: I64
    run_s: I64

    @classmethod
    def generate(cls, spec: JobsSpec) -> JobsLoad:
        """The load of these sizes."""
        rng = np.random.default_rng(spec.seed)
        if spec.mixed:
            resources, allocatable = tuple(_MIXED), np.tile(np.array([*_MIXED.values()], np.int64), (spec.nodes, 1))
            node, shapes = _fill(rng, spec.nodes)
            member = [spec.each * 1000, spec.each * 2**31]
        else:
            resources, allocatable = (GPU,), np.full((spec.nodes, 1), _GPUS, np.int64)
            node = np.repeat(np.arange(spec.nodes), spec.running)
            shapes, member = np.full((len(node), 1), spec.running_gpus, np.int64), [spec.each]
        priority = np.full(len(node), HIGHER)
        order = np.argsort(rng.permutation(spec.nodes)[node], kind="stable")
        priority[order[: len(order) if spec.preemptible < 0 else spec.preemptible]] = LOWER
        kinds, of_task = np.unique(np.column_stack([shapes, priority]), axis=0, return_inverse=True)
        return cls(
            spec,
            resources,
            allocatable,
            np.vstack([kinds[:, :-1], member]).astype(np.int64),
            np.append(kinds[:, -1], HIGHER),
            node,
            of_task.reshape(-1),
            np.exp(rng.uniform(np.log(_YOUNGEST_S), np.log(_OLDEST_S), len(node))).astype(np.int64),
        )

    @property
    def member(self) -> I64:
        """(R,) what a task of a job requests."""
        member: I64 = self.requests[-1]
        return member

    @property
    def preemptible(self) -> Bools:
        """(P,) which running tasks may be preempted for the jobs."""
        lower: Bools = self.priority[self.cls] < HIGHER
        return lower

    @property
    def used(self) -> I64:
        """(N, R) what the running tasks use."""
        used = np.zeros_like(self.allocatable)
        np.add.at(used, self.node, self.requests[self.cls])
        return used

    @property
    def arrivals(self) -> list[I64]:
        """The jobs that arrive at the same time, in order."""
        jobs = np.arange(self.spec.jobs)
        return list(jobs[:, None]) if self.spec.one_by_one else [jobs]

    def members(self, jobs: I64) -> I64:
        """The numbers of the tasks of some jobs."""
        first = len(self.node) + jobs * self.spec.size
        return (first[:, None] + np.arange(self.spec.size)).reshape(-1)

    def cluster(self) -> list[Event]:
        """Nodes, classes and running tasks."""
        names = tuple(f"node-{n}" for n in range(len(self.allocatable)))
        offers = [dict(zip(self.resources, row, strict=True)) | {"pods": 110} for row in self.allocatable.tolist()]
        requests = [dict(zip(self.resources, row, strict=True)) for row in self.requests.tolist()]
        running = np.arange(len(self.node))
        started_us = START_US - self.run_s * 1_000_000
        return [
            *(NodeObserved(name, name, offer) for name, offer in zip(names, offers, strict=True)),
            *(ClassDefined(c + 1, requests[c], priority=p) for c, p in enumerate(self.priority.tolist())),
            self.observed(running, self.cls, running + self.spec.jobs, self.node, started_us),
        ]

    def arrive(self, jobs: I64) -> list[Event]:
        """These jobs, all of whose tasks wait."""
        members, size = self.members(jobs), self.spec.size
        gangs = [GangObserved(job + 1, size, START_US + job, name=f"job-{job}") for job in jobs.tolist() if size > 1]
        of_job = np.repeat(jobs, size)
        classes, nowhere = np.full(len(members), len(self.requests) - 1), np.full(len(members), NOWHERE)
        return [*gangs, self.observed(members, classes, of_job, nowhere, START_US + of_job)]

    def observed(self, tasks: I64, cls: I64, job: I64, node: I64, since_us: I64) -> TasksObserved:
        """Tasks (K,) of these classes and jobs, on nodes (K,), NOWHERE: they wait; since when they run or wait."""
        runs = node != NOWHERE
        names, index = np.unique(node[runs], return_inverse=True)
        position = np.zeros(len(tasks), np.int64)
        position[runs] = index.reshape(-1) + 1
        grouped = (job < self.spec.jobs) & (self.spec.size > 1)
        return TasksObserved(
            uid=(tasks + 1).astype(np.uint64),
            class_id=(cls + 1).astype(np.uint64),
            job_id=(job + 1).astype(np.uint64),
            created_us=since_us,
            node=position,
            names=[f"default/task-{task}" for task in tasks.tolist()],
            nodes=tuple(f"node-{n}" for n in names.tolist()),
            gang_id=np.where(grouped, job + 1, 0).astype(np.uint64),
            started_us=np.where(runs, since_us, 0),
            movable=(job >= self.spec.jobs) & self.spec.movable,
        )


def _fill(rng: np.random.Generator, nodes: int) -> tuple[I64, I64]:
    """Nodes (P,), ascending, and requests (P, 2) of tasks that use every millicore of each node."""
    drawn = rng.choice(_MILLICORES, (nodes, _MIXED["cpu"] // min(_MILLICORES)))
    before = np.cumsum(drawn, axis=1) - drawn
    cpu = np.minimum(drawn, _MIXED["cpu"] - before)  # the last task of a node takes what is left
    node = np.repeat(np.arange(nodes), (cpu > 0).sum(axis=1))
    cpu = cpu[cpu > 0]
    memory = cpu * rng.choice(_GIB_PER_CORE, len(cpu)) * 2**30 // 1000
    return node, np.column_stack([cpu, memory]).astype(np.int64)
