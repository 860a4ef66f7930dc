"""Replays of one workload under different rules, and what they measured."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np

from benchmarks.loads.openi.bridge import Bridge
from benchmarks.loads.openi.cluster import Cluster, State
from benchmarks.loads.openi.rules import Timeline, replay
from benchmarks.loads.openi.volcano import Volcano
from benchmarks.loads.openi.workload import DAY, MINUTE, SECOND, Spec, generate
from firmament_py.model.arrays import F64

NOTICE_US = MINUTE
"""How long victims keep running after they have been told."""

ENGINE_EVERY, SESSION_EVERY = MINUTE, SECOND
"""Least time between rounds of the engine for anything but urgent jobs and victims that leave; period of Volcano's
sessions, which is that of its default."""

_PARALLEL = 20_000
"""From so many jobs on, two replays run at a time."""

RULES = ("delayed", "none", "volcano")
"""Delayed preemption; the same engine without preemption; Volcano's rules."""


@dataclass(slots=True)
class Outcome:
    """What a replay measured. violations: rule -> how often, and an example; facts of the engine's rounds."""

    use: float
    use_in_overload: float
    overload: float
    spread: float
    imbalance: float
    urgent_wait_s: float
    urgent_wait_p99_s: float
    other_wait_s: float
    preemptions: int
    jobs: int
    jobs_hurt: int
    pods: int
    pods_chosen: int
    lost_gpu_h: float
    announced: int
    spared: int
    done: int
    waiting: int
    days: float
    cpu_s: float
    rounds: int = 0
    dropped: int = 0
    round_s: float = 0.0
    violations: dict[str, str] = field(default_factory=dict)
    stage_seconds: dict[str, float] = field(default_factory=dict)


def play_all(spec: Spec) -> dict[str, Outcome]:
    """The outcomes under all RULES."""
    if spec.jobs < _PARALLEL:
        return {rules: play(spec, rules) for rules in RULES}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return dict(zip(RULES, pool.map(play, [spec] * len(RULES), RULES), strict=True))


def play(spec: Spec, rules: str, notice_us: int = NOTICE_US) -> Outcome:
    """A replay from the first arrival to the last one."""
    began = time.process_time()
    load = generate(spec)
    cluster, timeline = Cluster(load), Timeline()
    bridge = None
    if rules == "volcano":
        replay(cluster, timeline, Volcano(cluster, timeline, SESSION_EVERY), load.end_us)
    else:
        bridge = Bridge(cluster, timeline, notice_us if rules == "delayed" else None, ENGINE_EVERY)
        replay(cluster, timeline, bridge, load.end_us)
    cluster.check_totals()
    measures, urgent = cluster.measures, cluster.measures.urgent
    waits = measures.waits_s(urgent)
    outcome = Outcome(
        use=measures.use,
        use_in_overload=measures.use_in_overload,
        overload=measures.overload,
        spread=measures.spread,
        imbalance=measures.imbalance,
        urgent_wait_s=_mean(waits),
        urgent_wait_p99_s=float(np.quantile(waits, 0.99)) if len(waits) else 0.0,
        other_wait_s=_mean(measures.waits_s(~urgent)),
        preemptions=measures.preemptions,
        jobs=measures.evicted_jobs,
        jobs_hurt=int((measures.evictions > 0).sum()),
        pods=measures.pods_evicted,
        pods_chosen=measures.pods_chosen,
        lost_gpu_h=measures.lost_gpu_h,
        announced=measures.announced,
        spared=measures.spared,
        done=int((cluster.state == State.DONE).sum()),
        waiting=int((cluster.state == State.WAITING).sum()),
        days=load.end_us / DAY,
        cpu_s=time.process_time() - began,
        violations={
            rule: f"{count} times, e.g. {cluster.examples[rule]}" for rule, count in cluster.violations.items()
        },
    )
    if bridge is not None:
        outcome.rounds, outcome.dropped = bridge.rounds, bridge.dropped
        outcome.round_s = float(np.median(bridge.seconds)) if bridge.seconds else 0.0
        outcome.stage_seconds = {stage: round(seconds, 3) for stage, seconds in bridge.stage_seconds.items()}
    return outcome


def _mean(values: F64) -> float:
    return float(values.mean()) if len(values) else 0.0
