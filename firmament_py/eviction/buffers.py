"""The arrays that the search needs besides the problem and its solution: compiled code allocates none itself."""

from typing import NamedTuple

import numpy as np

from firmament_py.eviction.victims import Groups, Scratch, State, Victims
from firmament_py.model.arrays import F64, I64, Bools


class Steps(NamedTuple):
    """What the steps of a search use.

    chosen (K,): tasks that are inserted again; touched (2 K,): nodes that change. changed (N,): nodes that differ from
    the best solution, the first few of it; is_changed (N,). By level (L,): of one step, gain in tasks that are served,
    change in cost, and weight, the cost before; in comparison with the best solution, how many more are served, and
    what that costs in excess; total cost. all_tasks (T,): 0, 1, ...
    """

    chosen: I64
    touched: I64
    changed: I64
    is_changed: Bools
    gain: I64
    change: F64
    weight: F64
    served: I64
    excess: F64
    total: F64
    all_tasks: I64


def new_scratch(groups: Groups, state: State, free: I64, classes: int) -> Scratch:
    """For so many classes of tasks."""
    nodes, resources = free.shape
    widest = int(np.diff(groups.start).max(initial=1))
    chosen, other, best = (
        Victims(np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(state.cost.shape[1])) for _ in range(3)
    )
    return Scratch(
        chosen=chosen,
        other=other,
        best=best,
        order=np.zeros(widest, np.int64),
        key=np.zeros(widest),
        postponed=np.zeros(widest, np.bool_),
        need=np.zeros(resources, np.int64),
        freed=np.zeros(resources, np.int64),
        spare=state.allowed.copy(),
        looked=np.zeros(1, np.int64),
        key_of_node=np.zeros(nodes),
        refill=np.zeros(classes, np.int64),
        tried=np.zeros(nodes, np.int64),
        insertions=np.zeros(1, np.int64),
    )


def new_steps(state: State, removed: int) -> Steps:
    """For steps that remove at most so many tasks."""
    count, (nodes, levels) = len(state.node_of), state.cost.shape
    return Steps(
        chosen=np.zeros(removed, np.int64),
        touched=np.zeros(2 * removed, np.int64),
        changed=np.zeros(nodes, np.int64),
        is_changed=np.zeros(nodes, np.bool_),
        gain=np.zeros(levels, np.int64),
        change=np.zeros(levels),
        weight=np.zeros(levels),
        served=np.zeros(levels, np.int64),
        excess=np.zeros(levels),
        total=state.cost.sum(axis=0),
        all_tasks=np.arange(count),
    )


def copy_of(state: State) -> State:
    return State(
        state.node_of.copy(), state.evicted.copy(), state.violating.copy(), state.allowed.copy(), state.cost.copy()
    )
