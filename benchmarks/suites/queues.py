"""Measures rounds with queues: what shares, quotas and reclaim between queues cost, and whether they are kept."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.engine import START_US
from benchmarks.loads.jobs.bounds import cheapest_removals, least_cost
from benchmarks.loads.jobs.load import JobsSpec
from benchmarks.loads.jobs.play import Player
from benchmarks.loads.queues.check import PlacedTasks
from benchmarks.loads.queues.load import SHARINGS, QueuesLoad, QueuesSpec
from benchmarks.loads.queues.reclaim import ReclaimLoad, ReclaimWorld
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.events import Event
from firmament_py.model.queues import Sharing
from firmament_py.policy import registry

_FURTHER_ROUNDS = 10
_LEAST_NODES = 20


def measure(case: Case, options: Options) -> Sample:
    """A round of a tree of queues, or the rounds in which a queue reclaims its guarantee."""
    sizes = dict(case.sizes)
    sharing = SHARINGS[sizes.pop("sharing")]
    if "guarantee" in sizes or "takeable" in sizes:
        return _measure_reclaim(sizes, sharing, options)
    spec = QueuesSpec(**sizes, sharing=sharing, seed=options.seed).scaled(options)
    _warm_up(sharing)
    load = QueuesLoad(spec)
    plain_engine, plain, plain_cpu_s = _round(load, queued=False)
    del plain_engine
    engine, result, cpu_s = _round(load, queued=True)
    stats = result.stats
    metrics = {
        "entitlements_s": stats.stage_seconds["queues"],
        "round_s": stats.seconds,
        "cpu_s": cpu_s,
        "plain_s": plain.stats.seconds,
        "plain_cpu_s": plain_cpu_s,
        "ratio": cpu_s / plain_cpu_s,
        "placed": float(stats.placed),
    }
    facts: dict[str, Any] = {
        "running": load.base.running,
        "considered": stats.pending,
        "placed_plain": plain.stats.placed,
        "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        "plain_stage_seconds": {name: round(seconds, 6) for name, seconds in plain.stats.stage_seconds.items()},
    }
    return Sample(metrics, facts, _tree_checks(load, engine, result))


def _round(load: QueuesLoad, *, queued: bool) -> tuple[Engine, RoundResult, float]:
    """A round of a fresh engine, and its CPU seconds. Raises RuntimeError if the engine refuses the load."""
    engine = _engine()
    events: list[Event] = [
        *load.base.nodes,
        *load.base.classes,
        *([load.queues()] if queued else []),
        load.tasks(queued=queued),
    ]
    outcome = engine.apply(events)
    if outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    before = time.process_time()
    result = engine.run_round(START_US + 1_000_000)
    cpu_s = time.process_time() - before
    if result is None:
        raise RuntimeError("the engine runs no round for the load")
    return engine, result, cpu_s


def _tree_checks(load: QueuesLoad, engine: Engine, result: RoundResult) -> list[Check]:
    uids = engine.state.tasks.uid[result.tasks]
    nodes = [engine.state.nodes.id[row] for row in result.nodes.tolist()]
    violations, placed = load.base.violations(uids, nodes), PlacedTasks(load, uids, nodes)
    above, sharing = placed.above_limits(), load.spec.sharing
    checks = [
        Check("no node is over-committed, every taint is tolerated", not violations, "; ".join(violations)),
        Check("no queue uses more than its limit", not above, above),
        Check("the engine dropped nothing", result.stats.dropped == 0, f"{result.stats.dropped} dropped"),
    ]
    if sharing is not Sharing.HIERARCHICAL_DRF:  # it compares shares alone
        missed = placed.guarantees_missed()
        checks.append(Check("no queue borrows what another needs within its guarantee", not missed, missed))
    if load.spec.classes == 1 and not load.spec.limit and sharing in (Sharing.FAIR, Sharing.PROPORTIONAL):
        unequal = placed.unequal_shares()
        checks.append(Check("shares are max-min fair", not unequal, unequal))
    return checks


def _measure_reclaim(sizes: dict[str, Any], sharing: Sharing, options: Options) -> Sample:
    """Decisions are carried out until rounds change nothing; then controllers create the victims anew."""
    grows = sizes.pop("grows", "")
    if grows:
        sizes[grows] = options.scaled(sizes[grows])
    sizes["nodes"] = options.scaled(sizes["nodes"], _LEAST_NODES)
    part, takeable = sizes.pop("guarantee", 0.0), sizes.pop("takeable", 0)
    gpus = sizes["nodes"] * 8
    load = ReclaimLoad.of(JobsSpec(**sizes, seed=options.seed), sharing, takeable or int(part * gpus))
    _warm_up_reclaim(sharing)
    world = ReclaimWorld(load)
    player = Player(load, _engine(), world)
    before = time.process_time()
    played = player.run()
    cpu_s = time.process_time() - before
    served, in_vain = int(world.served.sum()), world.evicted_in_vain
    changes = player.more_rounds(_FURTHER_ROUNDS, load.created_anew(world))
    fewest = cheapest_removals(load, np.full(len(load.node), True), np.ones(len(load.node), np.int64))
    bound = least_cost(fewest, served)
    return Sample(
        metrics={
            "decision_s": float(np.median(played.decision_s)),
            "cpu_s": cpu_s,
            "rounds": float(np.median(played.decision_rounds)),
            "victims": played.victims,
            "of_bound": played.victims / bound if bound else float(played.victims == 0) or float("inf"),
            "undecided": load.guaranteed_jobs * load.spec.size - served,
        },
        facts={
            "served": served,
            "bound": bound,
            "slowest_s": round(max(played.decision_s), 6),
            "all_rounds": played.rounds,
            "all_s": round(played.seconds, 6),
            "reasons": played.reasons,
            "stage_seconds": {stage: round(seconds, 6) for stage, seconds in played.stage_seconds.items()},
        },
        checks=[
            Check("every decision is sound", not played.problems, "; ".join(dict.fromkeys(played.problems))),
            Check("no job is served in part", not world.half_served, f"{world.half_served} are"),
            Check("the rounds end", not played.endless, f"{played.rounds} rounds"),
            Check("no task is evicted in vain", not in_vain, f"{in_vain} victims would still fit on their nodes"),
            Check("the engine dropped nothing", not played.dropped, f"{played.dropped} dropped"),
            Check("nothing is better than the bound", played.victims >= bound, f"{played.victims} victims"),
            Check("no further round changes anything", not changes, f"{changes} tasks"),
        ],
    )


def _engine() -> Engine:
    return Engine(registry.load(registry.DEFAULT_POLICY, {}), SOLVERS["or-tools"]())


@cache
def _warm_up(sharing: Sharing) -> None:
    """The first rounds of a process load the searches."""
    for spec in (
        QueuesSpec(20, 400, 3, 20, sharing),
        QueuesSpec(20, 400, 3, 20, sharing, fill=2.0, limit=2.0),
        QueuesSpec(20, 20, 3, 20, sharing, running=400),
    ):
        for queued in (False, True):
            _round(QueuesLoad(spec), queued=queued)
    _warm_up_reclaim(sharing)


@cache
def _warm_up_reclaim(sharing: Sharing) -> None:
    for spec in (JobsSpec(8, 2, 2, 8), JobsSpec(8, 2, 1, 1)):
        load = ReclaimLoad.of(spec, sharing, 32)
        Player(load, _engine(), ReclaimWorld(load)).run()
