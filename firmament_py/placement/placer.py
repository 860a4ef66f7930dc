"""From tasks to nodes: costs > network > flow > counts > fit, again and again until nothing more fits.

A flow has one commodity, so tasks that a flow sends to one node can be too much for it together. Therefore each solve
is followed by keeping the most valuable part that fits, and by another solve for the rest with what is left, until a
solve places nothing. Every other solve places at least one task, so this ends; each node's resources are counted
exactly before anything is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from firmament_py.flow.network import Solution
from firmament_py.model.arrays import F64, I64, NO_ROWS, Bools, run_positions, runs
from firmament_py.model.placed_by import PlacedBy
from firmament_py.network.cheapest_slots import Selection
from firmament_py.network.column_generation import ColumnGeneration, Found
from firmament_py.network.decode import Assignment, NodeCounts, assign, placed_tasks
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.supply_groups import supply_order
from firmament_py.network.telemetry import SolvedNetwork, Telemetry
from firmament_py.placement import delays
from firmament_py.placement.fit import accept
from firmament_py.placement.greedy import fill
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.subproblem import Subproblem, subproblem_of, with_preferences
from firmament_py.policy import WAIT_MIN, Costs, View
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.usage.usage import NOTHING_MEASURED, Reading

CLASSES_AT_ONCE, CELLS_AT_ONCE = 256, 4_000_000
"""More classes than the first, and more classes times nodes than the second, are placed in several parts, highest
priority first: it bounds the memory of a round."""

FLOWS_PER_STAGE = 12
"""After so many flows of one stage the rest is placed greedily: it bounds a round whose nodes fill badly."""

FEW_LEFT = 20
"""Tasks are placed at once as long as each flow leaves less than one in so many."""


@dataclass(slots=True)
class _Step:
    """A subproblem, its costs, and, if it was solved, what its flow sends where. by_priority: the parts of `sent` that
    have not been fitted yet, lowest priority first. stage_tasks: the tasks that the subproblem was made for."""

    subproblem: Subproblem
    costs: Costs
    stage_tasks: I64
    by_priority: list[tuple[int, NodeCounts]] = field(default_factory=list)
    placed: I64 | None = None  # positions of the tasks that the flow places, if tasks of a class are interchangeable
    assignment: Assignment | None = None  # else: which task goes where
    by: PlacedBy = PlacedBy.FLOW

    @property
    def value(self) -> F64:
        """(C,) what placing a task of each class is worth: the more the longer one has waited, so that in the end no
        task is too large for its value."""
        view = self.subproblem.view
        value = np.ones(len(view.requests))
        np.maximum.at(value, view.task_class, self.costs.wait * (1.0 + view.task_age_us / 60e6))
        return value


@dataclass(slots=True)
class _Pending:
    """Tasks (K,) that are to be placed, and the step that is under way for them."""

    tasks: I64
    step: _Step | None = None


class Placer:
    """Places tasks of a snapshot on its nodes, and keeps the ledger of it.

    policy_costs and solve are called for each network. reading: what the nodes use, for the policy.
    trial: solves only serve to find out what could be placed.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy_costs: Callable[[View], Costs],
        solve: Callable[[PlacementNetwork], Solution],
        telemetry: Telemetry,
        reading: Reading = NOTHING_MEASURED,
        *,
        trial: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self.telemetry = telemetry
        self.ledger = Ledger(snapshot, trial=trial)
        self.columns = ColumnGeneration(solve, telemetry)
        self.staged = False
        """Whether tasks of different classes were placed one after the other, so that some may have been tried before
        tasks that they depend on were placed."""
        self._first_steps: list[_Step] = []  # those with tasks that none before had
        self._asked = np.zeros(len(snapshot.tasks), np.bool_)  # (T,) tasks of these steps
        self._policy_costs = policy_costs
        self._solve = solve
        self._reading = reading
        self._classes_at_once = max(CLASSES_AT_ONCE, CELLS_AT_ONCE // max(len(snapshot.nodes), 1))

    def on(self, snapshot: Snapshot) -> "Placer":
        """A trial from scratch on another snapshot of the same round. Both count in the same preferences and neighbour
        counts, so all of it belongs in a transaction."""
        reading = self._reading.less(snapshot.free - self.snapshot.free)
        return Placer(snapshot, self._policy_costs, self._solve, self.telemetry, reading, trial=True)

    def first_costs(
        self, tasks: I64, within: Bools | None = None, *, one_slot: bool = False
    ) -> tuple[Subproblem, Costs]:
        """The subproblem of placing `tasks` (K,), ascending, as things stand on the nodes `within` (N,), None: any; and
        its costs, with one_slot of the next task on each node alone."""
        subproblem = subproblem_of(self.ledger, self._reading, tasks, within, one_slot=one_slot)
        return subproblem, with_preferences(self.snapshot, subproblem, self._policy_costs(subproblem.view))

    def worth(self) -> I64:
        """(T,) what leaving each task waiting costs more than placing it where that costs least, > 0, by the costs when
        it was first tried; WAIT_MIN if it never was."""
        worth = np.full(len(self.snapshot.tasks), WAIT_MIN)
        for step in reversed(self._first_steps):
            slots, costs, task_class = step.subproblem.capacities.slots, step.costs, step.subproblem.view.task_class
            cost = np.broadcast_to(costs.place + costs.slot[:, 0], slots.shape)
            least = np.where(slots > 0, cost, WAIT_MIN).min(axis=1)
            worth[step.subproblem.tasks] = costs.wait - np.minimum(least, WAIT_MIN - 1)[task_class]
        return worth

    def excess_of_data(self) -> tuple[I64, I64]:
        """Placed tasks (K,), and what their data costs more on their nodes than where it costs least."""
        tasks, excess = [NO_ROWS], [NO_ROWS]
        for step in self._first_steps:
            if step.costs.data is not None:
                node = self.ledger.node_of[step.subproblem.tasks]
                placed = np.flatnonzero(node >= 0)
                tasks.append(step.subproblem.tasks[placed])
                excess.append(step.costs.data.excess(step.costs.data.of_task[placed], node[placed]))
        return np.concatenate(tasks), np.concatenate(excess)

    def place(self, tasks: I64, within: Bools | None = None, *, largest_first: bool = False) -> None:
        """Places what can be placed of `tasks` (K,), ascending, on the nodes `within` (N,), None: any.

        largest_first: if tasks compete for a node, the largest go first instead of those that are worth most for what
        they take. More fits if all are to be placed.
        """
        ledger = self.ledger
        if not len(tasks):
            return
        if not ledger.has_reservations:
            self._place(tasks, within, largest_first)
            return
        ends = ledger.ends_us(tasks)
        placed_before = -1
        while (placed := int((ledger.node_of[tasks] >= 0).sum())) > placed_before:
            placed_before = placed
            for horizon in ledger.horizons:  # tasks that end in time may also use what the others had to leave
                some = tasks[(ledger.node_of[tasks] < 0) & (ends <= horizon)]
                if len(some):
                    with ledger.limited_to(some):
                        self._place(some, within, largest_first)

    def place_at_once(self) -> bool:
        """Whether all pending tasks fit, in whatever order, but for those that no empty node could take: a flow for all
        of them, then others for the few that do not fit where it sent them. If not, some are placed, and the placer is
        of no further use."""
        pending = np.flatnonzero(self.ledger.pending)
        if len(np.unique(self.snapshot.task_class[pending])) > self._classes_at_once:
            return False
        while len(pending):
            step = self._next_step(pending, None)
            fitting = NO_ROWS if step is None else step.subproblem.tasks
            without_slots = self.ledger.pending
            without_slots[fitting] = False
            if self._would_fit(pending[without_slots[pending]]):
                return False
            if step is None:
                break
            if step.costs.stage is not None:
                return False
            self._place_batch(step)
            while step.by_priority:
                self._fit_highest_priority(step, largest_first=False)
            pending = fitting[self.ledger.pending[fitting]]
            if len(pending) * FEW_LEFT > len(fitting):
                return False
        return True

    def _would_fit(self, tasks: I64) -> bool:
        """Whether an empty node could take one of the tasks (K,)."""
        snapshot, classes = self.snapshot, np.unique(self.snapshot.task_class[tasks])
        one = np.ones(len(classes), np.int64)
        return bool(task_slots(snapshot.allocatable, snapshot.requests[classes], snapshot.suitable[classes], one).any())

    def _place(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        task_class = self.snapshot.task_class[tasks]
        classes = task_class[runs(task_class)[0]]
        self.staged |= len(classes) > self._classes_at_once
        for first in range(0, len(classes), self._classes_at_once):
            some = classes[first : first + self._classes_at_once]
            part = tasks[np.isin(task_class, some)] if len(some) < len(classes) else tasks
            self._solve_and_fit(part, within, largest_first)

    def _solve_and_fit(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        """Step after step, until nothing more fits or no flow is left. If not all tasks of a priority fit where a flow
        sent them, they come to the top of the stack: they are placed elsewhere before any of a lower priority."""
        stack, flows_left = [_Pending(tasks)], FLOWS_PER_STAGE
        while stack:
            pending = stack[-1]
            if pending.step is None:
                pending.step = self._next_step(pending.tasks, within)
                if pending.step is None:
                    stack.pop()
                    continue
                self.staged |= flows_left <= 0
                if flows_left > 0:
                    flows_left -= 1
                    self._place_batch(pending.step)
            step = pending.step
            if step.by_priority:
                rejected = self._fit_highest_priority(step, largest_first)
                if step.by_priority and len(rejected):
                    stack.append(_Pending(rejected))
                continue
            pending.step = None
            if not self.ledger.pending[step.subproblem.tasks].all():
                continue
            fill(self.ledger, step.subproblem, step.costs)
            self.telemetry.lap("fit")
            if step.costs.stage is None:
                stack.pop()
            else:
                pending.tasks, flows_left = np.setdiff1d(pending.tasks, step.stage_tasks), FLOWS_PER_STAGE

    def _next_step(self, tasks: I64, within: Bools | None) -> _Step | None:
        """What to solve next for those of `tasks` that wait; None: none of them fits anywhere."""
        tasks = tasks[self.ledger.pending[tasks]]
        if not len(tasks):
            return None
        subproblem = self._subproblem(tasks, within)
        self.telemetry.lap("feasibility")
        if not len(subproblem.tasks):
            return None
        costs, stage_tasks = self._policy_costs(subproblem.view), subproblem.tasks
        if costs.stage is not None:
            self.staged = True
            stage_tasks = subproblem.next_batch(costs.stage)
            subproblem = self._subproblem(stage_tasks, within)
            costs = replace(self._policy_costs(subproblem.view), stage=costs.stage)
        costs = with_preferences(self.snapshot, subproblem, costs)
        waits = delays.wait_for_any(self.ledger, subproblem, costs)
        self.telemetry.lap("costs")
        if waits.any():
            self.ledger.delayed[subproblem.tasks[waits]] = True
            return self._next_step(tasks, within)
        step = _Step(subproblem, costs, stage_tasks)
        if not self.ledger.trial and not self._asked[subproblem.tasks].all():
            self._asked[subproblem.tasks] = True
            self._first_steps.append(step)
        return step

    def _subproblem(self, tasks: I64, within: Bools | None) -> Subproblem:
        return subproblem_of(self.ledger, self._reading, tasks, within)

    def _place_batch(self, step: _Step) -> None:
        """Solves the network of a step; one that has no optimum sends nothing."""
        view, costs = step.subproblem.view, step.costs
        asked = step.subproblem.capacities, costs, view.slot_offsets, view.task_class
        selection = self.columns.without_network(*asked, trial=self.ledger.trial)
        if selection is not None:
            self._record(step, selection, selection.sent)
            step.placed = np.sort(supply_order(view.task_class, costs)[: selection.placed])
            step.by = PlacedBy.CHEAPEST_SLOTS
            self._take(step, selection.sent)
            return
        found = self.columns.run(*asked, trial=self.ledger.trial)
        network, solution, sent = found.network, found.solution, found.sent
        self._record(step, found, sent)
        if sent is None:
            return
        order = supply_order(view.task_class, costs)
        if costs.data is None and costs.delay is None:
            step.placed = placed_tasks(network, solution.flow, order)
        else:
            step.assignment = assign(network, solution.flow, order, sent)
            waits = delays.wait_for_others(self.ledger, step.subproblem, costs, step.assignment)
            if waits.any():
                if waits.all():
                    self.ledger.delayed[step.subproblem.tasks[step.assignment.task]] = True
                step.assignment = step.assignment.where(~waits)
                sent = delays.counts(step.assignment, len(self.ledger.free))
        self._take(step, sent)

    def _record(self, step: _Step, found: Found | Selection, sent: NodeCounts | None) -> None:
        """Keeps the network of a step, if networks are kept."""
        if self.telemetry.networks is None or self.ledger.trial:
            return
        snapshot, of, costs = self.snapshot, step.subproblem, step.costs
        network, solution = (found.network, found.solution) if isinstance(found, Found) else (None, None)
        sent_cost = NO_ROWS
        if sent is not None:
            place = costs.place[sent.cls % len(costs.place), sent.node if costs.place.shape[1] > 1 else 0]
            sent_cost = place + costs.slot[sent.node if len(costs.slot) > 1 else 0, 0]
        self.telemetry.networks.append(
            SolvedNetwork(
                network=network,
                solution=solution,
                cost=found.cost if isinstance(found, Selection) else found.solution.cost,
                sent=sent,
                sent_cost=sent_cost,
                classes=snapshot.classes[of.classes],
                nodes=snapshot.nodes,
                task_uid=snapshot.task_uid[of.tasks],
                task_class=of.view.task_class,
                task_wait=costs.wait,
            )
        )

    def _take(self, step: _Step, sent: NodeCounts) -> None:
        """Notes what a step sends where."""
        view = step.subproblem.view
        priority = view.priority[sent.cls]
        step.by_priority = [(level, sent.where(priority == level)) for level in sorted(set(priority.tolist()))]
        self.telemetry.lap("decode")

    def _fit_highest_priority(self, step: _Step, largest_first: bool) -> I64:
        """Keeps what fits of the highest priority that a step has left. Returns the tasks of this priority if not all
        that were sent could be kept, else none."""
        subproblem, ledger = step.subproblem, self.ledger
        level, sent = step.by_priority.pop()
        accepted = accept(
            sent,
            self.snapshot.requests[subproblem.classes],
            ledger.free,
            None if largest_first or len(sent.cls) < 2 else step.value,
            self.snapshot.intertask.concerned[subproblem.classes],
            lambda cls, *where: ledger.commit_counts(subproblem.classes[cls], *where),
        )
        if step.assignment is not None:
            chosen = step.assignment.select(accepted, len(ledger.free), step.costs.wait)
            ledger.assign(
                subproblem.tasks[step.assignment.task[chosen]],
                subproblem.classes[step.assignment.cls[chosen]],
                step.assignment.node[chosen],
                step.by,
            )
        elif step.placed is not None:
            self._assign_oldest(subproblem, accepted, step.placed, step.by)
        self.telemetry.lap("fit")
        if accepted.count.sum() == sent.count.sum():
            return NO_ROWS
        of_priority: Bools = subproblem.view.priority[subproblem.view.task_class] == level
        return subproblem.tasks[of_priority]

    def _assign_oldest(self, subproblem: Subproblem, accepted: NodeCounts, candidates: I64, by: PlacedBy) -> None:
        """Gives the places to the oldest of the candidates (positions in the subproblem's tasks, ascending)."""
        chosen = candidates
        if accepted.count.sum() < len(candidates):
            places = np.bincount(accepted.cls, accepted.count).astype(np.int64)
            start = np.searchsorted(subproblem.view.task_class[candidates], np.arange(len(places)))
            chosen = candidates[np.repeat(start, places) + run_positions(places)]
        classes = subproblem.classes[subproblem.view.task_class[chosen]]
        self.ledger.assign(subproblem.tasks[chosen], classes, np.repeat(accepted.node, accepted.count), by)
