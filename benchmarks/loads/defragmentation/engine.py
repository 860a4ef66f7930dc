"""Runs an engine on a cluster of pods that may move: decisions are carried out until rounds change nothing."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.defragmentation.pods import NOWHERE, UNGUARDED, Pods, Run
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.model.arrays import I64
from firmament_py.model.constraints import Operator, PeerSelector, Requirement
from firmament_py.model.events import (
    BudgetObserved,
    ClassDefined,
    Event,
    LabelSetDefined,
    NodeObserved,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.rebalance.planner import Wish, planned
from firmament_py.rebalance.what_if import WhatIf

START_US = 1_700_000_000_000_000
"""When the waiting pods are created; the others run for a minute. Rounds run from a second later on."""

_RUN_US = 60_000_000
_ROUND_US = 1_000_000
_ROUNDS, _IDLE_ROUNDS = 1_000, 3
_MIB = 2**20
_RESOURCES = {1: (("nvidia.com/gpu", 1),), 2: (("cpu", 1), ("memory", _MIB))}
"""By the number of resources, their names and units."""


class _Playing:
    """Pods are numbered from 0, the running ones first; tasks count up from 1, and each successor is a new one."""

    def __init__(self, load: Pods, engine: Engine) -> None:
        self._load, self._engine = load, engine
        running, waiting = len(load.node), len(load.waiting)
        requests = np.vstack([load.requests, load.waiting])
        self._kinds, kind = np.unique(requests, axis=0, return_inverse=True)
        self._kind: I64 = kind.reshape(-1)
        self._label_set = np.append(load.budget, np.full(waiting, UNGUARDED)) + 1
        self._pod_of: I64 = np.arange(running + waiting)  # of each task, the first of which has uid 1
        self._node: I64 = np.append(load.node, load.unserved())
        self._away: dict[int, int] = {}  # pods without a node whose successors wait -> the round of their eviction
        self._evictions: list[tuple[int, int, int]] = []
        self.rounds = 0
        self._apply(self._cluster())
        self._observe(np.arange(running), START_US - _RUN_US)
        self._observe(np.arange(running, running + waiting), START_US)

    def _cluster(self) -> list[Event]:
        resources = _RESOURCES[self._load.allocatable.shape[1]]

        def amounts(row: list[int]) -> dict[str, int]:
            return {name: amount * unit for (name, unit), amount in zip(resources, row, strict=True)}

        offers = [amounts(row) | {"pods": 110} for row in self._load.allocatable.tolist()]
        return [
            *(NodeObserved(f"node-{n}", f"node-{n}", offer) for n, offer in enumerate(offers)),
            *(ClassDefined(k + 1, amounts(row)) for k, row in enumerate(self._kinds.tolist())),
            *(LabelSetDefined(b + 1, "default", {"app": f"app-{b}"}) for b in range(len(self._load.allowed))),
        ]

    def budgets(self) -> None:
        """Updates budgets: evicted pods count against them until their successors run."""
        away = self._load.budget[np.array(list(self._away), np.int64)]
        left = self._load.allowed - np.bincount(away[away != UNGUARDED], minlength=len(self._load.allowed))
        events: list[Event] = []
        for b, allowed in enumerate(left.tolist()):
            guards = PeerSelector(frozenset(["default"]), None, (Requirement("app", Operator.IN, (f"app-{b}",)),))
            events.append(BudgetObserved(b + 1, guards, max(allowed, 0), f"app-{b}"))
        self._apply(events)

    def carry_out(self, result: RoundResult) -> bool:
        """Whether the round has changed anything."""
        state = self._engine.state
        self.rounds += 1
        for row, node in zip(result.tasks.tolist(), result.nodes.tolist(), strict=True):
            pod = int(self._pod_of[int(state.tasks.uid[row]) - 1])
            self._node[pod] = int(state.nodes.id[node].removeprefix("node-"))
            if pod in self._away:
                self._evictions.append((self._away.pop(pod), pod, int(self._node[pod])))
        placed, left = state.tasks.uid[result.tasks].astype(np.int64) - 1, state.tasks.uid[result.migration.tasks]
        self._observe(placed, START_US)
        if len(left):
            pods = self._pod_of[left.astype(np.int64) - 1]
            self._apply([TasksRemoved(left)])
            self._node[pods] = NOWHERE
            self._away |= dict.fromkeys(pods.tolist(), self.rounds)
            self._pod_of = np.append(self._pod_of, pods)
            self._observe(np.arange(len(self._pod_of) - len(pods), len(self._pod_of)), START_US)
        return bool(len(placed) or len(left) or not result.preemption.is_empty)

    def outcome(self) -> Run:
        """Evictions so far, and the nodes of the waiting pods."""
        lost = [(number, pod, NOWHERE) for pod, number in self._away.items()]
        evictions = np.array([*self._evictions, *lost], np.int64).reshape(-1, 3)
        return Run(evictions, self._node[len(self._load.node) :])

    def _observe(self, tasks: I64, since_us: int) -> None:
        """Tasks (K,) as they are, waiting or running since then."""
        pods = self._pod_of[tasks]
        names, index = np.unique(self._node[pods], return_inverse=True)
        position = np.where(self._node[pods] == NOWHERE, 0, index.reshape(-1) + 1)
        observed = TasksObserved(
            uid=(tasks + 1).astype(np.uint64),
            class_id=(self._kind[pods] + 1).astype(np.uint64),
            job_id=(pods + 1).astype(np.uint64),
            created_us=np.full(len(tasks), since_us),
            node=position,
            names=[f"default/pod-{task}" for task in tasks.tolist()],
            nodes=tuple(f"node-{n}" for n in names.tolist()),
            label_set_id=self._label_set[pods].astype(np.uint64),
            started_us=np.where(position > 0, since_us, 0),
            movable=pods < len(self._load.node),
        )
        self._apply([observed])

    def _apply(self, events: list[Event]) -> None:
        outcome = self._engine.apply(events)
        if outcome.refused or outcome.unknown_classes or outcome.unknown_label_sets:
            raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")


def play(load: Pods, engine: Engine, wish: Wish | None = None) -> Run:
    """The outcome once rounds change nothing any more, with the plan for a wish. A pod whose successor still waits is
    on no node."""
    playing, now_us, idle = _Playing(load, engine), START_US, 0
    if wish is not None:
        playing.budgets()
        plan = planned(WhatIf.of(engine.scheduler, now_us), wish)
        engine.scheduler.plan.begin(plan.steps, now_us)
    while idle < _IDLE_ROUNDS and playing.rounds < _ROUNDS:
        now_us += _ROUND_US
        playing.budgets()
        result = engine.run_round(now_us)
        if result is None:
            break
        idle = 0 if playing.carry_out(result) else idle + 1
    return playing.outcome()
