"""From tasks to places: price > build > solve > deal > fit, again and again until nothing more fits.

A flow has one commodity, so tasks that a flow sends to one node can be too much for it together. `Placing.attempt`
therefore solves, keeps the most valuable part that fits, and solves again for the rest with what is left, until a
solve finds nothing to place. Every solve that finds something places at least one task, so it ends; each node's
resources are counted exactly before anything is kept. What an attempt placed can be taken back whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.arrays import I64, Bools, run_positions
from firmament_py.extract import Allotment, deal
from firmament_py.feasibility import task_slots
from firmament_py.fit import accept
from firmament_py.network import PlacementNetwork, build, slot_offsets
from firmament_py.policy import Prices, View
from firmament_py.room import UNLIMITED, DomainLimit, Room, shallower
from firmament_py.snapshot import Snapshot
from firmament_py.solver import Solution, Status
from firmament_py.usage import NOTHING_MEASURED, Reading

CLASSES_AT_ONCE = 256
"""More classes than this are placed in turns, highest priority first: it bounds a round's memory."""

FLOWS_PER_TURN = 12
"""After so many solves of one turn the rest is placed class by class: bounds a round whose nodes fill badly."""


class Placing:
    """What is left of nodes and tasks while flows are turned into placements.

    price and solve are called for each network; lap(stage) is called after each stage of work. reading: what the nodes
    use, for the policy.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        price: Callable[[View], Prices],
        solve: Callable[[PlacementNetwork], Solution],
        lap: Callable[[str], None],
        reading: Reading = NOTHING_MEASURED,
    ) -> None:
        self.snapshot = snapshot
        self._reading = reading
        self.node_of: I64 = np.full(len(snapshot.tasks), -1, np.int64)
        """(T,) node that each task is placed on, -1: none so far."""
        self._price = price
        self._solve = solve
        self._lap = lap
        self._free = snapshot.free.copy()
        self._running = snapshot.running.copy()
        self._batch_of = np.zeros(len(snapshot.tasks), np.int64)  # what was placed together, in order
        self._batches = 0
        self._batch_of_class = np.zeros(len(snapshot.classes), np.int64)  # the last of each class

    @property
    def free(self) -> I64:
        """(N, R) what is left. Not to be written to."""
        return self._free

    def outcome(self) -> tuple[I64, I64, I64]:
        """Task rows (K,), the node rows (K,) they go to, and batches (K,): placed together, in ascending order."""
        placed = np.flatnonzero(self.node_of >= 0)
        return self.snapshot.tasks[placed], self.snapshot.nodes[self.node_of[placed]], self._batch_of[placed]

    def attempt(self, tasks: I64, within: Bools | None = None, *, largest_first: bool = False) -> None:
        """Places what can be placed of `tasks` (K,), ascending, on the nodes `within` (N,), None: any.

        largest_first: where tasks compete for a node, large ones have the right of way instead of those that are
        worth most for what they take. It fits more when all are to be placed.
        """
        classes = np.unique(self.snapshot.task_class[tasks])
        for first in range(0, len(classes), CLASSES_AT_ONCE):
            some = classes[first : first + CLASSES_AT_ONCE]
            mine = tasks[np.isin(self.snapshot.task_class[tasks], some)] if len(some) < len(classes) else tasks
            self._turn(mine, within, largest_first)

    def take_back(self, tasks: I64) -> None:
        """Undoes the placements of `tasks` (K,); those that have none are passed over."""
        tasks = tasks[self.node_of[tasks] >= 0]
        cls, node = self.snapshot.task_class[tasks], self.node_of[tasks]
        nodes = len(self._free)
        pairs, counts = np.unique(cls * nodes + node, return_counts=True)
        for c in np.unique(cls).tolist():
            of_class = pairs // nodes == c
            where, count = pairs[of_class] % nodes, counts[of_class]
            self._free[where] += count[:, None] * self.snapshot.requests[c]
            self._running[where] -= count
            self._tell_neighbours(c, where, -count)
        self.node_of[tasks] = -1

    def withhold(self, tasks: I64) -> None:
        """Turns the placements of `tasks` (K,) into mere claims: their room stays taken, but nobody is placed."""
        free, running = self._free.copy(), self._running.copy()
        self.take_back(tasks)
        self._free, self._running = free, running

    def room_for(self, tasks: I64, within: Bools | None = None, *, empty: bool = False) -> tuple[I64, I64]:
        """(C',) classes of `tasks` and (C', N) how many tasks of each class each node could take alone.

        empty: if no other task were there."""
        snapshot = self.snapshot
        classes, counts = np.unique(snapshot.task_class[tasks], return_counts=True)
        suitable = snapshot.suitable[classes] if within is None else snapshot.suitable[classes] & within
        free = snapshot.allocatable if empty else self._free
        slots = task_slots(free, snapshot.requests[classes], suitable, counts)
        for i, c in enumerate(classes.tolist()):
            if snapshot.peers.concerns(c) and not empty:
                slots[i] = np.where(snapshot.peers.allowed(c), slots[i], 0)
        return classes, slots

    def prices_of_all(self) -> I64:
        """(C, N) what the first task of each class to go to a node costs there; flat if there are too many classes."""
        shape = self.snapshot.suitable.shape
        if shape[0] > CLASSES_AT_ONCE:
            return np.zeros(shape, np.int64)
        look = self._look(np.arange(len(self.snapshot.tasks)), None)
        prices = self._with_preferences(look, self._price(look.view))
        slot = np.broadcast_to(prices.slot, (shape[1], len(look.view.slot_offsets)))[:, 0]
        return np.broadcast_to(prices.place, shape) + slot

    def emptiest_first(self) -> I64:
        """(N,) the nodes by how many tasks they have."""
        return np.argsort(self._running, kind="stable")

    def place_first_fit(self, task: int, order: I64) -> None:
        """Places one task on the first node of `order` (N,) that takes it, if any does."""
        snapshot, c = self.snapshot, int(self.snapshot.task_class[task])
        request = snapshot.requests[c]
        needs = np.flatnonzero(request)
        fits = snapshot.suitable[c] & np.greater_equal(self._free[:, needs], request[needs]).all(axis=1)
        if snapshot.peers.concerns(c):
            fits &= snapshot.peers.allowed(c)
        for node in order[fits[order]][:1].tolist():
            if self._settle(c, np.array([node]), np.array([1])).any():
                self.node_of[task] = node
                self._batch_of[task] = self._batches
                self._free[node] -= request
                self._running[node] += 1

    def _turn(self, tasks: I64, within: Bools | None, largest_first: bool) -> None:
        solves_left = FLOWS_PER_TURN
        while True:
            look = self._look(tasks[self.node_of[tasks] < 0], within)
            self._lap("feasibility")
            if not len(look.tasks):
                return
            prices, on_turn = self._price(look.view), look.tasks
            if prices.turn is not None:
                on_turn = _first_in_turn(look, prices.turn)
                look = self._look(on_turn, within)
                prices = replace(self._price(look.view), turn=prices.turn)
            prices = self._with_preferences(look, prices)
            self._lap("price")
            if solves_left == 0 or not self._flow_step(look, prices, largest_first):
                self._fill(look, prices)
                self._lap("fit")
                if prices.turn is None:
                    return
                tasks, solves_left = np.setdiff1d(tasks, on_turn), FLOWS_PER_TURN + 1
            solves_left -= 1

    def _look(self, tasks: I64, within: Bools | None) -> "_Look":
        """What there is for `tasks` (K,), ascending, as things stand."""
        snapshot = self.snapshot
        classes, task_class = np.unique(snapshot.task_class[tasks], return_inverse=True)
        requests = snapshot.requests[classes]
        waiting = np.bincount(task_class, minlength=len(classes))
        suitable = snapshot.suitable[classes] if within is None else snapshot.suitable[classes] & within
        slots = task_slots(self._free, requests, suitable, waiting)
        # together a node is sent no more than it could take of the smallest class alone
        depth, limits = slots.max(axis=0, initial=0), {}
        for i, c in enumerate(classes.tolist()):
            if snapshot.peers.concerns(c):
                slots[i], limits[i] = snapshot.peers.limit(c, slots[i], int(waiting[i]))
            if slots[i].any():
                wishes = snapshot.preferences.limits(c, slots[i], int(waiting[i]))
                if wishes:
                    limits[i] = [*limits.get(i, ()), *wishes]
        depth = np.minimum(depth, slots.sum(axis=0))
        hopeful = (slots.max(axis=1, initial=0) > 0)[task_class]
        tasks, task_class = tasks[hopeful], task_class[hopeful]
        view = View(
            resources=snapshot.resources,
            requests=_read_only(requests),
            priority=_read_only(snapshot.priority[classes]),
            waiting=_read_only(waiting),
            allocatable=_read_only(snapshot.allocatable),
            free=_read_only(self._free.copy()),
            running=_read_only(self._running.copy()),
            slot_offsets=_read_only(slot_offsets(len(tasks), depth)),
            task_class=_read_only(task_class),
            task_age_us=_read_only(snapshot.task_age_us[tasks]),
            depth=_read_only(depth),
            expected_us=_read_only(snapshot.expected_us[classes]),
            measured_load=self._measured_load(),
            measured_usage=self._reading.usage,
            traits=tuple(snapshot.census.traits[c] for c in classes.tolist()),
            surroundings=snapshot.census,
        )
        return _Look(view, Room(slots, depth, limits), suitable, classes, tasks)

    def _measured_load(self) -> I64 | None:
        """(N, R) the load at the start and the requests of what was placed since; None: requests say it all."""
        load = self._reading.load
        return None if load is None else _read_only(load + (self.snapshot.free - self._free))

    def _with_preferences(self, look: "_Look", prices: Prices) -> Prices:
        """The policy's prices and, on top, what each class's wishes make of each node."""
        slots = look.room.slots
        wishes = {
            i: costs
            for i, c in enumerate(look.classes.tolist())
            if (costs := self.snapshot.preferences.costs(c, slots[i] > 0)) is not None
        }
        if not wishes:
            return prices
        place = np.broadcast_to(prices.place, slots.shape).copy()
        for i, costs in wishes.items():
            place[i] += costs
        return replace(prices, place=place)

    def _flow_step(self, look: "_Look", prices: Prices, largest_first: bool) -> bool:
        """One network: builds, solves, keeps what fits. False if it got nowhere."""
        view = look.view
        room = look.room if prices.most is None else shallower(look.room, prices.most, len(look.tasks))
        network = build(_with_enough(room, prices), prices, view.slot_offsets, view.task_class)
        self._lap("build")
        solution = self._solve(network)
        self._lap("solve")
        if solution.status is not Status.OPTIMAL:
            return False
        wanted = deal(network, solution.flow, fill=prices.fill)
        self._lap("decode")
        # worth grows with the time waited, so that in the end no task is too large for its worth
        minutes = view.task_age_us / 60e6
        value = np.ones(len(view.requests))
        np.maximum.at(value, view.task_class, prices.wait * (1.0 + minutes))
        fitting = accept(
            wanted,
            view.requests,
            self._free,
            view.priority,
            None if largest_first else value,
            lambda i, *where: self._settle(int(look.classes[i]), *where),
        )
        self._assign(look, fitting, _chosen(network, solution.flow, view.task_class, prices.wait))
        self._lap("fit")
        return len(fitting.cls) > 0

    def _settle(self, c: int, node: I64, count: I64) -> I64:
        """How many of the count[i] tasks of class c on node[i] other tasks allow; these are then counted as there."""
        self._batches += 1
        self._batch_of_class[c] = self._batches
        count = self.snapshot.peers.trim(c, node, count)
        there = count > 0
        self._tell_neighbours(c, node[there], count[there])
        return count

    def _tell_neighbours(self, c: int, node: I64, count: I64) -> None:
        self.snapshot.peers.add(c, node, count)
        self.snapshot.preferences.add(c, node, count)
        self.snapshot.census.add(c, node, count)

    def _assign(self, look: "_Look", fitting: Allotment, candidates: I64) -> None:
        """Gives the places to the oldest of the candidates (positions in look.tasks, by class, oldest first)."""
        places = np.bincount(fitting.cls, fitting.count).astype(np.int64)
        start = np.searchsorted(look.view.task_class[candidates], np.arange(len(places)))
        taken = look.tasks[candidates[np.repeat(start, places) + run_positions(places)]]
        self.node_of[taken] = np.repeat(fitting.node, fitting.count)
        self._batch_of[taken] = np.repeat(self._batch_of_class[look.classes[: len(places)]], places)
        np.add.at(self._running, fitting.node, fitting.count)

    def _fill(self, look: "_Look", prices: Prices) -> None:
        """Places the rest class by class, each on its cheapest nodes first: no optimum, but nothing is left over."""
        peers, nodes = self.snapshot.peers, len(self._free)
        for i in np.unique(look.view.task_class).tolist():
            c = int(look.classes[i])
            mine, request = look.tasks[look.view.task_class == i], look.view.requests[i]
            price = np.broadcast_to(prices.place, look.suitable.shape)[i] + np.broadcast_to(prices.slot[:, 0], (nodes,))
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


@dataclass(frozen=True, slots=True)
class _Look:
    """What one solve sees. Classes of view, room and suitable (C', N) are numbered locally; classes (C',) says which
    they are in the snapshot, tasks (T',) which tasks the view's are."""

    view: View
    room: Room
    suitable: Bools
    classes: I64
    tasks: I64


def _first_in_turn(look: _Look, turn: I64) -> I64:
    """The tasks, ascending, of the classes with the highest priority and, of these, the lowest turn (C',)."""
    classes = np.unique(look.view.task_class)
    priority = look.view.priority[classes]
    classes = classes[priority == priority.max()]
    first = classes[turn[classes] == turn[classes].min()]
    return look.tasks[np.isin(look.view.task_class, first)]


def _with_enough(room: Room, prices: Prices) -> Room:
    """What the policy thinks enough of a class for a node, after what tasks themselves demand and wish."""
    if prices.enough is None or prices.beyond is None:
        return room
    classes, nodes = room.slots.shape
    enough = np.broadcast_to(prices.enough, (classes, nodes))
    domain, most = np.arange(nodes), np.full(nodes, UNLIMITED)
    limits = dict(room.limits)
    for c in np.flatnonzero(prices.beyond).tolist():
        limits[c] = [*limits.get(c, ()), DomainLimit(domain, most, enough[c], int(prices.beyond[c]))]
    return replace(room, limits=limits)


def _read_only(array: I64) -> I64:
    """The same numbers for somebody who must not change them."""
    view = array.view()
    view.flags.writeable = False
    return view


def _chosen(network: PlacementNetwork, flow: I64, task_class: I64, wait: I64) -> I64:
    """Positions of the tasks that the flow places, ascending: of each supply group the oldest."""
    order = np.lexsort((-wait, task_class))  # group after group, as the network numbers them
    sizes = network.group_size
    return np.sort(order[run_positions(sizes) < np.repeat(network.placed_from_groups(flow), sizes)])
