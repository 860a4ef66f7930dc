"""Whether tasks that do not exist yet would be placed: the next round, on a copy of the state that has them, too.

So the answer takes into account what waits already, reservations, and all constraints. It holds as long as nothing
changes before they are submitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.engine.scheduler import Scheduler
from firmament_py.explain.reason import Waiting
from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.lifecycle import ASSUMED
from firmament_py.rebalance.what_if import WhatIf


@dataclass(frozen=True, slots=True)
class Fit:
    """Rows of the tables of the copy.

    placed, nodes: (K,) tasks that get a node, and these. after_evictions: (K,) whether each waits there until victims
    have left. waiting: (W,) tasks that do not. waiting_classes: why, of all tasks that wait. victims: (V,) tasks that
    would be evicted or moved for them. at_best: if the gang is not placed, how many of it fit at best; -1: unknown.
    """

    placed: I64
    nodes: I64
    after_evictions: Bools
    waiting: I64
    waiting_classes: list[Waiting]
    victims: I64
    at_best: int


def would_fit(what_if: WhatIf, scheduler: Scheduler, uids: U64, gang_id: int, *, preempts: bool) -> Fit:
    """What the next round does with the tasks (T,) with these uids, which the state of `what_if` has already.

    `scheduler`: the one whose settings apply; it is not changed. gang_id: 0: none. preempts: whether tasks may be
    evicted or moved for them, if its rounds do that. Changes the state of `what_if`.
    """
    state = what_if.state
    trial = scheduler.beside(state, what_if.policy, what_if.usage, limited=True)
    rows = state.task_rows(uids)
    result = trial.run(what_if.now_us, preempts=preempts)
    tasks = state.tasks
    assumed = tasks.state[rows] == ASSUMED
    nominated = ~assumed & (tasks.nominated[rows] >= 0)
    node = np.where(assumed, tasks.node[rows], tasks.nominated[rows]).astype(np.int64)
    settled = assumed | nominated
    preemption = result.preemption
    evicted = preemption.victims[np.isin(preemption.preemptors, rows)]
    moved = preemption.moved.tasks[np.isin(preemption.moved.needed_by, rows)]
    return Fit(
        rows[settled],
        node[settled],
        nominated[settled],
        rows[~settled],
        result.waiting,
        np.concatenate([evicted, moved]),
        trial.gang_fits.get(gang_id, -1) if gang_id else -1,
    )
