"""A cluster after a preset, in use, and its churn: repeatedly some tasks end and as many arrive.

As in loads/engine.py the check reads only the generated input and the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.simulate.world import DEFAULT_TASK_SLOTS
from benchmarks.traces.form import FOREVER, MachineEvent
from benchmarks.traces.generate import generate, preset
from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.events import ClassDefined, Event, NodeObserved, TasksObserved, TasksRemoved

START_US = 1_700_000_000_000_000
_TRIES = 40


@dataclass(frozen=True, slots=True)
class ChurnSpec:
    """fill: share of the contended resource that running tasks request at the start. movable: whether running tasks
    may be evicted to run on other nodes."""

    preset: str
    nodes: int
    fill: float = 0.7
    seed: int = 0
    movable: bool = False


class ChurnLoad:
    """N nodes; R resources: those of the trace, and task slots. A task's uid is its position in the order of arrival,
    plus 1. Members of gangs are single tasks here."""

    def __init__(self, spec: ChurnSpec) -> None:
        chosen = preset(spec.preset)
        trace = generate(chosen, spec.nodes, 2.0, spec.seed)
        self._trace, self._rng, self._movable = trace, np.random.default_rng([spec.seed, 1]), spec.movable
        self.resources = (*trace.resources, "pods")
        slots = np.full(spec.nodes, DEFAULT_TASK_SLOTS)
        first = np.unique(trace.event_machine, return_index=True)[1]  # its ADD
        assert (trace.event_kind[first] == MachineEvent.ADD).all()
        self.allocatable: I64 = np.c_[trace.event_allocatable[first], slots]
        self.requests: I64 = np.c_[trace.requests, np.ones(len(trace.shapes), np.int64)]
        self.nodes = [
            NodeObserved(m.name, m.name, dict(zip(self.resources, row, strict=True)), m.labels)
            for m, row in zip(trace.machines, self.allocatable.tolist(), strict=True)
        ]
        self._row = {m.name: i for i, m in enumerate(trace.machines)}
        of_selector = {
            selector: np.array([all(r.matches(m.labels) for r in selector) for m in trace.machines], np.bool_)
            for selector in {s.selector for s in trace.shapes}
        }
        self._suits = [of_selector[s.selector] for s in trace.shapes]
        contended = trace.resources.index(chosen.contended)
        finite = trace.task_shape[trace.task_duration_us != FOREVER]
        self._arrivals = finite if len(finite) else trace.task_shape  # shapes, job after job
        self.used: I64 = np.zeros_like(self.allocatable)
        self.shape: I64 = np.zeros(0, np.int64)  # of each task so far
        self.node: I64 = np.zeros(0, np.int64)  # node of each task so far, -1: pending or ended
        self.pending: Bools = np.zeros(0, np.bool_)  # of each task so far
        self._fill(spec.fill * float(self.allocatable[:, contended].sum()), contended)

    @property
    def running(self) -> int:
        """The number of tasks on nodes."""
        return int((self.node >= 0).sum())

    def initial(self) -> list[Event]:
        """The events that describe the cluster at the start, with its running tasks."""
        tasks = np.flatnonzero(self.node >= 0)
        return [*self.nodes, *self._classes(np.unique(self.shape)), self._observed(tasks)]

    def churn(self, share: float) -> list[Event]:
        """A share of the running tasks ends, and as many arrive: consecutive tasks of the trace."""
        running = np.flatnonzero(self.node >= 0)
        count = max(1, round(share * len(running)))
        gone = np.sort(self._rng.choice(running, count, replace=False))
        np.subtract.at(self.used, self.node[gone], self.requests[self.shape[gone]])
        self.node[gone] = -1
        start = int(self._rng.integers(0, len(self._arrivals)))
        shapes = np.take(self._arrivals, np.arange(start, start + count), mode="wrap")
        new = self._add(shapes, np.full(count, -1))
        self.pending[new] = True
        return [*self._classes(np.unique(shapes)), TasksRemoved((gone + 1).astype(np.uint64)), self._observed(new)]

    def bind(self, uids: U64, node_ids: list[str]) -> tuple[Event, list[str]]:
        """Binds the placements of a round: the event that confirms them, and the rules that they break."""
        tasks, nodes = uids.astype(np.int64) - 1, np.array([self._row[i] for i in node_ids], np.int64)
        if len(np.unique(tasks)) < len(tasks) or not self.pending[tasks].all():
            return self._observed(tasks[:0]), ["a task is placed twice, or one that is not pending"]
        found = []
        shapes = self.shape[tasks]
        if any(not self._suits[s][nodes[shapes == s]].all() for s in np.unique(shapes).tolist()):
            found.append("a task is on a node that its selector excludes")
        self.pending[tasks], self.node[tasks] = False, nodes
        np.add.at(self.used, nodes, self.requests[shapes])
        over = int((self.used > self.allocatable).any(axis=1).sum())
        if over:
            found.append(f"{over} nodes are over-committed")
        return self._observed(tasks), found

    def evict(self, uids: U64) -> list[Event]:
        """Running tasks leave their nodes, and as many like them arrive."""
        tasks = uids.astype(np.int64) - 1
        np.subtract.at(self.used, self.node[tasks], self.requests[self.shape[tasks]])
        self.node[tasks] = -1
        new = self._add(self.shape[tasks], np.full(len(tasks), -1))
        self.pending[new] = True
        return [TasksRemoved(uids), self._observed(new)]

    def _fill(self, amount: float, contended: int) -> None:
        """Adds running tasks on random nodes where they fit, until they request `amount` of the contended resource."""
        requested = 0.0
        for _ in range(_TRIES):
            missing = amount - requested
            if missing <= 0:
                break
            shapes = self._rng.choice(self._trace.task_shape, max(64, 8 * len(self.nodes)))
            count = int(np.searchsorted(np.cumsum(self.requests[shapes, contended]), missing)) + 1
            shapes = shapes[:count]
            nodes = self._rng.integers(0, len(self.nodes), len(shapes))
            keep = self._fitting(shapes, nodes)
            shapes, nodes = shapes[keep], nodes[keep]
            np.add.at(self.used, nodes, self.requests[shapes])
            self._add(shapes, nodes)
            requested += float(self.requests[shapes, contended].sum())

    def _fitting(self, shapes: I64, nodes: I64) -> Bools:
        """(K,) which tasks fit on their nodes together with all tasks before them on the same node."""
        order = np.argsort(nodes, kind="stable")
        total = np.cumsum(self.requests[shapes[order]], axis=0)
        starts = np.flatnonzero(np.r_[True, np.diff(nodes[order]) != 0])
        sizes = np.diff(np.r_[starts, len(order)])
        before = np.repeat(total[starts] - self.requests[shapes[order[starts]]], sizes, axis=0)
        fits = (self.used[nodes[order]] + total - before <= self.allocatable[nodes[order]]).all(axis=1)
        keep = np.zeros(len(shapes), np.bool_)
        keep[order[fits]] = True
        suits = np.array([self._suits[s][n] for s, n in zip(shapes.tolist(), nodes.tolist(), strict=True)], np.bool_)
        return keep & suits

    def _add(self, shapes: I64, nodes: I64) -> I64:
        first = len(self.shape)
        self.shape, self.node = np.r_[self.shape, shapes], np.r_[self.node, nodes]
        self.pending = np.r_[self.pending, np.zeros(len(shapes), np.bool_)]
        return np.arange(first, len(self.shape))

    def _classes(self, shapes: I64) -> list[ClassDefined]:
        known = self._trace.shapes
        return [
            ClassDefined(s + 1, dict(known[s].requests), NodeDemand(selector=known[s].selector), known[s].priority)
            for s in shapes.tolist()
        ]

    def _observed(self, tasks: I64) -> TasksObserved:
        used, node = np.unique(self.node[tasks], return_inverse=True)
        bound = bool(len(used)) and int(used[0]) >= 0
        return TasksObserved(
            uid=(tasks + 1).astype(np.uint64),
            class_id=(self.shape[tasks] + 1).astype(np.uint64),
            job_id=(self.shape[tasks] + 1).astype(np.uint64),
            created_us=np.full(len(tasks), START_US, np.int64),
            node=node + 1 if bound else np.zeros(len(tasks), np.int64),
            names=[f"default/task-{t:07d}" for t in tasks.tolist()],
            nodes=tuple(self.nodes[n].id for n in used.tolist()) if bound else (),
            movable=np.ones(len(tasks), np.bool_) if self._movable else None,
        )
