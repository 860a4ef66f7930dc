"""A copy of an engine's state to try moves on, while the engine goes on."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from firmament_py.engine.round import Round
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import Solver
from firmament_py.model.arrays import I64, Bools
from firmament_py.model.lifecycle import BOUND
from firmament_py.model.options import EngineOptions
from firmament_py.policy import Policy
from firmament_py.preemption.movable_tasks import Candidates, MovableNearby
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Usage


class PlanError(Exception):
    """There is no plan; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The state at `now_us`, microseconds since the epoch, and what its rounds use."""

    state: ClusterState
    policy: Policy
    solver: Solver
    usage: Usage
    now_us: int
    options: EngineOptions

    @classmethod
    def of(cls, scheduler: Scheduler, now_us: int) -> WhatIf:
        """A copy of a scheduler's state, which must not change meanwhile. Raises PlanError if the policy cannot be
        copied."""
        try:
            policy = deepcopy(scheduler.policy)
        except Exception as error:
            raise PlanError(
                f"the policy {scheduler.policy.name} cannot be copied ({error}); let its object support copy.deepcopy"
            ) from error
        state, usage = scheduler.state.copy(), deepcopy(scheduler.usage)
        return cls(state, policy, scheduler.solver, usage, now_us, scheduler.options)

    def round(self, policy: Policy | None = None) -> Round:
        """A round on the state as it is now. policy: another one."""
        return Round(self.state, self.usage, policy or self.policy, self.solver, self.now_us, self.options)

    def candidates(self) -> Candidates | None:
        """Tasks that may move, whatever disruption budgets permit now; None: none may."""
        current = self.round()
        of = self.state, current.running_snapshot, current.eviction_costs
        nearby = MovableNearby(*of, self.options.migrate_after_us, limit=1)
        return nearby.everywhere(current.placer().ledger) if nearby.some else None

    def guarded(self, label_sets: I64) -> Bools:
        """(K,) which of tasks with these rows (K,) of the label set table no budget permits to evict now."""
        return ~self.state.allowances().permitted(label_sets)

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return int((self.state.tasks.state == BOUND).sum())
