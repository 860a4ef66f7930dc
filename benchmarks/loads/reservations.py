"""A nearly full cluster of GPU nodes, large gangs that do not fit, and a check of the reservation for the first.

The check replays the ends of the running tasks in order. It reads only the generated input and the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.loads.gangs import GPU, START_US
from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.events import ClassDefined, Event, GangObserved, NodeObserved, TasksObserved

_SECOND_US = 1_000_000
_LENGTHS_S = tuple(600 * k for k in range(1, 41))
"""Durations of the running tasks: 10 minutes to 6 hours and 40 minutes."""

_SHORT_S = 60
_WAITED_US = 3600 * _SECOND_US
RACK = "rack"


@dataclass(frozen=True, slots=True)
class ReservationSpec:
    """fill: share of the GPUs that running tasks of one GPU use. ends_known: whether these have expected durations.
    Gangs have `size` tasks of `each` GPUs. racks: each gang has to fit in one of so many racks; 0: it may run anywhere.
    singles: younger pending tasks of one GPU; half of them end in a minute, half have no expected duration."""

    nodes: int
    size: int
    fill: float = 0.95
    gpus: int = 8
    each: int = 8
    gangs: int = 3
    racks: int = 0
    ends_known: bool = True
    singles: int = 200
    seed: int = 0


class ReservationLoad:
    """The events. N nodes, K running tasks: uids 1 to K, then gang after gang, then the singles."""

    def __init__(self, spec: ReservationSpec) -> None:
        self.spec = spec
        rng = np.random.default_rng(spec.seed)
        count = int(spec.fill * spec.nodes * spec.gpus)
        self.node: I64 = rng.permutation(spec.nodes * spec.gpus)[:count] // spec.gpus  # (K,)
        self._length: I64 = rng.integers(0, len(_LENGTHS_S), count)
        length_us = _SECOND_US * np.array(_LENGTHS_S)[self._length]
        self._started_us: I64 = START_US - (rng.random(count) * length_us).astype(np.int64)
        self.end_us: I64 = self._started_us + length_us
        self.rack: I64 = np.arange(spec.nodes) % max(spec.racks, 1)  # (N,)
        self.running, self._members = count, spec.gangs * spec.size

    def events(self) -> list[Event]:
        """Nodes, classes, gangs and tasks."""
        spec, lengths = self.spec, len(_LENGTHS_S)
        names = [f"node-{i:05d}" for i in range(spec.nodes)]
        labels = [{RACK: f"rack-{r:03d}"} if spec.racks else {} for r in self.rack.tolist()]
        topology = RACK if spec.racks else ""
        classes = [
            ClassDefined(k + 1, {GPU: 1}, expected_us=_SECOND_US * seconds * spec.ends_known, name=f"for-{seconds}-s")
            for k, seconds in enumerate(_LENGTHS_S)
        ]
        short, endless, member = lengths + 1, lengths + 2, lengths + 3
        return [
            *(
                NodeObserved(name, name, {"pods": 110, GPU: spec.gpus}, label)
                for name, label in zip(names, labels, strict=True)
            ),
            *classes,
            ClassDefined(short, {GPU: 1}, expected_us=_SECOND_US * _SHORT_S, name="short"),
            ClassDefined(endless, {GPU: 1}, name="endless"),
            ClassDefined(member, {GPU: spec.each}, name="member"),
            *(
                GangObserved(g + 1, spec.size, START_US - _WAITED_US + g, (), topology, bool(topology), f"gang-{g}")
                for g in range(spec.gangs)
            ),
            TasksObserved(
                uid=np.arange(1, self.running + 1).astype(np.uint64),
                class_id=(self._length + 1).astype(np.uint64),
                job_id=np.zeros(self.running, np.uint64),
                created_us=self._started_us,
                node=self.node + 1,
                names=[""] * self.running,
                nodes=tuple(names),
                started_us=self._started_us,
            ),
            self._waiting(
                self.running + 1,
                np.full(self._members, member),
                np.repeat(np.arange(spec.gangs) + 1, spec.size),
                START_US - _WAITED_US,
            ),
            self._waiting(
                self.running + self._members + 1,
                np.where(np.arange(spec.singles) % 2, endless, short),
                np.zeros(spec.singles, np.int64),
                START_US,
            ),
        ]

    def _waiting(self, first: int, classes: I64, gangs: I64, created_us: int) -> TasksObserved:
        count = len(classes)
        return TasksObserved(
            uid=np.arange(first, first + count).astype(np.uint64),
            class_id=classes.astype(np.uint64),
            job_id=gangs.astype(np.uint64),
            created_us=np.full(count, created_us),
            node=np.zeros(count, np.int64),
            names=[""] * count,
            gang_id=gangs.astype(np.uint64),
        )

    def members(self, uids: U64) -> int:
        """The number of these tasks that are members of gangs."""
        position = uids.astype(np.int64) - self.running
        return int(((position > 0) & (position <= self._members)).sum())

    def _is_endless(self, uids: U64) -> Bools:
        """(K',) which of the singles `uids` have no expected duration."""
        return np.equal((uids.astype(np.int64) - self.running - self._members - 1) % 2, 1)

    def over_committed(self, nodes: I64) -> int:
        """The number of nodes over-committed by the running tasks and one task of one GPU on each of `nodes` (K',)."""
        used = np.bincount(np.r_[self.node, nodes], minlength=self.spec.nodes)
        return int((used > self.spec.gpus).sum())

    def start_us(self, uids: U64, nodes: I64, now_us: int) -> int:
        """When the first gang fits if singles `uids` (K',) run on `nodes` (K',) from `now_us` on, all tasks end as
        expected, and no others arrive; 0: never."""
        spec, endless = self.spec, self._is_endless(uids)
        free = spec.gpus - np.bincount(np.r_[self.node, nodes], minlength=spec.nodes)
        slots = np.bincount(self.rack, free // spec.each, minlength=max(spec.racks, 1))
        ends = list(zip(self.end_us.tolist(), self.node.tolist(), strict=True)) if spec.ends_known else []
        ends += [(now_us + _SHORT_S * _SECOND_US, node) for node in nodes[~endless].tolist()]
        for end, node in sorted(ends):
            slots[self.rack[node]] -= free[node] // spec.each
            free[node] += 1
            slots[self.rack[node]] += free[node] // spec.each
            if slots[self.rack[node]] >= spec.size:
                return max(int(end), now_us)
        return 0
