"""The state of the cluster in a replay, what it costs jobs, and the checks of every decision.

It reads only the workload and what schedulers decide, not their state: a defect there cannot hide itself. Violations
are counted and reported; they do not stop the replay.

    FUTURE -> WAITING -> RUNNING -> DONE
                 ^          |
                 +----------+   evicted: it waits again, with the work that it has not saved
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

import numpy as np

from benchmarks.loads.openi.measures import Measures
from benchmarks.loads.openi.workload import CHECKPOINT_EVERY, URGENT, Workload
from firmament_py.model.arrays import I64, U8


class State(IntEnum):
    """The state of a job."""

    FUTURE = 0
    WAITING = 1
    RUNNING = 2
    DONE = 3


class Cluster:
    """free (N, R); of jobs (J,): state, remaining_us, started_us, attempt: how often it has been evicted; nodes: of
    each running job, a node for every pod."""

    def __init__(self, load: Workload) -> None:
        self.load = load
        jobs = len(load.queue)
        self.now_us = 0
        self.free: I64 = load.capacity.copy()
        self.state: U8 = np.zeros(jobs, np.uint8)
        self.remaining_us: I64 = load.work_us.copy()
        self.started_us: I64 = np.full(jobs, -1, np.int64)
        self.attempt: I64 = np.zeros(jobs, np.int64)
        self._gpus: list[int] = load.gpus.tolist()
        self.nodes: dict[int, I64] = {}
        self.used_of_queue: I64 = np.zeros(len(load.limit), np.int64)  # GPUs
        self.measures = Measures(load)
        self.violations: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    @property
    def sound(self) -> bool:
        return not self.violations

    def advance(self, now_us: int) -> None:
        """Time passes."""
        self.measures.advance(now_us, self.free)
        self.now_us = now_us

    def arrive(self, job: int) -> None:
        self.state[job] = State.WAITING
        self.measures.wait(job)

    def start(self, job: int, nodes: I64) -> None:
        """All pods of a waiting job start, on nodes (P,)."""
        load = self.load
        if self.state[job] != State.WAITING:
            return self.violated("only waiting jobs start, each once", f"job {job} is {State(self.state[job]).name}")
        if len(nodes) != load.pods[job]:
            self.violated("no job starts in part", f"job {job}: {len(nodes)} of {load.pods[job]} pods")
        if (load.node_group[nodes] != load.queue_group[load.queue[job]]).any():
            self.violated("jobs run on the nodes of their queues", f"job {job}")
        np.subtract.at(self.free, nodes, load.request[job])
        if (self.free[nodes] < 0).any():
            self.violated("no node is over-committed", f"job {job}")
        queue, gpus = int(load.queue[job]), self._gpus[job]
        self.used_of_queue[queue] += gpus
        if self.used_of_queue[queue] > load.limit[queue]:
            self.violated("no queue exceeds its limit", f"queue {queue}: {self.used_of_queue[queue]} GPUs")
        self.state[job], self.started_us[job] = State.RUNNING, self.now_us
        self.nodes[job] = nodes
        self.measures.start(job, self.now_us)
        return None

    def end(self, job: int) -> None:
        """A running job has completed."""
        self._release(job)
        self.state[job], self.remaining_us[job] = State.DONE, 0
        self.measures.end(job, self.now_us)

    def evict(self, job: int, preemptor: int, pods: int, *, saved: bool) -> None:
        """A running job loses `pods` of its pods to another one, and with them all; it waits again. saved: it has saved
        its work just now."""
        load = self.load
        self._check_victim(job, preemptor)
        done = self.now_us - int(self.started_us[job])
        saved_us = done if saved else done // CHECKPOINT_EVERY * CHECKPOINT_EVERY * int(load.checkpoints[job])
        self._release(job)
        self.remaining_us[job] -= saved_us
        self.attempt[job] += 1
        self.state[job] = State.WAITING
        self.measures.evict(job, pods, done - saved_us, self.now_us)

    def end_us(self, job: int) -> int:
        """When a running job completes if it is not interrupted."""
        return int(self.started_us[job] + self.remaining_us[job])

    def check_totals(self) -> None:
        """Compares the running totals with the sums over the jobs that run, and counts that every job is somewhere."""
        load, used = self.load, np.zeros_like(self.free)
        of_queue = np.zeros_like(self.used_of_queue)
        for job, nodes in self.nodes.items():
            np.add.at(used, nodes, load.request[job])
            of_queue[load.queue[job]] += self._gpus[job]
        if (load.capacity - used != self.free).any() or (of_queue != self.used_of_queue).any():
            self.violated("the totals are those of the jobs that run", "in the end")
        if set(np.flatnonzero(self.state == State.RUNNING).tolist()) != set(self.nodes):
            self.violated("jobs that run have nodes", "in the end")
        lost = (self.state == State.DONE) & (self.measures.done_us < load.arrival_us + load.work_us)
        if lost.any():
            self.violated("jobs end no sooner than their work is done", f"job {int(np.flatnonzero(lost)[0])}")

    def _check_victim(self, job: int, preemptor: int) -> None:
        load, names = self.load, f"job {job} for job {preemptor}"
        if self.state[job] != State.RUNNING:
            self.violated("only running jobs are evicted", names)
        if not load.preemptible[job]:
            self.violated("only preemptible jobs are evicted", names)
        if load.queue[job] != load.queue[preemptor] or load.priority[job] >= load.priority[preemptor]:
            self.violated("victims are of lower priority, of the same queue", names)
        if load.priority[preemptor] != URGENT:
            self.violated("only jobs that may preempt do", names)

    def _release(self, job: int) -> None:
        load = self.load
        np.add.at(self.free, self.nodes.pop(job), load.request[job])
        self.used_of_queue[load.queue[job]] -= self._gpus[job]

    def violated(self, rule: str, example: str) -> None:
        """Notes that a rule does not hold."""
        self.violations[rule] += 1
        self.examples.setdefault(rule, f"{example}, after {self.now_us / 3.6e9:.2f} h")
