"""Feeds an engine a load, and carries out what its rounds decide until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.loads.jobs.check import Decision, World
from benchmarks.loads.jobs.load import NOWHERE, ROUND_S, START_US, JobsLoad
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.arrays import I64
from firmament_py.model.events import Event, TasksRemoved

_IDLE_ROUNDS = 3
"""An arrival is over after this many rounds in a row that decide nothing."""

_ROUNDS = 2_000
"""Limit on the rounds of an arrival: one that reaches it counts as endless."""


@dataclass(slots=True)
class Played:
    """The outcome of a load. Of each arrival: engine seconds and rounds until the last of its jobs was served, or until
    a round decided nothing although jobs waited. Of all: rounds, tasks, stage seconds; problems of decisions."""

    decision_s: list[float] = field(default_factory=list)
    decision_rounds: list[int] = field(default_factory=list)
    seconds: float = 0.0
    rounds: int = 0
    victims: int = 0
    lost_s: int = 0
    moves: int = 0
    nominated: int = 0
    dropped: int = 0
    endless: bool = False
    problems: list[str] = field(default_factory=list)
    stage_seconds: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    """After the last round, why tasks wait -> how many."""
    at_best: dict[str, tuple[int, int]] = field(default_factory=dict)
    """After the last round, names of jobs that are proved not to be servable -> how many of the tasks that they lack
    would fit at best, and how many these are."""


class Player:
    """Plays a load on a fresh engine; world: a model with further checks.

    Raises RuntimeError if the engine refuses a part of the load.
    """

    def __init__(self, load: JobsLoad, engine: Engine, world: World | None = None) -> None:
        self._load, self._engine = load, engine
        self.world = world or World(load)
        self.played = Played()
        self._now_us = START_US
        self._apply(load.cluster())

    def run(self) -> Played:
        """All arrivals, one after the other."""
        for jobs in self._load.arrivals:
            self._apply(self._load.arrive(jobs))
            self._arrival(self._load.members(jobs))
        return self.played

    def more_rounds(self, rounds: int, events: list[Event]) -> int:
        """Further rounds after events, and how many tasks they place, preempt or nominate."""
        self._apply(events)
        changes = 0
        for _ in range(rounds):
            self._now_us += ROUND_S * 1_000_000
            result = self._engine.run_round(self._now_us)
            if result is not None:
                decision = self._decision(result)
                changes += len(decision.placed[0]) + len(decision.victims) + len(decision.nominated[0])
        return changes

    def _arrival(self, members: I64) -> None:
        """Rounds until nothing changes."""
        played = self.played
        seconds, rounds, idle, served = 0.0, 0, 0, -1
        decided: tuple[float, int] | None = None
        while idle < _IDLE_ROUNDS:
            self._now_us += ROUND_S * 1_000_000
            result = self._engine.run_round(self._now_us)
            if result is None:
                break
            seconds, rounds = seconds + result.stats.seconds, rounds + 1
            decision = self._decision(result)
            played.problems += self.world.apply(decision)
            self._note(result, decision)
            self._carry_out(decision)
            idle = idle + 1 if decision.is_empty else 0
            before, served = served, int(self.world.served[members].sum())
            if served != before or (served < len(members) and idle <= 1):
                decided = seconds, rounds
            if rounds == _ROUNDS:
                played.endless = True
                break
        decision_s, decision_rounds = decided or (seconds, rounds)
        played.decision_s.append(decision_s)
        played.decision_rounds.append(decision_rounds)
        played.seconds += seconds
        played.rounds += rounds

    def _decision(self, result: RoundResult) -> Decision:
        state = self._engine.state

        def tasks(rows: I64) -> I64:
            return state.tasks.uid[rows].astype(np.int64) - 1

        def nodes(rows: I64) -> I64:
            return np.array([int(state.nodes.id[row].removeprefix("node-")) for row in rows.tolist()], np.int64)

        preemption, migration = result.preemption, result.migration
        return Decision(
            (tasks(result.tasks), nodes(result.nodes)),
            tasks(preemption.victims),
            (tasks(preemption.nominated[0]), nodes(preemption.nominated[1])),
            tasks(preemption.unnominated),
            (tasks(migration.tasks), nodes(migration.nodes)),
        )

    def _note(self, result: RoundResult, decision: Decision) -> None:
        played = self.played
        played.victims += len(decision.victims)
        played.lost_s += int(self._load.run_s[decision.victims].sum())
        played.moves += len(decision.moved[0])
        played.nominated += len(decision.nominated[0])
        played.dropped += result.stats.dropped
        played.reasons, played.at_best = {}, {}
        for each in result.waiting:
            why = ", ".join(dict.fromkeys(reason.kind.name for reason in each.reasons))
            played.reasons[why] = played.reasons.get(why, 0) + each.count
            for reason in each.reasons:
                if reason.kind == ReasonKind.NOT_BY_PREEMPTION:
                    fits, needed = map(int, reason.value.split("/"))
                    played.at_best[reason.detail] = fits, needed
        for stage, seconds in result.stats.stage_seconds.items():
            played.stage_seconds[stage] = played.stage_seconds.get(stage, 0.0) + seconds

    def _carry_out(self, decision: Decision) -> None:
        """The placements are bound; victims and movers are gone, and the successors of the latter arrive."""
        world = self.world
        since_us = np.full(len(world.cls), self._now_us)
        events: list[Event] = []
        tasks, nodes = decision.placed
        if len(tasks):
            events.append(self._load.observed(tasks, world.cls[tasks], world.job[tasks], nodes, since_us[tasks]))
        leaving = np.append(decision.victims, decision.moved[0])
        if len(leaving):
            events.append(TasksRemoved((leaving + 1).astype(np.uint64)))
        new = np.arange(len(world.cls) - len(decision.moved[0]), len(world.cls))
        if len(new):
            nowhere = np.full(len(new), NOWHERE)
            events.append(self._load.observed(new, world.cls[new], world.job[new], nowhere, since_us[new]))
        self._apply(events)

    def _apply(self, events: list[Event]) -> None:
        outcome = self._engine.apply(events)
        if outcome.refused or outcome.unknown_classes or outcome.unknown_gangs or outcome.unknown:
            raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1] or outcome.unknown[:1]}")
