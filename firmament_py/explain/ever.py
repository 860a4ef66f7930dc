"""Whether tasks could fit once all others have left: a bound, whose "no" is a proof."""

import numpy as np

from firmament_py.admission.earliest_start import Need, enough_there
from firmament_py.model.arrays import I64, add_rows
from firmament_py.snapshot.round_classes import demand_of
from firmament_py.state.cluster import ClusterState

_LARGEST = 5_000_000
"""Of groups with more classes times nodes nothing is proved: that would take long."""


def free_if_emptied(state: ClusterState, priority: int) -> I64:
    """(N, R) what nodes have free once all tasks have left but daemons that stay: that do not leave already, and are
    not evicted for tasks of this priority, nor since their queue has more than its share."""
    tasks, nodes = state.tasks, state.present_nodes()
    rows = np.flatnonzero(tasks.daemon & tasks.on_nodes & ~tasks.leaving)
    precede = (state.classes.priority[tasks.cls[rows]] >= priority) & (tasks.queue[rows] == 0)
    rows = rows[tasks.unevictable[rows] | precede]
    free = state.nodes.allocatable.copy()
    add_rows(free, tasks.node[rows], -state.classes.requests[tasks.cls[rows]])
    return free[nodes]


def could_ever_fit(state: ClusterState, rows: I64, needed: int, topology_key: str = "") -> bool:
    """Whether a bound permits that so many of waiting task rows (T,) fit together on nodes that all others have left,
    in one domain of the topology unless that is empty: what all nodes have of each resource, and places for each class
    as if it were alone. False is a proof that they do not. Nothing is proved without nodes, which are to come, and of a
    group of very many classes."""
    nodes, tasks = state.present_nodes(), state.tasks
    keys = np.stack([tasks.cls[rows], tasks.required_node[rows]], axis=1)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    if not 0 < len(first) * len(nodes) <= _LARGEST:
        return True
    waiting = np.bincount(number.reshape(-1), minlength=len(first))
    suitable = np.zeros((len(first), len(nodes)), np.bool_)
    for c, row in enumerate(rows[first].tolist()):
        if not state.classes.lacking(int(tasks.cls[row])):
            selected, taint = state.node_index.evaluate(demand_of(state, row), nodes)
            suitable[c] = selected & (taint < 0)
    choice = state.node_index.domains(topology_key, nodes) if topology_key else np.zeros(len(nodes), np.int64)
    free = free_if_emptied(state, int(state.classes.priority[tasks.cls[rows]].max()))
    need = Need(state.classes.requests[tasks.cls[rows[first]]], suitable, waiting, needed)
    return bool(enough_there(need, free, choice, int(choice.max(initial=-1)) + 1).any())
