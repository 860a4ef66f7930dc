"""What of an event about tasks makes sense: its rows with names looked up, as the task table is to hold them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from firmament_py.model.arrays import I64, U8, U64, Bools
from firmament_py.model.events import Outcome, Refusal, TasksObserved
from firmament_py.model.lifecycle import ILLEGAL, TASK_NEXT, TaskEvent, TaskState
from firmament_py.state.classes import ClassTable
from firmament_py.state.gangs import NO_GANG, GangTable
from firmament_py.state.input_sets import NO_INPUTS, InputSetTable
from firmament_py.state.label_sets import NO_LABELS, LabelSetTable
from firmament_py.state.tables import TaskTable


class _Named(Protocol):
    """A table whose rows have ids."""

    def find(self, ids: U64) -> I64: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """K rows of an event that are taken in."""

    at: I64  # (K,) positions in the event
    rows: I64  # (K,) rows of the task table, -1: a new task
    state: U8  # (K,) TaskState, from now on
    cls: I64  # (K,) and so on: what the columns of the task table are to hold
    label_set: I64
    gang: I64
    role: I64
    inputs: I64
    leaving: Bools


def observed(
    event: TasksObserved,
    rows: I64,
    tasks: TaskTable,
    classes: ClassTable,
    label_sets: LabelSetTable,
    gangs: GangTable,
    inputs: InputSetTable,
    outcome: Outcome,
) -> Seen:
    """Of a uid that comes twice the last row counts. What names something that is not known is left out, and so is what
    would be an illegal transition; the outcome says so. rows: of all the event's tasks in the task table, -1: none."""
    at = _last_of_each(event.uid)
    rows = rows[at]
    known: Bools = np.ones(len(at), np.bool_)

    def look_up(table: _Named, ids: U64 | None, default: int, unknown: set[int]) -> I64:
        """Rows of what `ids` (in the event) name; below the default, which no id means, where that is not known."""
        nonlocal known
        if ids is None:
            return np.full(len(at), default)
        found = table.find(ids[at])
        missing = found < min(default, 0)
        unknown.update(ids[at[known & missing]].tolist())
        known = known & ~missing
        return found

    cls = look_up(classes, event.class_id, 0, outcome.unknown_classes)
    label_set = look_up(label_sets, event.label_set_id, NO_LABELS, outcome.unknown_label_sets)
    gang = look_up(gangs, event.gang_id, NO_GANG, outcome.unknown_gangs)
    read = look_up(inputs, event.inputs_id, NO_INPUTS, outcome.unknown_inputs)
    bound = event.node[at] > 0
    before = np.where(rows >= 0, tasks.state[rows], TaskState.GONE)
    after = TASK_NEXT[before, np.where(bound, TaskEvent.OBSERVE_BOUND, TaskEvent.OBSERVE_WAITING)]
    for i in np.flatnonzero(known & (after == ILLEGAL)).tolist():
        outcome.refused.append(_illegal(event.names[at[i]], TaskState(int(before[i])), bool(bound[i])))
    known = known & (after != ILLEGAL)
    role, leaving = given(event.role, at, 0), given(event.leaving, at, False)
    return Seen(
        at[known],
        rows[known],
        after[known],
        cls[known],
        label_set[known],
        gang[known],
        role[known],
        read[known],
        leaving[known],
    )


def given(column: Any, at: I64, default: int | bool) -> Any:
    """Rows `at` of an optional column of an event."""
    return np.full(len(at), default) if column is None else column[at]


def _last_of_each(uids: U64) -> I64:
    """Positions of the last occurrence of each uid, ascending."""
    unique, last = np.unique(uids[::-1], return_index=True)
    if len(unique) == len(uids):
        return np.arange(len(uids))
    return np.sort(len(uids) - 1 - last)


def _illegal(name: str, state: TaskState, bound: bool) -> Refusal:
    told = "bound to a node" if bound else "waiting"
    return Refusal("task", name, "node", f"is told to be {told}, but it is {state.name.lower()}; remove it first")
