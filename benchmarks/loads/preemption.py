"""Random clusters full of running pods, and pods of higher priority that fit nowhere unless some of those are evicted.

Nodes of two shapes; running pods of many sizes, four priorities and random ages, three fifths of them guarded by
disruption budgets; waiting pods of several classes and three priorities, one of which is below the highest of the
running ones. A quarter of the classes is bound to a zone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.constraints import NodeDemand, Operator, PeerSelector, Requirement
from firmament_py.model.events import BudgetObserved, ClassDefined, Event, LabelSetDefined, NodeObserved, TasksObserved
from firmament_py.policy.preemption import Victims, eviction_cost

START_US = 1_700_000_000_000_000
"""When the waiting pods are created, in one moment; rounds run a second later."""

NOW_US = START_US + 1_000_000
NOWHERE = -1
UNGUARDED = -1

_MIB = 2**20
_SHAPES = np.array([(16000, 65536), (32000, 131072)], np.int64)
"""Millicores, MiB."""
_MILLICORES = (250, 500, 1000, 1500, 2000, 3000, 4000)
_GIB_PER_CORE = (1, 2, 4, 8)
_RUNNING_PRIORITIES, _SHARES = (0, 100, 1000, 5000), (0.4, 0.3, 0.2, 0.1)
_WAITING_PRIORITIES = (2000, 10_000, 100_000)
_WAITING_MILLICORES = (1000, 2000, 3000, 4000, 6000, 8000, 12000)
_FULL = 0.9
_GUARDED = 0.6
_YOUNGEST_S, _OLDEST_S = 60.0, 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Result:
    """node (A,): of each waiting pod the node where it runs or that is kept for it, NOWHERE: it is not served. evicted
    (P,): which running pods leave."""

    node: I64
    evicted: Bools


@dataclass(frozen=True, slots=True)
class PreemptionLoad:
    """N nodes, P running pods, W classes of waiting pods, B budgets; resources are millicores and MiB.

    allocatable (N, 2). Of running pods: node (P,), requests (P, 2), priority (P,), run_s (P,): for how long they have
    run, budget (P,): the one that guards each, UNGUARDED: none. allowed (B,): evictions that each budget permits. Of
    classes: waiting_requests (W, 2), waiting_priority (W,), suitable (W, N). waiting (A,): the class of each waiting
    pod, oldest first.
    """

    allocatable: I64
    node: I64
    requests: I64
    priority: I64
    run_s: I64
    budget: I64
    allowed: I64
    waiting_requests: I64
    waiting_priority: I64
    suitable: Bools
    waiting: I64
    seed: int

    @classmethod
    def random(cls, seed: int, nodes: int, waiting: int, classes: int) -> PreemptionLoad:
        """A cluster of so many nodes, so many waiting pods, and classes of them."""
        rng = np.random.default_rng(seed)
        allocatable = _SHAPES[rng.integers(0, len(_SHAPES), nodes)]
        node, requests = _running(rng, allocatable)
        budgets = max(2, min(nodes // 10, 50))
        guarded = rng.random(len(node)) < _GUARDED
        budget = np.where(guarded, rng.integers(0, budgets, len(node)), UNGUARDED)
        guards = np.bincount(budget[guarded], minlength=budgets)
        zone = rng.integers(0, 4, nodes)
        zonal = rng.random(classes) < 0.25
        return cls(
            allocatable,
            node,
            requests,
            rng.choice(_RUNNING_PRIORITIES, len(node), p=_SHARES),
            np.exp(rng.uniform(np.log(_YOUNGEST_S), np.log(_OLDEST_S), len(node))).astype(np.int64),
            budget,
            (guards * rng.choice((0.0, 0.0, 0.05, 0.1), budgets)).astype(np.int64),
            _requests(rng, classes, _WAITING_MILLICORES),
            rng.choice(_WAITING_PRIORITIES, classes),
            ~zonal[:, None] | (zone == rng.integers(0, 4, classes)[:, None]),
            rng.integers(0, classes, waiting),
            seed,
        )

    @property
    def free(self) -> I64:
        """(N, 2) what the running pods leave."""
        free = self.allocatable.copy()
        np.subtract.at(free, self.node, self.requests)
        return free

    def queue(self) -> I64:
        """(A,) the waiting pods by priority, then age."""
        return np.argsort(-self.waiting_priority[self.waiting], kind="stable")

    def events(self) -> list[Event]:
        """The load as the engine receives it. Ids of running pods are 1 .. P, those of waiting ones follow."""
        events: list[Event] = []
        for n, (cpu, memory) in enumerate(self.allocatable.tolist()):
            labels = {f"class-{c}": "" for c in np.flatnonzero(self.suitable[:, n]).tolist()}
            offered = {"cpu": cpu, "memory": memory * _MIB, "pods": 250}
            events.append(NodeObserved(f"node-{n}", f"node-{n}", offered, labels))
        for b, allowed in enumerate(self.allowed.tolist()):
            app = f"app-{b}"
            events.append(LabelSetDefined(b + 1, "default", {"app": app}))
            guards = PeerSelector(frozenset(["default"]), None, (Requirement("app", Operator.IN, (app,)),))
            events.append(BudgetObserved(b + 1, guards, allowed, app))
        events.append(LabelSetDefined(len(self.allowed) + 1, "default", {}))
        kinds, of_pod = np.unique(np.column_stack([self.requests, self.priority]), axis=0, return_inverse=True)
        for number, (cpu, memory, priority) in enumerate(kinds.tolist(), len(self.suitable) + 1):
            events.append(ClassDefined(number, {"cpu": cpu, "memory": memory * _MIB}, NodeDemand(), priority))
        for c, (cpu, memory) in enumerate(self.waiting_requests.tolist()):
            demand = NodeDemand(selector=(Requirement(f"class-{c}", Operator.EXISTS),))
            priority = int(self.waiting_priority[c])
            events.append(ClassDefined(c + 1, {"cpu": cpu, "memory": memory * _MIB}, demand, priority))
        pods, of_class = len(self.node), of_pod.reshape(-1) + len(self.suitable) + 1
        label_set = np.where(self.budget >= 0, self.budget, len(self.allowed)) + 1
        names = tuple(f"node-{n}" for n in range(len(self.allocatable)))
        started_us = NOW_US - self.run_s * 1_000_000
        events.append(_tasks(np.arange(1, pods + 1), of_class, label_set, started_us, self.node + 1, names))
        unlabelled = np.full(len(self.waiting), len(self.allowed) + 1)
        created_us = START_US - len(self.waiting) + np.arange(len(self.waiting))
        uid, nowhere = np.arange(pods + 1, pods + len(self.waiting) + 1), np.zeros(len(self.waiting), np.int64)
        events.append(_tasks(uid, self.waiting + 1, unlabelled, created_us, nowhere, ()))
        return events

    def served(self, result: Result) -> dict[int, int]:
        """Served pods by priority, highest first."""
        return _by_priority(self.waiting_priority[self.waiting], result.node != NOWHERE)

    def victims(self, result: Result) -> dict[int, int]:
        """Evicted pods by priority, highest first."""
        return _by_priority(self.priority, result.evicted)

    def lost_s(self, result: Result) -> int:
        """For how long the evicted pods had run, in sum."""
        return int(self.run_s[result.evicted].sum())

    def excess(self, result: Result) -> int:
        """How many evictions no budget permits."""
        return int(self._excessive(result).sum())

    def _excessive(self, result: Result) -> Bools:
        """(P,) which evictions no budget permits: of each budget those of the least important pods."""
        guarded = np.flatnonzero(result.evicted & (self.budget != UNGUARDED))
        guarded = guarded[np.lexsort((-self.priority[guarded], self.budget[guarded]))]
        first = np.searchsorted(self.budget[guarded], self.budget[guarded])
        excessive = np.zeros(len(self.node), np.bool_)
        excessive[guarded] = np.arange(len(guarded)) - first >= self.allowed[self.budget[guarded]]
        return excessive

    def costs(self) -> I64:
        """(P,) what evicting each running pod costs."""
        run_us = self.run_s * 1_000_000
        return eviction_cost(
            Victims((), np.zeros((0, 0), np.int64), NO_ROWS, (), np.zeros_like(run_us), run_us, run_us)
        )

    def standing(self, result: Result) -> list[int]:
        """Greater is better: for each priority of `order`, served pods, then, negative, how many evictions no budget
        permits, and what all cost, by priority."""
        served, cost = self.served(result), np.where(result.evicted, self.costs(), 0)
        excess = _by_priority(self.priority, self._excessive(result))
        return [
            count
            for level, below in self.order()
            for count in (
                served[level],
                -sum(excess[p] for p in below),
                *(-int(cost[self.priority == p].sum()) for p in below),
            )
        ]

    def order(self) -> list[tuple[int, list[int]]]:
        """(priority of waiting pods, priorities of running pods that they may evict and those of the next cannot), each
        from the highest. So no waiting pod gains by the eviction of what is as important as itself."""
        levels = np.unique(self.waiting_priority[self.waiting])[::-1].tolist()
        running = np.unique(self.priority)[::-1].tolist()
        below = [*levels[1:], -np.inf]
        return [(top, [p for p in running if low <= p < top]) for top, low in zip(levels, below, strict=True)]

    def violations(self, result: Result) -> str:
        """What is wrong with a result, budgets apart; empty: nothing."""
        served = np.flatnonzero(result.node != NOWHERE)
        node, cls = result.node[served], self.waiting[served]
        if not self.suitable[cls, node].all():
            return "a pod is where it may not be"
        left = self.free
        np.add.at(left, self.node[result.evicted], self.requests[result.evicted])
        np.subtract.at(left, node, self.waiting_requests[cls])
        if (left < 0).any():
            return "a node is over-committed"
        highest = np.full(len(self.allocatable), -1, np.int64)
        np.maximum.at(highest, node, self.waiting_priority[cls])
        if (self.priority[result.evicted] >= highest[self.node[result.evicted]]).any():
            return "a pod is evicted, and none of higher priority gets its node"
        return ""


def _by_priority(priority: I64, chosen: Bools) -> dict[int, int]:
    levels = np.unique(priority)[::-1].tolist()
    return {level: int((chosen & (priority == level)).sum()) for level in levels}


def _tasks(uid: I64, class_id: I64, label_set: I64, since_us: I64, node: I64, nodes: tuple[str, ...]) -> TasksObserved:
    """Pods that run since a time, or wait since then; node: positions in `nodes` from 1 on, 0: none."""
    return TasksObserved(
        uid=uid.astype(np.uint64),
        class_id=class_id.astype(np.uint64),
        job_id=class_id.astype(np.uint64),
        created_us=since_us,
        node=node,
        names=[f"pod-{one}" for one in uid.tolist()],
        nodes=nodes,
        label_set_id=label_set.astype(np.uint64),
        started_us=np.where(node > 0, since_us, 0),
    )


def _running(rng: np.random.Generator, allocatable: I64) -> tuple[I64, I64]:
    """Nodes (P,), ascending, and requests (P, 2) of pods that fill each node to _FULL of a resource, or barely less."""
    nodes: list[int] = []
    requests: list[tuple[int, int]] = []
    drawn = _requests(rng, 4096, _MILLICORES).tolist()
    number = 0
    for n, (cpu, memory) in enumerate(allocatable.tolist()):
        misses, used_cpu, used_memory = 0, 0, 0
        while misses < 4 and used_cpu < _FULL * cpu and used_memory < _FULL * memory:
            one_cpu, one_memory = drawn[number % len(drawn)]
            number += 1
            if used_cpu + one_cpu > cpu or used_memory + one_memory > memory:
                misses += 1
                continue
            used_cpu, used_memory = used_cpu + one_cpu, used_memory + one_memory
            nodes.append(n)
            requests.append((one_cpu, one_memory))
    return np.array(nodes, np.int64), np.array(requests, np.int64).reshape(-1, 2)


def _requests(rng: np.random.Generator, count: int, millicores: tuple[int, ...]) -> I64:
    cpu = rng.choice(millicores, count)
    return np.stack([cpu, cpu * rng.choice(_GIB_PER_CORE, count) * 1024 // 1000], axis=1).astype(np.int64)
