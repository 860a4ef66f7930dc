"""Measures plans of moves that join free capacity, compared with the exact optimum and with the rules of others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.defragmentation.descheduler import Scoring, high_node_utilization
from benchmarks.loads.defragmentation.engine import play
from benchmarks.loads.defragmentation.fewest_moves import fewest_moves
from benchmarks.loads.defragmentation.greedy import greedy_plan
from benchmarks.loads.defragmentation.joined import joined_plan
from benchmarks.loads.defragmentation.kai import PREEMPTEES, consolidate
from benchmarks.loads.defragmentation.machines import PIECE, Machines, Plan, fragment_rate
from benchmarks.loads.defragmentation.optimum import best_plan
from benchmarks.loads.defragmentation.pods import Pods, Run
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry
from firmament_py.rebalance.planner import Goal, Wish

PLANS: dict[str, Plan] = {"greedy": greedy_plan, "rebalance": joined_plan}
"""The functions under test."""

_LEAST_MACHINES, _LEAST_NODES = 56, 20


def measure(case: Case, options: Options) -> Sample:
    """One random cluster."""
    return _pods(case.sizes, options) if "rule" in case.sizes else _machines(case.sizes, options)


def _machines(sizes: Mapping[str, Any], options: Options) -> Sample:
    """A plan of moves, compared with the best one."""
    machines = Machines.random(options.seed, options.scaled(sizes["machines"], _LEAST_MACHINES))
    free, limit = machines.free, options.scaled(sizes["moves"])
    before = int((free // PIECE).sum())
    started = time.perf_counter()
    moves = PLANS[sizes["plan"]](free, machines.tasks, limit)
    plan_s = time.perf_counter() - started
    wrong = machines.violations(moves, limit)
    if wrong:
        return Sample({}, checks=[Check("the moves are sound", False, "; ".join(wrong))])
    after = machines.after(moves).free
    pieces = int((after // PIECE).sum())
    started = time.perf_counter()
    best = best_plan(free, machines.tasks, limit, sizes["best_s"])
    best_s = time.perf_counter() - started
    metrics = {"rate": fragment_rate(after), "moves": len(moves), "pieces": pieces - before, "plan_s": plan_s}
    facts = {
        "tasks": len(machines.tasks.machine),
        "rate_before": round(fragment_rate(free), 6),
        "pieces_before": before,
        "blocked": machines.blocked(moves),
        "best_s": round(best_s, 3),
    }
    checks = [Check("the moves are sound", True)]
    if best is not None:
        best_after = machines.after(best.moves).free
        best_pieces = int((best_after // PIECE).sum())
        metrics["of_best"] = (pieces - before) / (best_pieces - before) if best_pieces > before else 1.0
        metrics["best_rate"] = fragment_rate(best_after)
        metrics["above_best"] = metrics["rate"] / metrics["best_rate"] - 1.0
        facts |= {"best_moves": len(best.moves), "best_pieces": best_pieces - before, "bound": best.bound - before}
        facts["best_blocked"] = machines.blocked(best.moves)
        wrong = machines.violations(best.moves, limit)
        checks += [
            Check("the moves of the optimum are sound", not wrong, "; ".join(wrong)),
            Check("the optimum is what its moves leave", best_pieces >= best.pieces, f"{best_pieces} {best.pieces}"),
            Check("nothing is better than the bound", pieces <= best.bound, f"{pieces} > {best.bound}"),
        ]
    return Sample(metrics, facts, checks)


def _pods(sizes: Mapping[str, Any], options: Options) -> Sample:
    """The moves of a rule, and the fewest moves for the same result."""
    nodes, waiting = options.scaled(sizes["nodes"], _LEAST_NODES), options.scaled(sizes["waiting"])
    if waiting:
        load = Pods.scattered(options.seed, nodes, sizes["used"], waiting, sizes["each"])
    else:
        load = Pods.underused(options.seed, nodes)
    started = time.perf_counter()
    run = _run(sizes["rule"], load)
    rule_s = time.perf_counter() - started
    wrong = run.violations(load)
    if wrong:
        return Sample({}, checks=[Check("no pod is lost, no node over-committed", False, "; ".join(wrong))])
    moves, emptied, served, broken = len(run.evictions), run.emptied(load), run.served(), run.broken(load)
    fewest = fewest_moves(load, emptied=0 if waiting else emptied, served=served, seconds=sizes["best_s"])
    every = fewest_moves(load, served=waiting, seconds=sizes["best_s"]) if waiting else None
    metrics: dict[str, float] = {
        "result": served if waiting else emptied,
        "moves": moves,
        "returned": run.returned(load),
        "broken": broken,
    }
    facts = {
        "pods": len(load.node),
        "evictable": int(load.evictable.sum()),
        "waiting": waiting,
        "rule_s": round(rule_s, 4),
        "fewest_for_all": every.moves if every else None,
    }
    checks = [Check("no pod is lost, no node over-committed", True)]
    if fewest is not None:
        metrics["fewest"] = fewest.moves
        facts["bound"] = fewest.bound
        allowed = broken > 0 or moves >= fewest.bound
        checks.append(Check("within budgets nothing is better than the bound", allowed, f"{moves} {fewest.bound}"))
    else:
        checks.append(Check("what breaks no budget is possible within budgets", broken > 0))
    return Sample(metrics, facts, checks)


def _run(rule: str, load: Pods) -> Run:
    """Raises ValueError for an unknown rule."""
    match rule:
        case "descheduler, least allocated":
            return high_node_utilization(load, Scoring.LEAST_ALLOCATED)
        case "descheduler, most allocated":
            return high_node_utilization(load, Scoring.MOST_ALLOCATED)
        case "kai":
            return consolidate(load, PREEMPTEES)
        case "kai, any number":
            return consolidate(load, len(load.node))
        case "engine":
            policy = registry.load("bin-packing", {})
            engine = Engine(
                policy, SOLVERS["or-tools"](), options=EngineOptions(migrating=Migrating.ALWAYS, migrate_after_us=0)
            )
            return play(load, engine)
        case "engine, for waiting":
            policy = registry.load("bin-packing", {})
            engine = Engine(
                policy,
                SOLVERS["or-tools"](),
                options=EngineOptions(migrating=Migrating.FOR_WAITING, migrate_after_us=0),
            )
            return play(load, engine)
        case "rebalance":
            policy = registry.load("bin-packing", {})
            engine = Engine(
                policy, SOLVERS["or-tools"](), options=EngineOptions(migrate_after_us=0, moves_at_once=len(load.node))
            )
            return play(load, engine, Wish(Goal.PLACE if len(load.waiting) else Goal.PACK, moves=len(load.node)))
    raise ValueError(f"unknown rule {rule!r}")
