"""From moves to the steps of a plan: what is carried out together, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.plan import BudgetUse, Move, Step, Win
from firmament_py.rebalance.order import Bundle, ordered
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
    single = ~np.isin(moves.win, moves.nominated_win)
    bundle = np.where(single, moves.win.max(initial=-1) + 1 + np.arange(len(moves.win)), moves.win)
    bundles = list(dict.fromkeys(bundle.tolist()))
    released, taken = (state.classes.requests[state.tasks.cls[rows]] for rows in (moves.tasks, moves.nominated))
    steps = []
    for each in ordered(
        [_bundle(moves, bundle == b, moves.nominated_win == b, released, taken) for b in bundles], free
    ):
        of = np.flatnonzero(np.isin(bundle, [bundles[i] for i in each.together]))
        arrivals = np.flatnonzero(np.isin(moves.nominated_win, [bundles[i] for i in each.together]))
        columns = (state.tasks.uid[moves.tasks], moves.origins, moves.targets, moves.saves)
        found = zip(*(column[of].tolist() for column in columns), strict=True)
        ident = state.nodes.id
        steps.append(
            Step(
                moves=tuple(Move(uid, ident[origin], ident[target], saves) for uid, origin, target, saves in found),
                after=each.after,
                nominated=_named(state, moves.nominated[arrivals], moves.nominated_to[arrivals]),
                win=int(moves.win[of].max()),
            )
        )
    return tuple(steps)


def _bundle(moves: Moves, of: I64, arrivals: I64, released: I64, taken: I64) -> Bundle:
    return Bundle(
        origin=moves.origins[of],
        released=released[of],
        target=np.concatenate([moves.targets[of], moves.nominated_to[arrivals]]),
        taken=np.concatenate([released[of], taken[arrivals]]),
    )


def _named(state: ClusterState, tasks: I64, nodes: I64) -> tuple[tuple[int, str], ...]:
    """Uids of task rows (K,) with the ids of node rows (K,)."""
    ids = (state.nodes.id[node] for node in nodes.tolist())
    return tuple(zip(state.tasks.uid[tasks].tolist(), ids, strict=True))


def budgets_of(state: ClusterState, tasks: I64) -> tuple[BudgetUse, ...]:
    """The disruption budgets that count any of task rows (M,)."""
    left, counts = state.evictions_allowed(state.tasks.label_set[tasks])
    found = zip(state.budgets.observed, counts.sum(axis=1).tolist(), left.tolist(), strict=True)
    return tuple(BudgetUse(budget.name, moves, allowed) for budget, moves, allowed in found if moves)
