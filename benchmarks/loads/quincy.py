"""Networks of Quincy's form and their churn, for suites that keep a network between rounds.

Tasks have arcs to preferred nodes, the rack of one of them, the cluster and their job's unscheduled vertex; slots of a
node cost more the more are used. Shapes differ in what is hard for a min-cost flow solver:

    running         each task has an arc to the node that it runs on, and staying there is cheap
    wide            costs of preferences are uniform over a wide range, 90 % of the slots are needed
    zipf            preferences are concentrated on few nodes
    oversubscribed  110 % of the slots are needed, so every slot has a positive dual price
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.flow.incremental.network import TaskNetwork
from firmament_py.model.arrays import I32, I64, run_positions

PREFERENCES = 11
NODES_PER_RACK = 40
TASKS_PER_JOB = 100


@dataclass(frozen=True, slots=True)
class Shape:
    """scale: range of the costs of preferences; demand: tasks per slot; zipf: few nodes are preferred; stay: each task
    has a cheap arc to its node."""

    scale: int
    demand: float
    zipf: bool = False
    stay: bool = False


SHAPES = {
    "running": Shape(scale=100, demand=0.95, stay=True),
    "wide": Shape(scale=100_000, demand=0.9),
    "zipf": Shape(scale=1000, demand=0.9, zipf=True),
    "oversubscribed": Shape(scale=1000, demand=1.1),
}


class QuincyLoad:
    """A cluster of `nodes` with `tasks`, none of them assigned at first; deterministic for a seed."""

    def __init__(self, shape: str, nodes: int, tasks: int, seed: int) -> None:
        self._shape = SHAPES[shape]
        self._rng = np.random.default_rng(seed)
        self.nodes = nodes
        racks, self._jobs = -(-nodes // NODES_PER_RACK), max(tasks // TASKS_PER_JOB, 1)
        self._rack = nodes + np.arange(nodes) // NODES_PER_RACK
        self._cluster = nodes + racks
        self._first_job = self._cluster + 1
        self._popular = self._rng.permutation(nodes)
        self.network = self._empty(tasks, racks)
        self.network.add_tasks(*self._tasks(tasks, running=True))

    def churn(self, count: int) -> tuple[I64, I32, I64]:
        """The next round's changes: rows (K,) of tasks that end, heads and costs (K, D) of tasks that arrive."""
        gone = self._rng.choice(np.flatnonzero(self.network.live), count, replace=False)
        return gone, *self._tasks(count, running=False)

    def lower_stay_costs(self, rows: I64) -> None:
        """If the shape has `stay`, makes the arcs of tasks rows (K,) to their current nodes cheap."""
        if not self._shape.stay:
            return
        rows = rows[self.network.task_heads(rows) < self.nodes]
        heads, costs = self.network.task_arcs(rows)
        current = heads == self.network.task_heads(rows)[:, None]
        self.network.set_task_costs(rows, np.where(current, np.minimum(costs, self._stay(len(rows))[:, None]), costs))

    def _empty(self, tasks: int, racks: int) -> TaskNetwork:
        unscheduled = self._first_job + self._jobs
        sink = unscheduled + 1
        bounds = np.linspace(0, tasks / self._shape.demand, self.nodes + 1).astype(np.int64)
        slots = bounds[1:] - bounds[:-1]
        nodes, jobs, unbounded = np.arange(self.nodes), np.arange(self._jobs), 2 * tasks
        scale = self._shape.scale
        arcs: list[tuple[I64, I64, int, I64 | int]] = [
            (self._rack, nodes, unbounded, 0),
            (np.full(racks, self._cluster), self.nodes + np.arange(racks), unbounded, 0),
            (np.repeat(nodes, slots), np.full(slots.sum(), sink), 1, run_positions(slots) * scale // 100),
            (self._first_job + jobs, np.full(self._jobs, unscheduled), unbounded, jobs % (scale // 10)),
            (np.array([unscheduled]), np.array([sink]), unbounded, 0),
        ]
        return TaskNetwork(
            sink + 1,
            sink,
            np.concatenate([tail for tail, _, _, _ in arcs]).astype(np.int32),
            np.concatenate([head for _, head, _, _ in arcs]).astype(np.int32),
            np.concatenate([np.broadcast_to(capacity, len(tail)) for tail, _, capacity, _ in arcs]),
            np.concatenate([np.broadcast_to(cost, len(tail)) for tail, _, _, cost in arcs]),
            degree=PREFERENCES + 3,
            tasks=tasks,
        )

    def _tasks(self, count: int, *, running: bool) -> tuple[I32, I64]:
        """Heads and costs (count, D). Moving and waiting cost more than any preference."""
        rng, scale = self._rng, self._shape.scale
        if self._shape.zipf:
            rank = (rng.zipf(1.3, (count, PREFERENCES)) - 1) % self.nodes
            nodes = self._popular[rank]
        else:
            nodes = rng.integers(0, self.nodes, (count, PREFERENCES))
        cost = rng.integers(0, scale, (count, PREFERENCES))
        if self._shape.stay:
            cost[:, 1:] += scale
            if running:
                cost[:, 0] = self._stay(count)
        job = self._first_job + rng.integers(0, self._jobs, count)
        heads = np.column_stack([nodes, self._rack[nodes[:, 1]], np.full(count, self._cluster), job])
        costs = np.column_stack(
            [
                cost,
                rng.integers(scale, 2 * scale, count),
                rng.integers(3 * scale // 2, 3 * scale, count),
                rng.integers(4 * scale, 8 * scale, count),
            ]
        )
        return heads.astype(np.int32), costs

    def _stay(self, count: int) -> I64:
        return self._rng.integers(0, self._shape.scale // 20, count)
