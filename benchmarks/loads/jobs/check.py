"""Carries out the decisions of rounds on a model of the cluster, and checks them.

It reads only the generated load and the decisions: victims and movers end, and for each mover a successor of the same
job and class waits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from benchmarks.loads.jobs.load import NOWHERE, JobsLoad
from firmament_py.model.arrays import I64, NO_ROWS, Bools

_Pairs = tuple[I64, I64]
"""Tasks (K,), and nodes (K,)."""

_NONE: _Pairs = (NO_ROWS, NO_ROWS)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a round, with the task numbers of the load: tasks that it places, victims (V,), tasks for which
    nodes are reserved until their victims are gone, tasks (U,) whose reservations end, tasks that move."""

    placed: _Pairs = _NONE
    victims: I64 = field(default_factory=lambda: NO_ROWS)
    nominated: _Pairs = _NONE
    unnominated: I64 = field(default_factory=lambda: NO_ROWS)
    moved: _Pairs = _NONE

    @property
    def is_empty(self) -> bool:
        return not sum(map(len, (self.placed[0], self.victims, self.nominated[0], self.unnominated, self.moved[0])))


class World:
    """The T tasks of a load and their successors, as decisions leave them."""

    def __init__(self, load: JobsLoad) -> None:
        waiting = load.spec.jobs * load.spec.size
        self._load = load
        self.cls: I64 = np.append(load.cls, np.full(waiting, len(load.requests) - 1))
        own = np.arange(len(load.node)) + load.spec.jobs
        self.job: I64 = np.append(own, np.repeat(np.arange(load.spec.jobs), load.spec.size))
        self.node: I64 = np.append(load.node, np.full(waiting, NOWHERE))
        self.nominated: I64 = np.full(len(self.node), NOWHERE)
        self.gone: Bools = np.zeros(len(self.node), np.bool_)
        self.expected: dict[tuple[int, int], Counter[int]] = {}
        """Job and class of successors -> where they are expected."""

    @property
    def served(self) -> Bools:
        """(T,) which tasks of the jobs run or have a node reserved."""
        served: Bools = (self.job < self._load.spec.jobs) & ((self.node != NOWHERE) | (self.nominated != NOWHERE))
        return served

    @property
    def half_served(self) -> int:
        """How many jobs are served in part."""
        count = np.bincount(self.job[self.served], minlength=self._load.spec.jobs)
        return int(((count > 0) & (count < self._load.spec.size)).sum())

    @property
    def successors_waiting(self) -> int:
        """How many tasks that have moved do not run again yet."""
        return sum(places.total() for places in self.expected.values())

    def apply(self, decision: Decision) -> list[str]:
        """Carries out a decision. Returns what is wrong with it; empty: nothing."""
        problems = [*self._place(*decision.placed), *self._nominate(decision)]
        problems += [*self._wrong_victims(decision), *self._wrong_movers(decision)]
        moved, to = decision.moved
        self.gone[decision.victims] = self.gone[moved] = True
        self._succeed(moved, to)
        planned = self._used(np.flatnonzero(self.nominated != NOWHERE), self.nominated)
        for (_, cls), places in self.expected.items():
            for node, count in places.items():
                planned[node] += count * self._load.requests[cls]
        if (self._used(np.flatnonzero(~self.gone), self.node) + planned > self._load.allocatable).any():
            problems.append("a node could not take what it is reserved for once the tasks that leave it are gone")
        if self.half_served:
            problems.append(f"{self.half_served} jobs are served in part")
        return problems

    def _place(self, tasks: I64, nodes: I64) -> list[str]:
        """Places tasks, while the victims and movers of the same decision still use their nodes."""
        problems = []
        if len(np.unique(tasks)) < len(tasks) or self.gone[tasks].any() or (self.node[tasks] != NOWHERE).any():
            problems.append("a task is placed that does not wait")
        self.node[tasks], self.nominated[tasks] = nodes, NOWHERE
        if (self._used(np.flatnonzero(~self.gone), self.node) > self._load.allocatable).any():
            problems.append("a node is over-committed")
        again = tasks >= self._load.spec.jobs * self._load.spec.size + len(self._load.node)
        for task, node in zip(tasks[again].tolist(), nodes[again].tolist(), strict=True):
            places = self.expected[int(self.job[task]), int(self.cls[task])]
            if not places[node]:
                problems.append("a task that has moved runs on another node than planned")
            places.subtract([node if places[node] else next(places.elements())])
        return problems

    def _nominate(self, decision: Decision) -> list[str]:
        self.nominated[decision.unnominated] = NOWHERE
        tasks, nodes = decision.nominated
        self.nominated[tasks] = nodes
        wrong = self.gone[tasks] | (self.node[tasks] != NOWHERE)
        return ["a node is reserved for a task that does not wait"] if wrong.any() else []

    def _wrong_victims(self, decision: Decision) -> list[str]:
        """After the nominations of the same decision."""
        victims, priority = decision.victims, self._load.priority
        problems = []
        if len(np.unique(victims)) < len(victims):
            problems.append("a task is preempted twice")
        if self.gone[victims].any() or (self.node[victims] == NOWHERE).any():
            problems.append("a task is preempted that does not run")
        highest = np.full(len(self._load.allocatable), np.iinfo(np.int64).min)
        holders = np.flatnonzero(self.nominated != NOWHERE)
        np.maximum.at(highest, self.nominated[holders], priority[self.cls[holders]])
        if (priority[self.cls[victims]] >= highest[self.node[victims]]).any():
            problems.append("a task is preempted, and its node is reserved for none of higher priority")
        return problems

    def _wrong_movers(self, decision: Decision) -> list[str]:
        tasks, to = decision.moved
        problems = []
        if len(np.unique(tasks)) < len(tasks):
            problems.append("a task moves twice")
        if self.gone[tasks].any() or (self.node[tasks] == NOWHERE).any():
            problems.append("a task moves that does not run")
        if len(np.intersect1d(tasks, decision.victims)):
            problems.append("a task is preempted and moves")
        if len(tasks) and not (self._load.spec.movable and (self.job[tasks] >= self._load.spec.jobs).all()):
            problems.append("a task moves that is not movable")
        if (self.node[tasks] == to).any():
            problems.append("a task moves to the node that it leaves")
        return problems

    def _succeed(self, moved: I64, to: I64) -> None:
        """A successor of each of the tasks that moved waits, as the last tasks."""
        job, cls, nowhere = self.job[moved], self.cls[moved], np.full(len(moved), NOWHERE)
        for of_job, of_class, node in zip(job.tolist(), cls.tolist(), to.tolist(), strict=True):
            self.expected.setdefault((of_job, of_class), Counter())[node] += 1
        self.job, self.cls = np.append(self.job, job), np.append(self.cls, cls)
        self.node, self.nominated = np.append(self.node, nowhere), np.append(self.nominated, nowhere)
        self.gone = np.append(self.gone, np.zeros(len(moved), np.bool_))

    def _used(self, tasks: I64, on: I64) -> I64:
        """(N, R) what tasks (K,) use on the nodes `on` (T,)."""
        tasks = tasks[on[tasks] != NOWHERE]
        used = np.zeros_like(self._load.allocatable)
        np.add.at(used, on[tasks], self._load.requests[self.cls[tasks]])
        return used
