"""The state of the cluster: tasks, classes and nodes as tables, and the only code that changes them.

`apply` applies an event, `place` assumes the placements of a round. Both maintain derived columns: the used resources
of nodes, and the number of tasks that refer to each row (state/invariants.py states and checks all of them).

No I/O, no clock, no threads: the caller serialises calls and passes the time.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import I64, U8, U64
from firmament_py.model.changes import ANY, Change, Changes, changes_of_node
from firmament_py.model.copying import Copyable
from firmament_py.model.events import (
    BudgetObserved,
    BudgetRemoved,
    ClassDefined,
    Event,
    GangObserved,
    GangRemoved,
    InputsDefined,
    LabelSetDefined,
    NamespaceObserved,
    NodeObserved,
    NodeRemoved,
    Outcome,
    PlacementRejected,
    QueuesObserved,
    Refusal,
    TasksEnded,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.flavor_choices import FlavorChoices
from firmament_py.model.lifecycle import (
    ASSUMED,
    BOUND,
    GONE,
    ILLEGAL,
    PRESENT,
    TASK_NEXT,
    WAITING,
    NodeEvent,
    TaskEvent,
)
from firmament_py.model.placed_by import PlacedBy
from firmament_py.model.resources import Resources
from firmament_py.queues.past_use_table import PastUseTable
from firmament_py.queues.tree import NO_QUEUES, build
from firmament_py.state.amounts import offer, sweep_columns
from firmament_py.state.budgets import Allowances, Budgets
from firmament_py.state.classes import ClassTable
from firmament_py.state.gangs import NO_GANG, GangTable
from firmament_py.state.history import REMOVED, SUCCEEDED, History, Outcomes, outcome_of
from firmament_py.state.input_sets import InputSetTable
from firmament_py.state.invariants import check_invariants
from firmament_py.state.label_sets import LabelSetTable
from firmament_py.state.node_index import NodeIndex
from firmament_py.state.node_usage import NodeUsage
from firmament_py.state.observed_tasks import ResolvedTasks, changes_of, resolve
from firmament_py.state.successors import Successors
from firmament_py.state.tables import NodeTable, TaskTable


class ClusterState(Copyable):
    FLAT: ClassVar = frozenset({"_task_row"})

    def __init__(self) -> None:
        self.resources = Resources()
        self.classes = ClassTable(self.resources)
        self.nodes = NodeTable(self.resources)
        self.tasks = TaskTable()
        self.label_sets = LabelSetTable()
        self.gangs = GangTable()
        self.inputs = InputSetTable()
        self.budgets = Budgets()
        self.queues = NO_QUEUES
        self.flavor_choices = FlavorChoices()
        self.past_use = PastUseTable()
        self.node_usage = NodeUsage(self.tasks, self.classes, self.nodes)
        self.successors = Successors(self.tasks, self.classes, self.resources)
        self.node_index = NodeIndex()
        self.history, self.outcomes = History(), Outcomes()
        self.changes = Changes()
        self._task_row: dict[int, int] = {}

    # -- events -----------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Outcome:
        """Applies an event. Its invalid parts are skipped and named in the outcome."""
        outcome = Outcome()
        match event:
            case TasksObserved():
                self._observe_tasks(event, outcome)
            case NodeObserved():
                self._observe_node(event, outcome)
            case LabelSetDefined():
                self.label_sets.define(event.id, event.namespace, event.labels)
            case InputsDefined():
                outcome.refuse(self.inputs.define(event))
            case NamespaceObserved():
                self.changes.note(Change.NAMESPACE, self.label_sets.describe_namespace(event.name, event.labels))
            case GangObserved():
                refusal, changed = self.gangs.observe(event)
                outcome.refuse(refusal)
                self.changes.note(Change.GANG, changed)
            case GangRemoved():
                gone = self.gangs.known(event.id)
                self.gangs.remove(event.id)
                self.changes.note(Change.GANG, gone is not None and bool(gone.keeps))
            case BudgetObserved():
                self.changes.note(Change.BUDGET, self.budgets.observe(event))
            case BudgetRemoved():
                self.changes.note(Change.BUDGET, self.budgets.remove(event.id))
            case QueuesObserved():
                self._observe_queues(event, outcome)
            case ClassDefined():
                outcome.refuse(self.classes.define(event))
            case TasksRemoved() | TasksEnded():
                self._retire(event, outcome)
            case PlacementRejected():
                self._reject(event, outcome)
            case NodeRemoved():
                self._remove_node(event, outcome)
        return outcome

    def _observe_queues(self, event: QueuesObserved, outcome: Outcome) -> None:
        before, self.queues = self.queues, build(event.tree)
        restored = self.past_use.restore(event.past_use)
        self.changes.note(Change.QUEUES, restored or self.queues.tree != before.tree)
        self.tasks.queue_row[:] = self.queues.rows_of(self.tasks.queue)
        self.tasks.flavors[:] = self.flavor_choices.keep(self.tasks.flavors)
        for problem in self.queues.problems:
            outcome.refuse(Refusal("queue", problem.queue, problem.field, problem.reason, problem.id))

    def _observe_tasks(self, event: TasksObserved, outcome: Outcome) -> None:
        rows = self._find_rows(event.uid)
        found = resolve(event, rows, self.tasks, self.classes, self.label_sets, self.gangs, self.inputs, outcome)
        tasks, rows, bound = self.tasks, found.rows, event.node[found.at] > 0
        new = rows < 0
        if new.any():
            rows[new] = tasks.allocate(int(new.sum()))
            self._task_row.update(zip(event.uid[found.at[new]].tolist(), rows[new].tolist(), strict=True))
        node = np.where(found.state == ASSUMED, tasks.node[rows], -1)
        node_rows = np.array([self.nodes.refer(i) for i in event.nodes] or [-1], np.int64)
        node[bound] = node_rows[event.node[found.at[bound]] - 1]
        nominated = self._nominated(event, found)
        self.changes.note(changes_of(found, node, nominated, tasks, self.classes))
        self.classes.add_token_columns(found.cls)
        moved = (tasks.node[rows] != node) | (tasks.cls[rows] != found.cls)
        left = tasks.node[rows[moved]]
        confirmed = (tasks.state[rows] == ASSUMED) & (found.state == BOUND)
        self.past_use.confirmed += tasks.uid[rows[confirmed & (found.local_queue != 0)]].tolist()
        self.node_usage.subtract(rows[moved])
        self._count_references(rows[~new], -1)
        tasks.flavors[rows[(tasks.state[rows] == WAITING) & (found.state == BOUND)]] = -1  # others have placed it
        tasks.placed_by[rows[tasks.node[rows] != node]] = PlacedBy.UNKNOWN
        staying = rows[~found.leaving]
        self.changes.note(Change.RELEASE, self.successors.withdraw(staying[tasks.preempted[staying]]))
        self.budgets.stay(self.label_sets, self.end_preemptions(staying))
        found.store(event, tasks, self.queues)
        tasks.node[rows], tasks.nominated[rows] = node, nominated
        self._count_references(rows, +1)
        self.node_usage.add(rows[moved])
        self.gangs.sweep()
        self.nodes.release_absent(np.concatenate([node_rows, left]))
        self.history.add("observed", event.uid[found.at], self._names(node))

    def _nominated(self, event: TasksObserved, found: ResolvedTasks) -> I64:
        """(K,) rows of the present nodes that are kept for waiting tasks, -1: none."""
        if event.nominated is None:
            return np.full(len(found.rows), -1)
        node_rows = np.r_[self.node_rows(event.nodes), -1]  # the last one for tasks without a nomination
        return np.where(found.state == WAITING, node_rows[event.nominated[found.at] - 1], -1)

    def _count_references(self, rows: I64, sign: int) -> None:
        """Adds (+1) task rows to the counts of the rows that they refer to, or subtracts them (-1)."""
        tasks = self.tasks
        np.add.at(self.classes.tasks, tasks.cls[rows], sign)
        np.add.at(self.label_sets.tasks, tasks.label_set[rows], sign)
        np.add.at(self.inputs.tasks, tasks.inputs[rows], sign)
        np.add.at(self.gangs.tasks, tasks.gang[rows[tasks.gang[rows] >= 0]], sign)

    def _observe_node(self, event: NodeObserved, outcome: Outcome) -> None:
        if not event.id:
            outcome.refuse(Refusal("node", event.name, "id", "is empty; give the node's UUID"))
            return
        for resource, amount in event.allocatable.items():
            if amount < 0:
                reason = f"is {amount}; give an amount of 0 or more"
                outcome.refuse(Refusal("node", event.name, f"allocatable[{resource}]", reason))
                return
        row = self.nodes.refer(event.id)
        nodes = self.nodes
        offer(self.classes, nodes, self.tasks, self.resources, event.allocatable)
        nodes.move(row, NodeEvent.OBSERVE)
        offered = self.resources.offered(event.allocatable)
        self.changes.note(changes_of_node(nodes.observed.get(row), event, nodes.allocatable[row], offered))
        nodes.allocatable[row] = offered
        self.node_index.set(row, event)
        nodes.observed[row] = event

    def _remove_node(self, event: NodeRemoved, outcome: Outcome) -> None:
        row = self.nodes.row.get(event.id)
        if row is None or self.nodes.state[row] != PRESENT:
            outcome.unknown.append(event.id)
            return
        self.nodes.move(row, NodeEvent.REMOVE)
        self.nodes.allocatable[row] = 0
        del self.nodes.observed[row]
        self.tasks.nominated[self.tasks.nominated == row] = -1
        self.successors.forget_node(row)
        self.node_index.forget(row)
        self.changes.note(Change.NODE_REMOVED)
        self.nodes.release_absent(np.array([row], np.int64))

    def _retire(self, event: TasksRemoved | TasksEnded, outcome: Outcome) -> None:
        uids, how = np.unique(event.uid), outcome_of(event)
        rows = self._find_rows(uids)
        outcome.unknown.extend(uids[rows < 0].tolist())
        uids, rows = uids[rows >= 0], rows[rows >= 0]
        tasks = self.tasks
        self.outcomes.note(how, tasks.state[rows])
        after = TASK_NEXT[tasks.state[rows], TaskEvent.REMOVE if how == REMOVED else TaskEvent.END]  # always legal
        self.changes.note(Change.RELEASE, ((tasks.node[rows] >= 0) | (tasks.nominated[rows] >= 0)).any())
        self.changes.note(Change.WITHDRAWAL, (tasks.state[rows] == WAITING).any())
        self.changes.note(Change.MEMBER, (tasks.gang[rows] >= 0).any())
        # none follows a completed task
        self.changes.note(Change.RELEASE, how == SUCCEEDED and self.successors.withdraw(rows))
        self.node_usage.subtract(rows)
        nodes = np.unique(tasks.node[rows])
        self.budgets.gone(self.label_sets, self.end_preemptions(rows))
        tasks.node[rows], tasks.nominated[rows] = -1, -1
        tasks.move(rows, after)
        gone = rows[after == GONE]
        if len(gone):
            self._count_references(gone, -1)
            self.gangs.sweep()
            for uid in tasks.uid[gone].tolist():
                del self._task_row[uid]
            tasks.name[gone], tasks.gang[gone] = "", NO_GANG  # columns are searched without regard to free rows
            tasks.release(gone)
        self.nodes.release_absent(nodes[nodes >= 0])
        self.history.add(how, uids)

    def _reject(self, event: PlacementRejected, outcome: Outcome) -> None:
        row = self._task_row.get(event.uid, -1)
        node = self.nodes.row.get(event.node_id, -1)
        if row >= 0:
            self.tasks.begin_anew(np.array([row], np.int64))
        if row >= 0 and self.tasks.state[row] == WAITING:  # the preemption of others for it failed
            nominated = self.tasks.nominated[row] >= 0
            if not nominated and self.tasks.not_before_us[row] == event.not_before_us:
                outcome.unknown.append(event.uid)
                return
            self.tasks.not_before_us[row], self.tasks.nominated[row] = event.not_before_us, -1
            self.tasks.awaits[row] = int(ANY)
            self.changes.note(Change.ARRIVAL | Change.WITHDRAWAL)
            self.changes.note(Change.RELEASE, nominated)
            return
        if row < 0 or self.tasks.state[row] != ASSUMED or self.tasks.node[row] != node:
            outcome.unknown.append(event.uid)
            return
        rows, [name] = np.array([row], np.int64), self._names(np.array([node]))
        self.node_usage.subtract(rows)
        self.tasks.node[row] = -1
        self.tasks.move(row, TASK_NEXT[ASSUMED, TaskEvent.REJECT])
        self.tasks.not_before_us[row] = event.not_before_us
        self.changes.note(Change.ARRIVAL | Change.RELEASE)
        self.changes.note(Change.MEMBER, self.tasks.gang[row] >= 0)
        self.nodes.release_absent(np.array([node], np.int64))
        self.history.add("rejected", self.tasks.uid[rows], [name])

    # -- rounds -----------------------------------------------------------------------------------------------

    def place(self, rows: I64, nodes: I64, by: U8) -> None:
        """Assumes task rows (K,), all WAITING, on node rows (K,). by (K,): PlacedBy."""
        if not len(rows):
            return
        after = TASK_NEXT[self.tasks.state[rows], TaskEvent.PLACE]
        if (after == ILLEGAL).any() or len(set(rows.tolist())) < len(rows):
            raise ValueError("only a waiting task can be placed, and only once")
        reserved, misplaced = self.tasks.nominated[rows], self.successors.arrive(rows, nodes)
        self.tasks.node[rows], self.tasks.nominated[rows] = nodes, -1
        self.tasks.move(rows, after)
        self.tasks.reported[rows], self.tasks.awaits[rows], self.tasks.placed_by[rows] = 0, int(ANY), by
        self.node_usage.add(rows)
        # a node that was kept for a task is free for others if it goes elsewhere
        self.changes.note(Change.RELEASE, misplaced or ((reserved >= 0) & (reserved != nodes)).any())
        self.changes.note(Change.DECISION)
        self.changes.note(Change.MEMBER_PLACED, (self.tasks.gang[rows] >= 0).any())
        for step in np.unique(by).tolist():
            some = by == step
            self.history.add(f"placed by {PlacedBy(step).label}", self.tasks.uid[rows[some]], self._names(nodes[some]))

    def preempt(self, rows: I64) -> None:
        """Task rows (K,), all BOUND, are about to be evicted."""
        if not len(rows):
            return
        self.tasks.leaving[rows] = self.tasks.preempted[rows] = True
        self.changes.note(Change.NEIGHBOUR, self.classes.has_intertask_terms)
        self.changes.note(Change.MEMBER, (self.tasks.gang[rows] >= 0).any())
        self.budgets.evicted(self.label_sets, self.tasks.label_set[rows])
        self.history.add("preempted", self.tasks.uid[rows], self._names(self.tasks.node[rows]))

    def end_preemptions(self, rows: I64) -> I64:
        """Those of task rows (K,) that are victims are none any more; returns the rows (V,) of their label sets."""
        victims = rows[self.tasks.preempted[rows]]
        self.tasks.preempted[victims] = False
        label_sets: I64 = self.tasks.label_set[victims]
        return label_sets

    def nominate(self, rows: I64, nodes: I64) -> None:
        """Keeps node rows (K,) for task rows (K,), all WAITING; -1: none, and others may use what was kept before."""
        if not len(rows):
            return
        if (self.tasks.state[rows] != WAITING).any():
            raise ValueError("only a waiting task can be nominated")
        reserved = self.tasks.nominated[rows]
        self.changes.note(Change.DECISION, (nodes >= 0).any())
        self.changes.note(Change.NEIGHBOUR, self.classes.has_intertask_terms)
        self.changes.note(Change.RELEASE, ((reserved >= 0) & (reserved != nodes)).any())
        self.tasks.nominated[rows] = nodes
        there = nodes >= 0
        self.history.add("nominated", self.tasks.uid[rows[there]], self._names(nodes[there]))

    def wait_for(self, rows: I64, kinds: Change, *, anew: bool = False) -> None:
        """Task rows (K,), all WAITING, await these kinds of changes; also what they awaited before, unless `anew`."""
        self.tasks.awaits[rows] = int(kinds) if anew else self.tasks.awaits[rows] | int(kinds)

    def sweep(self) -> None:
        """Removes unused descriptions and columns; called at the end of a round."""
        self.classes.sweep()
        self.label_sets.sweep()
        self.inputs.sweep()
        self.node_index.sweep()
        sweep_columns(self.classes, self.nodes, self.resources)

    def copy(self) -> "ClusterState":
        """An independent copy, which shares what never changes."""
        return deepcopy(self)

    # -- questions --------------------------------------------------------------------------------------------

    def task_row(self, uid: int) -> int | None:
        """The row of a task, None if it is unknown."""
        return self._task_row.get(uid)

    def task_rows(self, uids: U64) -> I64:
        """Rows of the tasks `uids` (K,) -> (K,), -1 where unknown."""
        return self._find_rows(uids)

    def node_row(self, node_id: str) -> int | None:
        """The row of the node of this id that can take tasks, None if there is none."""
        row = self.nodes.row.get(node_id)
        return row if row is not None and self.nodes.state[row] == PRESENT else None

    def allowances(self) -> Allowances:
        """What the disruption budgets permit now."""
        return self.budgets.allowances(self.label_sets)

    def node_rows(self, node_ids: Sequence[str]) -> I64:
        """Rows of the nodes `node_ids` (K,) that can take tasks -> (K,), -1 for others."""
        rows = (self.node_row(node_id) for node_id in node_ids)
        return np.fromiter((-1 if row is None else row for row in rows), np.int64, len(node_ids))

    def offered(self, row: int) -> dict[str, int]:
        """Allocatable amounts of a node row, by resource."""
        return dict(zip(self.resources.names, self.nodes.allocatable[row].tolist(), strict=True))

    def present_nodes(self) -> I64:
        """Rows of the nodes that can take tasks, ascending. Not to be written to."""
        return self.nodes.present

    def validate(self) -> None:
        """Recomputes every correlated column; raises AssertionError naming the first that is wrong. For tests."""
        check_invariants(
            *(self._task_row, self.tasks, self.nodes, self.classes, self.label_sets, self.inputs, self.gangs),
            *(self.resources, self.queues, self.flavor_choices),
        )

    # -- details ----------------------------------------------------------------------------------------------

    def _names(self, nodes: I64) -> list[str]:
        """Current names of node rows (K,); the id of a node that is not described, empty for -1."""
        named = {row: node.name for row in set(nodes.tolist()) if (node := self.nodes.observed.get(row))}
        return [named.get(row) or self.nodes.id.get(row, "") for row in nodes.tolist()]

    def _find_rows(self, uids: U64) -> I64:
        find = self._task_row.get
        return np.fromiter((find(u, -1) for u in uids.tolist()), np.int64, len(uids))
