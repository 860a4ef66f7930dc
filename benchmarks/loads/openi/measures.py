"""What a replay measures: GPU use, balance of nodes, waits, and what preemption costs the jobs that are preempted."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.openi.workload import URGENT, Workload
from firmament_py.model.arrays import F64, I64, Bools

SAMPLE_US = 300_000_000
"""How often the balance of the nodes is measured."""

_OVERLOAD = 1.1
"""A group of nodes is overloaded while its jobs, running and waiting, request this multiple of its GPUs."""


class Measures:
    """Of one replay. GPU use and balance are measured for each group while it is overloaded."""

    def __init__(self, load: Workload) -> None:
        self._load = load
        self._now_us = self._sampled_us = 0
        self._group_gpus = load.group_gpus
        self._demand: I64 = np.zeros(len(self._group_gpus), np.int64)
        self._used: I64 = np.zeros(len(self._group_gpus), np.int64)
        self._gpus = load.gpus.tolist()
        self._group = load.queue_group[load.queue].tolist()
        self._use_us, self._offered_us = np.zeros((2, len(self._group_gpus)))  # GPU-microseconds, all the time
        self._busy_us, self._overload_us = np.zeros((2, len(self._group_gpus)))  # in overload
        self._node_us: F64 = np.zeros(
            len(load.capacity)
        )  # GPU-microseconds of each node, while its group is overloaded
        self._differences: list[float] = []
        jobs = len(load.queue)
        self.first_start_us: I64 = np.full(jobs, -1, np.int64)
        self.done_us: I64 = np.full(jobs, -1, np.int64)
        self.evictions: I64 = np.zeros(jobs, np.int64)
        self.waited_us: I64 = np.zeros(jobs, np.int64)
        """Of each job, until its first start and after evictions."""
        self._since: dict[int, int] = {}
        self.pods_evicted = self.pods_chosen = 0
        self.lost_gpu_us = 0
        self.announced = self.spared = self.preemptions = 0

    def advance(self, now_us: int, free: I64) -> None:
        """Adds the time since the last call, in which nothing changed. free (N, R)."""
        passed = now_us - self._now_us
        if passed <= 0:
            return
        over = self._demand >= _OVERLOAD * self._group_gpus
        self._use_us += self._used * passed
        self._offered_us += self._group_gpus * passed
        self._busy_us += self._used * passed * over
        self._overload_us += self._group_gpus * passed * over
        used = self._load.capacity[:, 0] - free[:, 0]
        self._node_us += used * passed * over[self._load.node_group]
        while self._sampled_us + SAMPLE_US <= now_us:
            self._sampled_us += SAMPLE_US
            if over.all():
                self._differences.append(mean_difference(used / self._load.capacity[:, 0]))
        self._now_us = now_us

    def wait(self, job: int) -> None:
        """A job arrives."""
        self._demand[self._group[job]] += self._gpus[job]
        self._since[job] = int(self._load.arrival_us[job])

    def start(self, job: int, now_us: int) -> None:
        self._used[self._group[job]] += self._gpus[job]
        self.waited_us[job] += now_us - self._since.pop(job)
        if self.first_start_us[job] < 0:
            self.first_start_us[job] = now_us

    def end(self, job: int, now_us: int) -> None:
        self._used[self._group[job]] -= self._gpus[job]
        self._demand[self._group[job]] -= self._gpus[job]
        self.done_us[job] = now_us

    def evict(self, job: int, pods: int, lost_us: int, now_us: int) -> None:
        """A job stops, of whose pods `pods` were chosen, and loses the work of lost_us."""
        self._used[self._group[job]] -= self._gpus[job]
        self._since[job] = now_us
        self.evictions[job] += 1
        self.pods_chosen += pods
        self.pods_evicted += int(self._load.pods[job])
        self.lost_gpu_us += lost_us * self._gpus[job]

    # -- figures ----------------------------------------------------------------------------------------------

    @property
    def use(self) -> float:
        """Share of the GPU-time that jobs used, always."""
        return float(self._use_us.sum() / self._offered_us.sum())

    @property
    def use_in_overload(self) -> float:
        """Likewise, of groups while they are overloaded."""
        return float(self._busy_us.sum() / self._overload_us.sum())

    @property
    def overload(self) -> float:
        """Share of GPU-time that belongs to overloaded groups."""
        return float(self._overload_us.sum() / self._offered_us.sum())

    @property
    def spread(self) -> float:
        """The highest minus the lowest of the nodes' GPU use, each the mean over the time in which its group is
        overloaded."""
        group = self._load.node_group
        time = (self._overload_us / np.maximum(self._group_gpus, 1))[group]
        use = self._node_us[time > 0] / (time * self._load.capacity[:, 0])[time > 0]
        return float(use.max() - use.min()) if len(use) else float("nan")

    @property
    def imbalance(self) -> float:
        """The mean absolute difference between the GPU use of two nodes at the same time, while all groups are
        overloaded."""
        return float(np.mean(self._differences)) if self._differences else float("nan")

    @property
    def evicted_jobs(self) -> int:
        """Evictions of whole jobs; a job that is evicted twice counts twice."""
        return int(self.evictions.sum())

    @property
    def lost_gpu_h(self) -> float:
        return self.lost_gpu_us / 3.6e9

    def waits_s(self, some: Bools) -> F64:
        """(K,) seconds from arrival to the first start of some of the jobs (J,), or until now."""
        arrival, first = self._load.arrival_us, self.first_start_us
        waits: F64 = (np.where(first >= 0, first, self._now_us) - arrival)[some] / 1e6
        return waits

    @property
    def urgent(self) -> Bools:
        """(J,) jobs of the priority that may preempt."""
        return np.asarray(self._load.priority == URGENT)


def mean_difference(use: F64) -> float:
    """The mean absolute difference between two of the values (N,)."""
    count = len(use)
    ranks = 2 * np.arange(count) - count + 1  # how often each value is the larger one, less how often the smaller
    return float((np.sort(use) * ranks).sum()) / max(count * (count - 1) / 2, 1)
