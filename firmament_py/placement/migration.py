"""Running tasks in the network: which of them to evict because another node costs less, by more than moving costs.

Every movable task that runs is considered in every round, by reduced cost: what it costs to stay on its node, less what
it costs to move, against the node that costs its class least now. In a settled cluster no reduced cost is negative, and
no network is built. Else these tasks enter a network of the same form as waiting tasks, where their unscheduled arc
stands for staying: it costs what their node would cost them if they arrived now.

A task migrates to capacity that is free now. No node loses or gains two tasks in a round, and none does both. So where
a node's costs depend on its own tasks, no migration depends on another: each that is carried out saves more than it
costs, whatever becomes of the others, and nothing loops.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.network.capacities import Capacities
from firmament_py.network.decode import assign
from firmament_py.network.supply_groups import supply_order
from firmament_py.placement.arrival_costs import ArrivalCosts
from firmament_py.placement.placer import CLASSES_AT_ONCE, Placer
from firmament_py.placement.running import (
    Snapshots,
    examples_of,
    independent_classes,
    kinds_of,
    leaving_tasks,
    movable_singles,
    positions_of,
    run_times,
    victims_of,
)
from firmament_py.placement.settled_tasks import SettledTasks
from firmament_py.placement.subproblem import Subproblem
from firmament_py.policy import Costs, Victims
from firmament_py.snapshot.domain_limits import UNLIMITED
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.state.cluster import ClusterState
from firmament_py.state.input_sets import NO_INPUTS

SUCCESSOR_US = 120_000_000
"""How long a node reserves what the successor of a task requests, microseconds."""

CANDIDATES = 1_024
"""How many tasks enter a network: it bounds a round after the costs of a whole cluster have changed."""

NEW_TASKS = 5_000
"""For how many tasks that no round has placed, as those that ran before the engine started, a round finds out what
their data costs on their nodes."""

_NOWHERE = 2**61
"""Above all costs; a difference fits 64 bits."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Task rows (K,) to evict, and the node rows (K,) that they go to; needed_by (K,): the row of the task that fits
    once each has left, -1: none. saves (K,): of the policy's costs, less what moving costs; 0 if that is not why."""

    tasks: I64
    nodes: I64
    needed_by: I64
    saves: I64

    def followed_by(self, other: "Migration") -> "Migration":
        """These, then the others."""
        if not len(other.tasks):
            return self
        pairs = (
            (self.tasks, other.tasks),
            (self.nodes, other.nodes),
            (self.needed_by, other.needed_by),
            (self.saves, other.saves),
        )
        return Migration(*(np.concatenate(pair) for pair in pairs))


NO_MIGRATION = Migration(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)


class RunningCosts(Protocol):
    """What a round asks its policy about running tasks (engine/round.py), and its snapshots."""

    def moving_costs(self, victims: Victims) -> I64 | None: ...

    def place_kinds(self, victims: Victims) -> I64 | None: ...

    @property
    def running_snapshot(self) -> Snapshots: ...


