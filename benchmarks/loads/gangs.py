"""Gangs on GPU nodes, a check of their placement, and two simple orderings to compare with.

As in loads/engine.py the check reads only the generated input and the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import ClassDefined, GangObserved, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
GPU = "nvidia.com/gpu"
_CPU_PER_GPU = 8_000


@dataclass(frozen=True, slots=True)
class GangSpec:
    """Sizes of a load. Each gang has `min_size` to `max_size` tasks of one GPU each; if `mixed`, of 1, 2, 4 or 8."""

    nodes: int
    gangs: int
    min_size: int = 4
    max_size: int = 64
    gpus: int = 8
    mixed: bool = False
    seed: int = 0


class GangLoad:
    """The events of a load. G gangs, the oldest first; N nodes."""

    def __init__(self, spec: GangSpec) -> None:
        self.spec = spec
        rng = np.random.default_rng(spec.seed)
        self.size: I64 = rng.integers(spec.min_size, spec.max_size + 1, spec.gangs)  # (G,) tasks
        kinds = (1, 2, 4, 8) if spec.mixed else (1,)
        self.each: I64 = rng.choice(kinds, spec.gangs).astype(np.int64)  # (G,) GPUs of one task
        self.nodes = [
            NodeObserved(
                f"node-{i:05d}",
                f"node-{i:05d}",
                {"cpu": spec.gpus * _CPU_PER_GPU, "pods": 110, GPU: spec.gpus},
            )
            for i in range(spec.nodes)
        ]
        self.classes = [ClassDefined(k, {"cpu": k * _CPU_PER_GPU, GPU: k}, name=f"gpu-{k}") for k in kinds]
        self.gangs = [
            GangObserved(g + 1, int(self.size[g]), START_US + g, name=f"gang-{g:04d}") for g in range(spec.gangs)
        ]
        self.gang_of: I64 = np.repeat(np.arange(spec.gangs), self.size)  # (T,)
        self._row = {node.id: i for i, node in enumerate(self.nodes)}

    def tasks(self) -> TasksObserved:
        """All tasks, pending; a task's uid is its position plus 1."""
        count = len(self.gang_of)
        return TasksObserved(
            uid=np.arange(1, count + 1).astype(np.uint64),
            class_id=self.each[self.gang_of].astype(np.uint64),
            job_id=(self.gang_of + 1).astype(np.uint64),
            created_us=START_US + self.gang_of,
            node=np.zeros(count, np.int64),
            names=[f"default/pod-{row:06d}" for row in range(count)],
            gang_id=(self.gang_of + 1).astype(np.uint64),
        )

    def admitted(self, uids: U64) -> tuple[I64, list[str]]:
        """Gangs that have all of their tasks among `uids`, and a violation if some have only a part there."""
        placed = np.bincount(self.gang_of[uids.astype(np.int64) - 1], minlength=self.spec.gangs)
        partial = int(((placed > 0) & (placed != self.size)).sum())
        return np.flatnonzero(placed == self.size), [f"{partial} gangs are placed in part"] if partial else []

    def violations(self, uids: U64, node_ids: list[str]) -> list[str]:
        """The rules that placing tasks `uids` (K,) on `node_ids` (K) breaks; empty if none."""
        found = [] if len(np.unique(uids)) == len(uids) else ["a task is placed twice"]
        used = np.zeros(self.spec.nodes, np.int64)
        nodes = np.array([self._row[node] for node in node_ids], np.int64)
        np.add.at(used, nodes, self.each[self.gang_of[uids.astype(np.int64) - 1]])
        over = int((used > self.spec.gpus).sum())
        return [*found, f"{over} nodes are over-committed"] if over else found

    def gpus_of(self, gangs: I64) -> int:
        """The number of GPUs that these gangs use."""
        return int((self.size[gangs] * self.each[gangs]).sum())

    def fifo(self) -> I64:
        """Gangs that run when each waits for the one before it: those before the oldest that does not fit."""
        free = np.full(self.spec.nodes, self.spec.gpus)
        for g in range(self.spec.gangs):
            if not self._pack(free, g):
                return np.arange(g)
        return np.arange(self.spec.gangs)

    def smallest_first(self) -> I64:
        """Gangs that run when they are tried one by one, the smallest requests first."""
        free = np.full(self.spec.nodes, self.spec.gpus)
        order = np.argsort(self.size * self.each, kind="stable")
        return np.array([g for g in order.tolist() if self._pack(free, g)], np.int64)

    def _pack(self, free: I64, g: int) -> bool:
        """Places a gang on the fullest nodes that have capacity for its tasks, completely or not at all."""
        each, remaining = int(self.each[g]), int(self.size[g])
        if int((free // each).sum()) < remaining:
            return False
        for n in np.argsort(free, kind="stable").tolist():
            count = min(remaining, int(free[n]) // each)
            free[n] -= count * each
            remaining -= count
            if not remaining:
                break
        return True
