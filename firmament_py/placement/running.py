"""Running tasks as a round and its policy see them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np

from firmament_py.model.arrays import I64, Bools, add_rows, positions_in
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.lifecycle import BOUND
from firmament_py.model.resources import TOKEN
from firmament_py.placement.repacking import may_move
from firmament_py.policy import Victims
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG

NO_TRAITS: Mapping[str, str] = MappingProxyType({})

LATEST_US = np.iinfo(np.int64).max
"""When tasks start that have a node and do not run yet."""

EvictionCosts = Callable[[Victims], I64]
"""(P,) what evicting each of the running tasks costs."""


class Snapshots(Protocol):
    """The state now as if running task rows (K,) arrived, those `gone` (K',) of them not being on their nodes any more;
    with the locations of their data or without."""

    def __call__(self, rows: I64, gone: I64, *, data: bool) -> Snapshot: ...


def examples_of(state: ClusterState, rows: I64, kinds: I64 | None = None) -> tuple[I64, I64]:
    """Rows (K,) of one task of each class, and of each label set if labels can matter; and (P,) which of these is like
    each of task rows (P,). kinds (capacity of the class table,), >= 0: classes of one number, without preferences, are
    alike."""
    tasks, classes = state.tasks, state.classes
    if classes.has_intertask_terms:
        kinds = tasks.cls[rows] * state.label_sets.capacity + tasks.label_set[rows]
        _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
        return rows[first], kind.reshape(-1)
    example = np.full(classes.capacity, -1, np.int64)
    example[tasks.cls[rows]] = rows
    some = np.flatnonzero(example >= 0)
    alike = some.copy()  # a class that each class is like
    if kinds is not None and state.node_index.discouraging(NodeDemand(), state.present_nodes()) is None:
        plain = np.flatnonzero(~classes.prefers[some])
        _, first, kind = np.unique(kinds[some[plain]], return_index=True, return_inverse=True)
        alike[plain] = some[plain[first[kind]]]
    chosen, number = np.unique(alike, return_inverse=True)
    of_class = np.zeros(classes.capacity, np.int64)
    of_class[some] = number
    return example[chosen], of_class[tasks.cls[rows]]


def positions_of(snapshot: Snapshot, capacity: int) -> I64:
    """(capacity + 1,) the position in the snapshot of each row of the node table, -1: none."""
    return positions_in(snapshot.nodes, capacity)


def leaving_tasks(state: ClusterState, snapshot: Snapshot) -> tuple[I64, I64]:
    """Rows (K,) of the tasks that leave the nodes of a snapshot, and what they use there until then, (N, R)."""
    tasks, amounts = state.tasks, np.zeros_like(snapshot.free)
    rows = np.flatnonzero(tasks.leaving)
    at = positions_of(snapshot, state.nodes.capacity)[tasks.node[rows]]
    rows, at = rows[at >= 0], at[at >= 0]
    add_rows(amounts, at, state.classes.requests[tasks.cls[rows]])
    return rows, amounts


def independent_classes(snapshot: Snapshot) -> Bools:
    """(C,) classes whose tasks neither have nor count for constraints or preferences between tasks."""
    independent = may_move(snapshot)
    independent &= [not snapshot.preferences.depends(c) for c in range(len(independent))]
    return independent


def movable_singles(state: ClusterState) -> Bools:
    """(T,) tasks in no gang that may leave their nodes for others; not those whose quota is of some nodes only."""
    tasks = state.tasks
    confined = (tasks.queue != 0) & (len(state.queues.flavors) > 1)
    single: Bools = tasks.movable & tasks.evictable & (tasks.gang == NO_GANG) & ~confined
    return single


def next_movable_us(state: ClusterState, after_us: int, now_us: int) -> int:
    """When the next movable task has run for `after_us`, to a tenth of that time; 0: never, unless the state
    changes."""
    tasks = state.tasks
    rows = tasks.rows_with("movable")
    rows = rows[tasks.movable[rows] & (tasks.state[rows] == BOUND) & ~tasks.leaving[rows]]
    due_us = np.maximum(tasks.started_us[rows], tasks.created_us[rows]) + after_us
    later = due_us[due_us > now_us]
    step = max(after_us // 10, 1)
    return -(-int(later.min()) // step) * step if len(later) else 0


def run_times(state: ClusterState, rows: I64, now_us: int) -> tuple[I64, I64]:
    """Of task rows (K,): see Victims.run_us and Victims.lost_us."""
    tasks = state.tasks
    started = np.where(tasks.started_us[rows] > 0, tasks.started_us[rows], now_us)
    run_us = np.maximum(now_us - started, 0)
    return run_us, np.clip(now_us - tasks.checkpoint_us[rows], 0, run_us)


def started_us(state: ClusterState, rows: I64) -> I64:
    """When task rows (K,) started."""
    since = state.tasks.started_us[rows]
    return np.where(since > 0, since, LATEST_US)


def kinds_of(state: ClusterState, victims: Victims, cls: I64, numbers: I64) -> I64:
    """(capacity of the class table,) the numbers (C,) of the classes of `victims`, which are of class rows (P,)."""
    kinds = np.zeros(state.classes.capacity, np.int64)
    kinds[cls] = numbers[victims.task_class]
    return kinds


def _traits(state: ClusterState, classes: I64) -> tuple[Mapping[str, str], ...]:
    if not state.classes.has_traits[classes].any():
        return (NO_TRAITS,) * len(classes)
    return tuple(state.classes.definition(row).traits for row in classes.tolist())


def victims_of(state: ClusterState, cls: I64, run_us: I64, lost_us: I64) -> Victims:
    """Running tasks of class rows (P,) as a policy sees them."""
    classes = np.flatnonzero(np.bincount(cls))
    number = np.zeros(state.classes.capacity, np.int64)
    number[classes] = np.arange(len(classes))
    names = state.resources.names
    columns = [r for r, name in enumerate(names) if not name.startswith(TOKEN)]
    return Victims(
        resources=tuple(names[r] for r in columns),
        requests=state.classes.requests[classes][:, columns],
        priority=state.classes.priority[classes],
        traits=_traits(state, classes),
        task_class=number[cls],
        run_us=run_us,
        lost_us=lost_us,
    )
