"""Measures a round that selects which of many gangs run, compared with simple orderings of the same gangs, and a round
that reserves capacity for a gang."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.gangs import START_US, GangLoad, GangSpec
from benchmarks.loads.reservations import ReservationLoad, ReservationSpec
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.arrays import I64
from firmament_py.model.events import Event
from firmament_py.policy import registry


def measure(case: Case, options: Options) -> Sample:
    """A fresh engine receives the whole load, then runs a round."""
    sizes = dict(case.sizes)
    if "size" in sizes:
        return _reservation(sizes, options)
    policy = sizes.pop("policy", registry.DEFAULT_POLICY)
    sizes["nodes"], sizes["gangs"] = options.scaled(sizes["nodes"], 10), options.scaled(sizes["gangs"], 5)
    load = GangLoad(GangSpec(**sizes, seed=options.seed))
    engine = Engine(registry.load(policy, {}), SOLVERS["or-tools"]())
    events: list[Event] = [*load.nodes, *load.classes, *load.gangs, load.tasks()]
    outcome = engine.apply(events)
    result = engine.run_round(START_US + 1_000_000)
    if result is None or outcome.refused or outcome.unknown_classes or outcome.unknown_gangs:
        return Sample({}, checks=[Check("the engine accepts the load", False, str(outcome.refused[:1]))])
    uids = engine.state.tasks.uid[result.tasks]
    nodes = [engine.state.nodes.id[row] for row in result.nodes.tolist()]
    admitted, partial = load.admitted(uids)
    wrong = load.violations(uids, nodes)
    fifo, smallest = load.fifo(), load.smallest_first()
    gpus, requested = load.spec.nodes * load.spec.gpus, int((load.size * load.each).sum())
    possible = min(gpus, requested)
    stats = result.stats
    return Sample(
        metrics={
            "round_s": stats.seconds,
            "utilisation": load.gpus_of(admitted) / possible,
            "fifo_utilisation": load.gpus_of(fifo) / possible,
            "smallest_utilisation": load.gpus_of(smallest) / possible,
            "admitted": len(admitted),
            "fifo_admitted": len(fifo),
            "smallest_admitted": len(smallest),
            "wait_order": _wait_order(admitted, load.spec.gangs),
            "smallest_wait_order": _wait_order(smallest, load.spec.gangs),
        },
        facts={
            "gangs": load.spec.gangs,
            "tasks": len(load.gang_of),
            "gpus": gpus,
            "requested": requested,
            "placed": stats.placed,
            "solves": stats.solves,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        },
        checks=[
            Check("every gang is placed completely or not at all", not partial, "; ".join(partial)),
            Check("no node is over-committed", not wrong, "; ".join(wrong)),
            Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
            Check("no gang waits for which enough GPUs are free", *_unused(load, uids, nodes)),
        ],
    )


def _reservation(sizes: dict[str, Any], options: Options) -> Sample:
    """A nearly full cluster and gangs that do not fit: capacity is reserved for the oldest."""
    sizes["nodes"], sizes["size"] = options.scaled(sizes["nodes"], 10), options.scaled(sizes["size"], 1)
    load = ReservationLoad(ReservationSpec(**sizes, seed=options.seed))
    engine = Engine(registry.load(registry.DEFAULT_POLICY, {}), SOLVERS["or-tools"]())
    outcome = engine.apply(load.events())
    now_us = START_US + 1_000_000
    result = engine.run_round(now_us)
    if result is None or outcome.refused or outcome.unknown_classes or outcome.unknown_gangs:
        return Sample({}, checks=[Check("the engine accepts the load", False, str(outcome.refused[:1]))])
    uids = engine.state.tasks.uid[result.tasks]
    nodes = np.array([int(engine.state.nodes.id[row].rpartition("-")[2]) for row in result.nodes.tolist()], np.int64)
    found = list(engine.scheduler.gang_starts_us.values())
    alone, beside = (load.start_us(u, n, now_us) for u, n in ((uids[:0], nodes[:0]), (uids, nodes)))
    stats, over, members = result.stats, load.over_committed(nodes), load.members(uids)
    return Sample(
        metrics={"round_s": stats.seconds},
        facts={
            "running": load.running,
            "placed": stats.placed,
            "solves": stats.solves,
            "starts_in_s": round((alone - now_us) / 1e6, 3) if alone else -1,
            "stage_seconds": {name: round(seconds, 6) for name, seconds in stats.stage_seconds.items()},
        },
        checks=[
            Check("no gang is placed", members == 0, f"{members} members are placed"),
            Check("no node is over-committed", over == 0, f"{over} nodes are over-committed"),
            Check("the engine dropped nothing", stats.dropped == 0, f"{stats.dropped} placements dropped"),
            Check("the gang is planned for its earliest start", found == [alone], f"{found} instead of {alone}"),
            Check("no backfilled task delays the gang", beside == alone, f"to {beside} instead of {alone}"),
            Check("tasks that end in time are placed", not load.spec.ends_known or stats.placed > 0, "none is placed"),
        ],
    )


def _wait_order(admitted: I64, gangs: int) -> float:
    """Mean queue position of the gangs that run, 0 the oldest, 1 the youngest: low is fair."""
    return float(np.mean(admitted)) / max(gangs - 1, 1) if len(admitted) else 1.0


def _unused(load: GangLoad, uids: I64 | np.ndarray, nodes: list[str]) -> tuple[bool, str]:
    free = np.full(load.spec.nodes, load.spec.gpus)
    rows = np.array([int(node.rpartition("-")[2]) for node in nodes], np.int64)
    np.subtract.at(free, rows, load.each[load.gang_of[uids.astype(np.int64) - 1]])
    admitted, _ = load.admitted(uids.astype(np.uint64))
    for g in np.setdiff1d(np.arange(load.spec.gangs), admitted).tolist():
        if int((free // int(load.each[g])).sum()) >= int(load.size[g]):
            return False, f"gang {g} of {load.size[g]} tasks of {load.each[g]} GPUs would fit"
    return True, ""
