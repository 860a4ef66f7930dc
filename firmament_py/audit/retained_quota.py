"""What gangs keep of the quota of their queues, from their definitions and the tables alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.queues import QueueDefinition, Stop
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class RetainedQuota:
    """Of G gangs that keep any: their rows (G,), ascending; the ids of their queues (G,); rows of tasks of theirs on
    nodes (G,), -1: none; rows of nodes of the flavors (G,), -1: gone; and the amounts (G, S) of each resource beyond
    what the tasks of the gang use."""

    gang: I64
    queue: U64
    task: I64
    node: I64
    amounts: I64


def retained_quota(state: ClusterState) -> RetainedQuota:
    """Gangs that have not started keep none, nor do those of queues that evict what runs."""
    tasks, names, gangs = state.tasks, state.resources.names, state.gangs.keeping()
    definitions = [state.gangs.definition(gang) for gang in gangs.tolist()]
    queue = np.array([each.queue for each in definitions], np.uint64)
    queues = {each.id: each for each in state.queues.definitions}
    keeping = {identifier: _keeps(queues, identifier) for identifier in set(queue.tolist())}
    keeps = np.array([keeping[identifier] for identifier in queue.tolist()], np.bool_)
    amounts, place = np.zeros((len(gangs), len(names)), np.int64), {name: r for r, name in enumerate(names)}
    for g, definition in enumerate(definitions):
        for name, amount in definition.keeps:
            if name in place:
                amounts[g, place[name]] = amount
    node = state.node_rows([each.keeps_on for each in definitions])
    rows = np.flatnonzero((tasks.node >= 0) & np.isin(tasks.gang, gangs))
    rows = rows[np.argsort(tasks.gang[rows], kind="stable")]
    begin, end = (np.searchsorted(tasks.gang[rows], gangs, side=side) for side in ("left", "right"))
    some, task = end > begin, np.full(len(gangs), -1)
    keeps &= some | np.array([not each.staged for each in definitions], np.bool_)
    if some.any():
        task[some] = rows[end[some] - 1]
        node[some] = tasks.node[task[some]]
        counts = tasks.queue[rows] == np.repeat(queue, end - begin)
        amounts[some] -= np.add.reduceat(state.classes.requests[tasks.cls[rows]] * counts[:, None], begin[some])
    if any(flavor.node_labels for flavor in state.queues.tree.flavors):
        keeps &= node >= 0
    keeps &= (amounts > 0).any(axis=1)
    return RetainedQuota(gangs[keeps], queue[keeps], task[keeps], node[keeps], np.maximum(amounts[keeps], 0))


def _keeps(queues: Mapping[int, QueueDefinition], identifier: int) -> bool:
    """Whether gangs of the queue of this id keep quota: it exists, and neither it nor one above evicts what runs."""
    queue = queues.get(identifier)
    drains = queue is None
    while queue is not None:
        drains |= queue.stop is Stop.HOLD_AND_DRAIN
        queue = queues.get(queue.parent)
    return not drains
