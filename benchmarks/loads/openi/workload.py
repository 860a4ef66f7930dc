"""The cluster and the jobs: 120 nodes with 1,100 GPUs in three groups, seven queues of several tenants, and jobs whose
sizes, durations and arrivals follow published traces (docs/benchmarks.md has the sources).

Everything follows from the seed. Times are in microseconds since the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000

GPU, CPU, MEMORY = "nvidia.com/gpu", "cpu", "memory"
RESOURCES = (GPU, CPU, MEMORY)
"""Columns of all amounts: GPUs, millicores, bytes."""

GIB = 2**30
_CORES_PER_GPU, _MEMORY_PER_GPU = 12_000, 96 * GIB

SHAPES = ((0, 60, 8), (1, 35, 8), (1, 5, 4), (2, 20, 16))
"""Group, nodes and GPUs of each: 480, 300 and 320 GPUs in the groups."""

GROUPS = ("a", "b", "c")
"""Values of the label `pool` of the nodes."""

QUEUES = (
    ("vision", 0, 4.0),
    ("language", 0, 3.0),
    ("robotics", 0, 1.0),
    ("medicine", 1, 2.0),
    ("teaching", 1, 1.0),
    ("foundation", 2, 3.0),
    ("science", 2, 2.0),
)
"""Name, group and weight."""

USERS = 6
"""Tenants of each queue. Jobs of the first two have the priority of projects, those of the others the ordinary one."""

ORDINARY, PROJECT, URGENT = 10, 20, 100
"""Priorities of jobs; only URGENT ones may preempt others."""

_GPUS = np.array([1, 2, 4, 8, 16, 32, 64])
_SHARE_OF_JOBS = np.array([0.50, 0.16, 0.14, 0.13, 0.045, 0.02, 0.005])
_URGENT_SHARES = np.array([0.0, 0.0, 0.4, 0.45, 0.15, 0.0, 0.0])
_LARGEST_POD = 8
_MEDIAN_S, _SIGMA = 13 * 60.0, 1.7
_LONGEST_S, _SHORTEST_S = 2 * 86_400.0, 30.0
_LONGER_PER_DOUBLING = 1.1
_CORES = np.array([2_000, 4_000, 8_000, 12_000])  # of each GPU that a job uses
_WEEKDAY, _WEEKEND = 1.06, 0.85
_DAY_SWING = 0.5
_URGENT_SHARE, _CHECKPOINT_SHARE = 0.03, 0.5
_PREEMPTIBLE_SHARE, _PREEMPTIBLE_SHARE_OF_LARGE, _LARGE = 0.6, 0.9, 4  # interactive work is small
_SAVE_S = (20.0, 60.0)
CHECKPOINT_EVERY = 30 * MINUTE
"""Jobs with checkpoints save so often without being asked."""


@dataclass(frozen=True, slots=True)
class Spec:
    """jobs: their number; nodes: of SHAPES, or fewer of each in proportion."""

    jobs: int = 120_000
    nodes: int = 120
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """N nodes, Q queues, J jobs in the order of arrival; R resources.

    capacity (N, R), node_group (N,); queue_group (Q,), limit (Q,): GPUs, guarantee (Q,): GPUs. Of jobs (J,):
    arrival_us, queue, user, priority, pods, gpus (of each pod), request (J, R): of each pod, work_us: how long it
    runs if it is never interrupted, preemptible, checkpoints: whether it can save its work, save_us: how long it takes
    to save and exit.
    """

    spec: Spec
    capacity: I64
    node_group: I64
    queue_group: I64
    guarantee: I64
    limit: I64
    arrival_us: I64
    queue: I64
    user: I64
    priority: I64
    pods: I64
    request: I64
    work_us: I64
    preemptible: Bools
    checkpoints: Bools
    save_us: I64

    @property
    def gpus(self) -> I64:
        """(J,) GPUs of all pods of each job."""
        return self.pods * self.request[:, 0]

    @property
    def group_gpus(self) -> I64:
        """(G,) GPUs of each group."""
        return np.bincount(self.node_group, self.capacity[:, 0], len(GROUPS)).astype(np.int64)

    @property
    def end_us(self) -> int:
        """The last arrival; replays end then."""
        return int(self.arrival_us[-1])


def generate(spec: Spec) -> Workload:
    """The workload of a seed."""
    rng = np.random.default_rng(spec.seed)
    capacity, node_group = _nodes(spec.nodes)
    group_gpus = np.bincount(node_group, capacity[:, 0], len(GROUPS))
    queue_group = np.array([group for _, group, _ in QUEUES])
    weight = np.array([weight for _, _, weight in QUEUES])
    share = weight / np.bincount(queue_group, weight)[queue_group] * group_gpus[queue_group]
    guarantee, limit = np.floor(0.8 * share).astype(np.int64), np.ceil(1.5 * share).astype(np.int64)
    limit = np.minimum(limit, group_gpus[queue_group]).astype(np.int64)
    urgent = rng.random(spec.jobs) < _URGENT_SHARE
    gpus, work_us = _sizes(rng, urgent)
    queue = rng.choice(len(QUEUES), spec.jobs, p=share / share.sum())
    gpus = np.minimum(gpus, 2 ** np.floor(np.log2(guarantee[queue])).astype(np.int64))
    user = rng.choice(USERS, spec.jobs, p=[0.1, 0.1, 0.3, 0.2, 0.2, 0.1])
    priority = np.where(urgent, URGENT, np.where(user < 2, PROJECT, ORDINARY))
    per_pod = np.minimum(gpus, _LARGEST_POD)
    smallest = np.array([capacity[node_group == group, 0].max() for group in range(len(GROUPS))])
    per_pod = np.minimum(per_pod, smallest[queue_group[queue]])
    cores = np.minimum(rng.choice(_CORES, spec.jobs), _CORES_PER_GPU)
    request = np.stack([per_pod, per_pod * cores, per_pod * cores // 1000 * (_MEMORY_PER_GPU // 12)], axis=1)
    preemptible = rng.random(spec.jobs) < np.where(gpus < _LARGE, _PREEMPTIBLE_SHARE, _PREEMPTIBLE_SHARE_OF_LARGE)
    preemptible &= ~urgent
    demand = float((gpus * work_us).sum()) / float(group_gpus.sum())  # microseconds of the whole cluster
    return Workload(
        spec,
        capacity,
        node_group,
        queue_group,
        guarantee,
        limit,
        _arrivals(rng, spec.jobs, demand),
        queue,
        user,
        priority,
        gpus // per_pod,
        request,
        work_us,
        preemptible,
        preemptible & (rng.random(spec.jobs) < _CHECKPOINT_SHARE),
        (rng.uniform(*_SAVE_S, spec.jobs) * SECOND).astype(np.int64),
    )


def _nodes(nodes: int) -> tuple[I64, I64]:
    """(N, R) amounts and (N,) groups."""
    total = sum(count for _, count, _ in SHAPES)
    gpus, group = [], []
    for of_group, count, each in SHAPES:
        scaled = max(1, round(count * nodes / total))
        gpus += [each] * scaled
        group += [of_group] * scaled
    of_gpu = np.array([1, _CORES_PER_GPU, _MEMORY_PER_GPU])
    return np.array(gpus, np.int64)[:, None] * of_gpu, np.array(group, np.int64)


def _sizes(rng: np.random.Generator, urgent: Bools) -> tuple[I64, I64]:
    """(J,) GPUs and durations of jobs, some of which are `urgent` (J,)."""
    jobs = len(urgent)
    gpus = np.where(urgent, rng.choice(_GPUS, jobs, p=_URGENT_SHARES), rng.choice(_GPUS, jobs, p=_SHARE_OF_JOBS))
    median = _MEDIAN_S * _LONGER_PER_DOUBLING ** np.log2(gpus)
    seconds = np.clip(median * np.exp(rng.normal(0.0, _SIGMA, jobs)), _SHORTEST_S, _LONGEST_S)
    return gpus, (seconds * SECOND).astype(np.int64)


def _arrivals(rng: np.random.Generator, jobs: int, demand_us: float) -> I64:
    """(J,) ascending: more than the capacity from Monday to Friday, less at the weekend and at night.

    demand_us: how long the cluster takes for all jobs. The weeks go on until all jobs have arrived.
    """
    step = HOUR // 4
    per_cluster_day = jobs * DAY / demand_us
    steps = int(4 * demand_us / step) + 1
    hour = (np.arange(steps) * step) % DAY / HOUR
    weekday = (np.arange(steps) * step) // DAY % 7 < 5
    rate = np.where(weekday, _WEEKDAY, _WEEKEND) * (1 + _DAY_SWING * np.sin((hour - 8) / 24 * 2 * np.pi))
    cumulated: F64 = np.r_[0.0, np.cumsum(rate * per_cluster_day * step / DAY)]
    at = np.sort(rng.uniform(0.0, min(float(jobs), cumulated[-1]), jobs))
    return np.interp(at, cumulated, np.arange(steps + 1) * step).astype(np.int64)
