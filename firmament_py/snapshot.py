"""One moment of the cluster as plain arrays: what a round works on.

Numbering inside a round is dense and local: class c, node n and task t are positions in `classes`, `nodes` and
`tasks`, which hold the rows of the state's tables.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.arrays import I64, Bools
from firmament_py.cluster import ClusterState
from firmament_py.lifecycle import TaskState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """C classes with T waiting tasks, N nodes, R resources."""

    now_us: int
    resources: tuple[str, ...]  # R names
    nodes: I64  # (N,) rows of the node table
    allocatable: I64  # (N, R)
    free: I64  # (N, R) allocatable - used; below 0 where a node has shrunk or others have over-committed it
    running: I64  # (N,) tasks that are assumed or bound there
    classes: I64  # (C,) rows of the class table, highest priority first
    requests: I64  # (C, R)
    priority: I64  # (C,) descending
    suitable: Bools  # (C, N) selectors, affinity and taints allow it
    tasks: I64  # (T,) rows of the task table, by class, then oldest first
    task_class: I64  # (T,) ascending
    task_age_us: I64  # (T,) >= 0


def take_snapshot(state: ClusterState, now_us: int) -> Snapshot:
    """The waiting tasks that a round at `now_us` (microseconds since the epoch) may place, and where."""
    tasks = state.tasks
    waiting = np.flatnonzero((tasks.state == TaskState.WAITING) & (tasks.not_before_us <= now_us))
    classes, task_class = np.unique(tasks.cls[waiting], return_inverse=True)
    by_priority = np.lexsort((classes, -state.classes.priority[classes]))
    rank = np.empty_like(by_priority)
    rank[by_priority] = np.arange(len(rank))
    classes, task_class = classes[by_priority], rank[task_class]
    order = np.lexsort((tasks.uid[waiting], tasks.created_us[waiting], task_class))
    waiting, task_class = waiting[order], task_class[order]

    nodes = state.present_nodes()
    suitable = np.empty((len(classes), len(nodes)), np.bool_)
    for c, row in enumerate(classes.tolist()):
        selected, taint = state.labels.judge(state.classes.demand(row), nodes)
        suitable[c] = selected & (taint < 0)
    allocatable = state.nodes.allocatable[nodes]
    return Snapshot(
        now_us=now_us,
        resources=state.resources.names,
        nodes=nodes,
        allocatable=allocatable,
        free=allocatable - state.nodes.used[nodes],
        running=state.nodes.tasks[nodes],
        classes=classes,
        requests=state.classes.requests[classes],
        priority=state.classes.priority[classes],
        suitable=suitable,
        tasks=waiting,
        task_class=task_class,
        task_age_us=np.maximum(now_us - tasks.created_us[waiting], 0),
    )
