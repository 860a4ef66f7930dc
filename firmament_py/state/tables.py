"""The tables of tasks and of nodes; state/cluster.py keeps their columns consistent."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from firmament_py.model.arrays import I64, U8, U64, Bools
from firmament_py.model.changes import ANY
from firmament_py.model.copying import Copyable
from firmament_py.model.events import NodeObserved
from firmament_py.model.lifecycle import (
    ABSENT,
    ASSUMED,
    BOUND,
    NODE_TRANSITIONS,
    PRESENT,
    WAITING,
    NodeEvent,
    NodeState,
    TaskState,
)
from firmament_py.model.placed_by import PlacedBy
from firmament_py.model.resources import Resources, resized
from firmament_py.state.gangs import NO_GANG
from firmament_py.state.input_sets import NO_INPUTS
from firmament_py.state.label_sets import NO_LABELS
from firmament_py.state.node_index import NodeIndex
from firmament_py.state.table import Table

ANY_PREEMPTOR = -(2**62)
"""Lower than all priorities."""

EXEMPT_FOREVER_US = 2**63 - 1
"""Of `exempt_until_us`: no time ends that."""


class Sought(IntEnum):
    """Whether a search beside the rounds (engine/searches.py) has looked for victims of a waiting task."""

    NEVER = 0
    ANEW = 1  # something has happened since that may change what it found
    AGAIN = 2  # what it found did not hold any more, or is not all
    IN_VAIN = 3  # it has found nothing, or has not ended yet


ANY_NODE = -1
"""In place of a required node."""

SPARE_NAMES = 1024
"""Required names that no task has are forgotten once there are so many more than twice the tasks."""


class RequiredNames(Copyable):
    """Names of nodes that tasks require, each task one, as pods of a DaemonSet do; the nodes need not exist. They are a
    column of the task table and no part of classes, so that tasks which differ only in them have one class."""

    FLAT: ClassVar = frozenset({"_number"})

    def __init__(self) -> None:
        self._number: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def numbers(self, names: Iterable[str]) -> I64:
        """(K,) the number of each name; ANY_NODE for an empty one."""
        known = self._number
        return np.array([known.setdefault(name, len(known)) if name else ANY_NODE for name in names], np.int64)

    def names(self) -> tuple[str, ...]:
        """All names, by number."""
        return tuple(self._number)

    def rows(self, index: NodeIndex) -> I64:
        """(P + 1,) the node row of each number, -1: no node has that name; and of ANY_NODE, which is the last."""
        by_name = index.rows_by_name()
        return np.array([*(by_name.get(name, -1) for name in self._number), -1], np.int64)

    def retain(self, used: I64) -> I64:
        """Forgets all names but those of the numbers `used` (K,). Returns the new number of each old one, and ANY_NODE
        as the last, (P + 1,)."""
        names, chosen = self.names(), np.unique(used[used >= 0])
        number = np.full(len(names) + 1, ANY_NODE)
        number[chosen] = np.arange(len(chosen))
        self._number = {names[old]: new for new, old in enumerate(chosen.tolist())}
        return number


NOTES = frozenset(
    {
        *("considered_us", "reported", "reported_amount", "reported_us"),
        *("passed_over", "without_victims", "sought", "flavors"),
    }
)
"""Columns of the task table that describe no task: what rounds remember of it."""

SPARSE = frozenset({"movable", "exempt_until_us"})
"""Columns that few tasks have a value in, or none, so that a round need not look at all of them."""


class TaskTable(Table):
    """One row per task."""

    FIELDS: ClassVar = {
        "uid": (np.uint64, 0),
        "cls": (np.int64, -1),
        "job": (np.uint64, 0),
        "node": (np.int64, -1),
        "state": (np.uint8, TaskState.GONE),
        "created_us": (np.int64, 0),
        "not_before_us": (np.int64, 0),
        "considered_us": (np.int64, 0),
        "reported": (np.uint64, 0),
        "reported_amount": (np.int64, 0),
        "reported_us": (np.int64, 0),
        "name": (np.object_, ""),
        "label_set": (np.int64, NO_LABELS),
        "leaving": (np.bool_, False),
        "gang": (np.int64, NO_GANG),
        "role": (np.int64, 0),
        "inputs": (np.int64, NO_INPUTS),
        "started_us": (np.int64, 0),
        "lasting": (np.bool_, False),
        "nominated": (np.int64, -1),
        "unevictable": (np.bool_, False),
        "checkpoint_us": (np.int64, 0),
        "preempted": (np.bool_, False),
        "movable": (np.bool_, False),
        "daemon": (np.bool_, False),
        "queue": (np.uint64, 0),
        "queue_row": (np.int64, -1),
        "local_queue": (np.uint64, 0),
        "least_preemptor": (np.int64, 0),
        "exempt_until_us": (np.int64, 0),
        "required_node": (np.int64, -1),
        "flavors": (np.int64, -1),
        "passed_over": (np.bool_, False),
        "without_victims": (np.bool_, False),
        "awaits": (np.int64, int(ANY)),
        "sought": (np.uint8, Sought.NEVER),
        "placed_by": (np.uint8, PlacedBy.UNKNOWN),
    }
    uid: U64
    cls: I64  # row of the class table
    job: U64
    node: I64  # row of the node table, -1: none
    state: U8  # TaskState
    created_us: I64
    not_before_us: I64  # microseconds; rounds leave it out until then
    considered_us: I64  # when a round last considered it, 0: never; kept for classes with many inter-task terms only
    reported: U64  # hash of the reasons for waiting that were reported last, 0: none
    reported_amount: I64  # of a task that waits for quota: how much it was reported to lack
    reported_us: I64  # and when
    name: np.ndarray  # of str
    label_set: I64  # row of the label set table
    gang: I64  # row of the gang table, NO_GANG: none
    role: I64  # number of its role in the gang
    inputs: I64  # row of the input table
    leaving: Bools  # terminating: holds its resources, does not count for spreading
    started_us: I64  # start of execution, 0: not started
    lasting: Bools  # runs as long as its node exists
    nominated: I64  # of a WAITING task: row of the node, PRESENT, that is kept for it while others leave; -1: none
    unevictable: Bools  # is never preempted
    checkpoint_us: I64  # when its work was saved last, 0: never
    preempted: Bools  # leaves because a round has decided so
    movable: Bools  # may be evicted in order to run on another node
    daemon: Bools  # belongs to its node, which is empty though it runs there
    queue: U64  # id of its queue, which can be unknown; 0: none
    queue_row: I64  # row of its queue in ClusterState.queues, -1: none, or unknown
    local_queue: U64  # id of the local queue that it came through, likewise
    least_preemptor: I64  # until exempt_until_us, only tasks of this priority or a higher one preempt it
    exempt_until_us: I64  # 0: least_preemptor does not count
    required_node: I64  # of a task that may wait: number in required_names of the only node for it, ANY_NODE
    flavors: I64  # number in ClusterState.flavor_choices of what it is, or was last, admitted on, -1: unknown
    passed_over: Bools  # quota admitted it, no node took it, and nothing has happened since that could change that
    without_victims: Bools  # quota did not admit it, no victims were found for it, and nothing has happened since
    awaits: I64  # of a WAITING task: kinds of changes (model/changes.py) that could end its wait; all until a round
    sought: U8  # Sought
    placed_by: U8  # PlacedBy, of a task on a node

    def __init__(self) -> None:
        super().__init__()
        self.required_names = RequiredNames()
        self._waiting: I64 | None = None  # None: not known
        self._sparse: dict[str, I64] = {}  # those of SPARSE that are known

    def required_numbers(self, names: Iterable[str]) -> I64:
        """(K,) for `required_node`: the numbers of these names, ANY_NODE for an empty one."""
        if len(self.required_names) > 2 * len(self) + SPARE_NAMES:
            self.required_node[:] = self.required_names.retain(self.required_node)[self.required_node]
        return self.required_names.numbers(names)

    def note(self, rows: I64 | slice, **values: Any) -> None:
        """What rounds and searches remember of task rows (K,) in columns among NOTES: one value for each, or (K,).
        Raises KeyError for other columns: only ClusterState changes these."""
        for name, value in values.items():
            if name not in NOTES:
                raise KeyError(f"{name} is no note of rounds; ClusterState has a method for what has happened")
            getattr(self, name)[rows] = value

    def begin_anew(self, rows: I64) -> None:
        """Something has happened that may change what the last rounds found of waiting task rows (K,)."""
        self.passed_over[rows] = self.without_victims[rows] = False
        self.sought[rows] = np.minimum(self.sought[rows], Sought.ANEW)

    def least_preemptors(self, now_us: int) -> I64:
        """(capacity,) the lowest priority of tasks that preempt each at `now_us`; ANY_PREEMPTOR: only its own priority
        counts."""
        return np.where(self.exempt_until_us > now_us, self.least_preemptor, ANY_PREEMPTOR)

    def move(self, rows: I64 | int, after: U8 | int) -> None:
        """Task rows (K,) are in the states `after` (K,) now."""
        self.state[rows] = after
        self._waiting = None

    @property
    def waiting(self) -> I64:
        """Rows of the WAITING tasks, ascending. Not to be written to. After a change of states that takes a look at one
        byte of each task: other columns are best read for these rows alone."""
        if self._waiting is None:
            (self._waiting,) = (self.state == WAITING).nonzero()
            self._waiting.flags.writeable = False
        return self._waiting

    def set_sparse(self, column: str, rows: I64, values: I64 | Bools) -> None:
        """Writes values (K,) of a column among SPARSE."""
        getattr(self, column)[rows] = values
        if values.any():
            self._sparse.pop(column, None)

    def rows_with(self, column: str) -> I64:
        """Rows (K,), ascending, of the tasks with a value other than 0 in a column among SPARSE, and maybe of some that
        had one. Not to be written to."""
        rows = self._sparse.get(column)
        if rows is None:
            (rows,) = getattr(self, column).nonzero()
            self._sparse[column] = rows
        return rows

    @property
    def nominees(self) -> I64:
        """Rows of the waiting tasks that a node is kept for, ascending."""
        rows = self.waiting
        return rows[self.nominated[rows] >= 0]

    @property
    def evictable(self) -> Bools:
        """(capacity,) running tasks that may be evicted, and do not leave yet; whether their gangs need them is another
        question."""
        evictable: Bools = (self.state == BOUND) & ~self.unevictable & ~self.leaving
        return evictable

    @property
    def on_nodes(self) -> Bools:
        """(capacity,) tasks that have a node: they are assumed or bound."""
        on_nodes: Bools = (self.state == ASSUMED) | (self.state == BOUND)
        return on_nodes


class NodeTable(Table):
    """One row per node; `allocatable` and `used` are (capacity, R)."""

    FIELDS: ClassVar = {"state": (np.uint8, NodeState.GONE), "tasks": (np.int64, 0)}
    FLAT: ClassVar = frozenset({"row", "id", "observed"})
    state: U8  # NodeState
    tasks: I64  # number of ASSUMED and BOUND tasks

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._resources = resources
        self.row: dict[str, int] = {}
        self.id: dict[int, str] = {}
        self.observed: dict[int, NodeObserved] = {}  # of PRESENT nodes
        self._present: I64 | None = None  # None: not known
        self._allocatable: I64 = np.zeros((self.capacity, len(resources)), np.int64)
        self._used: I64 = np.zeros((self.capacity, len(resources)), np.int64)

    @property
    def allocatable(self) -> I64:
        self._fit_shape()
        return self._allocatable

    @property
    def used(self) -> I64:
        self._fit_shape()
        return self._used

    @property
    def present(self) -> I64:
        """Rows of the PRESENT nodes, ascending. Not to be written to."""
        if self._present is None:
            self._present = np.flatnonzero(self.state == PRESENT)
        return self._present

    def move(self, row: int, event: NodeEvent) -> None:
        """A node's transition; KeyError if it is illegal."""
        self.state[row] = NODE_TRANSITIONS[NodeState(int(self.state[row])), event]
        self._present = None

    def refer(self, node_id: str) -> int:
        """The row of a node that a task or an event refers to; a new ABSENT row if it has none."""
        row = self.row.get(node_id)
        if row is None:
            row = int(self.allocate(1)[0])
            self.row[node_id], self.id[row] = row, node_id
            self.allocatable[row] = self.used[row] = 0
            self.move(row, NodeEvent.REFER)
        return row

    def release_absent(self, rows: I64) -> None:
        """Releases those of node rows (K,), -1: none, that are ABSENT and have no tasks."""
        rows = rows[rows >= 0]
        rows = rows[(self.state[rows] == ABSENT) & (self.tasks[rows] == 0)]
        if not len(rows):
            return
        rows = np.unique(rows)
        for row in rows.tolist():
            self.move(row, NodeEvent.ABANDON)
            del self.row[self.id.pop(row)]
        self.release(rows)

    def keep_columns(self, columns: I64) -> None:
        """Removes all other columns."""
        self._fit_shape()
        self._allocatable = np.ascontiguousarray(self._allocatable[:, columns])
        self._used = np.ascontiguousarray(self._used[:, columns])

    def _fit_shape(self) -> None:
        if self._used.shape != (self.capacity, len(self._resources)):
            before, shape = self._used.shape[1], (self.capacity, len(self._resources))
            self._used = resized(self._used, *shape)
            self._allocatable = resized(self._allocatable, *shape)
            self._allocatable[:, before:] = self._resources.given()[before:]
