"""Resolves an event about tasks: which of its rows are valid, and the values of the task table for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from firmament_py.model.arrays import I64, U8, U64, Bools
from firmament_py.model.changes import ANY, Change
from firmament_py.model.events import Outcome, Refusal, TasksObserved
from firmament_py.model.lifecycle import ASSUMED, BOUND, GONE, ILLEGAL, TASK_NEXT, WAITING, TaskEvent, TaskState
from firmament_py.queues.tree import Queues
from firmament_py.state.classes import ClassTable
from firmament_py.state.gangs import NO_GANG, GangTable
from firmament_py.state.input_sets import NO_INPUTS, InputSetTable
from firmament_py.state.label_sets import NO_LABELS, LabelSetTable
from firmament_py.state.table import UNKNOWN, KeyedTable
from firmament_py.state.tables import ANY_NODE, TaskTable

_ARRIVAL, _WITHDRAWAL, _RELEASE = int(Change.ARRIVAL), int(Change.WITHDRAWAL), int(Change.RELEASE)
_NEIGHBOUR, _MEMBER, _EVICTABLE = int(Change.NEIGHBOUR), int(Change.MEMBER), int(Change.EVICTABLE)
_ONCE_BOUND, _ONCE_WAITING = TASK_NEXT[:, TaskEvent.OBSERVE_BOUND], TASK_NEXT[:, TaskEvent.OBSERVE_WAITING]


@dataclass(frozen=True, slots=True)
class ResolvedTasks:
    """K valid rows of an event."""

    at: I64  # (K,) positions in the event
    rows: I64  # (K,) rows of the task table, -1: a new task
    state: U8  # (K,) the next TaskState
    cls: I64  # (K,) like all below: values of the columns of the task table
    label_set: I64
    gang: I64
    role: I64
    inputs: I64
    leaving: Bools
    unevictable: Bools
    movable: Bools
    queue: U64
    local_queue: U64
    least_preemptor: I64
    exempt_until_us: I64
    required_node: I64

    def store(self, event: TasksObserved, tasks: TaskTable, queues: Queues) -> None:
        """Writes the columns of the task table, all but the nodes."""
        rows, at = self.rows, self.at
        tasks.cls[rows], tasks.label_set[rows], tasks.inputs[rows] = self.cls, self.label_set, self.inputs
        tasks.gang[rows], tasks.role[rows], tasks.leaving[rows] = self.gang, self.role, self.leaving
        tasks.uid[rows], tasks.job[rows] = event.uid[at], event.job_id[at]
        tasks.move(rows, self.state)
        tasks.created_us[rows] = event.created_us[at]
        tasks.started_us[rows] = optional(event.started_us, at, np.int64)
        tasks.lasting[rows] = optional(event.lasting, at, np.bool_)
        tasks.unevictable[rows] = self.unevictable
        tasks.set_sparse("movable", rows, self.movable)
        tasks.checkpoint_us[rows] = optional(event.checkpoint_us, at, np.int64)
        tasks.daemon[rows] = optional(event.daemon, at, np.bool_)
        tasks.queue[rows], tasks.queue_row[rows] = self.queue, queues.rows_of(self.queue)
        tasks.least_preemptor[rows] = self.least_preemptor
        tasks.set_sparse("exempt_until_us", rows, self.exempt_until_us)
        tasks.local_queue[rows], tasks.required_node[rows] = self.local_queue, self.required_node
        tasks.name[rows] = [event.names[i] for i in at.tolist()]


def resolve(
    event: TasksObserved,
    rows: I64,
    tasks: TaskTable,
    classes: ClassTable,
    label_sets: LabelSetTable,
    gangs: GangTable,
    inputs: InputSetTable,
    outcome: Outcome,
) -> ResolvedTasks:
    """The valid rows of an event; the outcome names the others.

    Of several rows with one uid the last counts. Rows are skipped that refer to unknown ids or whose transition is
    illegal. rows: the event's tasks in the task table, -1 for new ones.
    """
    at = _last_of_each(event.uid)
    rows = rows[at]
    accepted: Bools = np.ones(len(at), np.bool_)

    def look_up(table: KeyedTable[Any], ids: U64 | None, none: int, unknown: set[int]) -> I64:
        """Rows of the table for a column of the event; `none` everywhere if the event has no such column."""
        nonlocal accepted
        if ids is None:
            return np.full(len(at), none)
        found = table.find(ids[at])
        missing = found == UNKNOWN
        if missing.any():
            unknown.update(ids[at[accepted & missing]].tolist())
            accepted = accepted & ~missing
        return found

    cls = look_up(classes, event.class_id, UNKNOWN, outcome.unknown_classes)
    label_set = look_up(label_sets, event.label_set_id, NO_LABELS, outcome.unknown_label_sets)
    gang = look_up(gangs, event.gang_id, NO_GANG, outcome.unknown_gangs)
    input_set = look_up(inputs, event.inputs_id, NO_INPUTS, outcome.unknown_inputs)
    bound = event.node[at] > 0
    before = np.where(rows >= 0, tasks.state[rows], GONE)
    after = np.where(bound, _ONCE_BOUND[before], _ONCE_WAITING[before])
    illegal = after == ILLEGAL
    if illegal.any():
        for i in np.flatnonzero(accepted & illegal).tolist():
            outcome.refuse(_illegal(event.names[at[i]], TaskState(int(before[i])), bool(bound[i])))
        accepted = accepted & ~illegal
    some: Any = slice(None) if accepted.all() else accepted
    at = at[some]
    return ResolvedTasks(
        at,
        rows[some],
        after[some],
        cls[some],
        label_set[some],
        gang[some],
        optional(event.role, at, np.int64),
        input_set[some],
        optional(event.leaving, at, np.bool_),
        optional(event.unevictable, at, np.bool_),
        optional(event.movable, at, np.bool_),
        optional(event.queue_id, at, np.uint64),
        optional(event.local_queue_id, at, np.uint64),
        optional(event.least_preemptor, at, np.int64),
        optional(event.exempt_until_us, at, np.int64),
        np.full(len(at), ANY_NODE)
        if event.required_node is None
        else tasks.required_numbers([event.required_node[i] for i in at.tolist()]),
    )


def changes_of(found: ResolvedTasks, node: I64, nominated: I64, tasks: TaskTable, classes: ClassTable) -> int:
    """What changes with these rows, which are already in the task table, but not yet stored. node, nominated (K,): the
    rows of the nodes that they are on, and that are kept for them, -1: none. Those that wait, and are not what they
    were, await any change from now on."""
    rows, after, gang = found.rows, found.state, found.gang
    before = tasks.state[rows]
    new, waits = before == GONE, after == WAITING
    of_gang = (gang >= 0) | (tasks.gang[rows] >= 0)
    if new.all() and waits.all():
        return _ARRIVAL | (_MEMBER if of_gang.any() else 0)
    kinds, runs = 0, ~waits
    reclassed, relabelled = tasks.cls[rows] != found.cls, tasks.label_set[rows] != found.label_set
    regrouped = (tasks.gang[rows] != gang) | (tasks.role[rows] != found.role)
    requeued = (tasks.queue[rows] != found.queue) | (tasks.local_queue[rows] != found.local_queue)
    moved, began = tasks.node[rows] != node, tasks.leaving[rows] != found.leaving
    if waits.any():
        anew = reclassed | relabelled | regrouped | requeued | (tasks.inputs[rows] != found.inputs)
        anew |= tasks.required_node[rows] != found.required_node
        anew = waits & (new | anew | (tasks.unevictable[rows] != found.unevictable))
        tasks.awaits[rows[anew]] = int(ANY)
        kinds |= _ARRIVAL if anew.any() else 0
    if ((before == WAITING) & (runs | reclassed | regrouped | requeued)).any():
        kinds |= _WITHDRAWAL
    left = runs & (tasks.node[rows] >= 0) & (moved | reclassed | requeued)
    if (left | ((tasks.nominated[rows] >= 0) & (nominated != tasks.nominated[rows]))).any():
        kinds |= _RELEASE
    if classes.has_intertask_terms and (runs & (new | moved | reclassed | relabelled | began)).any():
        kinds |= _NEIGHBOUR
    if (of_gang & (new | moved | regrouped | began)).any():
        kinds |= _MEMBER
    ran = before == BOUND
    freed = began & ~found.leaving  # it was to leave, and stays
    freed |= ran & (reclassed | requeued | (tasks.unevictable[rows] & ~found.unevictable))
    freed |= ran & found.movable & ~tasks.movable[rows]
    eased = tasks.exempt_until_us[rows] > found.exempt_until_us
    eased |= (found.exempt_until_us > 0) & (tasks.least_preemptor[rows] > found.least_preemptor)
    freed |= ran & eased
    if freed.any() or _may_be_victims(found, (before == ASSUMED) & (after == BOUND), tasks, classes):
        kinds |= _EVICTABLE
    return kinds


def _may_be_victims(found: ResolvedTasks, confirmed: Bools, tasks: TaskTable, classes: ClassTable) -> bool:
    """Whether a task waits for victims that is more important than some of the `confirmed` (K,), or of another queue:
    what is bound may be evicted."""
    if not confirmed.any():
        return False
    waiting = tasks.waiting
    waiting = waiting[(tasks.awaits[waiting] & _EVICTABLE) != 0]
    if not len(waiting):
        return False
    if classes.priority[tasks.cls[waiting]].max() > classes.priority[found.cls[confirmed]].min():
        return True
    asking, giving = np.unique(tasks.queue[waiting]), np.unique(found.queue[confirmed])
    asking, giving = asking[asking != 0], giving[giving != 0]
    return len(asking) > 0 and len(giving) > 0 and len(np.union1d(asking, giving)) > 1


def optional(column: Any, at: I64, dtype: type) -> Any:
    """Rows `at` of a column that an event can leave out: 0 or false then."""
    return np.zeros(len(at), dtype) if column is None else column[at]


def _last_of_each(uids: U64) -> I64:
    """Positions of the last occurrence of each uid, ascending."""
    if len(set(uids.tolist())) == len(uids):
        return np.arange(len(uids))
    _, last = np.unique(uids[::-1], return_index=True)
    return np.sort(len(uids) - 1 - last)


def _illegal(name: str, state: TaskState, bound: bool) -> Refusal:
    observed = "bound to a node" if bound else "waiting"
    return Refusal("task", name, "node", f"makes the task {observed}, but it is {state.name.lower()}; remove it first")