class Migrator:
    """Decides on migrations, round by round. after_us: how long a task runs before it may migrate; None: none does.
    at_once: how many may be on their way."""

    def __init__(self, state: ClusterState, options: EngineOptions) -> None:
        self._state = state
        self._options = options
        self._settled = SettledTasks(state.tasks)
        self._first_class = 0

    @property
    def enabled(self) -> bool:
        """Whether any task could migrate."""
        return self._options.migrating is Migrating.ALWAYS and bool(self._state.tasks.movable.any())

    def run(self, placer: Placer, asked: RunningCosts, left: int = UNLIMITED) -> Migration:
        """At most `left` migrations at the end of a round, whose placements and victims the state has assumed."""
        if not self.enabled:
            return NO_MIGRATION
        self._note_placed(placer)
        under_way = max(int(self._state.tasks.preempted.sum()), len(self._state.successors))
        limit = min(self._options.moves_at_once - under_way, left)
        position = positions_of(placer.snapshot, self._state.nodes.capacity)
        rows = self._movable(placer.snapshot.now_us, position) if limit > 0 else NO_ROWS
        if not len(rows):
            return NO_MIGRATION
        self._settled.next_round()
        times, cls = run_times(self._state, rows, placer.snapshot.now_us), self._state.tasks.cls[rows]
        victims = victims_of(self._state, cls, *times)
        moving, numbers = asked.moving_costs(victims), asked.place_kinds(victims)
        if moving is None:
            return NO_MIGRATION
        kinds = None if numbers is None else kinds_of(self._state, victims, cls, numbers)
        some = self._candidates(placer, asked.running_snapshot, rows, moving, kinds, position)
        tasks, nodes, saves = self._solved(placer, asked.running_snapshot, rows[some], moving[some], position)
        within = self._within_budgets(tasks, limit)
        return Migration(tasks[within], nodes[within], np.full(len(within), -1), saves[within])

    def _movable(self, now_us: int, position: I64) -> I64:
        """Task rows (P,) that may migrate. position: as positions_of."""
        tasks = self._state.tasks
        rows = np.flatnonzero(movable_singles(self._state))
        since_us = np.maximum(tasks.started_us[rows], tasks.created_us[rows])
        return rows[(since_us <= now_us - self._options.migrate_after_us) & (position[tasks.node[rows]] >= 0)]

    def _considered(self, examples: I64, kind: I64) -> tuple[I64, I64]:
        """Of tasks (P,), which are like examples (K,), number kind (P,): positions (P',) of those that this round
        considers, and which of their examples (K',) each is like: at most CLASSES_AT_ONCE, other ones in each round."""
        if len(examples) <= CLASSES_AT_ONCE:
            return np.arange(len(kind)), np.arange(len(examples))
        chosen = np.roll(np.arange(len(examples)), -(self._first_class % len(examples)))[:CLASSES_AT_ONCE]
        self._first_class += CLASSES_AT_ONCE
        return np.flatnonzero(np.isin(kind, chosen)), np.sort(chosen)

    def _candidates(
        self, placer: Placer, snapshots: Snapshots, rows: I64, moving: I64, kinds: I64 | None, position: I64
    ) -> I64:
        """Positions in task rows (P,), which cost moving (P,) to move, of those that have a negative reduced cost: at
        most one of a node. kinds: as examples_of.

        What staying costs is estimated here, by what a task costs on its node if one of the mean request has left it;
        the network has the exact cost.
        """
        tasks = self._state.tasks
        every_example, every_kind = examples_of(self._state, rows, kinds)
        considered, chosen = self._considered(every_example, every_kind)
        examples, kind = every_example[chosen], np.searchsorted(chosen, every_kind[considered])
        rows, moving = rows[considered], moving[considered]
        with_data = np.flatnonzero(tasks.inputs[rows] != NO_INPUTS)
        self._settled.recall(rows[with_data])
        new = rows[with_data[~self._settled.known(rows[with_data])]][:NEW_TASKS]
        snapshot = snapshots(np.union1d(examples, new), NO_ROWS, data=len(new) > 0)
        by_row = np.argsort(snapshot.tasks)
        of_example = snapshot.task_class[by_row[np.searchsorted(snapshot.tasks[by_row], examples)]]
        node = position[tasks.node[rows]]

        trial = placer.on(snapshot)
        arrivals = np.arange(len(snapshot.tasks))
        subproblem, costs = trial.first_costs(arrivals, one_slot=True)
        self._note_data(snapshot, subproblem, costs, new, position)
        arriving = _arriving(costs, len(snapshot.classes))[of_example]
        arrival = ArrivalCosts(self._state, snapshot, arriving, tasks.cls[examples])

        _, leaving = leaving_tasks(self._state, snapshot)
        used = self._state.nodes.used[snapshot.nodes] - leaving
        trial.ledger.free = snapshot.free + leaving + used // np.maximum(snapshot.running, 1)[:, None]
        trial.ledger.running -= snapshot.running > 0
        _, costs = trial.first_costs(arrivals, one_slot=True)
        stay = np.ascontiguousarray(_arriving(costs, len(snapshot.classes))[of_example])

        may_save = stay.ravel()[kind * len(snapshot.nodes) + node] - moving
        may_save[with_data] += self._settled.excess(rows[with_data])
        found = np.flatnonzero(may_save > arrival.least(rows, kind))
        found = found[independent_classes(snapshot)[of_example[kind[found]]]]
        self._settled.recall(rows[found])
        found = found[self._settled.due(rows[found])]
        found = found[self._permitted(rows[found])]  # else one that must stay could be its node's only candidate
        gain = may_save[found] - arrival.of_tasks(rows[found], kind[found], may_save[found])
        found, gain = found[gain > 0], gain[gain > 0]
        found = found[np.argsort(-gain, kind="stable")]
        one_each = found[np.sort(np.unique(node[found], return_index=True)[1])[:CANDIDATES]]
        candidates: I64 = considered[one_each]
        return candidates

    def _note_placed(self, placer: Placer) -> None:
        """Notes what the data of the tasks that the round has placed costs on their nodes."""
        tasks, excess = placer.excess_of_data()
        rows = placer.snapshot.tasks[tasks]
        self._settled.recall(rows)
        self._settled.note(rows, excess)

    def _note_data(self, snapshot: Snapshot, subproblem: Subproblem, costs: Costs, new: I64, position: I64) -> None:
        """Notes what the data of the task rows `new` costs on their nodes."""
        if costs.data is not None:
            rows = snapshot.tasks[subproblem.tasks]
            some = np.flatnonzero(np.isin(rows, new))
            at = position[self._state.tasks.node[rows[some]]]
            self._settled.note(rows[some], costs.data.excess(costs.data.of_task[some], at))

    def _solved(
        self, placer: Placer, snapshots: Snapshots, rows: I64, moving: I64, position: I64
    ) -> tuple[I64, I64, I64]:
        """Of task rows (K,), each on another node, which cost moving (K,) to move: those that migrate in an optimum, in
        the order of what they save, their new node rows, and what they save."""
        if not len(rows):
            return NO_ROWS, NO_ROWS, NO_ROWS
        snapshot = snapshots(rows, rows, data=True)
        trial = placer.on(snapshot)
        origin = position[self._state.tasks.node[snapshot.tasks]]  # (T,)
        others = np.ones(len(snapshot.nodes), np.bool_)
        others[origin] = False
        unreserved = np.minimum(snapshot.free, placer.ledger.unreserved)
        _, leaving = leaving_tasks(self._state, snapshot)
        trial.ledger.free = np.where(others[:, None], unreserved, snapshot.free + leaving)
        independent = np.flatnonzero(independent_classes(snapshot)[snapshot.task_class])  # by their labels, too
        subproblem, costs = trial.first_costs(independent, others, one_slot=True)
        found, to, saves = NO_ROWS, NO_ROWS, NO_ROWS
        if len(subproblem.tasks):
            of_row = np.argsort(rows)
            move = moving[of_row[np.searchsorted(rows[of_row], snapshot.tasks[subproblem.tasks])]]
            found, to, saves = _flow(placer, subproblem, costs, origin[subproblem.tasks], move)
        movers = snapshot.tasks[subproblem.tasks[found]]
        self._settled.stay(np.setdiff1d(rows, movers))
        return movers, snapshot.nodes[to], saves

    def _permitted(self, rows: I64) -> Bools:
        """(K,) whether every disruption budget allows that the task row (K,) is evicted."""
        return self._state.allowances().permitted(self._state.tasks.label_set[rows])

    def _within_budgets(self, rows: I64, limit: int) -> I64:
        """Positions in task rows (K,), in order, of those that may be evicted together; at most `limit`."""
        return self._state.allowances().take_in_order(self._state.tasks.label_set[rows], limit)


