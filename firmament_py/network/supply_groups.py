"""Supply groups: waiting tasks of one class, with the same cost of waiting and the same data, are one vertex."""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy import Costs


def supply_order(task_class: I64, costs: Costs) -> I64:
    """(T,) the waiting tasks, group after group: by class, then highest waiting cost, then input set."""
    if costs.data is None:
        return np.lexsort((-costs.wait, task_class))
    return np.lexsort((costs.data.of_task, -costs.wait, task_class))


def supply_groups(task_class: I64, costs: Costs) -> tuple[I64, I64, I64, I64]:
    """Class, waiting cost, set of data (-1: none) and size of each group, (G,) each, in `supply_order`."""
    order = supply_order(task_class, costs)
    of_task = np.full(len(order), -1, np.int64) if costs.data is None else costs.data.of_task[order]
    cls, cost = task_class[order], costs.wait[order]
    changes = (np.diff(cls) != 0) | (np.diff(cost) != 0) | (np.diff(of_task) != 0)
    starts = np.flatnonzero(np.r_[True, changes]) if len(cls) else order
    return cls[starts], cost[starts], of_task[starts], np.diff(np.r_[starts, len(cls)])
