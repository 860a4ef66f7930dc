"""The independent check of the preemptions of a round, from the state tables alone."""

import numpy as np

from firmament_py.audit.claims import claim_problems
from firmament_py.audit.gangs import halved_gangs, scattered_gangs
from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.lifecycle import BOUND, PRESENT, WAITING
from firmament_py.state.cluster import ClusterState

_Pairs = tuple[I64, I64]


def preemption_problems(
    state: ClusterState,
    placed: _Pairs,
    victims: _Pairs,
    nominated: _Pairs,
    unnominated: I64,
    moved: _Pairs = (NO_ROWS, NO_ROWS),
    *,
    now_us: int,
    beyond_budgets: bool,
) -> list[str]:
    """What is wrong with the preemptions, and with the moves for waiting tasks; empty: nothing.

    placed, nominated, moved: task rows (K,) and their node rows (K,). victims: task rows (V,), and their preemptors
    (V,). unnominated (U,): task rows that have lost their nominations.
    """
    tasks, classes = state.tasks, state.classes
    rows, preemptors = victims
    holders, nodes = nominated
    problems = []

    def refuse(bad: bool, why: str) -> None:
        if bad:
            problems.append(why)

    refuse(len(np.unique(rows)) < len(rows), "a task is evicted twice")
    refuse(bool((tasks.state[rows] != BOUND).any()), "a victim does not run")
    refuse(bool((tasks.leaving[rows] | tasks.unevictable[rows]).any()), "a victim leaves already, or cannot be evicted")
    by_queue = tasks.queue[preemptors] != 0
    lower = classes.priority[tasks.cls[rows]] < classes.priority[tasks.cls[preemptors]]
    refuse(not (lower | by_queue).all(), "a victim's priority is not lower than its preemptor's")
    exempt = (now_us < tasks.exempt_until_us[rows]) & ~by_queue
    too_low = classes.priority[tasks.cls[preemptors]] < tasks.least_preemptor[rows]
    refuse(bool((exempt & too_low).any()), "a victim is exempt from preemption by its preemptor")
    problems += claim_problems(state, rows[by_queue], preemptors[by_queue], now_us)
    refuse(bool(classes.never_preempts[tasks.cls[preemptors]].any()), "a preemptor never preempts")
    refuse(bool((tasks.state[holders] != WAITING).any()), "a nominated task does not wait")
    refuse(len(np.intersect1d(holders, placed[0])) > 0, "a nominated task is placed, too")
    refuse(bool((state.nodes.state[nodes] != PRESENT).any()), "a nominated node is absent")
    if not beyond_budgets and len(rows) and len(state.budgets):
        allowances = state.allowances()
        exceeded = allowances.counted(tasks.label_set[rows]).sum(axis=1) > allowances.left
        refuse(bool(exceeded.any()), "a disruption budget is exceeded")
    if halved := halved_gangs(state, rows):
        problems.append(f"gang {halved[0]} would keep too few members")
    before = _nominated_before(state, np.concatenate([holders, placed[0], unnominated]))
    concerned = np.isin(tasks.gang[before], tasks.gang[holders])
    waits, at = np.append(holders, before[concerned]), np.append(nodes, tasks.nominated[before[concerned]])
    if scattered := scattered_gangs(state, waits, at):
        problems.append(f"gang {scattered[0]} would not be in one domain of its topology")
    refuse(
        _over_committed(state, placed, np.concatenate([rows, moved[0]]), nominated, unnominated, moved),
        "a node could not take its nominated tasks",
    )
    return problems


def _nominated_before(state: ClusterState, changed: I64) -> I64:
    """Task rows (P,) whose nominations stay: those of `changed` (K,) do not."""
    stays = (state.tasks.state == WAITING) & (state.tasks.nominated >= 0)
    stays[changed] = False
    return np.flatnonzero(stays)


def _over_committed(
    state: ClusterState, placed: _Pairs, victims: I64, nominated: _Pairs, unnominated: I64, moved: _Pairs
) -> bool:
    """Whether the node of a nominated or moving task has too little of a resource for it once all tasks that leave it
    are gone."""
    tasks, requests = state.tasks, state.classes.requests
    leaving = tasks.leaving.copy()
    leaving[victims] = True
    stays = np.flatnonzero((tasks.node >= 0) & ~leaving)
    before = _nominated_before(state, np.concatenate([nominated[0], placed[0], unnominated]))
    used = np.zeros((state.nodes.capacity, requests.shape[1]), np.int64)
    for rows, nodes in ((stays, tasks.node[stays]), placed, nominated, moved, (before, tasks.nominated[before])):
        np.add.at(used, nodes, requests[tasks.cls[rows]])
    expected, amounts = state.successors.reserved(np.concatenate([placed[0], nominated[0], unnominated]))
    np.add.at(used, expected, amounts)
    task, node = (np.concatenate(pair) for pair in zip(nominated, moved, strict=True))
    asked = requests[tasks.cls[task]]
    return bool(((asked > 0) & (used[node] > state.nodes.allocatable[node])).any())