def _flow(placer: Placer, subproblem: Subproblem, costs: Costs, origin: I64, moving: I64) -> tuple[I64, I64, I64]:
    """Of the tasks (T,) of a subproblem: those that leave their origin (T,) in a flow of least cost, in the order of
    what they save, the nodes that they go to, and what they save."""
    view, slots = subproblem.view, subproblem.capacities.slots
    cost = np.broadcast_to(costs.place + _first_slots(costs), slots.shape)

    def on(tasks: I64, nodes: I64) -> I64:
        found: I64 = cost[view.task_class[tasks], nodes]
        return found if costs.data is None else found + costs.data.at(costs.data.of_task[tasks], nodes)

    everyone = np.arange(len(subproblem.tasks))
    saved = on(everyone, origin) - moving  # by leaving
    staying = Costs(costs.place, slot=_first_slots(costs)[:, None], wait=np.maximum(saved, 0), data=costs.data)
    np.minimum(slots, 1, out=slots)
    one_each = Capacities(slots, slots.max(axis=0), {})
    placer.telemetry.lap("migrate")
    flow = placer.columns.run(one_each, staying, np.zeros(1, np.int64), view.task_class, trial=True)
    if flow.sent is None:
        return NO_ROWS, NO_ROWS, NO_ROWS
    found = assign(flow.network, flow.solution.flow, supply_order(view.task_class, staying), flow.sent)
    saving = saved[found.task] - on(found.task, found.node)
    best = np.argsort(-saving, kind="stable")[: int((saving > 0).sum())]
    return found.task[best], found.node[best], saving[best]


def _arriving(costs: Costs, classes: int) -> I64:
    """(C, N) what a task of each of `classes` classes costs on each node if it is the next one there."""
    cost = costs.place + _first_slots(costs)
    return np.broadcast_to(cost, (classes, cost.shape[1]))


def _first_slots(costs: Costs) -> I64:
    """(N,) or (1,) the cost of the next slot of each node."""
    first: I64 = costs.slot[:, 0]
    return first
