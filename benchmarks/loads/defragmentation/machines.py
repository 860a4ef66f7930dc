"""Machines of two NUMA nodes that are nearly full of virtual machines: the setting of VMR2L (EuroSys 2025).

Sizes and counts are those of the snapshot that its authors published: 280 machines of 2 x 44 cores and 2,089 virtual
machines, 88.27 % of which have at most 16 cores; all have 2 GiB per core, which never binds. Where they run is random.

The *fragments* of a NUMA node are its free cores modulo 16: what is useless for virtual machines of 16 cores. As moves
do not change how many cores are free, the fewest fragments leave capacity for the greatest number of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from firmament_py.model.arrays import I64, Bools

SIDE = 44
"""Cores of a NUMA node; a machine has two."""

PIECE = 16
_BUSY = 0.8144
"""Share of the machines of which more than 80 % is used."""

_MIX = (
    (64, True, 130),
    (88, True, 4),
    (32, True, 50),
    (32, False, 61),
    (16, True, 46),
    (16, False, 184),
    (8, True, 57),
    (8, False, 311),
    (4, True, 3),
    (4, False, 906),
    (2, False, 337),
)
"""Cores of a virtual machine, whether it is on both NUMA nodes, and the number of such machines."""

_MACHINES = 280
_CALM_FREE = (18, 36)
"""Least and largest number of cores that are kept free on the other machines."""

_TRIES = 50

Moves: TypeAlias = I64
"""(K, 3) task, machine, NUMA node; the last is 0 for tasks on both. Each task is there at most once."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """T virtual machines: machine (T,), cores (T, 2) on each of its NUMA nodes."""

    machine: I64
    cores: I64

    @property
    def both(self) -> Bools:
        """(T,) which are on both NUMA nodes, half of their cores on each."""
        both: Bools = self.cores.min(axis=1) > 0
        return both

    def moved(self, moves: Moves) -> Tasks:
        """The tasks after moves."""
        machine, cores = self.machine.copy(), self.cores.copy()
        task, to, side = moves.T
        machine[task] = to
        single = ~self.both[task]
        cores[task[single]] = 0
        cores[task[single], side[single]] = self.cores[task[single]].sum(axis=1)
        return Tasks(machine, cores)


Plan = Callable[[I64, Tasks, int], Moves]
"""plan(free, tasks, limit): moves, at most `limit`, that leave few fragments. free (N, 2): cores of each NUMA node."""


@dataclass(frozen=True, slots=True)
class Machines:
    """N machines and their tasks."""

    count: int
    tasks: Tasks

    @classmethod
    def random(cls, seed: int, count: int) -> Machines:
        """`count` machines, and tasks in proportion. Raises ValueError if the tasks do not fit."""
        for tried in range(_TRIES):
            tasks = _place(np.random.default_rng([seed, tried]), count)
            if tasks is not None:
                return cls(count, tasks)
        raise ValueError(f"the tasks do not fit on {count} machines, in {_TRIES} tries")

    @property
    def free(self) -> I64:
        """(N, 2) free cores."""
        return free_cores(self.count, self.tasks)

    def after(self, moves: Moves) -> Machines:
        return Machines(self.count, self.tasks.moved(moves))

    def violations(self, moves: Moves, limit: int) -> list[str]:
        """What is wrong with moves; empty: nothing. Only where the tasks are in the end counts: a pod that moves ends
        before its successor starts."""
        task, to, side = moves.T
        found = [f"{len(moves)} moves, and {limit} are allowed"] if len(moves) > limit else []
        limits = ((task, len(self.tasks.machine)), (to, self.count), (side, 2))
        if any(((numbers < 0) | (numbers >= count)).any() for numbers, count in limits):
            return [*found, "a task or a place is unknown"]
        if len(np.unique(task)) < len(task):
            found.append("a task moves twice")
        after = self.after(moves)
        if (self.tasks.cores[task] == after.tasks.cores[task]).all(axis=1)[self.tasks.machine[task] == to].any():
            found.append("a task moves to where it is")
        if (after.free < 0).any():
            found.append("a NUMA node is over-committed")
        return found

    def blocked(self, moves: Moves) -> int:
        """How many moves cannot be carried out one by one, each once its place is free, because they wait for each
        other."""
        after, left, free = self.tasks.moved(moves), moves[:, 0].tolist(), self.free
        while True:
            waiting = []
            for task in left:
                to = after.machine[task]
                if (free[to] >= after.cores[task]).all():
                    free[to] -= after.cores[task]
                    free[self.tasks.machine[task]] += self.tasks.cores[task]
                else:
                    waiting.append(task)
            if len(waiting) == len(left):
                return len(left)
            left = waiting


def free_cores(count: int, tasks: Tasks) -> I64:
    """(N, 2) what tasks leave free of N machines."""
    free = np.full((count, 2), SIDE, np.int64)
    np.subtract.at(free, tasks.machine, tasks.cores)
    return free


def fragments(free: I64) -> int:
    """Free cores that are left over when pieces of 16 are cut from those of each NUMA node."""
    return int((free % PIECE).sum())


def fragment_rate(free: I64) -> float:
    """Their share of all free cores."""
    return fragments(free) / int(free.sum())


def _place(rng: np.random.Generator, count: int) -> Tasks | None:
    """The tasks on random NUMA nodes, larger ones first, so that they fit; None: they do not."""
    calm = rng.permutation(count)[: count - round(_BUSY * count)]
    free = np.full((count, 2), SIDE, np.int64)
    unused = np.zeros(count, np.int64)  # of calm machines, so that they are not filled
    unused[calm] = rng.integers(_CALM_FREE[0] // 2, _CALM_FREE[1] // 2 + 1, len(calm)) * 2
    machine: list[int] = []
    cores: list[tuple[int, int]] = []
    for size, both, number in _MIX:
        asked = np.array([[size // 2, size // 2]] if both else [[size, 0], [0, size]], np.int64)  # (ways, 2)
        for _ in range(number * count // _MACHINES):
            fits = (free[:, None, :] >= asked).all(axis=2) & (free.sum(axis=1) - size >= unused)[:, None]
            places = np.flatnonzero(fits.reshape(-1))
            if not len(places):
                return None
            to, way = divmod(int(rng.choice(places)), len(asked))
            free[to] -= asked[way]
            machine.append(to)
            cores.append((int(asked[way][0]), int(asked[way][1])))
    return Tasks(np.array(machine, np.int64), np.array(cores, np.int64))
