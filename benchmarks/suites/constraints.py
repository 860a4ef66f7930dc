"""Measures a round that places tasks with inter-task constraints, checked independently of the engine."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.constraints import START_US, ConstraintSpec, load
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.policy import registry


def measure(case: Case, options: Options) -> Sample:
    """A fresh engine receives the load, then runs the round that is timed."""
    spec = ConstraintSpec(**case.sizes, seed=options.seed)
    spec = replace(
        spec,
        nodes=options.scaled(spec.nodes, spec.zones),
        pods=options.scaled(spec.pods),
        groups=min(spec.groups, options.scaled(spec.pods)),
        before=options.scaled(spec.before),
        running=options.scaled(spec.running),
    )
    made = load(spec)
    engine = Engine(registry.load(registry.DEFAULT_POLICY, {}), SOLVERS["or-tools"]())
    engine.apply(made.cluster)
    placed: dict[int, str] = {}

    def run_round() -> float:
        result = engine.run_round(START_US + 1_000_000)
        assert result is not None
        uids = engine.state.tasks.uid[result.tasks].tolist()
        placed.update(zip(uids, (engine.state.nodes.id[row] for row in result.nodes.tolist()), strict=True))
        dropped.append(result.stats.dropped)
        return result.stats.seconds

    dropped: list[int] = []
    if made.first is not None:
        engine.apply([made.first])
        run_round()
    assert made.tasks is not None
    engine.apply([made.tasks])
    seconds = run_round()
    wrong = made.violations(placed)
    stats = engine.last_round
    assert stats is not None
    return Sample(
        metrics={"round_s": seconds, "placed": stats.placed},
        facts={
            "objective": stats.objective,
            "pricing_rounds": stats.pricing_rounds,
            "pending": stats.pending,
            "placed": stats.placed,
            "solves": stats.solves,
            "vertices": stats.vertices,
            "arcs": stats.arcs,
            "stage_seconds": {name: round(value, 6) for name, value in stats.stage_seconds.items()},
        },
        checks=[
            Check("every inter-task constraint holds", not wrong, "; ".join(wrong)),
            Check("every task is placed", stats.placed == stats.pending, f"{stats.waiting} are not"),
            Check("the engine dropped nothing", not any(dropped), f"{sum(dropped)} placements dropped"),
        ],
    )
