"""Measures what is lost if a cluster is split into parts with a scheduler each, and the time of the slowest part."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.split import START_US, SplitLoad, SplitSpec, over_committed
from firmament_py.engine.engine import Engine
from firmament_py.engine.round import Round
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.model.options import EngineOptions, Preempting
from firmament_py.network.slot_runs import widths
from firmament_py.policy import registry

_NOW_US = START_US + 1_000_000

Objective = Callable[[I64], tuple[int, int]]
"""The costs of all placements of waiting tasks on nodes (T,), -1: none, and those of leaving the others waiting."""


def measure(case: Case, options: Options) -> Sample:
    """One random cluster as a whole, and in parts."""
    sizes = case.sizes
    nodes = options.scaled(sizes["nodes"], 80)
    load = SplitLoad(
        SplitSpec(nodes, sizes["used"], sizes["queued"], sizes["ganged"], sizes["largest_gang"], options.seed)
    )
    whole, seconds = _in_parts(load, sizes["policy"], 1)
    objective = _objective(load, sizes["policy"])
    (placing, waiting), tasks, gangs = (
        objective(whole),
        int((whole >= 0).sum()),
        int((load.whole_gangs(whole) > 0).sum()),
    )
    metrics: dict[str, float] = {"whole_s": seconds[0]}
    found, costs = {1: whole}, {1: (placing, waiting)}
    for parts in sizes["parts"]:
        found[parts], seconds = _in_parts(load, sizes["policy"], parts)
        costs[parts] = objective(found[parts])
        metrics |= {
            f"tasks_{parts}": int((found[parts] >= 0).sum()) / tasks,
            f"gangs_{parts}": int((load.whole_gangs(found[parts]) > 0).sum()) / max(gangs, 1),
            f"cost_{parts}": sum(costs[parts]) / (placing + waiting),
            f"placing_{parts}": costs[parts][0] / int((found[parts] >= 0).sum()) / (placing / tasks),
            f"slowest_{parts}_s": sum(seconds),
        }
    broken = [parts for parts, node_of in found.items() if (load.whole_gangs(node_of) < 0).any()]
    over = [parts for parts, node_of in found.items() if over_committed(load, node_of).any()]
    return Sample(
        metrics=metrics,
        facts={
            "waiting": len(load.cls),
            "gangs": len(load.gang_size),
            "running": len(load.running_class),
            "placed": {str(parts): int((node_of >= 0).sum()) for parts, node_of in found.items()},
            "gangs_placed": {str(parts): int((load.whole_gangs(n) > 0).sum()) for parts, n in found.items()},
            "costs": {str(parts): cost for parts, cost in costs.items()},
        },
        checks=[
            Check("no gang is placed in part", not broken, f"with {broken} parts"),
            Check("no node is over-committed", not over, f"with {over} parts"),
        ],
    )


def _in_parts(load: SplitLoad, policy: str, count: int) -> tuple[I64, list[float]]:
    """(T,) the node of each waiting task, -1: none, and the time of the slowest part in each pass. What one part could
    not place is dealt to the parts once more; a whole has no second pass."""
    part = load.parts(count)
    engines = [_engine(load, policy, np.flatnonzero(part == p)) for p in range(count)]
    node_of = np.full(len(load.cls), -1)
    seconds = []
    for number in range(1 if count == 1 else 2):
        tasks = np.flatnonzero(node_of < 0)
        to = load.assigned_parts(tasks, part, count, load.free(node_of), by_slots=number > 0)
        slowest = 0.0
        for p, engine in enumerate(engines):
            some = tasks[to == p]
            if not len(some):
                continue
            engine.apply([load.waiting(some)])
            began = perf_counter()
            result = engine.run_round(_NOW_US + number)
            slowest = max(slowest, perf_counter() - began)
            if result is not None:
                placed = engine.state.tasks.uid[result.tasks].astype(np.int64) - 1
                node_of[placed] = [int(engine.state.nodes.id[row][1:]) for row in result.nodes.tolist()]
            engine.apply([load.withdrawn(some[node_of[some] < 0])])
        seconds.append(slowest)
    return node_of, seconds


def _engine(load: SplitLoad, policy: str, nodes: I64) -> Engine:
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"](), options=EngineOptions(preempting=Preempting.OFF))
    outcome = engine.apply(load.cluster(nodes))
    if outcome.refused or outcome.unknown_classes:
        raise RuntimeError(f"the engine refuses the load: {outcome.refused[:1]}")
    return engine


def _objective(load: SplitLoad, policy: str) -> Objective:
    """The policy's costs for the whole queue on the whole cluster before any of it is placed."""
    engine = _engine(load, policy, np.arange(len(load.allocatable)))
    engine.apply([load.waiting(np.arange(len(load.cls)))])
    current = Round(engine.state, engine.usage, engine.policy, engine.solver, _NOW_US, engine.options)
    placer = current.placer()
    subproblem, costs = placer.first_costs(np.arange(len(placer.snapshot.tasks)))
    view, snapshot = subproblem.view, placer.snapshot
    task = engine.state.tasks.uid[snapshot.tasks[subproblem.tasks]].astype(np.int64) - 1
    names = [int(engine.state.nodes.id[row][1:]) for row in snapshot.nodes.tolist()]
    position = np.full(len(load.allocatable) + 1, -1)  # the last one for tasks without a node
    position[names] = np.arange(len(names))
    nodes, runs = len(snapshot.nodes), len(view.slot_offsets)
    place = np.broadcast_to(costs.place, subproblem.capacities.slots.shape)
    slot = np.broadcast_to(costs.slot, (nodes, runs))
    width = widths(view.slot_offsets, np.full(nodes, len(load.cls)))

    def objective(node_of: I64) -> tuple[int, int]:
        at = position[node_of[task]]
        there = at >= 0
        number = np.bincount(at[there], minlength=nodes)
        taken = np.clip(number[:, None] - view.slot_offsets, 0, width)
        placing = place[view.task_class[there], at[there]].sum() + (taken * slot).sum()
        return int(placing), int(costs.wait[~there].sum())

    return objective
