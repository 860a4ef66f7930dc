"""From tasks to places: price > build > solve > deal > fit, again and again until nothing more fits.

A flow has one commodity, so tasks that a flow sends to one node can be too much for it together. `Placing.attempt`
therefore solves, keeps the most valuable part that fits, and solves again for the rest with what is left, until a
solve finds nothing to place. Every solve that finds something places at least one task, so it ends; each node's
resources are counted exactly before anything is kept. What an attempt placed can be taken back whole.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from firmament_py.flow.network import Solution, Status
from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.network.build import PlacementNetwork, supply_order
from firmament_py.network.column_generation import Solving
from firmament_py.network.decode import NodeCounts, route, spread_over_members
from firmament_py.placement.fit import accept
from firmament_py.placement.greedy import Bids, winners
from firmament_py.placement.reserved_capacity import ReservedCapacity
from firmament_py.placement.subproblem import Subproblem, subproblem_of, with_preferences
from firmament_py.policy import Costs, View
from firmament_py.policy.locality import DataCosts
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.usage.usage import NOTHING_MEASURED, Reading

CLASSES_AT_ONCE = 256
"""More classes than this are placed in turns, highest priority first: it bounds a round's memory."""

FLOWS_PER_STAGE = 12
"""After so many flows of one turn the rest is placed class by class: bounds a round whose nodes fill badly."""

BIDS = 8
"""So often the tasks of a class that no flow has placed bid for the nodes that hold their data."""


