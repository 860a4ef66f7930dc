"""Plans of moves for a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from firmament_py.model.arrays import I64
from firmament_py.model.plan import MovePlan
from firmament_py.policy import Policy, registry
from firmament_py.rebalance.improve import improve
from firmament_py.rebalance.moves import Moves, budgets_of, steps_of
from firmament_py.rebalance.pack import pack
from firmament_py.rebalance.place import place
from firmament_py.rebalance.what_if import PlanError, WhatIf
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState


class Goal(Enum):
    """What a plan improves: waiting tasks fit; more nodes are empty, or some shape fits more often; tasks are spread as
    under the policy load-spreading, by what they request; the costs of the policy fall."""

    PLACE = "place"
    PACK = "pack"
    SPREAD = "spread"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Wish:
    """At most so many moves for a goal. shape and per_win only for PACK: see pack."""

    goal: Goal
    moves: int
    shape: Mapping[str, int] = field(default_factory=dict)
    per_win: int = 0

    def __post_init__(self) -> None:
        if self.moves < 1:
            raise PlanError(f"moves is {self.moves}; give 1 or more")
        if self.goal is not Goal.PACK and (self.shape or self.per_win):
            raise PlanError("a shape and moves per win are only for the goal pack; leave them out")
        for name, amount in self.shape.items():
            if amount <= 0:
                raise PlanError(f"{name} of the shape is {amount}; give more than 0")


def planned(what_if: WhatIf, wish: Wish) -> MovePlan:
    """The best plan that is found; without steps if no moves help. Changes the state of `what_if`. Raises PlanError."""
    state = what_if.state
    found = what_if.candidates()
    plan = MovePlan((), running=what_if.running)
    if found is None:
        return plan
    guarded = what_if.guarded(found.label_set)
    plan = replace(plan, movable=int((~guarded).sum()), guarded=int(guarded.sum()))
    free = unreserved(state)
    if wish.goal in (Goal.SPREAD, Goal.POLICY):
        moves = improve(what_if, _policy(what_if, wish.goal), wish.moves)
        return _with(plan, state, moves, free)
    if wish.goal is Goal.PACK:
        snapshot = what_if.round().placer().snapshot
        packed = pack(state, snapshot, found.only(~guarded), wish.shape, wish.moves, wish.per_win)
    else:
        packed, taken = place(what_if, wish.moves)
        free -= taken
    plan = replace(plan, wins=packed.wins, before=packed.before, after=packed.after, bound=packed.bound)
    return _with(plan, state, packed.moves, free)


def _with(plan: MovePlan, state: ClusterState, moves: Moves, free: I64) -> MovePlan:
    return replace(plan, steps=steps_of(state, moves, free), budgets=budgets_of(state, moves.tasks))


def _policy(what_if: WhatIf, goal: Goal) -> Policy:
    return what_if.policy if goal is Goal.POLICY else registry.load("load-spreading", {"by": "requested"})
