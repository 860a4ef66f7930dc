"""Random clusters of unequal nodes and classes with several resources, and two other ways to pack them: the rules of
kube-scheduler, retold, and an exact solver of another kind.

Clusters: nodes of two to five shapes, half of the clusters partly used; classes that request cpu, memory and sometimes
GPUs, a third of them bound to a zone, a kind of disk or a shape; together they request 0.8 to 1.2 times the scarcer of
cpu and memory that is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from benchmarks.loads.kube_scores import scores
from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import NodeDemand, Operator, Requirement
from firmament_py.model.events import ClassDefined, Event, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
"""When the pods are created, in one moment; rounds run a second later."""

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")
_MIB = 2**20
_SHAPES = np.array(
    [
        (4000, 16384, 0, 110),
        (8000, 32768, 0, 110),
        (16000, 65536, 0, 110),
        (32000, 131072, 0, 110),
        (64000, 262144, 0, 250),
        (16000, 131072, 0, 110),
        (32000, 65536, 0, 110),
        (48000, 196608, 4, 110),
        (96000, 393216, 8, 110),
    ],
    np.int64,
)
"""Millicores, MiB, GPUs, pods."""
_MILLICORES = (100, 200, 250, 500, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12000)
_MILLICORES_SHARES = (0.08, 0.08, 0.08, 0.15, 0.15, 0.08, 0.13, 0.07, 0.08, 0.04, 0.04, 0.02)
_GIB_PER_CORE = (0.5, 1, 2, 4, 6, 8, 12)


@dataclass(frozen=True, slots=True)
class PackingLoad:
    """N nodes, C classes, R resources, memory in MiB. suitable (C, N): where a class may go; count (C,): its pods."""

    allocatable: I64
    free: I64
    requests: I64
    suitable: Bools
    count: I64
    seed: int

    @classmethod
    def random(cls, seed: int, nodes: int, classes: int) -> PackingLoad:
        """A cluster of so many nodes, and pods of so many classes."""
        rng = np.random.default_rng(seed)
        shapes = rng.choice(len(_SHAPES), rng.integers(2, 6), replace=False)
        shape = rng.choice(shapes, nodes)
        allocatable = _SHAPES[shape]
        free = allocatable - (_used(rng, allocatable) if rng.random() < 0.5 else 0)
        requests = _requests(rng, classes, bool(allocatable[:, 2].any()))
        suitable = _suitable(rng, classes, shape)
        share = rng.exponential(1.0, classes) + 0.1
        demand = rng.uniform(0.8, 1.2)
        offered = free.sum(axis=0)
        scale = demand / ((share @ requests)[:2] / offered[:2]).max()
        count = np.maximum(share * scale, 1).astype(np.int64)
        takes_gpu = requests[:, 2] > 0
        if takes_gpu.any():
            share_of_gpus = demand * offered[2] / (count @ requests[:, 2])
            count[takes_gpu] = np.maximum(count[takes_gpu] * min(share_of_gpus, 1.0), 1).astype(np.int64)
        return cls(allocatable, free, requests, suitable, count, seed)

    @property
    def pods(self) -> int:
        return int(self.count.sum())

    def events(self) -> list[Event]:
        """The load as the engine receives it. Pods are created in random order, those that use the nodes before."""
        events: list[Event] = []
        for n, amounts in enumerate(self.allocatable.tolist()):
            labels = {f"class-{c}": "" for c in np.flatnonzero(self.suitable[:, n]).tolist()}
            offered = dict(zip(RESOURCES, amounts, strict=True)) | {"memory": amounts[1] * _MIB}
            events.append(NodeObserved(f"node-{n}", f"node-{n}", offered, labels))
        for c, amounts in enumerate(self.requests.tolist()):
            demand = NodeDemand(selector=(Requirement(f"class-{c}", Operator.EXISTS),))
            events.append(ClassDefined(c + 1, _amounts(amounts), demand))
        number = len(self.count) + 1
        for n, amounts in enumerate((self.allocatable - self.free).tolist()):
            if any(amounts):
                events.append(ClassDefined(number, _amounts(amounts)))
                events.append(_tasks(np.array([self.pods + number]), np.array([number]), (f"node-{n}",)))
                number += 1
        events.append(self.waiting(np.arange(1, self.pods + 1), self.order() + 1))
        return events

    def waiting(self, uid: I64, class_id: I64) -> Event:
        """Pods (K,) that wait, of these classes."""
        return _tasks(uid, class_id, ())

    def order(self) -> I64:
        """(T,) the class of each pod, in the order of creation."""
        return np.random.default_rng(self.seed).permutation(np.repeat(np.arange(len(self.count)), self.count))

    def violations(self, placed: I64) -> str:
        """What is wrong with `placed` (C, N), how many pods of each class are on each node; empty: nothing."""
        used = placed.T @ self.requests
        used[:, 3] = placed.sum(axis=0)
        if (used > np.maximum(self.free, 0)).any():
            return "a node is over-committed"
        if placed[~self.suitable].any() or (placed.sum(axis=1) > self.count).any():
            return "a pod is where it may not be, or placed twice"
        return ""

    def kube_scheduler(self) -> int:
        """How many pods kube-scheduler's rules place: one by one, in the order of creation, each where the mean of
        LeastAllocated and BalancedAllocation over cpu and memory is highest, at random among equals."""
        rng = np.random.default_rng(self.seed)
        free = self.free.copy()
        placed, full = 0, np.zeros(len(self.count), np.bool_)
        for c in self.order().tolist():
            if full[c]:
                continue
            needs = np.flatnonzero(self.requests[c])
            nodes = np.flatnonzero(self.suitable[c] & (free[:, needs] >= self.requests[c, needs]).all(axis=1))
            if not len(nodes):
                full[c] = True
                continue
            score = scores(free[nodes, :2] - self.requests[c, :2], self.allocatable[nodes, :2])
            node = rng.choice(nodes[score == score.max()])
            free[node] -= self.requests[c]
            placed += 1
        return placed

    def cp_sat(self, hint: I64, seconds: float) -> int:
        """The most pods that OR-Tools' CP-SAT places within so many seconds, beginning with `hint` (C, N)."""
        model = cp_model.CpModel()
        free = np.maximum(self.free, 0)
        variables: dict[tuple[int, int], cp_model.IntVar] = {}
        for c, n in zip(*(column.tolist() for column in np.nonzero(self.suitable)), strict=True):
            needs = self.requests[c] > 0
            slots = min(int((free[n, needs] // self.requests[c, needs]).min()), int(self.count[c]))
            if slots:
                variables[c, n] = model.new_int_var(0, slots, "")
                model.add_hint(variables[c, n], int(hint[c, n]))
        for c, count in enumerate(self.count.tolist()):
            model.add(sum(x for (of, _), x in variables.items() if of == c) <= count)
        on_node: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in free]
        for (c, n), x in variables.items():
            on_node[n].append((c, x))
        for n, placed in enumerate(on_node):
            for r, amount in enumerate(free[n].tolist()):
                model.add(sum(int(self.requests[c, r]) * x for c, x in placed) <= amount)
        model.maximize(sum(variables.values()))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 4
        status = solver.solve(model)
        return round(solver.objective_value) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else 0


def _amounts(amounts: list[int]) -> dict[str, int]:
    """A class's requests; every pod takes one of `pods` besides."""
    return {
        name: amount * (_MIB if name == "memory" else 1) for name, amount in zip(RESOURCES[:3], amounts, strict=False)
    }


def _tasks(uid: I64, class_id: I64, nodes: tuple[str, ...]) -> TasksObserved:
    """Pods that wait, or, with the name of a node, run on it."""
    return TasksObserved(
        uid=uid.astype(np.uint64),
        class_id=class_id.astype(np.uint64),
        job_id=class_id.astype(np.uint64),
        created_us=np.full(len(uid), START_US),
        node=np.full(len(uid), len(nodes)),
        names=[f"pod-{one}" for one in uid.tolist()],
        nodes=nodes,
    )


def _used(rng: np.random.Generator, allocatable: I64) -> I64:
    """(N, R) what one pod on each node uses already: up to 70 % of cpu and memory, in different proportions."""
    share = rng.uniform(0.0, 0.7, len(allocatable))[:, None] * rng.uniform(0.6, 1.4, (len(allocatable), 2))
    used = np.zeros_like(allocatable)
    used[:, :2] = (np.minimum(share, 1.0) * allocatable[:, :2]).astype(np.int64) // [100, 64] * [100, 64]
    used[:, 2] = rng.integers(0, allocatable[:, 2] + 1)
    used[:, 3] = used.any(axis=1)
    return used


def _requests(rng: np.random.Generator, classes: int, gpus: bool) -> I64:
    cpu = rng.choice(_MILLICORES, classes, p=_MILLICORES_SHARES)
    memory = cpu / 1000 * rng.choice(_GIB_PER_CORE, classes) * 1024 * rng.uniform(0.7, 1.4, classes)
    gpu = np.where(gpus & (rng.random(classes) < 0.12), rng.choice((1, 1, 2, 4), classes), 0)
    return np.stack([cpu, np.maximum(memory // 64 * 64, 64), gpu, np.ones(classes)], axis=1).astype(np.int64)


def _suitable(rng: np.random.Generator, classes: int, shape: I64) -> Bools:
    """(C, N): any node, or those of one of four zones, of a kind of disk, or of a shape."""
    zone, disk = rng.integers(0, 4, len(shape)), rng.random(len(shape)) < 0.5
    suitable = np.ones((classes, len(shape)), np.bool_)
    for c, kind in enumerate(rng.random(classes).tolist()):
        if kind < 0.15:
            suitable[c] = zone == rng.integers(0, 4)
        elif kind < 0.3:
            suitable[c] = disk
        elif kind < 0.35:
            suitable[c] = shape == rng.choice(shape)
    return suitable
