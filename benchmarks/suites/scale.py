"""Measures rounds on clusters with churn, at several sizes, and how their time grows."""

from __future__ import annotations

import math
import os
import statistics
from dataclasses import dataclass, field
from time import perf_counter

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.series import curve
from benchmarks.harness.specs import Case
from benchmarks.live.processes import peak_mib, reset_peak
from benchmarks.loads.churn import START_US, ChurnLoad, ChurnSpec
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.events import Event
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry

_ROUND_US = 1_000_000


@dataclass(slots=True)
class Measured:
    """Medians over the rounds of one size and churn."""

    nodes: int
    churn: float
    running: int
    round_s: float = 0.0
    solve_s: float = 0.0
    apply_s: float = 0.0
    arcs: float = 0.0
    classes: float = 0.0
    solves: float = 0.0
    migrate_s: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    placed: int = 0
    migrated: int = 0
    wrong: list[str] = field(default_factory=list)


def measure(case: Case, options: Options) -> Sample:
    """Measures every size and churn of the case, each on a fresh engine."""
    sizes = case.sizes
    found = []
    reset_peak()
    for nodes in sizes["nodes"]:
        for churn in sizes["churn"]:
            movable = Migrating(sizes["migrate"]) is not Migrating.NEVER
            spec = ChurnSpec(sizes["preset"], options.scaled(nodes, 4), sizes["fill"], options.seed, movable)
            found.append(_measure(ChurnLoad(spec), churn, case))
    by_churn = len(sizes["churn"]) > 1
    x = [one.churn * one.running if by_churn else one.nodes for one in found]
    title, unit = ("tasks that change", "count") if by_churn else ("nodes", "count")
    last = found[-1]
    wrong = [text for one in found for text in one.wrong]
    return Sample(
        metrics={
            "round_s": last.round_s,
            "exponent": exponent(x, [one.round_s for one in found]),
            "solve_s": last.solve_s,
            "apply_s": last.apply_s,
            "placed": last.placed,
            "migrate_s": last.migrate_s,
            "migrated": last.migrated,
            "peak_mib": peak_mib(os.getpid()),
        },
        facts={
            f"{one.nodes} nodes, {one.churn:g} churn": {
                "running": one.running,
                "round_s": one.round_s,
                "solve_s": one.solve_s,
                "apply_s": one.apply_s,
                "arcs": one.arcs,
                "classes": one.classes,
                "solves": one.solves,
                "migrate_s": one.migrate_s,
                "stage_seconds": one.stage_seconds,
            }
            for one in found
        },
        checks=[Check("all placements are valid, nothing is refused or dropped", not wrong, "; ".join(wrong[:3]))],
        series=[
            curve(name, x, [getattr(one, column) for one in found], title, unit, "time", "s")
            for name, column in (("round", "round_s"), ("solver", "solve_s"), ("updates", "apply_s"))
        ],
    )


def exponent(sizes: list[float] | list[int], seconds: list[float]) -> float:
    """The slope of the least-squares line of log(seconds) over log(size); 0 for one size."""
    points = [(math.log(x), math.log(y)) for x, y in zip(sizes, seconds, strict=True) if x > 0 and y > 0]
    if len({x for x, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def _measure(load: ChurnLoad, churn: float, case: Case) -> Measured:
    sizes, certify = case.sizes, bool(case.sizes["certify"])
    engine = Engine(
        registry.load(sizes["policy"], {}),
        SOLVERS["or-tools"](),
        options=EngineOptions(certified=certify, migrating=Migrating(sizes["migrate"]), migrate_after_us=0),
    )
    found = Measured(len(load.nodes), churn, load.running)
    columns: dict[str, list[float]] = {
        name: [] for name in ("round_s", "solve_s", "apply_s", "arcs", "classes", "solves", "migrate_s")
    }
    stages: dict[str, list[float]] = {}
    _apply(engine, load.initial(), found)
    first = engine.run_round(START_US)
    if first is not None:
        _apply(engine, load.evict(engine.state.tasks.uid[first.migration.tasks].copy()), found)
    for number in range(1, sizes["rounds"] + 2):
        began = perf_counter()
        _apply(engine, load.churn(churn), found)
        apply_s = perf_counter() - began
        result = engine.run_round(START_US + number * _ROUND_US)
        if result is None:
            found.wrong.append("no round ran although tasks arrived")
            continue
        stats = result.stats
        uids = engine.state.tasks.uid[result.tasks].copy()
        event, violations = load.bind(uids, [engine.state.nodes.id[row] for row in result.nodes.tolist()])
        _apply(engine, [event], found)
        found.wrong += violations
        evicted = engine.state.tasks.uid[result.migration.tasks].copy()
        _apply(engine, load.evict(evicted), found)
        found.migrated += len(evicted)
        if stats.unsolved:
            found.wrong.append(f"networks without a solution: {stats.unsolved}")
        if stats.uncertified:
            found.wrong.append(f"{stats.uncertified} solutions have no certificate")
        if stats.dropped or stats.fallback:
            found.wrong.append(f"{stats.dropped} placements dropped {stats.fallback}".strip())
        found.placed += len(uids)
        if number > 1:  # the first is the warm-up
            solve_s = stats.stage_seconds.get("solve", 0.0)
            seconds = stats.seconds - stats.stage_seconds.get("certify", 0.0)
            migrate_s = stats.stage_seconds.get("migrate", 0.0)
            values = (seconds, solve_s, apply_s, stats.arcs, stats.classes, stats.solves, migrate_s)
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            for stage, seconds in stats.stage_seconds.items():
                stages.setdefault(stage, []).append(seconds)
    for name, values_ in columns.items():
        setattr(found, name, statistics.median(values_) if values_ else 0.0)
    found.stage_seconds = {stage: round(statistics.median(values_), 6) for stage, values_ in stages.items()}
    return found


def _apply(engine: Engine, events: list[Event], found: Measured) -> None:
    outcome = engine.apply(events)
    if outcome.refused or outcome.unknown or outcome.unknown_classes:
        found.wrong.append(f"the engine refused events: {outcome}")
