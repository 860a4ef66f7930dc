"""Measures rounds until jobs are served that fit only once other tasks end or move, compared with proven bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.jobs.bounds import fewest_removals, least_lost_s, removals_bound, servable_jobs
from benchmarks.loads.jobs.load import NOWHERE, JobsLoad, JobsSpec
from benchmarks.loads.jobs.play import Player
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.policy import registry

_LEAST_NODES = 20


def measure(case: Case, options: Options) -> Sample:
    """A fresh engine plays the load; its decisions are carried out until nothing changes."""
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
    fewest = fewest_removals(load, removable)
    least_s = least_lost_s(load, removable, fewest)
    tasks = np.flatnonzero(world.job < load.spec.jobs)
    served, runs = int(world.served[tasks].sum()), int((world.node[tasks] != NOWHERE).sum())
    servable = servable_jobs(load, fewest, moves=load.spec.movable) * load.spec.size
    removed = played.victims + played.moves
    within = served <= servable
    bound, bound_s = removals_bound(fewest, least_s, served) if within else (0, 0)
    no_better = within and (removed > bound or (removed == bound and (played.moves or played.lost_s >= bound_s)))
    unexplained = played.reasons.get("", 0)
    facts: dict[str, Any] = {
        "running": len(load.node),
        "servable": servable,
        "served": served,
        "bound": bound,
        "bound_of_servable": removals_bound(fewest, least_s, servable)[0],
        "reasons": played.reasons,
        "lost_h": round(played.lost_s / 3600, 2),
        "lost_of_bound": played.lost_s / bound_s if bound_s and removed == bound else None,
        "all_rounds": played.rounds,
        "all_s": round(played.seconds, 6),
        "slowest_s": round(max(played.decision_s), 6),
        "stage_seconds": {stage: round(seconds, 6) for stage, seconds in played.stage_seconds.items()},
    }
    return Sample(
        metrics={
            "decision_s": float(np.median(played.decision_s)),
            "rounds": float(np.median(played.decision_rounds)),
            "victims": played.victims,
            "moves": played.moves,
            "nominated": played.nominated,
            "of_bound": removed / bound if bound else float(removed == 0) or float("inf"),
            "undecided": servable - served,
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
            Check("nothing is better than the bounds", bool(no_better), f"{served} served, {removed} left"),
            Check("tasks that wait have a reason", not unexplained, f"{unexplained} have none"),
            Check("tasks leave for jobs only", served > 0 or not removed, f"{removed} left, and no job is served"),
        ],
    )


def _engine(load: JobsLoad) -> Engine:
    """Running tasks may move at once, if they may."""
    policy = registry.load(registry.DEFAULT_POLICY, {})
    return Engine(policy, SOLVERS["or-tools"](), migrate_after_us=0 if load.spec.movable else None)


@cache
def _warm_up() -> None:
    """The first rounds of a process load or compile the searches."""
    for spec in (JobsSpec(8, 2, 2, 8), JobsSpec(8, 2, 1, 1), JobsSpec(8, 1, 2, 6, 3, 1, 0, True)):
        load = JobsLoad.generate(spec)
        Player(load, _engine(load)).run()
