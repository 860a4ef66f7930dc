"""Changes of a cluster that are only supposed: nodes that come, nodes that are drained, and all others that leave."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.events import NodeObserved, TasksRemoved
from firmament_py.rebalance.what_if import WhatIf
from firmament_py.state.cluster import ClusterState
from firmament_py.state.trials import displace

HOSTNAME = "kubernetes.io/hostname"


def added_nodes(name: str, count: int, like: NodeObserved | None, allocatable: Mapping[str, int]) -> list[NodeObserved]:
    """So many nodes with names of their own, equal to another one but for these, or with these amounts."""
    names = [f"{name}-{i + 1}" for i in range(count)]
    model = like or NodeObserved("", "", allocatable, {HOSTNAME: ""}, ())
    host = HOSTNAME in model.labels
    return [
        replace(model, id=f"added {each}", name=each, labels={**model.labels, **({HOSTNAME: each} if host else {})})
        for each in names
    ]


def drain(state: ClusterState, rows: I64) -> I64:
    """Drains node rows (K,): daemons end with them. Returns the rows (D,) of the tasks that seek other nodes."""
    tasks = state.tasks
    there = np.flatnonzero(tasks.on_nodes & np.isin(tasks.node, rows))
    displaced = there[~tasks.daemon[there] & ~tasks.leaving[there]]
    displace(state, displaced)
    for row in rows.tolist():
        node = state.nodes.observed[row]
        state.apply(replace(node, allocatable=dict.fromkeys(node.allocatable, 0)))
    return displaced


def emptied(what_if: WhatIf, uids: U64) -> WhatIf:
    """A copy in which all tasks have left but daemons and those with these uids (T,), and none is expected back."""
    state = what_if.state.copy()
    tasks, rows = state.tasks, state.tasks.rows()
    stay: Bools = (tasks.daemon[rows] & ~tasks.leaving[rows]) | np.isin(tasks.uid[rows], uids)
    state.apply(TasksRemoved(tasks.uid[rows[~stay]]))
    state.successors.expire(np.iinfo(np.int64).max)
    return replace(what_if, state=state, policy=deepcopy(what_if.policy), usage=deepcopy(what_if.usage))
