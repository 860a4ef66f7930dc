"""Moves after which waiting tasks fit: what a round would decide that may move tasks for waiting ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firmament_py.engine.scheduler import Scheduler
from firmament_py.model.arrays import I64, add_rows
from firmament_py.model.options import Migrating, Preempting
from firmament_py.model.plan import Win
from firmament_py.rebalance.moves import Gain, Moves
from firmament_py.rebalance.what_if import WhatIf
from firmament_py.state.gangs import NO_GANG


def place(what_if: WhatIf, moves: int) -> tuple[Gain, I64]:
    """At most so many moves; pieces are waiting tasks that fit nowhere. And (capacity of the node table, R) what the
    tasks that the next round places anyway take. The state of `what_if` is that after the round."""
    state = what_if.state
    options = replace(
        what_if.options,
        preempting=Preempting.OFF,
        migrating=Migrating.FOR_WAITING,
        moves_at_once=moves + len(state.successors),
        moves_per_hour=0,
    )
    scheduler = Scheduler(state, what_if.policy, what_if.solver, usage=what_if.usage, options=options)
    nominated_before = state.tasks.nominated >= 0
    origins = state.tasks.node.copy()
    result = scheduler.run(what_if.now_us)
    moved, (tasks, nodes) = result.migration, result.preemption.nominated
    new = ~nominated_before[tasks]
    tasks, nodes = tasks[new], nodes[new]
    win, wins = _wins(what_if, tasks, nodes)
    taken = np.zeros_like(state.nodes.used)
    add_rows(taken, result.nodes, state.classes.requests[state.tasks.cls[result.tasks]])
    of_node = np.full(state.nodes.capacity, -1)
    of_node[nodes] = win
    from_nodes = origins[moved.tasks]
    found = Moves(
        tasks=moved.tasks,
        origins=from_nodes,
        targets=moved.nodes,
        saves=np.zeros(len(moved.tasks), np.int64),
        win=of_node[from_nodes],
        nominated=tasks,
        nominated_to=nodes,
        nominated_win=win,
    )
    before = sum(waiting.count for waiting in result.waiting)
    return Gain(found, wins, before, before - len(tasks)), taken


def _wins(what_if: WhatIf, tasks: I64, nodes: I64) -> tuple[I64, tuple[Win, ...]]:
    """The wins of waiting task rows (K,) that get node rows (K,): (K,) the one of each, and all. Tasks of a gang or of
    a node are one win."""
    state = what_if.state
    group = np.arange(len(tasks))
    gang = state.tasks.gang[tasks]
    while True:  # the smallest number of all that share a gang or a node
        before = group.copy()
        for key, some in ((gang, gang != NO_GANG), (nodes, np.ones(len(tasks), np.bool_))):
            values, of = np.unique(key[some], return_inverse=True)
            least = np.full(len(values), len(tasks))
            np.minimum.at(least, of.reshape(-1), group[some])
            group[some] = least[of.reshape(-1)]
        if (group == before).all():
            break
    wins = []
    numbers, win = np.unique(group, return_inverse=True)
    for number in range(len(numbers)):
        of = np.flatnonzero(win.reshape(-1) == number)
        on = np.unique(nodes[of]).tolist()
        uids = tuple(state.tasks.uid[tasks[of]].tolist())
        wins.append(Win(state.nodes.id[on[0]] if len(on) == 1 else "", len(of), uids))
    return win.reshape(-1).astype(np.int64), tuple(wins)