class Placing:
    """What is left of nodes and tasks while flows are turned into placements.

    price and solve are called for each network, solve with whether it is a trial: what it places is taken back.
    lap(stage) is called after each stage of work. reading: what the nodes use, for the policy. at_once: see View.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        costs: Callable[[View], Costs],
        solve: Callable[[PlacementNetwork, bool], Solution],
        lap: Callable[[str], None],
        reading: Reading = NOTHING_MEASURED,
        *,
        at_once: bool = False,
        trial: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self._at_once = at_once
        self._reading = reading
        self.node_of: I64 = np.full(len(snapshot.tasks), -1, np.int64)
        """(T,) node that each task is placed on, -1: none so far."""
        self._trial = trial
        self._solve = solve
        self.solving = Solving(lambda network: solve(network, self._trial), lap)
        self._costs = costs
        self._lap = lap
        self.staged = False
        """Whether tasks of different classes were placed one after the other, so that those who depend on others may
        have come too early."""
        self.in_portions = False
        """Whether the policy had nodes be sent a few tasks at a time."""
        self._flows_left = 0
        self._free = snapshot.free.copy()
        self._running = snapshot.running.copy()
        self._batch_of = np.zeros(len(snapshot.tasks), np.int64)  # what was placed together, in order
        self._batches = 0
        self._batch_of_class = np.zeros(len(snapshot.classes), np.int64)  # the last of each class
        self._kept = ReservedCapacity()
        expected = snapshot.expected_us
        self._class_ends_us = np.where(expected > 0, snapshot.now_us + expected, FOREVER)  # (C,)

    @property
    def keeps_room(self) -> bool:
        """Whether some of what is left is kept for somebody."""
        return bool(self._kept)

    @property
    def free(self) -> I64:
        """(N, R) what is left for tasks that may run for ever. Not to be written to."""
        return self._kept.left_of(self._free, FOREVER)

    @property
    def unclaimed(self) -> I64:
        """(N, R) what is left, less what gangs that keep room will take."""
        return self._kept.less_claims(self._free)

    @property
    def free_now(self) -> I64:
        """(N, R) what is left, whoever keeps room. Not to be written to."""
        return self._free

    def free_for(self, tasks: I64) -> I64:
        """(N, R) what is left for all of `tasks` (K,). Not to be written to."""
        ends_us = int(self._class_ends_us[self.snapshot.task_class[tasks]].max(initial=0))
        return self._kept.left_of(self._free, ends_us)

    def outcome(self) -> tuple[I64, I64, I64]:
        """Task rows (K,), the node rows (K,) they go to, and batches (K,): placed together, in ascending order."""
        placed = np.flatnonzero(self.node_of >= 0)
        return self.snapshot.tasks[placed], self.snapshot.nodes[self.node_of[placed]], self._batch_of[placed]

    def attempt(self, tasks: I64, within: Bools | None = None, *, largest_first: bool = False) -> None:
        """Places what can be placed of `tasks` (K,), ascending, on the nodes `within` (N,), None: any.

        largest_first: where tasks compete for a node, large ones have the right of way instead of those that are
        worth most for what they take. It fits more when all are to be placed.
        """
        if not self._kept:
            self._attempt(tasks, within, largest_first)
            return
        ends = self._class_ends_us[self.snapshot.task_class[tasks]]
        while True:
            before = int((self.node_of[tasks] >= 0).sum())
            for horizon in self._kept.horizons:  # who ends in time may also use what the others had to leave
                some = tasks[(self.node_of[tasks] < 0) & (ends <= horizon)]
                if len(some):
                    self._attempt_beside(some, within, largest_first)
            if int((self.node_of[tasks] >= 0).sum()) == before:
                return

    def _attempt_beside(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        """`attempt` with no more than all of the tasks may use."""
        free, self._free = self._free, self.free_for(tasks).copy()
        self._attempt(tasks, within, largest_first)
        self._free = free
        self._occupy(tasks, +1)

    def _attempt(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        classes = np.unique(self.snapshot.task_class[tasks])
        self.staged |= len(classes) > CLASSES_AT_ONCE
        for first in range(0, len(classes), CLASSES_AT_ONCE):
            some = classes[first : first + CLASSES_AT_ONCE]
            mine = tasks[np.isin(self.snapshot.task_class[tasks], some)] if len(some) < len(classes) else tasks
            self._turn(mine, within, largest_first)

    def put(self, tasks: I64, nodes: I64) -> None:
        """Places `tasks` (K,), which have no place and whose classes other tasks are nothing to, on `nodes` (K,),
        which have room for them."""
        cls = self.snapshot.task_class[tasks]
        for c in np.unique(cls).tolist():
            where, count = np.unique(nodes[cls == c], return_counts=True)
            self._settle(c, where, count)
            self._running[where] += count
            self._batch_of[tasks[cls == c]] = self._batches
        self.node_of[tasks] = nodes
        self._occupy(tasks, +1)

    def take_back(self, tasks: I64) -> None:
        """Undoes the placements of `tasks` (K,); those that have none are passed over."""
        tasks = tasks[self.node_of[tasks] >= 0]
        self._occupy(tasks, -1)
        for c, where, count in self._by_class(tasks):
            self._running[where] -= count
            self._tell_neighbours(c, where, -count)
        self.node_of[tasks] = -1

    def keep(self, starts_us: int, room: I64, claimed: I64) -> int:
        """From now on tasks that end after `starts_us` have to leave `claimed` (N, R) of `room` (N, R), which is what
        will be left then, not counting what is kept. Returns the number by which to give it up."""
        return self._kept.keep(starts_us, room, claimed)

    def give_up(self, number: int) -> None:
        """What was kept by this number is no longer."""
        self._kept.give_up(number)

    def elsewhere(self, snapshot: Snapshot) -> "Placing":
        """A fresh start on another snapshot of the same round. Wishes and neighbour counts are one for both: what is
        placed there has to be taken back."""
        reading = self._reading.less(snapshot.free - self.snapshot.free)
        return Placing(snapshot, self._costs, self._solve, self._lap, reading, at_once=self._at_once, trial=True)

    @contextmanager
    def supposing(self, free: I64) -> Iterator[None]:
        """As if `free` (N, R) was left, and nobody kept room; what is placed meanwhile has to be taken back."""
        before, self._free = self._free, free.copy()
        kept, self._kept = self._kept, ReservedCapacity()
        trial, self._trial = self._trial, True
        try:
            yield
        finally:
            self._free, self._kept, self._trial = before, kept, trial

    def _occupy(self, tasks: I64, sign: int) -> None:
        """Takes away (+1) or gives back (-1) what `tasks` (K,) use where they are placed; others are passed over."""
        for c, where, count in self._by_class(tasks[self.node_of[tasks] >= 0]):
            used = sign * count[:, None] * self.snapshot.requests[c]
            self._free[where] -= used
            self._kept.occupy(where, used, int(self._class_ends_us[c]))

    def _by_class(self, tasks: I64) -> Iterator[tuple[int, I64, I64]]:
        """Of placed tasks: each class, nodes and how many of it are there."""
        nodes = len(self._free)
        pairs, counts = np.unique(self.snapshot.task_class[tasks] * nodes + self.node_of[tasks], return_counts=True)
        for c in np.unique(pairs // nodes).tolist():
            of_class = pairs // nodes == c
            yield c, pairs[of_class] % nodes, counts[of_class]

    def room_for(self, tasks: I64, within: Bools | None = None) -> tuple[I64, I64]:
        """(C',) classes of `tasks` and (C', N) how many tasks of each class each node could take alone."""
        classes, counts = np.unique(self.snapshot.task_class[tasks], return_counts=True)
        suitable = self.open_to(classes)
        suitable = suitable if within is None else suitable & within
        return classes, task_slots(self.free_for(tasks), self.snapshot.requests[classes], suitable, counts)

    def open_to(self, classes: I64) -> Bools:
        """(C', N) where tasks of each of `classes` may go, room apart, beside others that are to come."""
        suitable = self.snapshot.suitable[classes]
        for i, c in enumerate(classes.tolist()):
            if self.snapshot.intertask.concerns(c):
                suitable[i] &= self.snapshot.intertask.conceivable(c)
        return suitable

    def cheapest_first(self) -> Callable[[int], I64]:
        """A function from a task to the nodes (N,) by what it costs as the first to go there; in any order if there
        are too many classes."""
        (classes, nodes), tasks = self.snapshot.suitable.shape, len(self.snapshot.tasks)
        if classes > CLASSES_AT_ONCE:
            return lambda task: np.arange(nodes)
        look = self._look(np.arange(tasks), None)
        costs = with_preferences(self.snapshot, look, self._costs(look.view))
        slot = np.broadcast_to(costs.slot, (nodes, len(look.view.slot_offsets)))[:, 0]
        price = np.broadcast_to(costs.place, (classes, nodes)) + slot
        by_class, task_class, data = np.argsort(price, axis=1, kind="stable"), self.snapshot.task_class, costs.data
        if data is None:
            return lambda task: by_class[task_class[task]]
        of_task = np.full(tasks, -1, np.int64)
        of_task[look.tasks] = data.of_task
        return lambda task: np.argsort(price[task_class[task]] + data.row(int(of_task[task])), kind="stable")

    def emptiest_first(self) -> I64:
        """(N,) the nodes by how many tasks they have."""
        return np.argsort(self._running, kind="stable")

    def place_first_fit(self, task: int, order: I64) -> None:
        """Places one task on the first node of `order` (N,) that takes it, if any does."""
        snapshot, c = self.snapshot, int(self.snapshot.task_class[task])
        request = snapshot.requests[c]
        needs = np.flatnonzero(request)
        fits = snapshot.suitable[c] & np.greater_equal(self._free[:, needs], request[needs]).all(axis=1)
        if snapshot.intertask.concerns(c):
            fits &= snapshot.intertask.allowed(c)
        for node in order[fits[order]][:1].tolist():
            if self._settle(c, np.array([node]), np.array([1])).any():
                self.node_of[task] = node
                self._batch_of[task] = self._batches
                self._free[node] -= request
                self._running[node] += 1

    def _turn(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        self._flows_left = FLOWS_PER_STAGE
        self._place(tasks, within, largest_first)

    def _place(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        """Flow after flow, until nothing more fits or no flow is left."""
        while True:
            look = self._look(tasks[self.node_of[tasks] < 0], within)
            self._lap("feasibility")
            if not len(look.tasks):
                return
            costs, on_turn = self._costs(look.view), look.tasks
            self.in_portions |= costs.node_limit is not None
            if costs.stage is not None:
                self.staged = True
                on_turn = look.first_in_turn(costs.stage)
                look = self._look(on_turn, within)
                costs = replace(self._costs(look.view), stage=costs.stage)
            costs = with_preferences(self.snapshot, look, costs)
            self._lap("costs")
            self.staged |= self._flows_left <= 0
            if self._flows_left <= 0 or not self._flow_step(look, costs, within, largest_first):
                self._fill(look, costs)
                self._lap("fit")
                if costs.stage is None:
                    return
                tasks, self._flows_left = np.setdiff1d(tasks, on_turn), FLOWS_PER_STAGE

    def _look(self, tasks: I64, within: Bools | None) -> Subproblem:
        """What there is for `tasks` (K,), ascending, as things stand."""
        return subproblem_of(
            self.snapshot, self._free, self._running, self._reading, tasks, within, at_once=self._at_once
        )

    def _flow_step(self, look: Subproblem, costs: Costs, within: Bools | None, largest_first: bool) -> bool:
        """One network: builds, solves, keeps what fits. False if it got nowhere.

        Priority after priority: if not all of one fit where the flow sent them, places are looked for anew for those
        before anybody of a lower priority takes what is left.
        """
        view = look.view
        self._flows_left -= 1
        network, solution = self.solving.run(look.room, costs, view.slot_offsets, view.task_class)
        if solution.status is not Status.OPTIMAL:
            return False
        wanted = spread_over_members(network, solution.flow, fill=costs.fill)
        order = supply_order(view.task_class, costs)
        if costs.data is None:
            routing, chosen = None, _chosen(network, solution.flow, order)
        else:
            routing, chosen = route(network, solution.flow, order, wanted), order[:0]
        self._lap("decode")
        # worth grows with the time waited, so that in the end no task is too large for its worth
        minutes = view.task_age_us / 60e6
        value = np.ones(len(view.requests))
        np.maximum.at(value, view.task_class, costs.wait * (1.0 + minutes))
        priority = view.priority[wanted.cls]
        for level in np.unique(priority)[::-1].tolist():
            mine = wanted.where(priority == level)
            fitting = accept(
                mine,
                self.snapshot.requests[look.classes],
                self._free,
                None if largest_first else value,
                lambda i, *where: self._settle(int(look.classes[i]), *where),
            )
            if routing is None:
                self._assign(look, fitting, chosen)
            else:
                kept = routing.kept(fitting, len(self._free), costs.wait)
                self._put(look.tasks[routing.task[kept]], look.classes[routing.cls[kept]], routing.node[kept])
            self._lap("fit")
            if level > priority.min() and fitting.count.sum() < mine.count.sum():
                self._place(look.tasks[view.priority[view.task_class] == level], within, largest_first)
        return bool((self.node_of[look.tasks] >= 0).any())

    def _settle(self, c: int, node: I64, count: I64) -> I64:
        """How many of the count[i] tasks of class c on node[i] other tasks allow; these are then counted as there."""
        self._batches += 1
        self._batch_of_class[c] = self._batches
        count = self.snapshot.intertask.trim(c, node, count)
        there = count > 0
        self._tell_neighbours(c, node[there], count[there])
        return count

    def _tell_neighbours(self, c: int, node: I64, count: I64) -> None:
        self.snapshot.intertask.add(c, node, count)
        self.snapshot.preferences.add(c, node, count)
        self.snapshot.neighbour_counts.add(c, node, count)

    def _assign(self, look: Subproblem, fitting: NodeCounts, candidates: I64) -> None:
        """Gives the places to the oldest of the candidates (positions in look.tasks, by class, oldest first)."""
        places = np.bincount(fitting.cls, fitting.count).astype(np.int64)
        start = np.searchsorted(look.view.task_class[candidates], np.arange(len(places)))
        taken = look.tasks[candidates[np.repeat(start, places) + run_positions(places)]]
        self._put(taken, np.repeat(look.classes[: len(places)], places), np.repeat(fitting.node, fitting.count))

    def _put(self, tasks: I64, classes: I64, nodes: I64) -> None:
        """Notes that tasks (K,) of classes (K,) are on nodes (K,); their resources have been taken already."""
        self.node_of[tasks] = nodes
        self._batch_of[tasks] = self._batch_of_class[classes]
        np.add.at(self._running, nodes, 1)

    def _fill(self, look: Subproblem, costs: Costs) -> None:
        """Places the rest class by class, each on its cheapest nodes first: no optimum, but nothing is left over."""
        peers, nodes = self.snapshot.intertask, len(self._free)
        for i in np.unique(look.view.task_class).tolist():
            c = int(look.classes[i])
            positions, request = np.flatnonzero(look.view.task_class == i), self.snapshot.requests[c]
            if costs.data is not None:
                positions = self._bid(look, costs.data, i, positions)
            mine = look.tasks[positions]
            price = np.broadcast_to(costs.place, look.suitable.shape)[i] + np.broadcast_to(costs.slot[:, 0], (nodes,))
            order = np.lexsort((np.arange(nodes), price))
            while len(mine):
                room = task_slots(self._free, request[None], look.suitable[i : i + 1], np.array([len(mine)]))[0]
                if peers.concerns(c):
                    room, _ = peers.limit(c, room, len(mine))
                    room = np.where(peers.allowed(c), room, 0)  # whichever of these are taken
                count = np.diff(np.minimum(np.cumsum(room[order]), len(mine)), prepend=0)
                count = self._settle(c, order, count)
                placed = int(count.sum())
                if not placed:
                    break
                self.node_of[mine[:placed]] = np.repeat(order, count)
                self._batch_of[mine[:placed]] = self._batches
                self._free[order] -= count[:, None] * request
                self._running[order] += count
                mine = mine[placed:]

    def _bid(self, look: Subproblem, data: DataCosts, i: int, positions: I64) -> I64:
        """Places tasks of class i (positions in look.tasks) where their data is: each bids for the best of its nodes
        that has room, and those who save most get it, a few times over. Returns those that are left."""
        peers, c, request = self.snapshot.intertask, int(look.classes[i]), self.snapshot.requests[int(look.classes[i])]
        bids = Bids(data, data.of_task[positions])
        for _ in range(BIDS):
            room = task_slots(self._free, request[None], look.suitable[i : i + 1], np.array([len(positions)]))[0]
            if peers.concerns(c):
                room, _ = peers.limit(c, room, len(positions))
            bidders, nodes = bids.best(room)
            where, wanted = np.unique(nodes, return_counts=True)
            count = self._settle(c, where, np.minimum(wanted, room[where])) if len(where) else wanted
            won = winners(wanted, count)
            if not len(won):
                break
            self._put(look.tasks[positions[bidders[won]]], np.full(len(won), c), nodes[won])
            self._free[where] -= count[:, None] * request
            bids.close(bidders[won])
        placed = self.node_of[look.tasks[positions]] >= 0
        return positions[~placed]


def _chosen(network: PlacementNetwork, flow: I64, order: I64) -> I64:
    """Positions of the tasks that the flow places, ascending: of each supply group, one after the other in `order`
    (T,), the oldest."""
    sizes = network.group_size
    return np.sort(order[run_positions(sizes) < np.repeat(network.placed_from_groups(flow), sizes)])
