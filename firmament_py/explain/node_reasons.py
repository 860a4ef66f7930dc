"""Why nodes cannot take a further task of a class, counted as by kube-scheduler: each node fails for one reason, or for
each resource that it lacks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from firmament_py.explain.nearest_nodes import lacks
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.arrays import I32, I64, NO_ROWS, Bools
from firmament_py.model.constraints import NodeDemand
from firmament_py.model.resources import TASK_SLOTS, TOKEN
from firmament_py.snapshot.intertask import IntertaskConstraints
from firmament_py.snapshot.round_classes import GANG_DOMAIN, demand_of
from firmament_py.state.cluster import ClusterState

INTERTASK_KINDS = {
    "label": ReasonKind.SPREAD_LABEL_MISSING,
    "spread": ReasonKind.SPREAD,
    "affinity": ReasonKind.AFFINITY,
    "anti_affinity": ReasonKind.ANTI_AFFINITY,
    "others": ReasonKind.ANTI_AFFINITY_OF_OTHERS,
}


def node_reasons(
    state: ClusterState, row: int, free: I64, intertask: IntertaskConstraints, c: int, reserved_for: str = ""
) -> tuple[tuple[Reason, ...], Bools]:
    """Why nodes, of which tasks may use `free` (N, R), cannot take a further task like task row `row`, of class
    number `c` of `intertask`, now; and the nodes (N,) for which there is no reason.

    In kube-scheduler's order: a node fails for a taint, else for the selector, else for a token, else for each resource
    that it lacks, else for a further affinity, else for inter-task constraints. A node that passes all of these counts
    only if its free capacity is reserved; reserved_for: the names of the holders of the reservations, empty: none.
    """
    nodes, cls = state.present_nodes(), int(state.tasks.cls[row])
    demand = demand_of(state, row)
    selected, taint = state.node_index.evaluate(replace(demand, further=()), nodes)
    left: Bools = (taint < 0) & selected  # nodes that have not failed yet
    found = [*_taint_reasons(state, taint)]
    found += _counted(ReasonKind.SELECTOR_MISMATCH, (taint < 0) & ~selected)
    found += _amount_reasons(state, cls, lacks(state, cls, free) > 0, left)
    for name, terms in demand.further:
        unmet = ~state.node_index.evaluate(NodeDemand(affinity=(terms,)), nodes)[0]
        kind, *details = further_reason(state, row, name)
        found += _counted(kind, unmet & left, *details)
        left &= ~unmet
    if intertask.concerned[c]:
        for name, fails in intertask.failures(c).items():
            found += _counted(INTERTASK_KINDS[name], fails & left)
            left &= ~fails
    if reserved_for:
        found += _counted(ReasonKind.RESERVED, left, reserved_for)
    return tuple(found), left & (not reserved_for)


def _taint_reasons(state: ClusterState, taint: I32) -> Iterator[Reason]:
    """One reason for each key and value of the taints (N,) that repel the task; -1: none does."""
    numbers, counts = np.unique(taint[taint >= 0], return_counts=True)
    by_taint: dict[tuple[str, str], int] = {}
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        found = state.node_index.taint(number)
        by_taint[found.key, found.value] = by_taint.get((found.key, found.value), 0) + count
    for (key, value), count in by_taint.items():
        yield Reason(ReasonKind.UNTOLERATED_TAINT, count, key, value)


def _amount_reasons(state: ClusterState, cls: int, short: Bools, left: Bools) -> Iterator[Reason]:
    """One reason for each token that a node of `left` (N,) lacks first, and for each other resource that some of the
    remaining ones lack, short (N, R); removes failing nodes from `left`."""
    names = state.resources.names
    lacked = np.flatnonzero(short[left].any(axis=0)).tolist()  # a class requests few of hundreds of tokens
    tokens = [r for r in lacked if names[r].startswith(TOKEN)]
    without = left & short[:, tokens].any(axis=1)
    count = np.bincount(short[without][:, tokens].argmax(axis=1)) if tokens else NO_ROWS
    for i in np.flatnonzero(count).tolist():
        yield Reason(ReasonKind.TOKEN_TAKEN, int(count[i]), names[tokens[i]].removeprefix(TOKEN))
    left &= ~without
    for r in sorted({*lacked} - {*tokens}):
        if names[r] == TASK_SLOTS:
            yield from _counted(ReasonKind.TOO_MANY_TASKS, short[:, r] & left)
        else:
            yield from _counted(ReasonKind.INSUFFICIENT_RESOURCE, short[:, r] & left, names[r])
    lacking = state.classes.lacking(cls)
    for resource in lacking:
        yield from _counted(ReasonKind.INSUFFICIENT_RESOURCE, left, resource)
    left &= ~short.any(axis=1) & (not lacking)


def further_reason(state: ClusterState, row: int, name: str) -> tuple[ReasonKind, str, str]:
    """Kind, detail and value of the reason that a node fails the further affinity of this name of a task row."""
    if name != GANG_DOMAIN:
        return ReasonKind.FURTHER_AFFINITY, name, ""
    gang = state.gangs.definition(int(state.tasks.gang[row]))
    return ReasonKind.GANG_DOMAIN, gang.name, gang.topology_key


def _counted(kind: ReasonKind, fails: Bools, detail: str = "", value: str = "") -> Iterator[Reason]:
    """A reason with the number of nodes that fail, if any."""
    if count := int(fails.sum()):
        yield Reason(kind, count, detail, value)
