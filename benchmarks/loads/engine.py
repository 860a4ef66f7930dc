"""A synthetic cluster and its pods as the engine's events, and an independent check of what a round placed.

The check reads only the generated input (the arrays below) and the result (task uid -> node id), not the engine's
tables: a defect there cannot hide itself.
"""

from __future__ import annotations

import heapq
import operator
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.demo.workload import SHAPES, PodSort, allocatable, open_capacity, pod_sorts, shape_of_each
from benchmarks.harness.runner import Options
from firmament_py.engine.engine import Engine
from firmament_py.model.arrays import I64, U64
from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Taint, Toleration
from firmament_py.model.events import ClassDefined, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
"""When tasks are created; rounds run a second later."""

_LINKS = ("bandwidth.ingress", "bandwidth.egress")
_SENDS = (0, 10_000_000, 50_000_000, 100_000_000, 400_000_000)  # bits a second
_KINDS = ("sheep", "rabbit", "devil", "turtle")
_PLATFORM = "node.kubernetes.io/instance-type"
_PLATFORMS = ("m5", "c5", "r5", "a1")
_SPEEDS = ("c5=1.6,m5=1,r5=1,a1=0.7", "r5=1.2,m5=1,c5=1.1,a1=0.9", "a1=1,m5=1,c5=1,r5=1")

_FULLEST, _EMPTIEST = 0.9, 0.1
"""Range of the utilisation of nodes in an unevenly loaded cluster."""


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """Sizes of a load. `running` tasks are on nodes beforehand; running and pending tasks together request the share
    `fill` of what the nodes offer. `uneven` spreads the running ones unevenly; with `lengths` tasks have expected
    durations of 10 seconds to 6 hours. `natures`: classes have bandwidths, interference classes and speeds, and nodes
    have links of 10 Gbit/s and one of four instance types."""

    nodes: int
    pods: int
    classes: int
    fill: float = 0.7
    running: int = 0
    uneven: bool = False
    lengths: bool = False
    shapes: str = "uniform"
    natures: bool = False
    seed: int = 0

    def scaled(self, options: Options, least_nodes: int = 1) -> LoadSpec:
        """All sizes at the chosen scale; every class keeps at least one pod."""
        return replace(
            self,
            nodes=options.scaled(self.nodes, least_nodes),
            pods=options.scaled(self.pods),
            running=options.scaled(self.running),
            classes=min(self.classes, options.scaled(self.pods)),
        )


