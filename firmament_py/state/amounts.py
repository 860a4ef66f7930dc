"""The resources that have columns in the tables of amounts: those that nodes offer, and tokens that tasks can hold.

Tasks can name any number of resources, which must not make the tables grow. So a resource that no node offers has no
column, and a class that requests it fits nowhere (`ClassTable.lacking`); a token gets a column with the first task of a
class that names it; unused columns are removed.
"""

from collections.abc import Mapping

import numpy as np

from firmament_py.model.lifecycle import PRESENT
from firmament_py.model.resources import LINKS, TASK_SLOTS, TOKEN, Resources
from firmament_py.state.classes import ClassTable
from firmament_py.state.tables import NodeTable, TaskTable

SPARE_COLUMNS = 16
"""Number of unused columns that are kept, so that the restart of a node does not rebuild the tables."""


def offer(
    classes: ClassTable, nodes: NodeTable, tasks: TaskTable, resources: Resources, amounts: Mapping[str, int]
) -> None:
    """Adds missing columns for the resources of a node's `amounts`, filled with the requests of classes and the usage
    by running tasks."""
    # a link of 0 differs from a link that is not stated, which has no limit
    names = [name for name, amount in amounts.items() if (amount or name in LINKS) and name not in resources]
    if not names:
        return
    classes.add_columns(names)
    columns = [resources.column(name) for name in names]
    requesting = np.flatnonzero((classes.requests[:, columns] > 0).any(axis=1))
    holding = tasks.on_nodes
    rows = np.flatnonzero(holding & np.isin(tasks.cls, requesting))
    for column in columns:
        np.add.at(nodes.used[:, column], tasks.node[rows], classes.requests[tasks.cls[rows], column])


def sweep_columns(classes: ClassTable, nodes: NodeTable, resources: Resources) -> None:
    """Removes the columns of resources that no node offers and of tokens that no class with tasks names, if there are
    more than SPARE_COLUMNS."""
    names = resources.names
    if len(names) <= SPARE_COLUMNS:
        return
    used = (classes.requests[classes.tasks > 0] > 0).any(axis=0)
    offered = (nodes.allocatable[nodes.state == PRESENT] > 0).any(axis=0)
    keep = np.where([name.startswith(TOKEN) for name in names], used, offered)
    keep |= np.array([name == TASK_SLOTS or name in LINKS for name in names])
    if len(keep) - int(keep.sum()) <= SPARE_COLUMNS:
        return
    columns = np.flatnonzero(keep)
    classes.keep_columns(columns)
    nodes.keep_columns(columns)
    resources.keep(columns)
