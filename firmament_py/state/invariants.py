"""Invariants of the tables of a cluster, checked by recomputing them.

- nodes.used[n] is the sum of the requests of the tasks that are ASSUMED or BOUND on node n, nodes.tasks[n] their count;
- the column `tasks` of classes, label sets, input sets and gangs counts the task rows that refer to each row;
- tasks.queue_row is the row of each task's queue, -1 if it has none, or one that is unknown;
- tasks.flavors is the number of a choice of flavors, -1 if that is unknown;
- only a WAITING task is nominated, for a PRESENT node;
- what the task table remembers of itself: TaskTable.waiting, and rows_with every column of SPARSE;
- a task has a node if and only if it is ASSUMED or BOUND; a node that has a row is PRESENT or has tasks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.flavor_choices import FlavorChoices
from firmament_py.model.lifecycle import ABSENT, GONE, PRESENT, WAITING, TaskState
from firmament_py.model.resources import Resources
from firmament_py.queues.tree import Queues
from firmament_py.state.classes import ClassTable
from firmament_py.state.gangs import GangTable
from firmament_py.state.input_sets import InputSetTable
from firmament_py.state.label_sets import LabelSetTable
from firmament_py.state.table import KeyedTable
from firmament_py.state.tables import SPARSE, NodeTable, TaskTable


def check_invariants(
    task_row: Mapping[int, int],
    tasks: TaskTable,
    nodes: NodeTable,
    classes: ClassTable,
    label_sets: LabelSetTable,
    inputs: InputSetTable,
    gangs: GangTable,
    resources: Resources,
    queues: Queues,
    flavor_choices: FlavorChoices,
) -> None:
    """Raises AssertionError naming the first column that is wrong. task_row: uid -> row of the task table."""
    rows = tasks.rows()
    _check(len(rows) == len(task_row), "one row for each uid")
    _check(bool((tasks.cls[rows] >= 0).all()), "a class for each task")
    _check(all(tasks.uid[r] == u for u, r in task_row.items()), "uid -> row")
    holds = np.isin(tasks.state[rows], (TaskState.ASSUMED, TaskState.BOUND))
    _check(bool(((tasks.node[rows] >= 0) == holds).all()), "a node exactly if assumed or bound")
    nominated = rows[tasks.nominated[rows] >= 0]
    _check(bool((tasks.state[nominated] == WAITING).all()), "only waiting tasks are nominated")
    _check(bool((nodes.state[tasks.nominated[nominated]] == PRESENT).all()), "nominated nodes are present")
    _check(tasks.waiting.tolist() == (tasks.state == WAITING).nonzero()[0].tolist(), "tasks.waiting")
    for name in sorted(SPARSE):
        values: I64 = getattr(tasks, name)
        _check(set(tasks.rows_with(name).tolist()) >= set(values.nonzero()[0].tolist()), name)
    queue_rows = [queues.row.get(identifier, -1) for identifier in tasks.queue[rows].tolist()]
    _check(tasks.queue_row[rows].tolist() == queue_rows, "tasks.queue_row")
    _check(bool((tasks.flavors[rows] < len(flavor_choices)).all()), "tasks.flavors")
    placed = rows[holds]
    used = np.zeros_like(nodes.used)
    np.add.at(used, tasks.node[placed], classes.requests[tasks.cls[placed]])
    _check(bool((used == nodes.used).all()), "nodes.used")
    _check(classes.requests.shape[1] == nodes.allocatable.shape[1] == len(resources), "a column each")
    for row in classes.rows().tolist():
        _check(not any(name in resources for name in classes.lacking(row)), "what a class lacks has no column")
    counts = np.bincount(tasks.node[placed], minlength=nodes.capacity)
    _check(bool((counts == nodes.tasks).all()), "nodes.tasks")
    references: tuple[tuple[str, KeyedTable[Any], I64], ...] = (
        ("classes", classes, tasks.cls),
        ("label_sets", label_sets, tasks.label_set),
        ("inputs", inputs, tasks.inputs),
        ("gangs", gangs, tasks.gang),
    )
    for name, table, column in references:
        referred = column[rows[column[rows] >= 0]]
        _check(bool((np.bincount(referred, minlength=table.capacity) == table.tasks).all()), f"{name}.tasks")
        _check(bool(table.live[referred].all()), f"tasks refer to live {name}")
    live = nodes.rows()
    _check(bool((nodes.state[live] != GONE).all()), "a live row has a state")
    _check({nodes.row[i] for i in nodes.row} == set(live.tolist()), "node id -> row")
    absent = live[nodes.state[live] == ABSENT]
    _check(bool((nodes.tasks[absent] > 0).all()), "an absent node has tasks")
    present = np.flatnonzero(nodes.state == PRESENT).tolist()
    _check(set(nodes.observed) == set(present), "present nodes are described")
    _check(nodes.present.tolist() == present, "nodes.present")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"cluster state is inconsistent: {what}")
