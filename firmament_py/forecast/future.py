"""The rounds of the future on a copy of the state: running tasks end when they are expected to, and rounds of the same
scheduler place what waits, by the same rules, until nothing is left that any expected end would let start.

Nothing arrives meanwhile, and no node changes: start_errors.py says how much that, and wrong durations, have mattered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.engine.scheduler import Scheduler
from firmament_py.forecast.run_times import RunTimes
from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import TasksEnded
from firmament_py.model.lifecycle import ASSUMED
from firmament_py.model.options import Migrating
from firmament_py.rebalance.what_if import WhatIf
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG
from firmament_py.state.trials import begin, displace

ROUNDS, EXACT_ROUNDS = 160, 80
"""Rounds of one forecast at most, and those in which ends are taken one by one."""

STEP_US, STEPS_OF_WAIT = 1_000_000, 8
"""Ends within this time are taken together, at the last of them; after the exact rounds, ends within this share of the
time since now: so the last eighty rounds reach ten thousand times further than the first."""

AT_ONCE = 3
"""Rounds at one moment at most: victims leave, and the next round places what they were evicted for."""

HORIZON_US = 14 * 86_400 * 1_000_000
"""No start is forecast that is further away."""


@dataclass(frozen=True, slots=True)
class Future:
    """made_us: when, microseconds since the epoch. uids (K,): all tasks that waited then. starts_us (K,): when each
    starts, 0: not forecast. nodes (K,): ids of their nodes, empty: none. gang_of (K,): ids of their gangs, 0: none.
    whole: whether all expected ends were considered; else those without a start may have one that is further away."""

    made_us: int
    uids: U64
    starts_us: I64
    nodes: tuple[str, ...]
    gang_of: U64
    whole: bool


def trial_of(what_if: WhatIf, scheduler: Scheduler) -> Scheduler:
    """A scheduler for the state of `what_if`, with the settings and what is left of the hourly limits of another one,
    which must not run meanwhile. It moves no tasks: their successors would arrive."""
    options = replace(what_if.options, migrating=Migrating.NEVER, kept_networks=0)
    return scheduler.beside(what_if.state, what_if.policy, what_if.usage, limited=True, options=options)


def future_of(trial: Scheduler, now_us: int, run_times: RunTimes) -> Future:
    """The forecast at `now_us`, microseconds since the epoch, for the tasks that wait in the state of a scheduler on a
    copy, which changes."""
    state, tasks = trial.state, trial.state.tasks
    asked = tasks.waiting.copy()
    uids, gang_of = tasks.uid[asked].copy(), gang_ids(state, asked)
    starts_us = np.zeros(tasks.capacity, np.int64)
    ends_us = np.full(tasks.capacity, FOREVER)
    node_of = np.full(tasks.capacity, -1)
    running = tasks.on_nodes.nonzero()[0]
    begin(state, running[tasks.state[running] == ASSUMED], now_us)
    ends_us[running] = _later(now_us, run_times.remaining(state, running, now_us))
    at_us, rounds, whole = now_us, 0, False
    while rounds < ROUNDS:
        # what starts at this moment
        for _ in range(AT_ONCE):
            result = trial.run(at_us)
            rounds += 1
            placed, victims = result.tasks, result.preemption.victims
            begin(state, placed, at_us)
            ends_us[placed] = _later(at_us, run_times.remaining(state, placed, at_us))
            fresh = placed[starts_us[placed] == 0]
            starts_us[fresh], node_of[fresh] = at_us, tasks.node[fresh]
            displace(state, victims)
            ends_us[victims] = FOREVER
            if not len(victims):
                break
        # the next moment at which something ends, or time alone changes what fits
        if not (starts_us[asked] == 0).any():
            whole = True
            break
        ends = ends_us[tasks.on_nodes.nonzero()[0]]
        wake_us = trial.wake_us(at_us)
        next_us = min(int(ends.min(initial=FOREVER)), wake_us if wake_us > at_us else FOREVER)
        if next_us >= now_us + HORIZON_US:
            whole = True
            break
        step_us = STEP_US if rounds < EXACT_ROUNDS else max(STEP_US, (at_us - now_us) // STEPS_OF_WAIT)
        at_us = max(next_us, at_us + step_us)
        ended = ((ends_us <= at_us) & tasks.on_nodes).nonzero()[0]
        ends_us[ended] = FOREVER
        _end(state, ended)
    ids = state.nodes.id
    return Future(
        now_us,
        uids,
        starts_us[asked],
        tuple(ids.get(row, "") for row in node_of[asked].tolist()),
        gang_of,
        whole,
    )


def _end(state: ClusterState, rows: I64) -> None:
    """Task rows (K,) end. As clients say of such gangs, those that have ended count for the minimums of theirs."""
    gangs, ended = np.unique(state.tasks.gang[rows], return_counts=True)
    state.apply(TasksEnded(state.tasks.uid[rows].copy()))
    for gang, count in zip(gangs.tolist(), ended.tolist(), strict=True):
        if gang != NO_GANG and state.gangs.live[gang]:
            known = state.gangs.definition(gang)
            roles = tuple((role, max(minimum - count, 0)) for role, minimum in known.roles)
            state.apply(replace(known, minimum=max(known.minimum - count, 1), roles=roles))


def _later(at_us: int, remaining: I64) -> I64:
    """(K,) when tasks end that run on for `remaining` (K,)."""
    return np.where(remaining < FOREVER, at_us + np.minimum(remaining, FOREVER - at_us), FOREVER)


def gang_ids(state: ClusterState, rows: I64) -> U64:
    """(K,) ids of the gangs of task rows (K,), 0: none."""
    gang = state.tasks.gang[rows]
    return np.where(gang != NO_GANG, state.gangs.id[gang], np.uint64(0)).astype(np.uint64)
