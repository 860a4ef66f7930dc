"""Plans of the tests: made of clusters, and checked by carrying them out by hand."""

from collections.abc import Iterable

import numpy as np

from firmament_py.model.options import Migrating
from firmament_py.model.plan import MovePlan
from firmament_py.rebalance.planner import Goal, Wish, planned
from firmament_py.rebalance.what_if import WhatIf
from tests.builders import NOW_US, Cluster, make_class, make_node, make_tasks, migrating_cluster

SMALL, MIDDLE, LARGE = 1, 2, 3
"""Classes of 1, 2 and 4 cpu."""

CLASSES = (make_class(SMALL, cpu=1), make_class(MIDDLE, cpu=2), make_class(LARGE, cpu=4))


def resting_cluster(*events, **options) -> Cluster:
    """Tasks may be moved however short they have run, but rounds move none by themselves."""
    return migrating_cluster(*events, **{"migrating": Migrating.NEVER, **options})


def movable(uids: Iterable[int], cls: int, on: str, **fields):
    """Tasks of a job each."""
    return [make_tasks([uid], cls, on=on, **{"movable": True, "job": uid, **fields}) for uid in uids]


def cluster_of(*events, names="abc", cpu=4, **options):
    """With equal nodes."""
    nodes = (make_node(name, cpu=cpu) for name in names)
    return resting_cluster(*CLASSES, *nodes, *events, **options)


def scattered(names="abc", **options):
    """Each node of 4 cpu runs a task of 1 cpu."""
    tasks = (movable([uid], SMALL, name)[0] for uid, name in enumerate(names, 1))
    return cluster_of(*tasks, names=names, **options)


def plan_of(cluster: Cluster, goal: Goal, moves: int = 50, **wish) -> MovePlan:
    return planned(WhatIf.of(cluster.scheduler, NOW_US), Wish(goal, moves, **wish))


def moves_of(plan: MovePlan) -> dict[int, tuple[str, str]]:
    """Uid -> names of the nodes that the task leaves and goes to."""
    found = {m.uid: (m.from_id.removeprefix("id-"), m.to_id.removeprefix("id-")) for s in plan.steps for m in s.moves}
    assert len(found) == sum(len(step.moves) for step in plan.steps), "a task moves twice"
    return found


def won(plan: MovePlan) -> dict[str, int]:
    """Names of nodes -> what is won there."""
    return {win.node_id.removeprefix("id-"): win.count for win in plan.wins}


def carried_out(cluster: Cluster, plan: MovePlan) -> dict[int, str]:
    """Where the tasks are after the steps, one by one, each of which must fit at its time, with no more of the others
    gone than those that it waits for: uid -> name of the node."""
    state = cluster.state
    tasks = state.tasks
    rows = {int(tasks.uid[row]): int(row) for row in np.flatnonzero(tasks.node >= 0)}
    requests = {uid: state.classes.requests[tasks.cls[row]] for uid, row in rows.items()}
    node_of = {uid: int(tasks.node[row]) for uid, row in rows.items()}
    row_of = state.nodes.row
    free = state.nodes.allocatable - state.nodes.used
    arrived: list[tuple[int, int]] = []
    for step in plan.steps:
        gone = [move for i in step.after for move in plan.steps[i].moves] + list(step.moves)
        left = free.copy()
        for move in gone:
            left[row_of[move.from_id]] += requests[move.uid]
        coming = [(move.uid, row_of[move.to_id]) for move in step.moves]
        for uid, node in arrived + coming:
            left[node] -= requests[uid]
        for uid, ident in step.nominated:
            left[row_of[ident]] -= state.classes.requests[tasks.cls[state.task_row(uid)]]
        targets = {node for _, node in coming} | {row_of[ident] for _, ident in step.nominated}
        assert all((left[node] >= 0).all() for node in targets), f"{step} does not fit"
        arrived += coming
    for uid, node in arrived:
        node_of[uid] = node
    return {uid: state.nodes.observed[node].name for uid, node in node_of.items()}
