"""1,000 jobs on 8 nodes of 8 GPUs, in the setting of arXiv 2512.10980; as traces for a replay (simulate/replay.py).

Of the paper only the abstract was at hand: training, inference and research jobs; a job starves if it waits for more
than 30 minutes; at best 78.2 % of the GPUs are used and 25.8 jobs end in an hour. So a job takes 0.782 * 64 / 25.8 =
1.94 GPU-hours there. The generator in the public code of its author (github.com/akhmadmamirov/orca) draws 1, 2, 4 or
8 GPUs, durations of 5 minutes to 2 hours, and arrivals within 24 hours, all uniform: 3.9 GPU-hours for a job, and no
schedule of 64 GPUs ends more than 16.4 such jobs an hour. Hence three mixes:

fitted   sizes and durations of the generator, but smaller jobs are likelier: each size by the same factor, so that the
         mean job takes 1.94 GPU-hours
mixed    chosen here: half inference (1 or 2 GPUs), 30 % research (1 to 4), 20 % training (4 to 16); durations are
         log-uniform between bounds for each kind, multiplied so that the mean is as above
uniform  the generator's

The author's simulator gives a job GPUs of any nodes: that is a gang of tasks with one GPU each. With tasks of up to
8, a job of as many needs a whole node.

In the first two, jobs arrive in a Poisson process, stretched so that they request a given share of the GPUs meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.traces.form import HOUR, MachineEvent, Shape, Trace, TraceBuilder
from firmament_py.model.arrays import F64, I64

GPU = "nvidia.com/gpu"
NODE_GPUS = 8
_OF_GPU = {"cpu": 12_000, "memory": 128 * 2**30}

GPU_HOURS = 0.782 * 64 / 25.8
"""Of the mean job, from the published figures."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """share: of all jobs. gpus: number of GPUs and their probabilities. minutes: bounds of the duration."""

    share: float
    gpus: tuple[int, ...]
    chances: tuple[float, ...]
    minutes: tuple[float, float]


_MIXED = {
    "inference": JobKind(0.5, (1, 2), (0.7, 0.3), (5, 60)),
    "research": JobKind(0.3, (1, 2, 4), (0.4, 0.35, 0.25), (10, 240)),
    "training": JobKind(0.2, (4, 8, 16), (0.45, 0.4, 0.15), (30, 360)),
}
_GPUS, _SECONDS, _HOURS = (1, 2, 4, 8), (300, 7_200), 24


def mix(name: str, jobs: int, nodes: int, load: float, task_gpus: int, seed: int) -> Trace:
    """So many jobs of a mix, as tasks of at most so many GPUs each; load: see above. With fewer than 1,000 jobs those
    of `uniform` arrive within less time."""
    rng = np.random.default_rng([seed, 2512])
    if name == "uniform":
        gpus, hours = rng.choice(_GPUS, jobs).astype(np.int64), rng.uniform(*_SECONDS, size=jobs) / 3600
        return _trace(name, nodes, np.sort(rng.uniform(0, _HOURS * jobs / 1000, jobs)), gpus, hours, task_gpus)
    gpus, hours = (_fitted if name == "fitted" else _mixed)(rng, jobs)
    gaps = rng.exponential(1.0, jobs)
    within_h = float(gpus @ hours) / (load * NODE_GPUS * nodes)
    return _trace(name, nodes, np.cumsum(gaps) / gaps.sum() * within_h, gpus, hours, task_gpus)


def _fitted(rng: np.random.Generator, jobs: int) -> tuple[I64, F64]:
    """(J,) GPUs and hours."""
    sizes = np.array(_GPUS)
    mean_gpus = GPU_HOURS / (sum(_SECONDS) / 2 / 3600)  # GPUs of the mean job
    low, high = 0.0, 1.0
    chances: F64 = np.ones(len(sizes))
    for _ in range(50):  # the mean rises with the factor
        factor = (low + high) / 2
        chances = np.asarray(factor ** np.arange(len(sizes)))
        chances = chances / chances.sum()
        low, high = (factor, high) if chances @ sizes < mean_gpus else (low, factor)
    return rng.choice(sizes, jobs, p=chances), rng.uniform(*_SECONDS, size=jobs) / 3600


def _mixed(rng: np.random.Generator, jobs: int) -> tuple[I64, F64]:
    """(J,) GPUs and hours."""
    kinds = list(_MIXED.values())
    of = rng.choice(len(kinds), jobs, p=[kind.share for kind in kinds])
    gpus, hours = np.zeros(jobs, np.int64), np.zeros(jobs)
    for k, kind in enumerate(kinds):
        some = of == k
        gpus[some] = rng.choice(kind.gpus, int(some.sum()), p=kind.chances)
        low, high = np.log(kind.minutes).tolist()
        hours[some] = np.exp(rng.uniform(low, high, int(some.sum()))) / 60
    return gpus, hours * GPU_HOURS * jobs / float(gpus @ hours)


def _trace(name: str, nodes: int, arrival_h: F64, gpus: I64, hours: F64, largest: int) -> Trace:
    """Jobs (J,) of tasks with at most so many GPUs each; those of more than one task are gangs."""
    builder = TraceBuilder(name)
    offer = {resource: amount * NODE_GPUS for resource, amount in _OF_GPU.items()} | {GPU: NODE_GPUS}
    for n in range(nodes):
        builder.event(0, builder.machine(f"node-{n}"), MachineEvent.ADD, offer)
    for j, (at, number, duration) in enumerate(zip(arrival_h.tolist(), gpus.tolist(), hours.tolist(), strict=True)):
        tasks = -(-number // largest)
        job = builder.job(f"job-{j}", gang_minimum=tasks if tasks > 1 else 0)
        of_task = number // tasks
        requests = {resource: amount * of_task for resource, amount in _OF_GPU.items()} | {GPU: of_task}
        for _ in range(tasks):
            builder.task(int(at * HOUR), job, max(int(duration * HOUR), 1), builder.shape(Shape.of(requests)))
    return builder.build()
