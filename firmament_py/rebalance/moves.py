"""From moves to the steps of a plan: what is carried out together, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.bundle import Bundle
from firmament_py.model.plan import BudgetUse, Move, Step, Win
from firmament_py.rebalance.order import ordered
from firmament_py.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Moves:
    """Task rows (M,) that leave node rows `origins` (M,) for `targets` (M,), save `saves` (M,) of the policy's costs,
    and contribute to wins `win` (M,), -1: make room for others. nominated (K,): rows of waiting tasks that get node
    rows nominated_to (K,), each for a win nominated_win (K,): all that contributes to such a win is one step."""

    tasks: I64
    origins: I64
    targets: I64
    saves: I64
    win: I64
    nominated: I64 = field(default_factory=NO_ROWS.copy)
    nominated_to: I64 = field(default_factory=NO_ROWS.copy)
    nominated_win: I64 = field(default_factory=NO_ROWS.copy)


@dataclass(frozen=True, slots=True)
class Gain:
    """Moves, their wins, and how many pieces there are before and after them; no moves within the same limits leave
    more than `bound`, None: not known."""

    moves: Moves
    wins: tuple[Win, ...]
    before: int
    after: int
    bound: int | None = None


def steps_of(state: ClusterState, moves: Moves, free: I64) -> tuple[Step, ...]:
    """Steps in an order in which each has capacity. free (capacity of the node table, R): without the moves."""
    leave_together = np.isin(moves.win, moves.nominated_win)
    key = np.where(leave_together, moves.win, moves.win.max(initial=-1) + 1 + np.arange(len(moves.win)))
    first, bundle = np.unique(key, return_index=True, return_inverse=True)[1:]
    moves_of = _positions(bundle, len(first))
    with_moves = np.isin(moves.nominated_win, key)
    nominated = np.where(with_moves, np.searchsorted(key[first], moves.nominated_win), len(first))
    nominations_of = _positions(nominated, len(first) + 1)  # the last ones take no moves, and no step
    in_order = np.argsort(first)  # as given
    released, taken = (state.classes.requests[state.tasks.cls[rows]] for rows in (moves.tasks, moves.nominated))
    bundles = [
        Bundle(
            origin=moves.origins[of],
            released=released[of],
            target=np.concatenate([moves.targets[of], moves.nominated_to[arrivals]]),
            taken=np.concatenate([released[of], taken[arrivals]]),
        )
        for of, arrivals in ((moves_of[i], nominations_of[i]) for i in in_order)
    ]
    uid, ident, steps = state.tasks.uid[moves.tasks], state.nodes.id, []
    for each in ordered(bundles, free):
        together = in_order[list(each.together)]
        of, arrivals = (np.sort(np.concatenate([lists[i] for i in together])) for lists in (moves_of, nominations_of))
        columns = (uid, moves.origins, moves.targets, moves.saves)
        found = zip(*(column[of].tolist() for column in columns), strict=True)
        steps.append(
            Step(
                moves=tuple(Move(uid, ident[origin], ident[target], saves) for uid, origin, target, saves in found),
                after=each.after,
                nominated=_named(state, moves.nominated[arrivals], moves.nominated_to[arrivals]),
                win=int(moves.win[of].max()),
            )
        )
    return tuple(steps)


def _positions(group: I64, groups: int) -> list[I64]:
    """Of each of the groups, the positions, ascending, of its members; group (K,): that of each member."""
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=groups))[:-1])


def _named(state: ClusterState, tasks: I64, nodes: I64) -> tuple[tuple[int, str], ...]:
    """Uids of task rows (K,) with the ids of node rows (K,)."""
    ids = (state.nodes.id[node] for node in nodes.tolist())
    return tuple(zip(state.tasks.uid[tasks].tolist(), ids, strict=True))


def budgets_of(state: ClusterState, tasks: I64) -> tuple[BudgetUse, ...]:
    """The disruption budgets that count any of task rows (M,)."""
    allowances = state.allowances()
    moved = allowances.counted(state.tasks.label_set[tasks]).sum(axis=1).tolist()
    found = zip(state.budgets.observed, moved, allowances.left.tolist(), strict=True)
    return tuple(BudgetUse(budget.name, moves, allowed) for budget, moves, allowed in found if moves)
