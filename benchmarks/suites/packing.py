"""Measures how many pods of several resources a round places, compared with other ways to pack them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.packing import START_US, PackingLoad
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.model.events import ClassDefined, Event, TasksRemoved
from firmament_py.model.options import EngineOptions
from firmament_py.policy import registry

_LONG = 30.0
"""How many times the usual effort the best known packing gets."""

_CP_SAT_NODES = 200
"""In larger clusters CP-SAT finds nothing better in minutes."""


def measure(case: Case, options: Options) -> Sample:
    """One random cluster: a round, and what it is compared with."""
    sizes = case.sizes
    load = PackingLoad.random(options.seed, options.scaled(sizes["nodes"], 5), options.scaled(sizes["classes"], 4))
    placed, stats = _round(load, sizes["policy"], 1.0)
    longer, _ = _round(load, sizes["policy"], _LONG)
    kube = load.kube_scheduler()
    best = max(stats.placed, kube, int(longer.sum()))
    if len(load.free) <= _CP_SAT_NODES and best < load.pods and sizes["best_s"]:
        best = max(best, load.cp_sat(longer, sizes["best_s"]))
    wrong = load.violations(placed)
    beside = _beside(load, sizes["policy"])
    return Sample(
        metrics={
            "of_best": stats.placed / best,
            "of_kube": stats.placed / kube,
            "of_bound": stats.placed / (stats.placed + stats.gap),
            "placed": stats.placed,
            "round_s": stats.seconds,
            "beside_s": beside.first_s,
            "meanwhile_s": beside.meanwhile_s,
            "late_s": beside.late_s,
        },
        facts={
            "pods": load.pods,
            "kube": kube,
            "best": best,
            "gap": stats.gap,
            "solves": stats.solves,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        },
        checks=[
            Check("no node is over-committed, every selector is met", not wrong, wrong),
            Check("the bound holds", best <= stats.placed + stats.gap, f"{best} > {stats.placed} + {stats.gap}"),
            Check(
                "packing beside the rounds places the same pods on the same nodes",
                bool((beside.placed == placed).all()),
                f"{int(np.abs(beside.placed - placed).sum())} differ",
            ),
            Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
        ],
    )


def _round(load: PackingLoad, policy: str, improve: float) -> tuple[I64, RoundStats]:
    """(C, N) what one round of a fresh engine places, and its statistics."""
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"](), options=EngineOptions(improve=improve))
    placed = np.zeros(load.suitable.shape, np.int64)
    _apply(engine, load.events())
    _run(engine, load, 1, placed)
    assert engine.last_round is not None
    return placed, engine.last_round


def _apply(engine: Engine, events: list[Event]) -> None:
    outcome = engine.apply(events)
    if outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")


def _run(engine: Engine, load: PackingLoad, second: int, placed: I64) -> float:
    """Seconds of a round, so long after the start. Its placements of the load's pods are added to placed (C, N)."""
    started = perf_counter()
    result = engine.run_round(START_US + second * 1_000_000)
    seconds = perf_counter() - started
    if result is None:
        raise RuntimeError("no round is due")
    uid = engine.state.tasks.uid[result.tasks].astype(np.int64)
    own = uid <= load.pods
    number = {f"node-{n}": n for n in range(len(load.free))}
    nodes = np.array([number[engine.state.nodes.id[row]] for row in result.nodes[own].tolist()], np.int64)
    np.add.at(placed, (load.order()[uid[own] - 1], nodes), 1)
    return seconds


class _Held:
    """An Execution whose work waits until it is taken, so that rounds are timed without it."""

    def __init__(self) -> None:
        self.work: Callable[[], None] | None = None

    def start(self, work: Callable[[], None]) -> None:
        self.work = work

    @property
    def running(self) -> bool:
        return self.work is not None


class _Beside(NamedTuple):
    """placed (C, N), in all; seconds of the round for the load, of a round for one more pod, which requests nothing and
    is deleted again, while the packing goes on, and of the round that carries the packing out."""

    placed: I64
    first_s: float
    meanwhile_s: float
    late_s: float


def _beside(load: PackingLoad, policy: str) -> _Beside:
    """The load with packing beside the rounds, as `firmament serve` has it."""
    packing, placed = _Held(), np.zeros(load.suitable.shape, np.int64)
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"](), searching=_Held(), packing=packing)
    _apply(engine, load.events())
    first = _run(engine, load, 1, placed)
    one = np.array([load.pods + 1_000_000])
    _apply(engine, [ClassDefined(int(one[0]), {}), load.waiting(one, one)])
    meanwhile = _run(engine, load, 2, placed)
    _apply(engine, [TasksRemoved(one.astype(np.uint64))])
    if packing.work is None:
        return _Beside(placed, first, meanwhile, 0.0)
    packing.work()
    packing.work = None
    return _Beside(placed, first, meanwhile, _run(engine, load, 3, placed))
