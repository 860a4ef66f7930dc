"""The nodes that could take a task now, and those that lack least for it."""

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.resources import TOKEN
from firmament_py.snapshot.intertask import IntertaskConstraints, nominated_in, respecting
from firmament_py.snapshot.round_classes import demand_of
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState


def nearest(state: ClusterState, row: int, limit: int = 3) -> list[tuple[str, dict[str, int]]]:
    """The suitable nodes that lack least for task row `row`, as (name, lacking amounts); 1 for a token.

    Nodes are ordered by the largest lacking share of a request. Nodes that lack nothing come first, with {}.
    """
    cls, nodes = int(state.tasks.cls[row]), state.present_nodes()
    selected, taint = state.node_index.evaluate(demand_of(state, row), nodes)
    nodes = nodes[selected & (taint < 0)]
    missing, lacking = lacks(state, cls, free_for(state, row)[nodes]), state.classes.lacking(cls)
    share = (missing / np.maximum(state.classes.requests[cls], 1)).max(axis=1, initial=1.0 if lacking else 0.0)
    return [
        (
            state.nodes.observed[int(nodes[i])].name,
            {
                name.removeprefix(TOKEN): 1 if name.startswith(TOKEN) else int(v)
                for name, v in (*zip(state.resources.names, missing[i], strict=True), *lacking.items())
                if v > 0
            },
        )
        for i in np.lexsort((nodes, share))[:limit].tolist()
    ]


def fitting_nodes(state: ClusterState, row: int) -> int:
    """The number of nodes that could take a further task like task row `row` now."""
    cls, nodes = int(state.tasks.cls[row]), state.present_nodes()
    if state.classes.lacking(cls):
        return 0
    selected, taint = state.node_index.evaluate(demand_of(state, row), nodes)
    fits = selected & (taint < 0) & intertask_of(state, np.array([row])).allowed(0)
    return int((fits & (lacks(state, cls, free_for(state, row)[nodes]) <= 0).all(axis=1)).sum())


def intertask_of(state: ClusterState, rows: I64) -> IntertaskConstraints:
    """The intertask constraints of task rows (K,), which are alike, as class number 0."""
    tasks, nodes, one = state.tasks, state.present_nodes(), rows[:1]
    of_class, others = (tasks.cls[one], tasks.label_set[one]), nominated_in(state, nodes, but=rows)
    return IntertaskConstraints(state, nodes, *of_class, RunningTasks(state, nodes), others, respecting(state, one))


def free_for(state: ClusterState, row: int) -> I64:
    """(capacity of the node table, R) what task row `row` may use: also what is kept for it, but not for others."""
    return unreserved(state, np.array([row], np.int64))


def lacks(state: ClusterState, cls: int, free: I64) -> I64:
    """(N, R) request of a class row minus the amounts that nodes have free (N, R); <= 0 where it fits."""
    request = state.classes.requests[cls]
    return np.where(request > 0, request - np.maximum(free, 0), 0)
