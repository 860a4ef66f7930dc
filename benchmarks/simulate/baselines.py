"""Two simple schedulers to compare with, on the same events. They place one task at a time and never reconsider.

first-fit         tasks in order of submission, each on the first node where it fits; a task that fits nowhere is
                  skipped and does not block the queue
least-allocated   as kube-scheduler does by default: by priority, then age; each on the node with the lowest mean
                  requested share of cpu and memory afterwards

A gang is tried at the position of its first member, and is placed completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks.simulate.service import Round
from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.events import (
    ClassDefined,
    Event,
    GangObserved,
    NodeObserved,
    NodeRemoved,
    PlacementRejected,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.resources import TASK_SLOTS

Score = Callable[[I64, I64, Sequence[str]], F64]
"""Scores (K,) from the free amounts after the placement (K, R), the allocatable amounts (K, R) and the names of the R
resources. The highest score is chosen, the first of equals."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending task."""

    uid: int
    cls: int
    gang: int
    created_us: int


class OneByOne:
    """A scheduler of one task at a time. by_priority: order by priority before age. score None: the first node."""

    now_us = 0

    def __init__(self, name: str, score: Score | None, *, by_priority: bool) -> None:
        self.name, self.counts_links, self.reserve_after_us = name, False, None
        self._score, self._by_priority = score, by_priority
        self._resources: list[str] = [TASK_SLOTS]
        self._classes: dict[int, ClassDefined] = {}
        self._minimum: dict[int, int] = {}
        self._row: dict[str, int] = {}
        self._nodes: list[NodeObserved] = []
        self._free: I64 = np.zeros((0, 1), np.int64)
        self._offer: I64 = np.zeros((0, 1), np.int64)
        self._present: Bools = np.zeros(0, np.bool_)
        self._waiting: dict[int, Waiting] = {}
        self._placed: dict[int, tuple[Waiting, int]] = {}
        self._placed_of_gang: dict[int, int] = {}  # placed members
        self._matching: dict[int, Bools] = {}
        self._requests: dict[int, I64] = {}

    def apply(self, events: Sequence[Event]) -> None:
        """Applies events of a replay."""
        for event in events:
            match event:
                case ClassDefined():
                    if event.id not in self._classes:
                        self._classes[event.id] = event
                        self._columns(event.requests)
                case GangObserved():
                    self._minimum[event.id] = event.minimum
                case NodeObserved():
                    self._observe_node(event)
                case NodeRemoved():
                    self._present[self._row[event.id]] = False
                case TasksRemoved():
                    for uid in event.uid.tolist():
                        self._waiting.pop(uid, None)
                        self._release(uid)
                case PlacementRejected():
                    task = self._release(event.uid)
                    if task is not None:
                        self._waiting[task.uid] = task
                case TasksObserved():
                    self._observe_tasks(event)

    def round(self, now_us: int) -> Round | None:
        """Tries every pending task once, in order."""
        began = perf_counter()
        placed: list[tuple[int, int]] = []
        unplaceable: set[int] = set()
        tried: set[int] = set()
        for task in sorted(self._waiting.values(), key=self._order):
            if task.gang:
                if task.gang not in tried:
                    tried.add(task.gang)
                    placed += self._place_gang(task.gang)
            elif task.cls not in unplaceable:
                node = self._place(task)
                if node < 0:
                    unplaceable.add(task.cls)  # no capacity becomes free within a round
                else:
                    placed.append((task.uid, node))
        return self._round(placed, began)

    def _round(self, placed: list[tuple[int, int]], began: float) -> Round:
        for uid, _ in placed:
            del self._waiting[uid]
        uids = np.array([uid for uid, _ in placed], np.uint64)
        return Round(uids, [self._nodes[n].id for _, n in placed], perf_counter() - began)

    def close(self) -> None:
        """Nothing to release."""

    def _order(self, task: Waiting) -> tuple[int, int, int]:
        priority = self._classes[task.cls].priority if self._by_priority else 0
        return -priority, task.created_us, task.uid

    def _place_gang(self, gang: int) -> list[tuple[int, int]]:
        """Places all members that fit, if they are at least the minimum."""
        members = sorted((t for t in self._waiting.values() if t.gang == gang), key=self._order)
        lacking = self._minimum[gang] - self._placed_of_gang.get(gang, 0)
        if len({t.cls for t in members}) == 1 and self._slots(members[0].cls) < lacking:
            return []
        found = [(task, node) for task in members if (node := self._place(task)) >= 0]
        if len(found) < lacking:
            for task, _ in found:
                self._release(task.uid)
            return []
        return [(task.uid, node) for task, node in found]

    def _place(self, task: Waiting) -> int:
        """Places a task; returns its node, -1 if it fits on none."""
        request = self._request(task.cls)
        rows = np.flatnonzero(self._present & self._suitable(task.cls) & (self._free >= request).all(axis=1))
        if not len(rows):
            return -1
        chosen = 0
        if self._score is not None:
            chosen = int(np.argmax(self._score(self._free[rows] - request, self._offer[rows], self._resources)))
        node = int(rows[chosen])
        self._allocate(task, node)
        return node

    def _allocate(self, task: Waiting, node: int) -> None:
        self._free[node] -= self._request(task.cls)
        self._placed[task.uid] = task, node
        self._placed_of_gang[task.gang] = self._placed_of_gang.get(task.gang, 0) + 1

    def _release(self, uid: int) -> Waiting | None:
        placement = self._placed.pop(uid, None)
        if placement is None:
            return None
        task, node = placement
        self._free[node] += self._request(task.cls)
        self._placed_of_gang[task.gang] -= 1
        return task

    def _slots(self, cls: int) -> int:
        """The number of tasks of a class that fit now."""
        request = self._request(cls)
        free = self._free[self._present & self._suitable(cls)]
        needs = np.flatnonzero(request)
        return int(np.maximum(free[:, needs] // request[needs], 0).min(axis=1).sum())

    def _request(self, cls: int) -> I64:
        known = self._requests.get(cls)
        if known is None or len(known) != len(self._resources):
            amounts = {**self._classes[cls].requests, TASK_SLOTS: 1}
            known = np.array([amounts.get(name, 0) for name in self._resources], np.int64)
            self._requests[cls] = known
        return known

    def _suitable(self, cls: int) -> Bools:
        if cls not in self._matching:
            selector = self._classes[cls].demand.selector
            self._matching[cls] = np.array([all(r.matches(n.labels) for r in selector) for n in self._nodes], np.bool_)
        return self._matching[cls]

    def _observe_node(self, node: NodeObserved) -> None:
        self._columns(node.allocatable)
        row = self._row.setdefault(node.id, len(self._nodes))
        if row == len(self._nodes):
            self._nodes.append(node)
            self._free, self._offer = (np.r_[m, np.zeros((1, m.shape[1]), np.int64)] for m in (self._free, self._offer))
            self._present = np.r_[self._present, False]
            self._matching.clear()
        elif self._nodes[row].labels != node.labels:
            self._matching.clear()
        self._nodes[row] = node
        offer = np.array([node.allocatable.get(name, 0) for name in self._resources], np.int64)
        self._free[row] += offer - self._offer[row]
        self._offer[row] = offer
        self._present[row] = True

    def _observe_tasks(self, event: TasksObserved) -> None:
        gangs = event.gang_id if event.gang_id is not None else np.zeros(len(event.uid), np.uint64)
        columns = (event.uid, event.class_id, gangs, event.created_us, event.node)
        for uid, cls, gang, created_us, node in zip(*(c.tolist() for c in columns), strict=True):
            if not node and uid not in self._placed:
                self._waiting[uid] = Waiting(uid, cls, gang, created_us)

    def _columns(self, amounts: Mapping[str, int]) -> None:
        new = [name for name in amounts if name not in self._resources]
        if new:
            self._resources += new
            pad = np.zeros((len(self._nodes), len(new)), np.int64)
            self._free, self._offer = np.c_[self._free, pad], np.c_[self._offer, pad]


def _least_allocated(left: I64, offer: I64, resources: Sequence[str]) -> F64:
    columns = [i for i, name in enumerate(resources) if name in ("cpu", "memory")]
    shares: F64 = left[:, columns] / np.maximum(offer[:, columns], 1)
    return np.asarray(shares.mean(axis=1), np.float64)


def first_fit() -> OneByOne:
    """The baseline first-fit."""
    return OneByOne("first-fit", None, by_priority=False)


def least_allocated() -> OneByOne:
    """The baseline least-allocated."""
    return OneByOne("least-allocated", _least_allocated, by_priority=True)


BASELINES: dict[str, Callable[[], OneByOne]] = {"first-fit": first_fit, "least-allocated": least_allocated}
