"""The result of a replay: when and where each task ran, and the state of the cluster over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.simulate.effects import Effects
from benchmarks.simulate.world import State, World
from benchmarks.traces.form import Trace
from firmament_py.model.arrays import F64, I64

_POPULAR = 16
"""Number of the most common shapes that represent all in the measure of fragmentation."""


@dataclass(slots=True)
class Outcome:
    """The result of a replay. T tasks, S samples in time, R resources. Times in microseconds; -1: did not happen."""

    trace: Trace
    scheduler: str
    horizon_us: int
    resources: tuple[str, ...]
    contended: str  # the resource with the highest requested share
    first_start_us: I64  # (T,)
    end_us: I64  # (T,)
    attempts: I64  # (T,) number of restarts
    machine: I64  # (T,) its last machine; -1: none
    state: I64  # (T,) State at the end
    utilisation: F64  # (R,) mean over time of used / allocatable, of all machines together
    utilisation_contested: float  # of the contended resource, while more was requested than there was; NaN: never
    contested_share: float  # of the time
    samples_us: I64  # (S,)
    sampled: dict[str, F64]  # name -> (S,)
    rounds: int = 0
    round_s: list[float] = field(default_factory=list)  # measured
    solve_s: float = 0.0
    solves: int = 0
    placements: int = 0
    bind_failures: int = 0
    restarts: int = 0
    violations: dict[str, str] = field(default_factory=dict)  # rule -> how often it was broken, and an example


class Recorder:
    """Records a world over time. Call `advance` before a change, `started` when tasks start, `sample` for regular
    times."""

    def __init__(self, world: World, contended: str) -> None:
        self._world, self._effects = world, Effects(world)
        self._r = world.resources.index(contended)
        width = len(world.resources)
        self._used, self._allocatable = np.zeros(width), np.zeros(width)
        self._contested_used = self._contested_allocatable = self._contested_us = 0.0
        self.now_us = 0
        self.samples_us: list[int] = []
        self._samples: dict[str, list[float]] = {}
        counts = np.bincount(world.trace.task_shape, minlength=len(world.trace.shapes))
        self._popular = np.argsort(-counts, kind="stable")[:_POPULAR]
        self._weight = counts[self._popular] / max(int(counts[self._popular].sum()), 1)

    def advance(self, us: int) -> None:
        """Time advances to `us`, and the world has been unchanged since the last call."""
        passed = us - self.now_us
        if not passed:
            return
        world, r = self._world, self._r
        self._used += world.used_total * float(passed)
        self._allocatable += world.allocatable_total * float(passed)
        there = int(world.allocatable_total[r])
        if there and int(world.used_total[r]) + int(world.waiting_total[r]) > there:
            self._contested_used += float(world.used_total[r]) * passed
            self._contested_allocatable += float(there) * passed
            self._contested_us += passed
        self.now_us = us

    def started(self, tasks: I64) -> None:
        """Tasks (K,) start."""
        self._effects.started(tasks)

    def sample(self, moments: Sequence[int]) -> None:
        """Records the current state as a sample for each of the moments, at which it was the same."""
        world, r = self._world, self._r
        there = np.flatnonzero(world.present & (world.allocatable[:, r] > 0))
        share = world.used[there, r] / world.allocatable[there, r] if len(there) else np.zeros(1)
        low, high = np.percentile(share, (10, 90))
        figures = {
            f"utilisation {name}": float(used / max(of, 1))
            for name, used, of in zip(
                world.resources, world.used_total.tolist(), world.allocatable_total.tolist(), strict=True
            )
        }
        figures |= {
            "waiting": float(world.waiting),
            "running": float(world.count(State.RUNNING)),
            "spread": float(high - low),
            "deviation": float(share.std()),
            "nodes used": float((world.tasks_on[world.present] > 0).sum()),
            "fragmentation": self._fragmentation(),
            **self._effects.sample(),
        }
        self.samples_us += moments
        for name, value in figures.items():
            self._samples.setdefault(name, []).extend([value] * len(moments))

    def sampled(self) -> dict[str, F64]:
        return {name: np.array(values) for name, values in self._samples.items()}

    def utilisation(self) -> F64:
        return self._used / np.maximum(self._allocatable, 1.0)

    def contested(self) -> tuple[float, float]:
        """Utilisation of the contended resource while more was requested than there was, and that share of the time."""
        if not self._contested_us:
            return float("nan"), 0.0
        return self._contested_used / self._contested_allocatable, self._contested_us / max(self.now_us, 1)

    def _fragmentation(self) -> float:
        """The share of the free contended resource that a task of the trace cannot use where it is: the mean over the
        most common shapes, weighted by their tasks (Weng et al., Beware of fragmentation, ATC 2023)."""
        world, r = self._world, self._r
        free = (world.allocatable - world.used)[world.present]
        there = np.maximum(free[:, r], 0)
        total = float(there.sum())
        if not total:
            return 0.0
        lost = 0.0
        for shape, weight in zip(self._popular.tolist(), self._weight.tolist(), strict=True):
            fits = (free >= world.requests[shape]).all(axis=1)
            lost += weight * float(there[~fits].sum()) / total
        return lost
