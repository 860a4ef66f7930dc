"""From a snapshot to placements: price > build > solve > deal > fit, again and again until nothing more fits.

A flow has one commodity, so tasks that a flow sends to one node can be too much for it together. Placing
therefore solves, keeps the most valuable part that fits, and solves again for the rest with what is left, until
a solve finds nothing to place. Every solve that finds something places at least one task, and nothing placed is
taken back, so it ends; each node's resources are counted exactly before anything is kept.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from firmament_py.arrays import I64, run_positions
from firmament_py.extract import Allotment, deal
from firmament_py.feasibility import task_slots
from firmament_py.fit import accept
from firmament_py.network import PlacementNetwork, build, slot_offsets
from firmament_py.policy import Prices, View
from firmament_py.room import Room
from firmament_py.snapshot import Snapshot
from firmament_py.solver import Solution, Status

CLASSES_AT_ONCE = 256
"""More classes than this are placed in turns, highest priority first: it bounds a round's memory."""

FLOWS_PER_TURN = 12
"""After so many solves of one turn the rest is placed class by class: bounds a round whose nodes fill badly."""


class Placing:
    """What is left of nodes and tasks while flows are turned into placements.

    price and solve are called for each network; lap(stage) is called after each stage of work.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        price: Callable[[View], Prices],
        solve: Callable[[PlacementNetwork], Solution],
        lap: Callable[[str], None],
    ) -> None:
        self._snapshot = snapshot
        self._price = price
        self._solve = solve
        self._lap = lap
        self._free = snapshot.free.copy()
        self._running = snapshot.running.copy()
        self._node_of = np.full(len(snapshot.tasks), -1, np.int64)  # node that task t is placed on
        self._batch_of = np.zeros(len(snapshot.tasks), np.int64)  # what was placed together, in order
        self._batches = 0
        self._batch_of_class = np.zeros(len(snapshot.classes), np.int64)  # the last of each class

    def run(self) -> tuple[I64, I64, I64]:
        """Task rows (K,), the node rows (K,) they go to, and batches (K,): placed together, in ascending order."""
        classes = len(self._snapshot.classes)
        for first in range(0, classes, CLASSES_AT_ONCE):
            self._turn(first, min(first + CLASSES_AT_ONCE, classes))
        placed = np.flatnonzero(self._node_of >= 0)
        return self._snapshot.tasks[placed], self._snapshot.nodes[self._node_of[placed]], self._batch_of[placed]

    def _turn(self, first: int, last: int) -> None:
        """Places what can be placed of classes first .. last - 1."""
        for solves_left in range(FLOWS_PER_TURN, -1, -1):
            view, room, tasks = self._look(first, last)
            self._lap("feasibility")
            if not len(tasks):
                return
            prices = self._with_preferences(first, self._price(view), view.waiting, room.slots)
            self._lap("price")
            if solves_left == 0 or not self._flow_step(first, view, room, tasks, prices):
                self._fill(first, view, tasks, prices)
                self._lap("fit")
                return

    def _look(self, first: int, last: int) -> tuple[View, Room, I64]:
        """The view of what is left, the room there is, and the tasks (T,) of the view: those with a slot somewhere."""
        snapshot = self._snapshot
        low, high = np.searchsorted(snapshot.task_class, (first, last)).tolist()
        tasks = low + np.flatnonzero(self._node_of[low:high] < 0)
        requests = snapshot.requests[first:last]
        waiting = np.bincount(snapshot.task_class[tasks] - first, minlength=last - first)
        slots = task_slots(self._free, requests, snapshot.suitable[first:last], waiting)
        # together a node is sent no more than it could take of the smallest class alone
        depth, limits = slots.max(axis=0, initial=0), {}
        for c in range(last - first):
            if waiting[c] and snapshot.peers.concerns(first + c):
                slots[c], limits[c] = snapshot.peers.limit(first + c, slots[c], int(waiting[c]))
            if waiting[c] and slots[c].any():
                wishes = snapshot.preferences.limits(first + c, slots[c], int(waiting[c]))
                if wishes:
                    limits[c] = [*limits.get(c, ()), *wishes]
        depth = np.minimum(depth, slots.sum(axis=0))
        tasks = tasks[(slots.max(axis=1, initial=0) > 0)[snapshot.task_class[tasks] - first]]
        view = View(
            resources=snapshot.resources,
            requests=requests,
            priority=snapshot.priority[first:last],
            waiting=waiting,
            allocatable=snapshot.allocatable,
            free=self._free.copy(),
            running=self._running.copy(),
            slot_offsets=slot_offsets(len(tasks), depth),
            task_class=snapshot.task_class[tasks] - first,
            task_age_us=snapshot.task_age_us[tasks],
        )
        return view, Room(slots, depth, limits), tasks

    def _with_preferences(self, first: int, prices: Prices, waiting: I64, slots: I64) -> Prices:
        """The policy's prices and, on top, what each class's wishes make of each node."""
        wishes = {
            c: costs
            for c in np.flatnonzero(waiting).tolist()
            if (costs := self._snapshot.preferences.costs(first + c, slots[c] > 0)) is not None
        }
        if not wishes:
            return prices
        place = np.broadcast_to(prices.place, slots.shape).copy()
        for c, costs in wishes.items():
            place[c] += costs
        return replace(prices, place=place)

    def _flow_step(self, first: int, view: View, room: Room, tasks: I64, prices: Prices) -> bool:
        """One network: builds, solves, keeps what fits. False if it got nowhere."""
        network = build(room, prices, view.slot_offsets, view.task_class)
        self._lap("build")
        solution = self._solve(network)
        self._lap("solve")
        if solution.status is not Status.OPTIMAL:
            return False
        wanted = deal(network, solution.flow)
        self._lap("decode")
        value = np.ones(len(view.requests))
        np.maximum.at(value, view.task_class, prices.wait.astype(np.float64))
        fitting = accept(
            wanted, view.requests, self._free, view.priority, value, lambda c, *where: self._settle(first + c, *where)
        )
        self._assign(
            first, fitting, view.task_class, tasks, _chosen(network, solution.flow, view.task_class, prices.wait)
        )
        self._lap("fit")
        return len(fitting.cls) > 0

    def _settle(self, c: int, node: I64, count: I64) -> I64:
        """How many of the count[i] tasks of class c on node[i] other tasks allow; these are then counted as there."""
        self._batches += 1
        self._batch_of_class[c] = self._batches
        count = self._snapshot.peers.trim(c, node, count)
        there = count > 0
        self._snapshot.peers.add(c, node[there], count[there])
        self._snapshot.preferences.add(c, node[there], count[there])
        return count

    def _assign(self, first: int, fitting: Allotment, task_class: I64, tasks: I64, candidates: I64) -> None:
        """Gives the places to the oldest of the candidates (positions in `tasks`, by class, oldest first)."""
        places = np.bincount(fitting.cls, fitting.count).astype(np.int64)
        start = np.searchsorted(task_class[candidates], np.arange(len(places)))
        taken = candidates[np.repeat(start, places) + run_positions(places)]
        self._node_of[tasks[taken]] = np.repeat(fitting.node, fitting.count)
        self._batch_of[tasks[taken]] = np.repeat(self._batch_of_class[first : first + len(places)], places)
        np.add.at(self._running, fitting.node, fitting.count)

    def _fill(self, first: int, view: View, tasks: I64, prices: Prices) -> None:
        """Places the rest class by class, each on its cheapest nodes first: no optimum, but nothing is left over."""
        snapshot, nodes = self._snapshot, len(self._free)
        for c in np.unique(view.task_class).tolist():
            mine, request = tasks[view.task_class == c], view.requests[c]
            price = np.broadcast_to(prices.place, (len(view.requests), nodes))[c] + np.broadcast_to(
                prices.slot[:, 0], (nodes,)
            )
            order = np.lexsort((np.arange(nodes), price))
            while len(mine):
                suitable = snapshot.suitable[first + c : first + c + 1]
                room = task_slots(self._free, request[None], suitable, np.array([len(mine)]))[0]
                if snapshot.peers.concerns(first + c):
                    room, _ = snapshot.peers.limit(first + c, room, len(mine))
                    room = np.where(snapshot.peers.allowed(first + c), room, 0)  # whichever of these are taken
                count = np.diff(np.minimum(np.cumsum(room[order]), len(mine)), prepend=0)
                count = self._settle(first + c, order, count)
                placed = int(count.sum())
                if not placed:
                    break
                self._node_of[mine[:placed]] = np.repeat(order, count)
                self._batch_of[mine[:placed]] = self._batches
                self._free[order] -= count[:, None] * request
                self._running[order] += count
                mine = mine[placed:]


def _chosen(network: PlacementNetwork, flow: I64, task_class: I64, wait: I64) -> I64:
    """Positions of the tasks that the flow places, ascending: of each supply group the oldest."""
    order = np.lexsort((-wait, task_class))  # group after group, as the network numbers them
    sizes = network.group_size
    return np.sort(order[run_positions(sizes) < np.repeat(network.placed_from_groups(flow), sizes)])
