"""Networks of Quincy's form, a vertex for each task, for the suite of solvers.

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

from firmament_py.flow.network import FlowNetwork
from firmament_py.model.arrays import I64, run_positions

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


def quincy_network(shape: str, nodes: int, tasks: int, seed: int) -> FlowNetwork:
    """The network of a cluster of `nodes` with `tasks`; deterministic for a seed. Vertices: nodes, racks, the cluster,
    jobs, the unscheduled vertex, the sink, then tasks. Arcs: those of tasks come first, task after task."""
    form, rng = SHAPES[shape], np.random.default_rng(seed)
    racks, jobs = -(-nodes // NODES_PER_RACK), max(tasks // TASKS_PER_JOB, 1)
    cluster = nodes + racks
    first_job, unscheduled = cluster + 1, cluster + 1 + jobs
    sink = unscheduled + 1
    rack_of = nodes + np.arange(nodes) // NODES_PER_RACK
    heads, costs = _task_arcs(form, rng, tasks, rack_of, cluster, first_job + rng.integers(0, jobs, tasks))
    bounds = np.linspace(0, tasks / form.demand, nodes + 1).astype(np.int64)
    slots, unbounded = bounds[1:] - bounds[:-1], 2 * tasks
    each, every_job = np.arange(nodes), np.arange(jobs)
    arcs: list[tuple[I64, I64, int, I64 | int]] = [
        (np.repeat(sink + 1 + np.arange(tasks), heads.shape[1]), heads.ravel(), 1, costs.ravel()),
        (rack_of, each, unbounded, 0),
        (np.full(racks, cluster), nodes + np.arange(racks), unbounded, 0),
        (np.repeat(each, slots), np.full(slots.sum(), sink), 1, run_positions(slots) * form.scale // 100),
        (first_job + every_job, np.full(jobs, unscheduled), unbounded, every_job % (form.scale // 10)),
        (np.array([unscheduled]), np.array([sink]), unbounded, 0),
    ]
    supply = np.zeros(sink + 1 + tasks, np.int64)
    supply[sink + 1 :], supply[sink] = 1, -tasks
    return FlowNetwork(
        np.concatenate([tail for tail, _, _, _ in arcs]).astype(np.int32),
        np.concatenate([head for _, head, _, _ in arcs]).astype(np.int32),
        np.concatenate([np.broadcast_to(capacity, len(tail)) for tail, _, capacity, _ in arcs]),
        np.concatenate([np.broadcast_to(cost, len(tail)) for tail, _, _, cost in arcs]),
        supply,
    )


def _task_arcs(
    form: Shape, rng: np.random.Generator, count: int, rack_of: I64, cluster: int, job: I64
) -> tuple[I64, I64]:
    """Heads and costs (count, D) of the arcs of tasks. Moving and waiting cost more than any preference."""
    nodes, scale = len(rack_of), form.scale
    if form.zipf:
        preferred = rng.permutation(nodes)[(rng.zipf(1.3, (count, PREFERENCES)) - 1) % nodes]
    else:
        preferred = rng.integers(0, nodes, (count, PREFERENCES))
    cost = rng.integers(0, scale, (count, PREFERENCES))
    if form.stay:
        cost[:, 1:] += scale
        cost[:, 0] = rng.integers(0, scale // 20, count)
    in_rack, anywhere, waiting = (scale, 2 * scale), (3 * scale // 2, 3 * scale), (4 * scale, 8 * scale)
    heads = np.column_stack([preferred, rack_of[preferred[:, 1]], np.full(count, cluster), job])
    return heads, np.column_stack([cost, *(rng.integers(*bounds, count) for bounds in (in_rack, anywhere, waiting))])
