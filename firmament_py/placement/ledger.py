"""The ledger of a round: where tasks have been placed so far, and what that leaves free.

A placement counts in several places: free capacity, the number of tasks on a node, intertask constraints, preferences,
neighbour counts. The ledger keeps all of them in step, and a transaction takes them back together.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from firmament_py.model.arrays import I64, U8, Bools, add_rows, run_positions
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement.reserved_capacity import ReservedCapacity
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.snapshot.snapshot import Snapshot


class Transaction:
    """What is placed or removed within it is as before at its end unless it is committed."""

    def __init__(self, *, hypothetical: bool) -> None:
        self._hypothetical = hypothetical
        self.committed = False

    def commit(self) -> None:
        if self._hypothetical:
            raise RuntimeError("placements on hypothetical capacity cannot be committed")
        self.committed = True


class Ledger:
    """N nodes, R resources, T tasks, C classes of `snapshot`. All amounts are (N, R).

    trial: solves serve to find out what could be placed; a transaction on hypothetical capacity sets it, too.
    """

    def __init__(self, snapshot: Snapshot, *, trial: bool = False) -> None:
        self.snapshot = snapshot
        self.trial = trial
        self.node_of: I64 = np.full(len(snapshot.tasks), -1, np.int64)
        """(T,) node that each task is placed on, -1: none so far."""
        self.placed_by: U8 = np.zeros(len(snapshot.tasks), np.uint8)
        """(T,) PlacedBy of each task; of tasks without a node it means nothing."""
        self.nominated: I64 = snapshot.nominated.copy()
        """(T,) node that is kept for each task, -1: none; of tasks that are placed it means nothing."""
        self.delayed: Bools = np.zeros(len(snapshot.tasks), np.bool_)
        """(T,) tasks that fit, but wait for a node that costs less."""
        self.free: I64 = snapshot.free.copy()
        """What is left, reserved or not; may be below 0."""
        self.running: I64 = snapshot.running.copy()
        """(N,) tasks on each node."""
        self._batch_of = np.zeros(len(snapshot.tasks), np.int64)  # what was placed together, in order
        self._batches = 0
        self._batch_of_class = np.zeros(len(snapshot.classes), np.int64)  # the last of each class
        self._reserved = ReservedCapacity()
        expected = snapshot.expected_us
        self._class_ends_us = np.where(expected > 0, snapshot.now_us + expected, FOREVER)  # (C,)
        self._settle()

    # -- what is left -------------------------------------------------------------------------------------------

    @property
    def pending(self) -> Bools:
        """(T,) tasks that are to be placed: they have no node, and wait neither for quota nor for a node that costs
        less."""
        pending: Bools = (self.node_of < 0) & ~self.delayed & ~self.snapshot.withheld
        return pending

    @property
    def has_reservations(self) -> bool:
        return bool(self._reserved)

    @property
    def horizons(self) -> list[int]:
        """Latest first: tasks that end by the same ones of these times may use the same capacity."""
        return self._reserved.horizons

    @property
    def unreserved(self) -> I64:
        """What is left for tasks that may run forever. Not to be written to."""
        return self._reserved.left_of(self.free, FOREVER)

    def unreserved_for(self, tasks: I64, precedence: int) -> I64:
        """What is left for `tasks` (K,), which may run forever and evict others, with what is reserved for them. Not to
        be written to.

        Reservations for tasks of a lower priority than `precedence` have no effect. One of the same priority keeps what
        is free, but not what evictions release: without the evictors its holders would not get that any sooner. A claim
        of a queue has precedence over all priorities; what is free is kept from it by all reservations, since
        priorities of different queues do not compare. Reservations of tasks that are placed or nominated by now have
        no effect.
        """
        if not self._reserved:
            return self.free
        own = self.snapshot.class_priority[self.snapshot.task_class[tasks]].min(initial=np.iinfo(np.int64).max)
        lower = precedence - 1 if precedence <= own else None
        served = np.flatnonzero((self.node_of >= 0) | (self.nominated >= 0))
        tasks = np.union1d(tasks, served)
        left = self._reserved.left_of(self.free, FOREVER, tasks, lower, evicting=True)
        lacking = np.minimum(self._reserved.left_of(self.free, FOREVER, tasks, precedence, evicting=True), 0)
        return np.maximum(left, lacking)

    def reserved_for(self, tasks: I64) -> list[I64]:
        """Of each reservation for `tasks` (K,), or some of them: the tasks that it is for."""
        return self._reserved.held_by(tasks)

    @property
    def free_less_reserved(self) -> I64:
        """What is left if everything that is reserved is taken; a copy."""
        return self._reserved.subtracted_from(self.free)

    def free_for(self, tasks: I64) -> I64:
        """What is left for all of `tasks` (K,). Not to be written to."""
        return self._reserved.left_of(self.free, int(self.ends_us(tasks).max(initial=0)))

    def ends_us(self, tasks: I64) -> I64:
        """(K,) when `tasks` would end if they began now, microseconds since the epoch."""
        return self._class_ends_us[self.snapshot.task_class[tasks]]

    def usage_of(self, tasks: I64) -> I64:
        """What those of `tasks` (K,) that are placed request on their nodes."""
        placed = tasks[self.node_of[tasks] >= 0]
        used = np.zeros_like(self.snapshot.free)
        add_rows(used, self.node_of[placed], self.snapshot.requests[self.snapshot.task_class[placed]])
        return used

    def within_maximum(self, tasks: I64, *, nominated: bool = False) -> Bools:
        """(K,) which of `tasks` (K,), which have no node, the maximums of their gangs admit: of each gang the first.
        nominated: nominated tasks, of which none is among them, count as placed."""
        quota, of_task = self.snapshot.quota, self.snapshot.task_quota
        limit = of_task[tasks]
        within = limit < 0
        if within.all():
            return within
        there = (self.node_of >= 0) | (nominated & (self.nominated >= 0))
        left = quota - np.bincount(of_task[there & (of_task >= 0)], minlength=len(quota))
        order = np.argsort(limit, kind="stable")
        number = np.empty(len(tasks), np.int64)  # of each task among those of its gang
        number[order] = run_positions(np.unique(limit, return_counts=True)[1])
        within |= number < left[limit]
        return within

    def outcome(self) -> tuple[I64, I64, U8, I64]:
        """Task rows (K,), the node rows (K,) they go to, the steps that placed them (K,), and batches (K,): placed
        together, in ascending order."""
        placed = np.flatnonzero(self.node_of >= 0)
        rows, nodes = self.snapshot.tasks[placed], self.snapshot.nodes[self.node_of[placed]]
        return rows, nodes, self.placed_by[placed], self._batch_of[placed]

    # -- placing ------------------------------------------------------------------------------------------------

    def commit_counts(self, cls: I64, node: I64, count: I64) -> I64:
        """How many of the count[i] tasks of class cls[i] on node[i], each pair once, other tasks allow; these count as
        placed from now on. The caller takes their capacity and assigns tasks. A class with constraints on other tasks,
        or they on it, comes alone."""
        if self.snapshot.intertask.concerned[cls].any():
            count = self.snapshot.intertask.trim(int(cls[0]), node, count)
        self._commit(cls, node, count)
        return count

    def assign(self, tasks: I64, classes: I64, nodes: I64, by: PlacedBy) -> None:
        """Notes that tasks (K,) of classes (K,) are the ones that were committed to nodes (K,)."""
        self.node_of[tasks], self.placed_by[tasks] = nodes, by
        self._batch_of[tasks] = self._batch_of_class[classes]
        self.running += np.bincount(nodes, minlength=len(self.running))

    def place(self, tasks: I64, nodes: I64, by: PlacedBy) -> None:
        """Places `tasks` (K,), which have no node and whose classes have no intertask constraints, on `nodes` (K,),
        which have the capacity."""
        self.node_of[tasks] = nodes
        self.commit_counts(*self._placed(tasks))
        self.assign(tasks, self.snapshot.task_class[tasks], nodes, by)
        self._occupy(tasks, +1)

    def place_one(self, task: int, node: int, by: PlacedBy) -> None:
        """Places a task, which has no node, on one that has the capacity and that other tasks allow."""
        tasks, cls, nodes = np.array([task]), self.snapshot.task_class[[task]], np.array([node])
        self._commit(cls, nodes, np.ones(1, np.int64))
        self.assign(tasks, cls, nodes, by)
        self._occupy(tasks, +1)

    def remove(self, tasks: I64) -> None:
        """Undoes the placements of `tasks` (K,); tasks without one are ignored."""
        self._occupy(tasks, -1)
        cls, nodes, count = self._placed(tasks)
        np.subtract.at(self.running, nodes, count)
        self._count_neighbours(cls, nodes, -count)
        self.node_of[tasks] = -1

    # -- nominations --------------------------------------------------------------------------------------------

    def nominate(self, task: int, node: int) -> None:
        """Keeps what a task without a node requests on `node`, -1: none, and nothing where it was kept before; from now
        on others respect its constraints there."""
        requests = self.snapshot.requests[self.snapshot.task_class[task]]
        if self.nominated[task] >= 0:
            self.free[self.nominated[task]] += requests
        if node >= 0:
            self.free[node] -= requests
        self.nominated[task] = node
        self.snapshot.intertask.nominate(int(self.snapshot.tasks[task]), int(self.snapshot.task_class[task]), node)

    def expect(self, nodes: I64, requests: I64) -> None:
        """Keeps `requests` (K, R) on nodes (K,) for tasks that are to move there."""
        add_rows(self.free, nodes, -requests)

    # -- reservations -------------------------------------------------------------------------------------------

    def reserve(self, starts_us: int, released: I64, demanded: I64, holders: I64) -> int:
        """From now on tasks that end after `starts_us` must leave `demanded` of what will be free then, other
        reservations included, for the tasks `holders` (K,): what is free now, and what is `released` until then (N, R).
        Returns the number by which to release it."""
        priority = int(self.snapshot.class_priority[self.snapshot.task_class[holders]].min())
        return self._reserved.reserve(starts_us, self.free, released, demanded, holders, priority)

    def release(self, number: int) -> None:
        """The reservation of this number is no more."""
        self._reserved.release(number)

    @contextmanager
    def limited_to(self, tasks: I64) -> Iterator[None]:
        """Within, only the capacity that all of `tasks` (K,), which have no node, may use is free. Nothing is removed
        within."""
        free, self.free = self.free, self.free_for(tasks).copy()
        try:
            yield
        finally:
            self.free = free
            self._occupy(tasks, +1)

    @contextmanager
    def transaction(self, free: I64 | None = None) -> Iterator[Transaction]:
        """What is placed within is taken back at the end, and what is removed is put back, unless it is committed.

        free: a hypothesis, within which this is free and nothing reserved; what is placed on it cannot be committed.
        """
        node_before, by_before, batch_before = self.node_of.copy(), self.placed_by.copy(), self._batch_of.copy()
        outside = (self.free, self._reserved, self.trial)
        if free is not None:
            self.free, self._reserved, self.trial = free.copy(), ReservedCapacity(), True
        transaction = Transaction(hypothetical=free is not None)
        try:
            yield transaction
        finally:
            if not transaction.committed:
                changed = np.flatnonzero(self.node_of != node_before)
                self.remove(changed)
                self._put_back(changed, node_before[changed])
                self.placed_by, self._batch_of = by_before, batch_before
            if free is not None:
                self.free, self._reserved, self.trial = outside

    def _settle(self) -> None:
        """Places the tasks that the snapshot has settled: no other task forbids that."""
        (tasks,) = (self.snapshot.settled >= 0).nonzero()
        if len(tasks):
            self.node_of[tasks] = self.snapshot.settled[tasks]
            self._commit(*self._placed(tasks))
            self.assign(tasks, self.snapshot.task_class[tasks], self.node_of[tasks], PlacedBy.REQUIRED_NODE)
            self._occupy(tasks, +1)

    def _commit(self, cls: I64, node: I64, count: I64) -> None:
        """A batch: count[i] tasks of class cls[i] on node[i] count as placed from now on."""
        self._batches += 1
        self._batch_of_class[cls] = self._batches
        placed = count > 0
        self._count_neighbours(cls[placed], node[placed], count[placed])

    def _put_back(self, tasks: I64, nodes: I64) -> None:
        """Undoes the removal of `tasks` (K,) from nodes (K,), -1: had none."""
        self.node_of[tasks] = nodes
        cls, at, count = self._placed(tasks)
        np.add.at(self.running, at, count)
        self._count_neighbours(cls, at, count)
        self._occupy(tasks, +1)

    def _count_neighbours(self, cls: I64, node: I64, count: I64) -> None:
        self.snapshot.intertask.add(cls, node, count)
        self.snapshot.preferences.add(cls, node, count)
        self.snapshot.neighbour_counts.add(cls, node, count)

    def _occupy(self, tasks: I64, sign: int) -> None:
        """Takes (+1) or gives back (-1) the capacity of those of `tasks` (K,) that are placed."""
        cls, nodes, count = self._placed(tasks)
        used = sign * count[:, None] * self.snapshot.requests[cls]
        add_rows(self.free, nodes, -used)
        self._reserved.occupy(nodes, used, self._class_ends_us[cls])

    def _placed(self, tasks: I64) -> tuple[I64, I64, I64]:
        """Of those of `tasks` (K,) that are placed: classes (P,) and nodes (P,), each pair once, and how many of the
        class are on the node (P,)."""
        tasks, nodes = tasks[self.node_of[tasks] >= 0], max(len(self.free), 1)
        pairs, count = np.unique(self.snapshot.task_class[tasks] * nodes + self.node_of[tasks], return_counts=True)
        return pairs // nodes, pairs % nodes, count
