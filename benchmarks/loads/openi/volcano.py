"""Volcano's rules in a replay: actions allocate and preempt, with the plugins and the settings of its chart (priority,
gang without a say in preemption, proportion, binpack).

A retelling, checked against its sources of August 2026 (pkg/scheduler/actions/{allocate,preempt}, plugins/{priority,
gang,proportion}, framework/session_plugins.go). In each session:

- *Queues*: a job of the queue with the lowest share, allocated over deserved GPUs, comes next. What a queue deserves is
  divided by weight, up to what its jobs request and to its capability. A task is allocatable as long as its queue stays
  within what it deserves.
- *Jobs* of a queue go by priority, then those that are not ready first, then by age. A gang is allocated entirely or
  not at all. A job that does not fit is passed over; nothing is reserved for it.
- *Nodes*: the fullest one that takes the task (binpack).
- *Preemption*: for the jobs that are left, in this order, task by task: the first node, by score, on which the tasks of
  lower priority of the same queue make room for it; the lowest priority leaves first, then the newest. Preemptible
  tasks of any job count, whether or not the rest of their gang stays. A job's evictions are carried out if all of its
  tasks have a node then, else none. Victims are evicted at once.

Simplified: tasks are counted in all resources, but shares in GPUs alone; every job may be tried (no action enqueue);
victims end at once, without a grace period; a preemptor is placed by the allocation that follows at once, as the most
important job. A job that loses a pod is restarted as a whole, as by the policy PodEvicted: RestartJob.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.loads.openi.cluster import Cluster
from benchmarks.loads.openi.rules import Timeline
from benchmarks.loads.openi.workload import QUEUES, URGENT
from firmament_py.model.arrays import F64, I64


class Volcano:
    """preempts: whether the action preempt is configured. every_us: the period of sessions."""

    def __init__(self, cluster: Cluster, timeline: Timeline, every_us: int, *, preempts: bool = True) -> None:
        self._cluster, self._load, self._timeline = cluster, cluster.load, timeline
        self.every_us = every_us
        self._preempts = preempts
        self._waiting: list[dict[int, None]] = [{} for _ in QUEUES]  # in the order of arrival
        self._requested: I64 = np.zeros(len(QUEUES), np.int64)  # GPUs of running and waiting jobs
        self._weight = np.array([weight for _, _, weight in QUEUES])
        self._on_node: list[set[tuple[int, int]]] = [set() for _ in self._load.capacity]  # job, pod
        self._gpus: list[int] = self._load.gpus.tolist()
        self._kind = list(map(tuple, np.c_[self._load.request, self._load.pods].tolist()))
        """Of each job: those of a kind fit on the same nodes."""
        self._order = list(zip(*(each.tolist() for each in (self._load.priority, -self._load.arrival_us)), strict=True))

    # -- what changes -----------------------------------------------------------------------------------------

    def arrived(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self._waiting[self._load.queue[job]][job] = None
            self._requested[self._load.queue[job]] += self._gpus[job]

    def ended(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self._requested[self._load.queue[job]] -= self._gpus[job]
        gone = set(jobs)
        for pods in self._on_node:
            pods.difference_update([each for each in pods if each[0] in gone])

    def due(self, what: str, job: int) -> None:
        raise AssertionError(f"nothing of these rules is due later: {what} of job {job}")

    def round(self) -> int | None:
        """A session; another one follows at once if it has evicted something."""
        deserved = self._deserved()
        self._allocate(deserved)
        if self._preempts and self._preempt(deserved):
            self._allocate(deserved)
        return None

    # -- the actions ------------------------------------------------------------------------------------------

    def _allocate(self, deserved: F64) -> None:
        cluster = self._cluster
        jobs = [self._in_order(queue) for queue in range(len(QUEUES))]
        failed: list[set[tuple[int, ...]]] = [set() for _ in QUEUES]
        allocated, entitled = cluster.used_of_queue.tolist(), deserved.tolist()
        while True:
            some = [q for q, each in enumerate(jobs) if each and allocated[q] < entitled[q]]
            if not some:
                return
            queue = some[0]
            for other in some[1:]:
                if allocated[other] * entitled[queue] < allocated[queue] * entitled[other]:
                    queue = other
            job = jobs[queue].pop()
            kind, gpus = self._kind[job], self._gpus[job]
            if kind in failed[queue]:
                continue  # within a session free capacity only becomes less
            nodes = self._nodes_for(job, cluster.free.copy()) if allocated[queue] + gpus <= entitled[queue] else None
            if nodes is None:
                failed[queue].add(kind)
                continue
            self._start(job, nodes)
            allocated[queue] += gpus

    def _nodes_for(self, job: int, free: I64) -> I64 | None:
        """A node for each pod, the fullest first; None: not all of them fit. `free` is changed."""
        load, request = self._load, self._load.request[job]
        of_group = np.flatnonzero(load.node_group == load.queue_group[load.queue[job]])
        chosen = []
        for _ in range(int(load.pods[job])):
            fits = of_group[(free[of_group] >= request).all(axis=1)]
            if not len(fits):
                return None
            node = int(fits[np.argmax(1 - free[fits, 0] / load.capacity[fits, 0])])
            free[node] -= request
            chosen.append(node)
        return np.array(chosen)

    def _preempt(self, deserved: F64) -> bool:
        """Evicts for the jobs that are left; whether there was anything to evict."""
        load, evicted = self._load, False
        future = self._cluster.free.copy()  # with what is evicted, without what is pipelined
        used = self._cluster.used_of_queue.copy()
        for queue in range(len(QUEUES)):
            for job in reversed(self._in_order(queue)):
                if load.priority[job] < URGENT:
                    break  # it may not preempt, nor may those that follow
                found = self._victims(job, future.copy(), int(used[queue]), float(deserved[queue]))
                if found is not None:
                    victims, future = found
                    used[queue] += self._gpus[job] - sum(int(load.request[v, 0]) for v, _ in victims)
                    evicted |= bool(victims)
                    self._evict(victims, job)
        return evicted

    def _victims(self, job: int, future: I64, used: int, deserved: float) -> tuple[set[tuple[int, int]], I64] | None:
        """Pods that leave so that all pods of a job fit, and what is free then beside it; None: that is impossible."""
        load, request = self._load, self._load.request[job]
        gpus = int(request[0])
        of_group = np.flatnonzero(load.node_group == load.queue_group[load.queue[job]])
        victims = set[tuple[int, int]]()
        for _ in range(int(load.pods[job])):
            score = 1 - future[of_group, 0] / load.capacity[of_group, 0]
            for node in of_group[np.argsort(-score, kind="stable")].tolist():
                here, left, queue_used = [], future[node].copy(), used
                candidates = self._candidates(job, node, victims)
                while not ((left >= request).all() and queue_used + gpus <= deserved) and candidates:
                    victim = candidates.pop()
                    here.append(victim)
                    left += load.request[victim[0]]
                    queue_used -= int(load.request[victim[0], 0])
                if (left >= request).all() and queue_used + gpus <= deserved:
                    future[node] = left - request
                    used = queue_used + gpus
                    victims.update(here)
                    break
            else:
                return None
        return victims, future

    def _candidates(self, job: int, node: int, gone: set[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pods on a node that may leave for a job; the last one first."""
        load = self._load
        found = [
            pod
            for pod in self._on_node[node] - gone
            if load.preemptible[pod[0]]
            and load.queue[pod[0]] == load.queue[job]
            and load.priority[pod[0]] < load.priority[job]
        ]
        return sorted(found, key=lambda pod: (-load.priority[pod[0]], load.arrival_us[pod[0]], pod))

    # -- what follows from them -------------------------------------------------------------------------------

    def _start(self, job: int, nodes: I64) -> None:
        del self._waiting[self._load.queue[job]][job]
        self._cluster.start(job, nodes)
        self._timeline.at(self._cluster.end_us(job), "end", job, int(self._cluster.attempt[job]))
        for pod, node in enumerate(nodes.tolist()):
            self._on_node[node].add((job, pod))

    def _evict(self, victims: set[tuple[int, int]], preemptor: int) -> None:
        """The jobs of these pods are restarted as a whole: all of their pods end, and wait again."""
        cluster, load = self._cluster, self._load
        cluster.measures.preemptions += bool(victims)
        for job in sorted({job for job, _ in victims}):
            pods = enumerate(cluster.nodes[job].tolist())
            for pod, node in pods:
                self._on_node[node].discard((job, pod))
            chosen = sum(1 for each, _ in victims if each == job)
            cluster.evict(job, preemptor, chosen, saved=False)
            self._waiting[load.queue[job]][job] = None

    def _in_order(self, queue: int) -> list[int]:
        """The waiting jobs of a queue, the first one last."""
        return sorted(self._waiting[queue], key=lambda job: (*self._order[job], -job))

    def _deserved(self) -> F64:
        """(Q,) GPUs that each queue deserves, by weight within its group, up to what it requests and its limit."""
        load = self._load
        cap = np.minimum(self._requested, load.limit).astype(np.float64)
        deserved = np.zeros(len(QUEUES))
        for group, left in enumerate(load.group_gpus.astype(np.float64).tolist()):
            rows = np.flatnonzero(load.queue_group == group)
            while len(rows) and left > 1e-9:
                given = np.minimum(left * self._weight[rows] / self._weight[rows].sum(), cap[rows] - deserved[rows])
                deserved[rows] += given
                left -= float(given.sum())
                full = cap[rows] - deserved[rows] <= 1e-9
                if not full.any():
                    break
                rows = rows[~full]
        return deserved
