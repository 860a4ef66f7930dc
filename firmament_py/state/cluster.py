"""The state of the cluster: tasks, classes and nodes as tables, and the only code that changes them.

`apply(event)` says what the world is like now; `place` is how a round assumes what it decided. Both keep these
correlated columns right, and `validate` checks all of them:

- nodes.used[n] is the sum of the requests of the tasks that are ASSUMED or BOUND on node n;
- nodes.tasks[n] counts those tasks, classes.tasks[c] the rows that refer to class c;
- a task has a node exactly if it is ASSUMED or BOUND; a node without tasks is PRESENT or has no row.

No I/O, no clock, no threads: the caller serialises calls and brings the time.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.events import (
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
    Refusal,
    TasksEnded,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.lifecycle import (
    ILLEGAL,
    NODE_TRANSITIONS,
    TASK_NEXT,
    NodeEvent,
    NodeState,
    TaskEvent,
    TaskState,
)
from firmament_py.model.resources import Resources
from firmament_py.state.amounts import offer, sweep_columns
from firmament_py.state.classes import ClassTable
from firmament_py.state.gangs import GangTable
from firmament_py.state.history import History
from firmament_py.state.input_sets import InputSetTable
from firmament_py.state.label_sets import LabelSetTable
from firmament_py.state.node_index import NodeIndex
from firmament_py.state.observed_tasks import Seen, given, observed
from firmament_py.state.tables import NodeTable, TaskTable


class ClusterState:
    def __init__(self) -> None:
        self.resources = Resources()
        self.classes = ClassTable(self.resources)
        self.nodes = NodeTable(self.resources)
        self.tasks = TaskTable()
        self.label_sets = LabelSetTable()
        self.gangs = GangTable()
        self.inputs = InputSetTable()
        self.node_index = NodeIndex()
        self.history = History()
        self.opportunities = 0
        """Rises with everything that could let a round place more: new work, freed room, changed nodes."""
        self._task_row: dict[int, int] = {}

    # -- what the world tells ---------------------------------------------------------------------------------

    def apply(self, event: Event) -> Outcome:
        """Takes note of an event. What of it makes no sense is left out and named in the outcome."""
        outcome = Outcome()
        match event:
            case TasksObserved():
                self._observe_tasks(event, outcome)
            case NodeObserved():
                self._observe_node(event, outcome)
            case LabelSetDefined():
                self.label_sets.define(event.id, event.namespace, event.labels)
            case InputsDefined():
                if (refused := self.inputs.define(event)) is not None:
                    outcome.refused.append(refused)
            case NamespaceObserved():
                self.opportunities += self.label_sets.describe_namespace(event.name, event.labels)
            case GangObserved():
                changed = self.gangs.observe(event)
                if isinstance(changed, Refusal):
                    outcome.refused.append(changed)
                else:
                    self.opportunities += changed
            case GangRemoved():
                self.gangs.remove(event.id)
            case ClassDefined():
                refusal = self.classes.define(event)
                if refusal:
                    outcome.refused.append(refusal)
            case TasksRemoved():
                self._retire(event.uid, TaskEvent.REMOVE, outcome)
            case TasksEnded():
                self._retire(event.uid, TaskEvent.END, outcome)
            case PlacementRejected():
                self._reject(event, outcome)
            case NodeRemoved():
                self._remove_node(event, outcome)
        return outcome

    def _observe_tasks(self, event: TasksObserved, outcome: Outcome) -> None:
        rows = self._find_rows(event.uid)
        seen = observed(event, rows, self.tasks, self.classes, self.label_sets, self.gangs, self.inputs, outcome)
        tasks, rows, bound = self.tasks, seen.rows, event.node[seen.at] > 0
        new = rows < 0
        if new.any():
            rows[new] = tasks.allocate(int(new.sum()))
            self._task_row.update(zip(event.uid[seen.at[new]].tolist(), rows[new].tolist(), strict=True))
        node = np.where(seen.state == TaskState.ASSUMED, tasks.node[rows], -1)
        node_rows = np.array([self._refer(i) for i in event.nodes] or [-1], np.int64)
        node[bound] = node_rows[event.node[seen.at[bound]] - 1]
        self.opportunities += self._opportunity(seen, new, node)

        self.classes.hold_tokens(np.unique(seen.cls))
        moved = (tasks.node[rows] != node) | (tasks.cls[rows] != seen.cls)
        left = tasks.node[rows[moved]]
        self._occupy(rows[moved], -1)
        self._count_references(rows[~new], -1)
        tasks.cls[rows], tasks.label_set[rows], tasks.inputs[rows] = seen.cls, seen.label_set, seen.inputs
        tasks.gang[rows], tasks.role[rows], tasks.leaving[rows] = seen.gang, seen.role, seen.leaving
        tasks.node[rows], tasks.state[rows] = node, seen.state
        tasks.uid[rows], tasks.job[rows] = event.uid[seen.at], event.job_id[seen.at]
        tasks.created_us[rows] = event.created_us[seen.at]
        tasks.started_us[rows] = given(event.started_us, seen.at, 0)
        tasks.lasting[rows] = given(event.lasting, seen.at, False)
        tasks.name[rows] = [event.names[i] for i in seen.at.tolist()]
        self._count_references(rows, +1)
        self._occupy(rows[moved], +1)
        self.gangs.sweep()
        self._abandon(np.r_[node_rows, left])
        self.history.add("observed", event.uid[seen.at], self._names(node))

    def _opportunity(self, seen: Seen, new: Bools, node: I64) -> bool:
        """Whether a round could place more after this; the table is still as before."""
        tasks, rows = self.tasks, seen.rows
        # a gang may lack one more, or have a place for one
        of_gang = (seen.gang >= 0) & ((tasks.leaving[rows] != seen.leaving) | (tasks.role[rows] != seen.role))
        reclassed = new | (tasks.cls[rows] != seen.cls)
        moved = ~new & (reclassed | (tasks.node[rows] != node))
        regrouped = of_gang | (tasks.gang[rows] != seen.gang)
        # where tasks depend on each other a new neighbour can be an opportunity too
        relabelled = (tasks.label_set[rows] != seen.label_set) | (tasks.leaving[rows] != seen.leaving)
        neighbours = regrouped | (self.classes.has_intertask_terms & (new | relabelled))
        work = ((seen.state == TaskState.WAITING) & reclassed) | moved
        return bool((neighbours | work).any())

    def _count_references(self, rows: I64, sign: int) -> None:
        """Adds (+1) or takes away (-1) task rows from the counts of what they refer to."""
        tasks = self.tasks
        np.add.at(self.classes.tasks, tasks.cls[rows], sign)
        np.add.at(self.label_sets.tasks, tasks.label_set[rows], sign)
        np.add.at(self.inputs.tasks, tasks.inputs[rows], sign)
        np.add.at(self.gangs.tasks, tasks.gang[rows[tasks.gang[rows] >= 0]], sign)

    def _observe_node(self, event: NodeObserved, outcome: Outcome) -> None:
        if not event.id:
            outcome.refused.append(Refusal("node", event.name, "id", "is empty; give the node's UUID"))
            return
        for resource, amount in event.allocatable.items():
            if amount < 0:
                reason = f"is {amount}; give an amount of 0 or more"
                outcome.refused.append(Refusal("node", event.name, f"allocatable[{resource}]", reason))
                return
        row = self._refer(event.id)
        nodes = self.nodes
        offer(self.classes, nodes, self.tasks, self.resources, event.allocatable)
        nodes.state[row] = NODE_TRANSITIONS[NodeState(int(nodes.state[row])), NodeEvent.OBSERVE]
        offered = self.resources.offered(event.allocatable)
        before = nodes.allocatable[row].copy()
        nodes.allocatable[row] = offered
        changed = self.node_index.set(row, event)
        if changed or row not in nodes.observed or (nodes.allocatable[row] != before).any():
            self.opportunities += 1
        nodes.observed[row] = event

    def _remove_node(self, event: NodeRemoved, outcome: Outcome) -> None:
        row = self.nodes.row.get(event.id)
        if row is None or self.nodes.state[row] != NodeState.PRESENT:
            outcome.unknown.append(event.id)
            return
        self.nodes.state[row] = NODE_TRANSITIONS[NodeState.PRESENT, NodeEvent.REMOVE]
        self.nodes.allocatable[row] = 0
        del self.nodes.observed[row]
        self.node_index.forget(row)
        self.opportunities += 1  # nothing new fits, but what the waiting are told changes
        self._abandon(np.array([row], np.int64))

    def _retire(self, uids: U64, event: TaskEvent, outcome: Outcome) -> None:
        uids = np.unique(uids)
        rows = self._find_rows(uids)
        if (rows < 0).any():
            outcome.unknown.extend(uids[rows < 0].tolist())
            uids, rows = uids[rows >= 0], rows[rows >= 0]
        tasks = self.tasks
        after = TASK_NEXT[tasks.state[rows], event]  # legal from every state
        held = (tasks.state[rows] == TaskState.ASSUMED) | (tasks.state[rows] == TaskState.BOUND)
        # a gang without a member that waited may be out of the way of others
        if (held | ((tasks.state[rows] == TaskState.WAITING) & (tasks.gang[rows] >= 0))).any():
            self.opportunities += 1
        self._occupy(rows, -1)
        nodes = np.unique(tasks.node[rows])
        tasks.node[rows], tasks.state[rows] = -1, after
        gone = rows[after == TaskState.GONE]
        if len(gone):
            self._count_references(gone, -1)
            self.gangs.sweep()
            for uid in tasks.uid[gone].tolist():
                del self._task_row[uid]
            tasks.name[gone] = ""
            tasks.release(gone)
        self._abandon(nodes[nodes >= 0])
        self.history.add("removed" if event is TaskEvent.REMOVE else "ended", uids)

    def _reject(self, event: PlacementRejected, outcome: Outcome) -> None:
        row = self._task_row.get(event.uid, -1)
        node = self.nodes.row.get(event.node_id, -1)
        if row < 0 or self.tasks.state[row] != TaskState.ASSUMED or self.tasks.node[row] != node:
            outcome.unknown.append(event.uid)
            return
        rows, [name] = np.array([row], np.int64), self._names(np.array([node]))
        self._occupy(rows, -1)
        self.tasks.node[row] = -1
        self.tasks.state[row] = TASK_NEXT[TaskState.ASSUMED, TaskEvent.REJECT]
        self.tasks.not_before_us[row] = event.not_before_us
        self.opportunities += 1
        self._abandon(np.array([node], np.int64))
        self.history.add("rejected", self.tasks.uid[rows], [name])

    # -- what a round decides ---------------------------------------------------------------------------------

    def place(self, rows: I64, nodes: I64) -> None:
        """Assumes task rows (K,), all WAITING, on node rows (K,)."""
        after = TASK_NEXT[self.tasks.state[rows], TaskEvent.PLACE]
        if (after == ILLEGAL).any() or len(np.unique(rows)) < len(rows):
            raise ValueError("only a waiting task can be placed, and only once")
        self.tasks.node[rows], self.tasks.state[rows] = nodes, after
        self.tasks.reported[rows] = 0
        self._occupy(rows, +1)
        self.history.add("placed", self.tasks.uid[rows], self._names(nodes))

    def sweep(self) -> None:
        """Forgets descriptions that nobody uses; for the end of a round."""
        self.classes.sweep()
        self.label_sets.sweep()
        self.inputs.sweep()
        self.node_index.sweep()
        sweep_columns(self.classes, self.nodes, self.resources)

    # -- questions --------------------------------------------------------------------------------------------

    def task_row(self, uid: int) -> int | None:
        return self._task_row.get(uid)

    def task_rows(self, uids: U64) -> I64:
        """The rows of tasks (K,), -1 for those that are not known."""
        return self._find_rows(uids)

    def node_row(self, node_id: str) -> int | None:
        row = self.nodes.row.get(node_id)
        return row if row is not None and self.nodes.state[row] == NodeState.PRESENT else None

    def node_rows(self, node_ids: Sequence[str]) -> I64:
        """The rows of nodes that can take tasks (K,), -1 for others."""
        rows = (self.node_row(node_id) for node_id in node_ids)
        return np.fromiter((-1 if row is None else row for row in rows), np.int64, len(node_ids))

    def offered(self, row: int) -> dict[str, int]:
        """What a node offers of each resource."""
        return dict(zip(self.resources.names, self.nodes.allocatable[row].tolist(), strict=True))

    def present_nodes(self) -> I64:
        """Rows of the nodes that can take tasks, ascending."""
        return np.flatnonzero(self.nodes.state == NodeState.PRESENT)

    def story(self, uid: int) -> list[str]:
        """What happened to a task, oldest first, as far as the bounded history goes back."""
        return [f"{what} on {node}" if node else what for what, node in self.history.of(uid)]

    def validate(self) -> None:
        """Recomputes every correlated column; raises AssertionError naming the first that is wrong. For tests."""
        tasks, nodes, classes = self.tasks, self.nodes, self.classes
        rows = tasks.rows()
        _check(len(rows) == len(self._task_row), "one row for each uid")
        _check(all(tasks.uid[r] == u for u, r in self._task_row.items()), "uid -> row")
        holds = np.isin(tasks.state[rows], (TaskState.ASSUMED, TaskState.BOUND))
        _check(bool(((tasks.node[rows] >= 0) == holds).all()), "a node exactly if assumed or bound")
        placed = rows[holds]
        used = np.zeros_like(nodes.used)
        np.add.at(used, tasks.node[placed], classes.requests[tasks.cls[placed]])
        _check(bool((used == nodes.used).all()), "nodes.used")
        _check(classes.requests.shape[1] == nodes.allocatable.shape[1] == len(self.resources), "a column each")
        for row in classes.rows().tolist():
            _check(not any(name in self.resources for name in classes.lacking(row)), "what a class lacks has no column")
        counts = np.bincount(tasks.node[placed], minlength=nodes.capacity)
        _check(bool((counts == nodes.tasks).all()), "nodes.tasks")
        references = np.bincount(tasks.cls[rows], minlength=classes.capacity)
        _check(bool((references == classes.tasks).all()), "classes.tasks")
        _check(bool(classes.live[tasks.cls[rows]].all()), "tasks refer to live classes")
        labelled = np.bincount(tasks.label_set[rows], minlength=self.label_sets.capacity)
        _check(bool((labelled == self.label_sets.tasks).all()), "label_sets.tasks")
        reading = np.bincount(tasks.inputs[rows], minlength=self.inputs.capacity)
        _check(bool((reading == self.inputs.tasks).all()), "inputs.tasks")
        _check(bool(self.inputs.live[tasks.inputs[rows]].all()), "tasks refer to live input sets")
        ganged = rows[tasks.gang[rows] >= 0]
        members = np.bincount(tasks.gang[ganged], minlength=self.gangs.capacity)
        _check(bool((members == self.gangs.tasks).all()), "gangs.tasks")
        _check(bool(self.gangs.live[tasks.gang[ganged]].all()), "tasks refer to live gangs")
        live = nodes.rows()
        _check(bool((nodes.state[live] != NodeState.GONE).all()), "a live row has a state")
        _check({nodes.row[i] for i in nodes.row} == set(live.tolist()), "node id -> row")
        absent = live[nodes.state[live] == NodeState.ABSENT]
        _check(bool((nodes.tasks[absent] > 0).all()), "an absent node has tasks")
        _check(set(nodes.observed) == set(self.present_nodes().tolist()), "present nodes are described")

    # -- details ----------------------------------------------------------------------------------------------

    def _names(self, nodes: I64) -> list[str]:
        """Names of node rows as things stand; an id where a node is not described, nothing for -1."""
        named = {row: node.name for row in np.unique(nodes).tolist() if (node := self.nodes.observed.get(row))}
        return [named.get(row) or self.nodes.id.get(row, "") for row in nodes.tolist()]

    def _find_rows(self, uids: U64) -> I64:
        find = self._task_row.get
        return np.fromiter((find(u, -1) for u in uids.tolist()), np.int64, len(uids))

    def _occupy(self, rows: I64, sign: int) -> None:
        """Adds (+1) or takes away (-1) what those task rows that have a node hold there."""
        rows = rows[self.tasks.node[rows] >= 0]
        if not len(rows):
            return
        node, cls = self.tasks.node[rows], self.tasks.cls[rows]
        # one addition for each distinct (node, class) instead of one a task
        pairs, counts = np.unique(node * self.classes.capacity + cls, return_counts=True)
        node, cls = np.divmod(pairs, self.classes.capacity)
        np.add.at(self.nodes.used, node, sign * counts[:, None] * self.classes.requests[cls])
        np.add.at(self.nodes.tasks, node, sign * counts)

    def _refer(self, node_id: str) -> int:
        """The row of a node, an absent one if it was never heard of."""
        nodes = self.nodes
        row = nodes.row.get(node_id)
        if row is None:
            row = int(nodes.allocate(1)[0])
            nodes.row[node_id], nodes.id[row] = row, node_id
            nodes.allocatable[row] = nodes.used[row] = 0
            nodes.state[row] = NODE_TRANSITIONS[NodeState.GONE, NodeEvent.REFER]
        return row

    def _abandon(self, rows: Iterable[int] | I64) -> None:
        """Frees those of the node rows that are absent and have no task left."""
        nodes = self.nodes
        candidates = np.unique(np.asarray(rows, np.int64))
        candidates = candidates[candidates >= 0]
        gone = candidates[(nodes.state[candidates] == NodeState.ABSENT) & (nodes.tasks[candidates] == 0)]
        for row in gone.tolist():
            nodes.state[row] = NODE_TRANSITIONS[NodeState.ABSENT, NodeEvent.ABANDON]
            del nodes.row[nodes.id.pop(row)]
        if len(gone):
            nodes.release(gone)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"cluster state is inconsistent: {what}")
