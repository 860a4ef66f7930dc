"""A cluster that is nearly full, with a queue of single tasks and gangs, as a whole or split into parts by rack.

Nodes of three shapes, some with GPUs, are in use to different degrees. Classes are small and large tasks, up to a whole
node, and tasks with GPUs. Parts are sets of racks, chosen by a hash; each has an engine of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.model.events import ClassDefined, Event, GangObserved, NodeObserved, TasksObserved, TasksRemoved
from firmament_py.snapshot.solo_capacity import task_slots

START_US = 1_700_000_000_000_000
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")
_GIB = 2**30
_SHAPES = ((16_000, 64 * _GIB, 0), (32_000, 128 * _GIB, 0), (64_000, 256 * _GIB, 0), (64_000, 256 * _GIB, 8))
_SHARES = (0.35, 0.4, 0.15, 0.1)
_RACK_NODES = 40
_SMALL, _LARGE, _WITH_GPUS = 40, 8, 4
_DRAWS = 60


@dataclass(frozen=True, slots=True)
class SplitSpec:
    """used: share of the cpu that running tasks request. queued: share of it that the queue requests, of which
    `ganged` by gangs of 2 to largest_gang tasks."""

    nodes: int
    used: float
    queued: float
    ganged: float
    largest_gang: int = 64
    seed: int = 0


class SplitLoad:
    """N nodes, C classes, R resources, T waiting tasks in single tasks and G gangs. A waiting task's uid is its
    position plus 1."""

    def __init__(self, spec: SplitSpec) -> None:
        self._rng = rng = np.random.default_rng([spec.seed, 11])
        shape = rng.choice(len(_SHAPES), spec.nodes, p=_SHARES)
        self.allocatable: I64 = np.c_[np.array(_SHAPES, np.int64)[shape], np.full(spec.nodes, 250)]
        self.rack: I64 = np.arange(spec.nodes) // _RACK_NODES
        self.requests = _requests(rng)
        self._fill(rng.uniform(2 * spec.used - 1, 1, spec.nodes))
        asked = spec.queued * float(self.allocatable[:, 0].sum())
        self._queue(asked * (1 - spec.ganged), asked * spec.ganged, spec.largest_gang)

    def _fill(self, share: F64) -> None:
        """Running tasks on each node, until they request a share (N,) of its cpu: classes by demand for the small."""
        nodes, classes = len(share), len(self.requests)
        self.used: I64 = np.zeros_like(self.allocatable)
        cls, node = [], []
        for _ in range(_DRAWS):
            drawn = self._draw(nodes)
            after = self.used + self.requests[drawn]
            fits = (after <= self.allocatable).all(axis=1) & (after[:, 0] <= share * self.allocatable[:, 0])
            self.used[fits] = after[fits]
            cls.append(drawn[fits])
            node.append(np.flatnonzero(fits))
        self.running_class, self.running_node = np.concatenate(cls), np.concatenate(node)
        assert classes > int(self.running_class.max(initial=0))

    def _draw(self, count: int) -> I64:
        """Classes (count,): nine in ten are small."""
        kind = self._rng.choice(3, count, p=(0.9, 0.07, 0.03))
        sizes = np.array([_SMALL, _LARGE, _WITH_GPUS])
        first = np.array([0, _SMALL, _SMALL + _LARGE])
        classes: I64 = first[kind] + (self._rng.random(count) * sizes[kind]).astype(np.int64)
        return classes

    def _queue(self, singles: float, ganged: float, largest: int) -> None:
        """The waiting tasks: single ones that request `singles` of cpu, and gangs of 2 to `largest` tasks that request
        `ganged`."""
        drawn = self._draw(len(self.allocatable) * 8)
        drawn = drawn[: int(np.searchsorted(np.cumsum(self.requests[drawn, 0]), singles)) + 1]
        gang_class = self._draw(len(self.allocatable))
        size = np.rint(2 ** self._rng.uniform(1, np.log2(largest), len(gang_class))).astype(np.int64)
        gangs = int(np.searchsorted(np.cumsum(self.requests[gang_class, 0] * size), ganged)) + 1
        self.gang_class, self.gang_size = gang_class[:gangs], size[:gangs]
        self.cls: I64 = np.concatenate([drawn, np.repeat(self.gang_class, self.gang_size)])  # (T,)
        none = np.full(len(drawn), -1)
        self.gang: I64 = np.concatenate([none, np.repeat(np.arange(gangs), self.gang_size)])  # (T,) -1: none

    # -- parts ----------------------------------------------------------------------------------------------------

    def parts(self, count: int) -> I64:
        """(N,) the part of each node, of `count`: by rack, chosen at random."""
        racks = int(self.rack.max()) + 1
        parts: I64 = np.random.default_rng(5).permutation(racks)[self.rack] % count
        return parts

    def slots(self, part: I64, count: int, free: I64) -> I64:
        """(C, count) how many tasks of each class alone the nodes of each part could take with `free` (N, R)."""
        everywhere = np.ones((len(self.requests), len(part)), np.bool_)
        slots = task_slots(free, self.requests, everywhere, np.full(len(self.requests), len(self.cls)))
        return np.stack([slots[:, part == p].sum(axis=1) for p in range(count)], axis=1)

    def assigned_parts(self, tasks: I64, part: I64, count: int, free: I64, *, by_slots: bool) -> I64:
        """(K,) the part that each of the waiting `tasks` (K,), ascending, goes to.

        Gangs go one after the other, the largest first, to the part with most left of the resource that they need most
        of. Single tasks of a class are shared out in proportion to free cpu, or with by_slots to the tasks of the class
        that each part could take.
        """
        slots = self.slots(part, count, free)
        left = np.stack([np.maximum(free[part == p], 0).sum(axis=0) for p in range(count)]).astype(np.float64)
        total = np.maximum(self.allocatable.sum(axis=0), 1)
        of_task = np.zeros(len(tasks), np.int64)
        gang = self.gang[tasks]
        chosen = np.unique(gang[gang >= 0])
        for g in chosen[
            np.argsort(-self.gang_size[chosen] * self.requests[self.gang_class[chosen], 0], kind="stable")
        ].tolist():
            c, size = int(self.gang_class[g]), int(self.gang_size[g])
            scarce = int(np.argmax(self.requests[c] / total))
            rank = slots[c].astype(np.float64) if by_slots else left[:, scarce] / total[scarce]
            to = int(np.argmax(np.where(slots[c] >= size, rank + 1, rank - 1e9)))
            left[to] -= size * self.requests[c]
            slots[c, to] -= size
            of_task[gang == g] = to
        for c in np.unique(self.cls[tasks[gang < 0]]).tolist():
            some = np.flatnonzero((gang < 0) & (self.cls[tasks] == c))
            weight = slots[c] if by_slots else np.maximum(left[:, 0], 0) * (slots[c] > 0)
            weight = np.maximum(weight, 0) if weight.sum() > 0 else np.ones(count)
            ends = np.rint(np.cumsum(weight) / weight.sum() * len(some)).astype(np.int64)
            of_task[some] = np.searchsorted(ends, np.arange(len(some)), side="right")
        return of_task

    # -- events ---------------------------------------------------------------------------------------------------

    def cluster(self, nodes: I64) -> list[Event]:
        """The events that describe `nodes` (K,), the tasks that run on them, all classes and all gangs."""
        described: list[Event] = [
            NodeObserved(f"n{n}", f"n{n}", dict(zip(RESOURCES, self.allocatable[n].tolist(), strict=True)))
            for n in nodes.tolist()
        ]
        described += [
            ClassDefined(c + 1, dict(zip(RESOURCES[:3], row[:3], strict=True)))
            for c, row in enumerate(self.requests.tolist())
        ]
        described += [GangObserved(g + 1, size, START_US) for g, size in enumerate(self.gang_size.tolist())]
        running = np.flatnonzero(np.isin(self.running_node, nodes))
        on, index = np.unique(self.running_node[running], return_inverse=True)
        uid = (len(self.cls) + 1 + running).astype(np.uint64)
        cls = (self.running_class[running] + 1).astype(np.uint64)
        names = tuple(f"n{n}" for n in on.tolist())
        return [*described, self._observed(uid, cls, index.reshape(-1) + 1, None, names)]

    def waiting(self, tasks: I64) -> Event:
        """The event that waiting `tasks` (K,) have arrived."""
        uid, cls = (tasks + 1).astype(np.uint64), (self.cls[tasks] + 1).astype(np.uint64)
        return self._observed(uid, cls, np.zeros(len(tasks), np.int64), (self.gang[tasks] + 1).astype(np.uint64), ())

    def withdrawn(self, tasks: I64) -> Event:
        """The event that waiting `tasks` (K,) are gone."""
        return TasksRemoved((tasks + 1).astype(np.uint64))

    def _observed(self, uid: U64, cls: U64, node: I64, gang: U64 | None, nodes: tuple[str, ...]) -> TasksObserved:
        created = np.full(len(uid), START_US)
        names = [f"default/task-{i}" for i in uid.tolist()]
        return TasksObserved(uid, cls, cls, created, node, names, nodes, gang_id=gang)

    # -- outcome --------------------------------------------------------------------------------------------------

    def free(self, node_of: I64) -> I64:
        """(N, R) what is left with waiting tasks on nodes node_of (T,), -1: none."""
        free, placed = self.allocatable - self.used, np.flatnonzero(node_of >= 0)
        np.subtract.at(free, node_of[placed], self.requests[self.cls[placed]])
        return free

    def whole_gangs(self, node_of: I64) -> I64:
        """(G,) 1 for gangs all of whose tasks are placed, 0 for those of which none is, else -1."""
        members = self.gang >= 0
        placed = np.bincount(self.gang[members], node_of[members] >= 0, len(self.gang_size)).astype(np.int64)
        return np.where(placed == self.gang_size, 1, np.where(placed == 0, 0, -1))


def _requests(rng: np.random.Generator) -> I64:
    """(C, R) requests of the classes: small ones, large ones, and ones with GPUs."""
    small = rng.choice(np.array([250, 500, 1000, 2000, 4000]), _SMALL)
    large = rng.choice(np.array([8_000, 15_000, 24_000, 30_000, 60_000]), _LARGE)
    gpus = np.array([1, 2, 4, 8])[:_WITH_GPUS]
    cpu = np.concatenate([small, large, 7_000 * gpus])
    memory = (cpu * rng.uniform(1.5, 4.5, len(cpu)) / 1000 * _GIB).astype(np.int64)
    devices = np.concatenate([np.zeros(_SMALL + _LARGE, np.int64), gpus])
    requests: I64 = np.c_[cpu, memory, devices, np.ones(len(cpu), np.int64)].astype(np.int64)
    return requests


def over_committed(load: SplitLoad, node_of: I64) -> Bools:
    """(N,) nodes that have less than their tasks request."""
    over: Bools = np.logical_or.reduce(load.free(node_of) < 0, axis=1)
    return over
