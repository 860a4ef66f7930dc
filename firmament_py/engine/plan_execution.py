"""Carries out a plan of moves, round by round: each step as soon as those that it waits for have ended, its nodes have
capacity, disruption budgets permit it, and few other moves are under way.

Each step is valid by itself at the time when a round decides on it, whatever has become of the plan. What cannot be
carried out is dropped, with the reason; so a plan always comes to an end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from firmament_py.audit.placements import Checker
from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.plan import Move, Step
from firmament_py.placement.migration import Migration
from firmament_py.preemption.outcome import NO_PREEMPTION, Preemption
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.cluster import ClusterState

STEP_US = 1_000_000
"""How often rounds look whether a further step can begin, microseconds."""

PATIENCE_US = 600_000_000
"""How long nothing changes before the steps that still wait are dropped, microseconds."""

ATTEMPTS = 3
"""How often the task of a step of its own is to be evicted before it stays."""

_MAY_NOT = "the task may not be moved any more"


class Stage(Enum):
    """What has become of a move: the stages of MoveProgress in flow.proto."""

    WAITING = "WAITING"
    LEAVING = "LEAVING"
    AWAITED = "AWAITED"
    DONE = "DONE"
    OTHER_NODE = "ELSEWHERE"
    DROPPED = "DROPPED"

    @property
    def ended(self) -> bool:
        return self in (Stage.DONE, Stage.OTHER_NODE, Stage.DROPPED)


@dataclass(slots=True)
class MoveProgress:
    """reason: what a move waits for, or why it was dropped. refusals: how often its task was not evicted."""

    move: Move
    stage: Stage = Stage.WAITING
    reason: str = ""
    refusals: int = 0


class PlanExecution:
    """`begin` with a plan; each round calls `next_steps`. at_once: how many moves may be under way, unless a single
    step has more."""

    def __init__(self, state: ClusterState, at_once: int) -> None:
        self._state = state
        self._at_once = at_once
        self._checker = Checker(state)
        self._steps: list[tuple[Step, list[MoveProgress]]] = []
        self._changed_us = 0
        self._looked_us = 0

    @property
    def progress(self) -> list[MoveProgress]:
        """Of all moves of the plan, in order."""
        return [move for _, moves in self._steps for move in moves]

    @property
    def active(self) -> bool:
        """Whether some moves have not ended."""
        return any(not move.stage.ended for move in self.progress)

    @property
    def wake_us(self) -> int:
        """When the next round should look; 0: no plan is being carried out."""
        return self._looked_us + STEP_US if self.active else 0

    def begin(self, steps: Sequence[Step], now_us: int) -> None:
        """Carries out these steps, each of which waits only for ones before it, in place of earlier ones that have not
        begun. Without steps: no further one begins."""
        if steps:
            self._steps = [(step, [MoveProgress(move) for move in step.moves]) for step in steps]
        else:
            self._drop_waiting("the plan was ended")
        self._changed_us, self._looked_us = now_us, 0
        self._state.opportunities += bool(steps)

    def next_steps(self, now_us: int, left: int) -> Preemption:
        """The moves that begin in this round, at most `left` unless a single step has more, and the nominations of the
        tasks that fit then. The caller has the state assume them."""
        if not self.active:
            return NO_PREEMPTION
        self._looked_us = now_us
        if self._observe():
            self._changed_us = now_us
        begun = self._begin_steps(left)
        if len(begun.moved.tasks):
            self._changed_us = now_us
            return begun
        if now_us - self._changed_us >= PATIENCE_US:
            self._drop_waiting()
        return NO_PREEMPTION

    def _observe(self) -> bool:
        """Notes what has become of the tasks that move; whether anything has."""
        changed = False
        state = self._state
        for each, alone in [(move, len(moves) == 1) for _, moves in self._steps for move in moves]:
            before, uid = each.stage, each.move.uid
            row = state.task_row(uid)
            if each.stage is Stage.LEAVING and row is not None and not state.tasks.leaving[row]:
                each.refusals += 1
                again = alone and each.refusals < ATTEMPTS
                each.stage, each.reason = Stage.WAITING if again else Stage.DROPPED, "the task was not evicted"
            elif each.stage is Stage.LEAVING and (row is None or state.tasks.state[row] != TaskState.BOUND):
                each.stage = Stage.AWAITED
            if each.stage is Stage.AWAITED and not state.successors.expects(uid):
                there = state.successors.ended_on(uid)
                node = state.nodes.row.get(each.move.to_id, -1)
                each.stage = Stage.DONE if there == node >= 0 else Stage.OTHER_NODE
                if there < 0:
                    each.reason = "no successor has come"
            changed |= each.stage is not before
        return changed

    def _begin_steps(self, left: int) -> Preemption:
        """Of the steps whose predecessors have ended, those that can begin."""
        tasks: list[I64] = [NO_ROWS]
        nodes, needed_by, holders, reserved = list(tasks), list(tasks), list(tasks), list(tasks)
        free = unreserved(self._state)
        under_way = len(self._state.successors)
        for step, moves in self._steps:
            if moves[0].stage is not Stage.WAITING:
                continue
            if not all(move.stage.ended for i in step.after for move in self._steps[i][1]):
                _wait(moves, "earlier steps have not ended")
                continue
            rows, to, problem = self._moved(step)
            waiting, on = self._nominated(step)
            if len(waiting) < len(step.nominated):
                problem = problem or "a task that it is for does not wait any more"
            if problem == _MAY_NOT and moves[0].refusals:
                continue  # the client reports so for a while after a refusal
            if problem:
                _drop(moves, problem)
                continue
            obstacle = self._over_budget(np.concatenate([*tasks, rows]))
            if left <= 0 or (under_way and len(rows) > min(left, self._at_once - under_way)):
                obstacle = "as many moves as permitted are under way, or were in the last hour"
            elif not obstacle and not _takes(self._state, free, rows, to, waiting, on):
                obstacle = "its nodes have too little free capacity"
            if obstacle:
                _wait(moves, obstacle)
                continue
            if problems := self._checker.migration_problems(rows, to, at_once=False):
                _drop(moves, "; ".join(problems))
                continue  # what it would take stays reserved for this round
            for move in moves:
                move.stage, move.reason = Stage.LEAVING, ""
            tasks.append(rows)
            nodes.append(to)
            needed_by.append(np.full(len(rows), waiting[0] if len(waiting) else -1))
            holders.append(waiting)
            reserved.append(on)
            under_way, left = under_way + len(rows), left - len(rows)
        row, target, needed = np.concatenate(tasks), np.concatenate(nodes), np.concatenate(needed_by)
        moved = Migration(row, target, needed, np.zeros_like(row))
        return Preemption(NO_ROWS, NO_ROWS, (np.concatenate(holders), np.concatenate(reserved)), NO_ROWS, moved)

    def _moved(self, step: Step) -> tuple[I64, I64, str]:
        """Rows of the tasks of a step, and of their nodes; and why it cannot be carried out, empty: it can."""
        state = self._state
        found = [(state.task_row(move.uid), state.node_row(move.to_id)) for move in step.moves]
        rows = np.array([-1 if row is None else row for row, _ in found], np.int64)
        nodes = np.array([-1 if row is None else row for _, row in found], np.int64)
        tasks = state.tasks
        if (rows < 0).any() or (tasks.state[rows] != TaskState.BOUND).any():
            return rows, nodes, "the task does not run any more"
        if (nodes < 0).any():
            return rows, nodes, "the node is gone"
        if (~tasks.movable[rows] | tasks.unevictable[rows] | (tasks.gang[rows] >= 0)).any():
            return rows, nodes, _MAY_NOT
        if tasks.leaving[rows].any():
            return rows, nodes, "the task leaves already"
        return rows, nodes, ""

    def _nominated(self, step: Step) -> tuple[I64, I64]:
        """Rows of the tasks that are nominated with a step and still wait without a nomination, and of their nodes."""
        state = self._state
        found = [(state.task_row(uid), state.node_row(node)) for uid, node in step.nominated]
        pairs = [(row, node) for row, node in found if row is not None and node is not None]
        waits = [
            (row, node)
            for row, node in pairs
            if state.tasks.state[row] == TaskState.WAITING and state.tasks.nominated[row] in (-1, node)
        ]
        return np.array([row for row, _ in waits], np.int64), np.array([node for _, node in waits], np.int64)

    def _over_budget(self, rows: I64) -> str:
        """Which disruption budget does not permit to evict task rows (K,) now; empty: all do."""
        state = self._state
        allowed, counts = state.evictions_allowed(state.tasks.label_set[rows])
        over = np.flatnonzero(counts.sum(axis=1) > allowed)
        return f"the disruption budget {state.budgets.observed[over[0]].name}" if len(over) else ""

    def _drop_waiting(self, reason: str = "") -> None:
        """Drops the steps that have not begun. reason: empty: what each waits for."""
        for _, moves in self._steps:
            if moves[0].stage is Stage.WAITING:
                _drop(moves, reason or f"it has waited for too long: {moves[0].reason}")


def _wait(moves: list[MoveProgress], reason: str) -> None:
    for move in moves:
        move.reason = reason


def _drop(moves: list[MoveProgress], reason: str) -> None:
    for move in moves:
        move.stage, move.reason = Stage.DROPPED, reason


def _takes(state: ClusterState, free: I64, rows: I64, to: I64, waiting: I64, on: I64) -> bool:
    """Whether free (capacity of the node table, R) has capacity for task rows on node rows, those that move and those
    that wait, once the former have left; if so it is reserved there."""
    requests, cls = state.classes.requests, state.tasks.cls
    left = free.copy()
    np.add.at(left, state.tasks.node[rows], requests[cls[rows]])
    tasks, nodes = np.concatenate([rows, waiting]), np.concatenate([to, on])
    asked = requests[cls[tasks]]
    np.subtract.at(left, nodes, asked)
    if ((asked > 0) & (left[nodes] < 0)).any():
        return False
    np.subtract.at(free, nodes, asked)
    return True
