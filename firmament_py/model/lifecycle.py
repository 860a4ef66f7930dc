"""All legal changes of state of tasks and nodes, in two tables.

Only these tables define legal transitions. A pair that is absent from a table is refused: the caller reports it and
changes nothing. This module knows neither clocks nor resources.

A task is GONE (has no row), WAITING for a placement, ASSUMED on a node from its placement by a round until the
bridge confirms it, BOUND to a node, or ENDED (completed or failed, known until it is removed).

            OBSERVE_WAITING            PLACE                OBSERVE_BOUND
    GONE -------------------> WAITING -------> ASSUMED ---------------------> BOUND
                                 ^    REJECT      |
                                 +----------------+

A node is ABSENT while only tasks refer to it (they came first, or outlive it), and PRESENT otherwise.
"""

from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import U8


class TaskState(IntEnum):
    GONE = 0
    WAITING = 1
    ASSUMED = 2
    BOUND = 3
    ENDED = 4


class TaskEvent(IntEnum):
    OBSERVE_WAITING = 0  # the bridge observes it without a node
    OBSERVE_BOUND = 1  # the bridge observes it on a node
    PLACE = 2  # a round gives it a node
    REJECT = 3  # the placement failed
    END = 4  # completed or failed
    REMOVE = 5  # deleted


class NodeState(IntEnum):
    GONE = 0
    ABSENT = 1
    PRESENT = 2


GONE, WAITING, ASSUMED, BOUND, ENDED = (int(state) for state in TaskState)
ABSENT, PRESENT = int(NodeState.ABSENT), int(NodeState.PRESENT)
"""For comparisons with columns: with a member of an enum, numpy takes five times as long as with an int, and that is
most of the time for a column of a thousand rows."""


class NodeEvent(IntEnum):
    REFER = 0  # a task refers to it
    OBSERVE = 1  # added or updated
    REMOVE = 2  # removed or failed, tasks may still be on it
    ABANDON = 3  # the last task left an absent node


_T, _E = TaskState, TaskEvent
TASK_TRANSITIONS: dict[tuple[TaskState, TaskEvent], TaskState] = {
    (_T.GONE, _E.OBSERVE_WAITING): _T.WAITING,
    (_T.GONE, _E.OBSERVE_BOUND): _T.BOUND,
    (_T.WAITING, _E.OBSERVE_WAITING): _T.WAITING,
    (_T.WAITING, _E.OBSERVE_BOUND): _T.BOUND,  # placed by another scheduler
    (_T.WAITING, _E.PLACE): _T.ASSUMED,
    (_T.WAITING, _E.END): _T.ENDED,
    (_T.WAITING, _E.REMOVE): _T.GONE,
    (_T.ASSUMED, _E.OBSERVE_WAITING): _T.ASSUMED,  # an observation from before the bind
    (_T.ASSUMED, _E.OBSERVE_BOUND): _T.BOUND,
    (_T.ASSUMED, _E.REJECT): _T.WAITING,
    (_T.ASSUMED, _E.END): _T.ENDED,
    (_T.ASSUMED, _E.REMOVE): _T.GONE,
    (_T.BOUND, _E.OBSERVE_BOUND): _T.BOUND,
    (_T.BOUND, _E.END): _T.ENDED,
    (_T.BOUND, _E.REMOVE): _T.GONE,
    (_T.ENDED, _E.END): _T.ENDED,
    (_T.ENDED, _E.REMOVE): _T.GONE,
}

NODE_TRANSITIONS: dict[tuple[NodeState, NodeEvent], NodeState] = {
    (NodeState.GONE, NodeEvent.REFER): NodeState.ABSENT,
    (NodeState.GONE, NodeEvent.OBSERVE): NodeState.PRESENT,
    (NodeState.ABSENT, NodeEvent.REFER): NodeState.ABSENT,
    (NodeState.ABSENT, NodeEvent.OBSERVE): NodeState.PRESENT,
    (NodeState.ABSENT, NodeEvent.ABANDON): NodeState.GONE,
    (NodeState.PRESENT, NodeEvent.REFER): NodeState.PRESENT,
    (NodeState.PRESENT, NodeEvent.OBSERVE): NodeState.PRESENT,
    (NodeState.PRESENT, NodeEvent.REMOVE): NodeState.ABSENT,
}

ILLEGAL = 255


def _dense(table: dict[tuple[TaskState, TaskEvent], TaskState]) -> U8:
    dense = np.full((len(TaskState), len(TaskEvent)), ILLEGAL, np.uint8)
    for (state, event), target in table.items():
        dense[state, event] = target
    dense.setflags(write=False)
    return dense


TASK_NEXT: U8 = _dense(TASK_TRANSITIONS)
"""TASK_TRANSITIONS as a matrix [state, event] -> state or ILLEGAL, for whole columns of tasks at once."""
