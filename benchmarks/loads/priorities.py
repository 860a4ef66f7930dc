"""Clusters that are nearly full or slightly too small, and pods of several priorities, as in Priority Matters
(arXiv 2511.08373); two other ways to place them: kube-scheduler's rules, retold, and an exact solver.

Equal nodes; ReplicaSets of 1 to 4 equal pods that request 100 to 1,000 millicores and MB, drawn uniformly like their
priorities, and created in random order. The nodes are as large as it takes for all pods to request a given share of the
cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from benchmarks.loads.kube_scores import scores
from firmament_py.model.arrays import I64
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.events import ClassDefined, Event, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
"""When the first pod is created; rounds run a second later."""

_MB = 10**6
_LARGEST_SET = 4
_SMALLEST, _LARGEST = 100, 1000


@dataclass(frozen=True, slots=True)
class PriorityLoad:
    """N equal nodes, C ReplicaSets, T pods. capacity (2,) of a node, requests (C, 2) of a pod: millicores, MB. priority
    (C,): 0 is the lowest. set_of (T,): the ReplicaSet of each pod, in the order of creation."""

    nodes: int
    capacity: I64
    requests: I64
    priority: I64
    set_of: I64
    seed: int

    @classmethod
    def random(cls, seed: int, nodes: int, pods_per_node: int, priorities: int, utilisation: float) -> PriorityLoad:
        rng = np.random.default_rng(seed)
        pods = nodes * pods_per_node
        sizes: list[int] = []
        while (left := pods - sum(sizes)) > 0:
            sizes.append(min(int(rng.integers(1, _LARGEST_SET + 1)), left))
        requests = rng.integers(_SMALLEST, _LARGEST + 1, (len(sizes), 2))
        total = np.array(sizes) @ requests
        capacity = np.maximum(np.floor(total / (utilisation * nodes)), requests.max(axis=0)).astype(np.int64)
        order = rng.permutation(len(sizes))
        set_of = np.repeat(order, np.array(sizes)[order])
        return cls(nodes, capacity, requests, rng.integers(0, priorities, len(sizes)), set_of, seed)

    def events(self) -> list[Event]:
        """The load as the engine receives it: all pods wait."""
        cpu, memory = self.capacity.tolist()
        offered = {"cpu": cpu, "memory": memory * _MB, "pods": 110}
        events: list[Event] = [NodeObserved(f"node-{n}", f"node-{n}", offered, {}) for n in range(self.nodes)]
        for c, (cpu, memory) in enumerate(self.requests.tolist()):
            priority = int(self.priority[c])
            events.append(ClassDefined(c + 1, {"cpu": cpu, "memory": memory * _MB}, NodeDemand(), priority))
        number = np.arange(len(self.set_of))
        events.append(
            TasksObserved(
                uid=(number + 1).astype(np.uint64),
                class_id=(self.set_of + 1).astype(np.uint64),
                job_id=(self.set_of + 1).astype(np.uint64),
                created_us=START_US + number,
                node=np.zeros(len(number), np.int64),
                names=[f"pod-{one}" for one in number.tolist()],
                nodes=(),
            )
        )
        return events

    def by_priority(self, placed: I64) -> list[int]:
        """Number of placed pods of each priority, from the highest; placed (C,): of each ReplicaSet."""
        levels = range(int(self.priority.max()), -1, -1)
        return [int(placed[self.priority == level].sum()) for level in levels]

    def violations(self, placed: I64) -> str:
        """What is wrong with `placed` (C, N), how many pods of each set are on each node; empty: nothing."""
        if (placed.T @ self.requests > self.capacity).any():
            return "a node is over-committed"
        sizes = np.bincount(self.set_of, minlength=len(placed))
        return "a pod is placed twice" if (placed.sum(axis=1) > sizes).any() else ""

    def kube_scheduler(self) -> I64:
        """(C,) how many pods of each set kube-scheduler's rules place: by priority, then age, each where the sum of
        LeastAllocated and BalancedAllocation is highest, at random among equals."""
        rng = np.random.default_rng(self.seed)
        free = np.tile(self.capacity, (self.nodes, 1))
        placed = np.zeros(len(self.requests), np.int64)
        for c in self.set_of[np.argsort(-self.priority[self.set_of], kind="stable")].tolist():
            fits = np.flatnonzero((free >= self.requests[c]).all(axis=1))
            if len(fits):
                score = scores(free[fits] - self.requests[c], np.tile(self.capacity, (len(fits), 1)))
                free[rng.choice(fits[score == score.max()])] -= self.requests[c]
                placed[c] += 1
        return placed

    def cp_sat(self, seconds: float) -> tuple[list[int], bool]:
        """The most pods of each priority, from the highest, that OR-Tools' CP-SAT places, within so many seconds for
        each; and whether it has proved that no more can be."""
        model = cp_model.CpModel()
        sizes = np.bincount(self.set_of, minlength=len(self.requests)).tolist()
        sent = [[model.new_int_var(0, size, "") for _ in range(self.nodes)] for size in sizes]
        for size, row in zip(sizes, sent, strict=True):
            model.add(sum(row) <= size)
        for n in range(self.nodes):
            for r, amount in enumerate(self.capacity.tolist()):
                model.add(sum(int(self.requests[c, r]) * row[n] for c, row in enumerate(sent)) <= amount)
        found: list[int] = []
        proved = True
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 2
        for level in range(int(self.priority.max()), -1, -1):
            chosen = sum(sum(sent[c]) for c in np.flatnonzero(self.priority == level).tolist())
            model.maximize(chosen)
            status = solver.solve(model)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                return found + [0] * (level + 1), False
            found.append(round(solver.objective_value))
            proved &= status == cp_model.OPTIMAL
            model.add(chosen >= found[-1])
            model.clear_hints()  # type: ignore[no-untyped-call]
            for row in sent:
                for x in row:
                    model.add_hint(x, solver.value(x))
        return found, proved
