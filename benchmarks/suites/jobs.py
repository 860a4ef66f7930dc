"""Measures rounds until jobs are served that fit only once other tasks end or move, compared with proven bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.jobs.bounds import cheapest_removals, eviction_costs, least_cost, servable_jobs
from benchmarks.loads.jobs.load import NOWHERE, ROUND_S, JobsLoad, JobsSpec
from benchmarks.loads.jobs.play import Player
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry

_LEAST_NODES = 20

_MOVES = 10_000
"""Limit on the tasks that move at once: no limit for any load."""


def measure(case: Case, options: Options) -> Sample:
    """Runs a fresh engine on the load; its decisions are carried out until rounds change nothing."""
    sizes = dict(case.sizes)
    grows = sizes.pop("grows", "")
    if grows:
        sizes[grows] = options.scaled(sizes[grows])
    sizes["nodes"] = options.scaled(sizes["nodes"], _LEAST_NODES)
    load = JobsLoad.generate(JobsSpec(**sizes, seed=options.seed))
    _warm_up()
    player = Player(load, _engine(load))
    played, world = player.run(), player.world

    removable = np.full(len(load.node), True) if load.spec.movable else load.preemptible
    fewest = cheapest_removals(load, removable, np.ones(len(load.node), np.int64))
    tasks = np.flatnonzero(world.job < load.spec.jobs)
    served, runs = int(world.served[tasks].sum()), int((world.node[tasks] != NOWHERE).sum())
    servable = servable_jobs(load, fewest, moves=load.spec.movable) * load.spec.size
    removed, within = played.victims + played.moves, served <= servable
    bound = least_cost(fewest, served) if within else 0
    no_better = within and removed >= bound
    unexplained = played.reasons.get("", 0)
    proved = all(fits < needed for fits, needed in played.at_best.values())
    unproved = len(tasks) - served - sum(needed for _, needed in played.at_best.values())
    facts: dict[str, Any] = {
        "running": len(load.node),
        "servable": servable,
        "served": served,
        "bound": bound,
        "bound_of_servable": least_cost(fewest, servable),
        "reasons": played.reasons,
        "at_best": played.at_best,
        "lost_h": round(played.lost_s / 3600, 2),
        "all_rounds": played.rounds,
        "all_s": round(played.seconds, 6),
        "slowest_s": round(max(played.decision_s), 6),
        "stage_seconds": {stage: round(seconds, 6) for stage, seconds in played.stage_seconds.items()},
    }
    metrics: dict[str, float] = {}
    if within and removed and not load.spec.movable and not load.spec.one_by_one:
        each_cost = eviction_costs(load.run_s + ROUND_S)
        least = least_cost(cheapest_removals(load, removable, each_cost), served)
        cost = int(each_cost[np.flatnonzero(world.gone)].sum())
        metrics["cost_of_bound"], no_better = cost / least, no_better and cost >= least
    return Sample(
        metrics=metrics
        | {
            "decision_s": float(np.median(played.decision_s)),
            "rounds": float(np.median(played.decision_rounds)),
            "victims": played.victims,
            "moves": played.moves,
            "nominated": played.nominated,
            "of_bound": removed / bound if bound else float(removed == 0) or float("inf"),
            "undecided": servable - served,
            "unproved": unproved,
            "half": world.half_served,
        },
        facts=facts,
        checks=[
            Check("every decision is sound", not played.problems, "; ".join(dict.fromkeys(played.problems))),
            Check("no job is served in part", not world.half_served, f"{world.half_served} are"),
            Check("the rounds end", not played.endless, f"{played.rounds} rounds"),
            Check("tasks that were promised a node run", served == runs, f"{runs} of {served} run"),
            Check("tasks that moved run", not world.successors_waiting, f"{world.successors_waiting} wait"),
            Check("the engine dropped nothing", not played.dropped, f"{played.dropped} dropped"),
            Check("nothing is better than the bounds", no_better, f"{served} served, {removed} left"),
            Check("tasks that wait have a reason", not unexplained, f"{unexplained} have none"),
            Check("what is proved not to fit does not run", proved and unproved >= 0, f"{played.at_best}"),
            Check("tasks leave for jobs only", served > 0 or not removed, f"{removed} left, and no job is served"),
        ],
    )


def _engine(load: JobsLoad) -> Engine:
    """An engine in which the load's movable tasks may move without delay."""
    policy = registry.load(registry.DEFAULT_POLICY, {})
    migrating = Migrating.FOR_WAITING if load.spec.movable else Migrating.NEVER
    return Engine(
        policy,
        SOLVERS["or-tools"](),
        options=EngineOptions(migrating=migrating, migrate_after_us=0, moves_at_once=_MOVES),
    )


@cache
def _warm_up() -> None:
    """The first rounds of a process load the searches."""
    for spec in (JobsSpec(8, 2, 2, 8), JobsSpec(8, 2, 1, 1), JobsSpec(8, 1, 2, 6, 3, 1, 0, True)):
        load = JobsLoad.generate(spec)
        Player(load, _engine(load)).run()
