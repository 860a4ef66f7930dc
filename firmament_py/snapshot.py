"""One moment of the cluster as plain arrays: what a round works on.

Numbering inside a round is dense and local: class c, node n and task t are positions in `classes`, `nodes` and
`tasks`, which hold the rows of the state's tables. Where tasks demand something of each other's labels, a class of
the round is a class of the state together with what those demands can tell of a task's labels.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.arrays import I64, Bools
from firmament_py.cluster import ClusterState
from firmament_py.lifecycle import TaskState
from firmament_py.peers import Peers, by_class
from firmament_py.placed import PlacedTasks
from firmament_py.preferences import Preferences


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
    profiles: I64  # (C,) rows of the profile table: one that stands for all tasks of the class
    requests: I64  # (C, R)
    priority: I64  # (C,) descending
    suitable: Bools  # (C, N) selectors, affinity and taints allow it
    peers: Peers  # what tasks demand of each other
    preferences: Preferences  # what classes would like
    tasks: I64  # (T,) rows of the task table, by class, then oldest first
    task_class: I64  # (T,) ascending
    task_age_us: I64  # (T,) >= 0


def take_snapshot(state: ClusterState, now_us: int) -> Snapshot:
    """The waiting tasks that a round at `now_us` (microseconds since the epoch) may place, and where."""
    tasks = state.tasks
    waiting = np.flatnonzero((tasks.state == TaskState.WAITING) & (tasks.not_before_us <= now_us))
    waiting, starts = by_class(state, waiting)
    classes, profiles = tasks.cls[waiting[starts]], tasks.profile[waiting[starts]]
    task_class = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(waiting)]))
    by_priority = np.lexsort((np.arange(len(classes)), -state.classes.priority[classes]))
    rank = np.empty_like(by_priority)
    rank[by_priority] = np.arange(len(rank))
    classes, profiles, task_class = classes[by_priority], profiles[by_priority], rank[task_class]
    order = np.lexsort((tasks.uid[waiting], tasks.created_us[waiting], task_class))
    waiting, task_class = waiting[order], task_class[order]

    nodes = state.present_nodes()
    suitable = np.empty((len(classes), len(nodes)), np.bool_)
    for c, row in enumerate(classes.tolist()):
        selected, taint = state.looks.judge(state.classes.demand(row), nodes)
        suitable[c] = selected & (taint < 0)
    allocatable = state.nodes.allocatable[nodes]
    placed = PlacedTasks(state, nodes)
    return Snapshot(
        now_us=now_us,
        resources=state.resources.names,
        nodes=nodes,
        allocatable=allocatable,
        free=allocatable - state.nodes.used[nodes],
        running=state.nodes.tasks[nodes],
        classes=classes,
        profiles=profiles,
        requests=state.classes.requests[classes],
        priority=state.classes.priority[classes],
        suitable=suitable,
        peers=Peers(state, nodes, classes, profiles, placed),
        preferences=Preferences(state, nodes, classes, profiles, placed),
        tasks=waiting,
        task_class=task_class,
        task_age_us=np.maximum(now_us - tasks.created_us[waiting], 0),
    )
