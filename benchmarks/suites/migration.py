"""Measures rounds that reconsider all running tasks of a full cluster with churn."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.live.processes import peak_mib, reset_peak, resident_mib
from benchmarks.loads.moving import START_US, MovingLoad, MovingSpec
from firmament_py.engine.engine import Engine
from firmament_py.engine.stats import RoundStats
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry

_ROUND_US = 1_000_000
_WARM_UP = 2


def measure(case: Case, options: Options) -> Sample:
    """The tasks arrive at once; then rounds of churn, all of whose decisions are carried out."""
    sizes = case.sizes
    chosen = {key: str(value) for key, value in sizes.get("options", {}).items()}
    engine = Engine(
        registry.load(sizes["policy"], chosen),
        SOLVERS["or-tools"](),
        options=EngineOptions(certified=True, migrating=Migrating.ALWAYS, migrate_after_us=0),
    )
    nodes = options.scaled(sizes["nodes"], 10)
    reset_peak()
    memory = {"process": resident_mib(os.getpid())}
    load = MovingLoad(MovingSpec(nodes, sizes["tasks_per_node"], data=sizes["data"], seed=options.seed), engine)
    memory["nodes"] = resident_mib(os.getpid())
    load.arrive(load.tasks)
    memory["tasks"] = resident_mib(os.getpid())
    now_us = START_US + 1_000_000_000
    every: list[RoundStats] = []
    for number in range(_WARM_UP + sizes["rounds"]):
        result = engine.run_round(now_us + number * _ROUND_US)
        if result is None:
            return Sample({}, checks=[Check("a round runs after each change", False, f"round {number}")])
        if not every:
            memory |= {"first round": resident_mib(os.getpid()), "peak": peak_mib(os.getpid())}
        every.append(result.stats)
        load.confirm(result)
        changed = max(round(sizes["churn"] * load.tasks), 1)
        load.end(changed)
        load.arrive(changed)
    stats = every[_WARM_UP:]
    seconds = [one.seconds - one.stage_seconds.get("certify", 0.0) for one in stats]
    return Sample(
        metrics={
            "round_s": float(np.median(seconds)),
            "p99_s": float(np.quantile(seconds, 0.99)),
            "migrate_s": float(np.median([one.stage_seconds.get("migrate", 0.0) for one in stats])),
            "solve_s": float(np.median([one.stage_seconds.get("solve", 0.0) for one in stats])),
            "migrated": sum(one.migrated for one in stats),
            "peak_mib": peak_mib(os.getpid()),
        },
        facts={
            "running": load.tasks,
            "placed": sum(one.placed for one in stats),
            "waiting": stats[-1].waiting,
            "memory_mib": {after: round(mib) for after, mib in memory.items()},
            "stage_seconds": {
                stage: round(float(np.median([one.stage_seconds.get(stage, 0.0) for one in stats])), 6)
                for stage in stats[-1].stage_seconds
            },
        },
        checks=[
            Check("every task is placed", not stats[-1].waiting, f"{stats[-1].waiting} wait"),
            Check("the engine dropped nothing", not any(one.dropped for one in every)),
            Check("every solution is certified", not any(one.uncertified for one in every)),
            Check("the policy kept its contract", not any(one.fallback for one in every)),
        ],
    )
