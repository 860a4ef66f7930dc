"""Moves that save more of a policy's costs than they cost: migrations, round by round on a copy until none is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.options import Migrating
from firmament_py.placement.migration import Migrator
from firmament_py.policy import Policy
from firmament_py.rebalance.moves import Moves
from firmament_py.rebalance.what_if import WhatIf
from firmament_py.state.trials import relocate

_ROUNDS = 1_000


def improve(what_if: WhatIf, policy: Policy, moves: int) -> Moves:
    """At most so many moves, of each task once, those that save most first. The state of `what_if` is that after
    them. A disruption budget limits each round on the copy: moves wait until it permits the next ones."""
    state = what_if.state
    migrator = Migrator(state, replace(what_if.options, migrating=Migrating.ALWAYS, moves_at_once=2**31))
    found: list[tuple[I64, I64, I64, I64]] = []
    for _ in range(_ROUNDS):
        current = what_if.round(policy)
        migration = migrator.run(current.placer(), current)
        tasks, nodes, saves = (column[:moves] for column in (migration.tasks, migration.nodes, migration.saves))
        if not len(tasks):
            break
        found.append((tasks, state.tasks.node[tasks], nodes, saves))
        moves -= len(tasks)
        relocate(state, tasks, nodes)
        if not moves:
            break
    tasks, origins, targets, saves = (np.concatenate([NO_ROWS, *(each[i] for each in found)]) for i in range(4))
    return Moves(tasks, origins, targets, saves, win=np.full(len(tasks), -1))
