"""Carries out a plan of moves, round by round: each step as soon as those that it waits for have ended, its nodes have
capacity, disruption budgets permit it, and few other moves are under way.

Each step is valid by itself at the time when a round decides on it, whatever has become of the plan. What cannot be
carried out is dropped, with the reason; so a plan always comes to an end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from firmament_py.audit.gangs import scattered_gangs
from firmament_py.audit.placements import Checker
from firmament_py.model.arrays import I64, NO_ROWS, add_rows
from firmament_py.model.bundle import Bundle
from firmament_py.model.lifecycle import BOUND, WAITING
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

_MAY_NOT = "it may not be moved any more"


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
    """reason: what a move waits for, or why it was dropped, in words that clients show: "it" is the task, whatever they
    call it. refusals: how often its task was not evicted."""

    move: Move
    stage: Stage = Stage.WAITING
    reason: str = ""
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class _Rows:
    """Of a step: task rows (K,) that move to node rows `to` (K,), and waiting task rows (W,) that are nominated on node
    rows `on` (W,)."""

    tasks: I64
    to: I64
    waiting: I64
    on: I64


_NOTHING = _Rows(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)


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
                each.stage, each.reason = Stage.WAITING if again else Stage.DROPPED, "it was not evicted"
            elif each.stage is Stage.LEAVING and (row is None or state.tasks.state[row] != BOUND):
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
        begun = [_NOTHING]
        free = unreserved(self._state)
        under_way = len(self._state.successors)
        for step, moves in self._steps:
            if moves[0].stage is not Stage.WAITING:
                continue
            if not all(move.stage.ended for i in step.after for move in self._steps[i][1]):
                _wait(moves, "earlier steps have not ended")
                continue
            problem, rows = self._rows_of(step)
            if problem == _MAY_NOT and moves[0].refusals:
                continue  # the client reports so for a while after a refusal
            if problem:
                _drop(moves, problem)
                continue
            count = len(rows.tasks)
            if left <= 0 or (under_way and count > min(left, self._at_once - under_way)):
                obstacle = "as many moves as permitted are under way, or were in the last hour"
            else:
                obstacle = self._over_budget(np.concatenate([*(each.tasks for each in begun), rows.tasks]))
                if not obstacle and not _reserve(self._state, free, rows):
                    obstacle = "its nodes have too little free capacity"
            if obstacle:
                _wait(moves, obstacle)
                continue
            problems = self._checker.migration_problems(rows.tasks, rows.to, at_once=False)
            if scattered := scattered_gangs(self._state, rows.waiting, rows.on):
                problems.append(f"gang {scattered[0]} would not be in one domain of its topology")
            if problems:
                _drop(moves, "; ".join(problems))
                continue  # what it would take stays reserved for this round
            for move in moves:
                move.stage, move.reason = Stage.LEAVING, ""
            begun.append(rows)
            under_way, left = under_way + count, left - count
        return _as_decided(begun)

    def _rows_of(self, step: Step) -> tuple[str, _Rows]:
        """Why a step cannot be carried out, empty: it can; and then its rows."""
        state, tasks = self._state, self._state.tasks
        found = [state.task_row(move.uid) for move in step.moves]
        rows = np.array([-1 if row is None else row for row in found], np.int64)
        to = state.node_rows([move.to_id for move in step.moves])
        if (rows < 0).any() or (tasks.state[rows] != BOUND).any():
            return "it does not run any more", _NOTHING
        if (to < 0).any():
            return "the node is gone", _NOTHING
        if (~tasks.movable[rows] | tasks.unevictable[rows] | (tasks.gang[rows] >= 0)).any():
            return _MAY_NOT, _NOTHING
        if tasks.leaving[rows].any():
            return "it is leaving already", _NOTHING
        if (tasks.node[rows] == to).any():
            return "it runs on that node already", _NOTHING
        waiting, on = self._nominated(step)
        if len(waiting) < len(step.nominated):
            return "what it makes capacity for does not wait any more", _NOTHING
        return "", _Rows(rows, to, waiting, on)

    def _nominated(self, step: Step) -> tuple[I64, I64]:
        """Rows of the tasks that a step nominates, if they still wait and no other node is kept for them, and of their
        nodes."""
        state, tasks = self._state, self._state.tasks
        found = [state.task_row(uid) for uid, _ in step.nominated]
        rows = np.array([-1 if row is None else row for row in found], np.int64)
        on = state.node_rows([node for _, node in step.nominated])
        waits = (rows >= 0) & (on >= 0) & (tasks.state[rows] == WAITING)
        waits &= (tasks.nominated[rows] < 0) | (tasks.nominated[rows] == on)
        return rows[waits], on[waits]

    def _over_budget(self, rows: I64) -> str:
        """Which disruption budget does not permit to evict task rows (K,) now; empty: all do."""
        state = self._state
        over = state.allowances().exceeded(state.tasks.label_set[rows])
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


def _reserve(state: ClusterState, free: I64, rows: _Rows) -> bool:
    """Whether free (capacity of the node table, R) has capacity for the tasks that move and those that wait, once the
    former have left; if so it is reserved there."""
    moving, waiting = (state.classes.requests[state.tasks.cls[some]] for some in (rows.tasks, rows.waiting))
    target, taken = np.concatenate([rows.to, rows.on]), np.concatenate([moving, waiting])
    if not Bundle(state.tasks.node[rows.tasks], moving, target, taken).fits(free):
        return False
    add_rows(free, target, -taken)
    return True


def _as_decided(begun: list[_Rows]) -> Preemption:
    """The moves and nominations of steps that begin."""
    tasks, to = np.concatenate([each.tasks for each in begun]), np.concatenate([each.to for each in begun])
    waiting, on = np.concatenate([each.waiting for each in begun]), np.concatenate([each.on for each in begun])
    needed_by = np.concatenate(
        [np.full(len(each.tasks), each.waiting[0] if len(each.waiting) else -1) for each in begun]
    )
    return Preemption(NO_ROWS, NO_ROWS, (waiting, on), NO_ROWS, Migration(tasks, to, needed_by, np.zeros_like(tasks)))
