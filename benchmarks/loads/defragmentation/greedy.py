"""Moves one by one, each the one that saves the greatest number of fragments: the baseline for plans of moves."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.defragmentation.machines import PIECE, Moves, Tasks
from firmament_py.model.arrays import I64

_NEVER = -(2**31)


def greedy_plan(free: I64, tasks: Tasks, limit: int) -> Moves:
    """Ends when no move saves fragments, or after `limit` moves. No task moves twice. Each move fits at its time."""
    free, machine, movable = free.copy(), tasks.machine.copy(), np.ones(len(tasks.machine), np.bool_)
    both, size = tasks.both, tasks.cores.sum(axis=1)
    moves: list[tuple[int, int, int]] = []
    kinds, kind = np.unique(np.column_stack([size, both]), axis=0, return_inverse=True)
    while len(moves) < limit:
        leaves = _saved(free[machine], tasks.cores)  # (T,)
        leaves[~movable] = _NEVER
        best = (0, -1, -1, -1)
        for k, (cores, of_both) in enumerate(kinds.tolist()):
            ways = np.array([[cores // 2, cores // 2]] if of_both else [[cores, 0], [0, cores]], np.int64)
            arrives = _saved(free[:, None], -ways)  # (N, ways)
            arrives[(free[:, None] < ways).any(axis=2)] = _NEVER
            side = arrives.argmax(axis=1)
            to = np.argsort(-arrives.max(axis=1), kind="stable")[:2]  # the second, for tasks on the first
            of_kind = np.flatnonzero(kind.reshape(-1) == k)
            task = of_kind[leaves[of_kind].argmax()]
            for target in to.tolist():
                gain = int(leaves[task] + arrives[target].max())
                if machine[task] != target and gain > best[0]:
                    best = (gain, int(task), target, int(side[target]))
        _, task, target, way = best
        if task < 0:
            break
        free[machine[task]] += tasks.cores[task]
        cores = int(size[task])
        free[target] -= [cores // 2, cores // 2] if both[task] else [cores * (way == 0), cores * (way == 1)]
        movable[task] = False
        moves.append((task, target, way))
    return np.array(moves, np.int64).reshape(-1, 3)


def _saved(free: I64, released: I64) -> I64:
    """How many fragments fewer there are if (..., 2) cores are released where (..., 2) are free."""
    saved: I64 = (free % PIECE - (free + released) % PIECE).sum(axis=-1)
    return saved