class EngineLoad:
    """The events of a load. N nodes, C classes; resources are the names in `resources`."""

    def __init__(self, spec: LoadSpec) -> None:
        self.spec = spec
        shapes = SHAPES[spec.shapes]
        links = dict.fromkeys(_LINKS, 10_000_000_000) if spec.natures else {}
        offers = [{**allocatable(shape), **links} for shape in shape_of_each(shapes, spec.nodes)]
        self.nodes = [
            NodeObserved(
                id=f"node-{i:05d}",
                name=f"node-{i:05d}",
                allocatable=offers[i],
                labels={
                    "kubernetes.io/hostname": f"node-{i:05d}",
                    **({_PLATFORM: _PLATFORMS[i % len(_PLATFORMS)]} if spec.natures else {}),
                    **shape.labels,
                },
                taints=tuple(Taint(t["key"], t["value"], t["effect"]) for t in shape.taints),
            )
            for i, shape in enumerate(shape_of_each(shapes, spec.nodes))
        ]
        total = spec.pods + spec.running
        self.sorts = pod_sorts(spec.classes, total, spec.fill, open_capacity(shapes, spec.nodes), spec.seed)
        self.classes = [
            _class(i + 1, sort, 10_000_000 * 2 ** (i % 12) if spec.lengths else 0) for i, sort in enumerate(self.sorts)
        ]
        if spec.natures:
            self.classes = [_with_nature(cls) for cls in self.classes]
        self.resources = tuple(sorted({"pods"}.union(*offers)))
        self.allocatable: I64 = np.array([[o.get(r, 0) for r in self.resources] for o in offers], np.int64)
        self.requests: I64 = np.array(
            [[1 if r == "pods" else c.requests.get(r, 0) for r in self.resources] for c in self.classes], np.int64
        )
        self._running_node, running_class = self._occupy()
        pending_class = np.random.default_rng(spec.seed).permutation(spec.pods) % spec.classes
        self._class_of: I64 = np.concatenate([running_class, pending_class]).astype(np.int64)
        self._row = {node.id: i for i, node in enumerate(self.nodes)}

    @property
    def running(self) -> int:
        """Tasks that are on nodes beforehand: spec.running, or fewer if not all of them fit."""
        return len(self._running_node)

    def tasks(self, chosen: slice = slice(None)) -> TasksObserved:
        """The running tasks, then the pending ones, or a slice of these."""
        rows = np.arange(self.running + self.spec.pods)[chosen]
        node = np.zeros(len(rows), np.int64)
        is_running = rows < self.running
        node[is_running] = self._running_node[rows[is_running]] + 1
        return TasksObserved(
            uid=(rows + 1).astype(np.uint64),
            class_id=(self._class_of[rows] + 1).astype(np.uint64),
            job_id=(self._class_of[rows] + 1).astype(np.uint64),
            created_us=np.full(len(rows), START_US, np.int64),
            node=node,
            names=[f"default/pod-{row:06d}" for row in rows.tolist()],
            nodes=tuple(n.id for n in self.nodes) if is_running.any() else (),
        )

    def measure(self, engine: Engine, samples: int = 10) -> None:
        """Gives the engine samples of the running tasks' usage: random shares of 0.1 to 0.9 of their requests."""
        rng = np.random.default_rng(self.spec.seed)
        rows = engine.state.task_rows(np.arange(1, self.running + 1, dtype=np.uint64))
        columns = [self.resources.index(name) for name in ("cpu", "memory")]
        requested = self.requests[self._class_of[: self.running]][:, columns]
        for number in range(samples):
            values = np.full((self.running, 4), np.nan)
            values[:, :2] = requested * rng.uniform(0.1, 0.9, requested.shape)
            at = np.full(self.running, START_US - (samples - number) * 30_000_000)
            engine.usage.note_tasks(engine.state, rows, at, values, START_US)

    def violations(self, uids: U64, node_ids: Iterable[str]) -> list[str]:
        """The rules that placing tasks `uids` (K,) on `node_ids` (K) breaks; empty if none."""
        found = []
        rows = uids.astype(np.int64) - 1
        if len(np.unique(rows)) != len(rows):
            found.append("a task is placed twice")
        if len(rows) and (rows.min() < self.running or rows.max() >= self.running + self.spec.pods):
            found.append("a task is placed that is not pending")
            return found
        nodes = np.array([self._row.get(node, -1) for node in node_ids], np.int64)
        if (nodes < 0).any():
            found.append("a task is placed on a node that does not exist")
            return found
        over = self.requested(rows, nodes) > self.allocatable
        for r in np.flatnonzero(over.any(axis=0)).tolist():
            found.append(f"{int(over[:, r].sum())} nodes are over-committed in {self.resources[r]}")
        tainted = np.array([bool(node.taints) for node in self.nodes])
        if tainted[nodes].any():
            found.append(f"{int(tainted[nodes].sum())} tasks are on nodes whose taint they do not tolerate")
        return found

    def unused(self, uids: U64, node_ids: Iterable[str]) -> str:
        """The first class with pending tasks that fit in the free capacity of an untainted node, once tasks `uids` (K,)
        are on `node_ids` (K); empty if there is none."""
        rows = uids.astype(np.int64) - 1
        nodes = np.array([self._row[node] for node in node_ids], np.int64)
        waiting = np.ones(self.running + self.spec.pods, np.bool_)
        waiting[: self.running] = False
        waiting[rows] = False
        tainted = np.array([bool(node.taints) for node in self.nodes])
        free = (self.allocatable - self.requested(rows, nodes))[~tainted]
        for c in np.unique(self._class_of[waiting]).tolist():
            fits = int((free >= self.requests[c]).all(axis=1).sum())
            if fits:
                count = int((waiting & (self._class_of == c)).sum())
                return f"{count} tasks of {self.sorts[c].name} wait, and {fits} nodes have capacity for one"
        return ""

    def requested(self, rows: I64, nodes: I64) -> I64:
        """(N, R): what the running tasks and those of `rows` (K,) on `nodes` (K,) request together."""
        total = np.zeros_like(self.allocatable)
        np.add.at(total, self._running_node, self.requests[self._class_of[: self.running]])
        np.add.at(total, nodes, self.requests[self._class_of[rows]])
        return total

    def _occupy(self) -> tuple[I64, I64]:
        """Nodes and classes of the running tasks, (at most spec.running,) each.

        Each task goes to the node with the lowest use of its target; its class is the next in rotation that fits.
        """
        rng = random.Random(f"running {self.spec.seed}")
        free = self.allocatable.tolist()
        requests = self.requests.tolist()
        cpu = self.resources.index("cpu")
        open_nodes = [i for i, node in enumerate(self.nodes) if not node.taints]
        target = {i: free[i][cpu] * (rng.uniform(_EMPTIEST, _FULLEST) if self.spec.uneven else 1.0) for i in open_nodes}
        heap = [(0.0, rng.random(), i) for i in open_nodes]
        heapq.heapify(heap)
        used = dict.fromkeys(open_nodes, 0)
        nodes: list[int] = []
        classes: list[int] = []
        while heap and len(nodes) < self.spec.running:
            _, tie, i = heapq.heappop(heap)
            rotation = [(len(nodes) + k) % len(requests) for k in range(len(requests))]
            c = next((c for c in rotation if all(map(operator.le, requests[c], free[i]))), None)
            if c is None:
                continue  # full: it leaves the heap
            free[i] = list(map(operator.sub, free[i], requests[c]))
            used[i] += requests[c][cpu]
            nodes.append(i)
            classes.append(c)
            heapq.heappush(heap, (used[i] / target[i], tie, i))
        return np.array(nodes, np.int64), np.array(classes, np.int64)


def _with_nature(cls: ClassDefined) -> ClassDefined:
    """The class with a bandwidth, an interference class and a speed, each from a rotation of its own length."""
    number = cls.id - 1
    sends = _SENDS[number % len(_SENDS)]
    traits = {"interference-class": _KINDS[number % len(_KINDS)], "speed": _SPEEDS[number % len(_SPEEDS)]}
    requests = {**cls.requests, **dict(zip(_LINKS, (sends // 2, sends), strict=True))}
    return replace(cls, requests=requests, traits=traits)


def _class(number: int, sort: PodSort, expected_us: int) -> ClassDefined:
    demand = NodeDemand(
        selector=tuple(Requirement(key, Operator.IN, (value,)) for key, value in sort.selector.items()),
        tolerations=tuple(
            Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
            for t in sort.tolerations
        ),
    )
    return ClassDefined(number, sort.requests, demand, name=sort.name, expected_us=expected_us)
