"""Measures forecasts of starts over virtual time, beside what happened and beside Slurm's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.gpu_jobs import mix
from benchmarks.simulate.events import BEGIN_US, rounded_s
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.replay import Settings, replay
from benchmarks.simulate.service import InProcess
from benchmarks.suites.starts.walltime_backfill import QueuedJob, planned_starts
from benchmarks.traces.form import HOUR, SECOND, Trace
from benchmarks.traces.generate import generate
from benchmarks.traces.presets import PRESETS
from firmament_py.engine.round_result import RoundResult
from firmament_py.forecast.forecasts import Forecasts
from firmament_py.forecast.future import Future
from firmament_py.model.arrays import F64, I64, U64
from firmament_py.model.events import Event, NodeRemoved, TasksEnded, TasksRemoved
from firmament_py.model.lifecycle import WAITING
from firmament_py.state.cluster import ClusterState

_TASK = (1 << 40) - 1
"""The bits of a uid that are a task's number plus 1 (simulate/events.py)."""

_GANG = np.uint64(1 << 63)
"""Distinguishes ids of gangs from uids."""

_SHORT_US = SECOND
"""Forecasts of less than this are not judged: the round that places is due."""


class _AtOnce:
    """An Execution that works when it is started."""

    running = False

    def start(self, work: Callable[[], None]) -> None:
        work()


@dataclass(frozen=True, slots=True)
class _Made:
    """A forecast, with the interval of each start, and Slurm's plan for the same units; K units, each by one task.
    trusted: enough earlier forecasts had been compared."""

    made_us: int
    tasks: I64
    starts_us: I64
    earliest_us: I64
    likely_us: I64
    latest_us: I64
    planned_us: I64
    trusted: bool


class _ForecastingService(InProcess):
    """The engine, and the forecasts beside it, in virtual time."""

    def __init__(self, policy: str, declared_us: I64, trace: Trace) -> None:
        super().__init__(policy)
        self.engine.now_us = lambda: self.now_us
        self.forecasts = Forecasts(self.engine, _AtOnce(), lambda: 0.0)
        self.made: list[_Made] = []
        self._declared_us, self._trace = declared_us, trace

    def apply(self, events: Sequence[Event]) -> None:
        if not any(isinstance(event, NodeRemoved) for event in events):  # whose tasks are lost
            removed = [TasksEnded(event.uid) for event in events if isinstance(event, TasksRemoved)]
            self.forecasts.note_events(removed)
        super().apply(events)

    def ended(self, result: RoundResult) -> None:
        before = self.forecasts.last
        self.forecasts.round_ended(result, self.now_us)
        last = self.forecasts.asked(self.now_us)  # takes what has been begun
        if last is not None and last is not before:
            self._note(last)

    def _note(self, future: Future) -> None:
        errors, state = self.forecasts.errors, self.engine.state
        earliest, likely, latest = errors.intervals(future.made_us, future.starts_us)
        unit = np.where(future.gang_of != 0, future.gang_of | _GANG, future.uids)
        first = np.unique(unit, return_index=True)[1]
        first = first[future.starts_us[first] > future.made_us + _SHORT_US]
        if not len(first):
            return
        waiting = _units_of(state)
        planned = _planned(state, self._declared_us, waiting, future.made_us)
        plan = {
            uid: start
            for members, start in zip(waiting, planned, strict=True)
            for uid in state.tasks.uid[members].tolist()
        }
        tasks = (future.uids[first] & np.uint64(_TASK)).astype(np.int64) - 1
        self.made.append(
            _Made(
                future.made_us - BEGIN_US,
                tasks,
                future.starts_us[first] - BEGIN_US,
                earliest[first] - BEGIN_US,
                likely[first] - BEGIN_US,
                latest[first] - BEGIN_US,
                np.array([plan.get(uid, -1) for uid in future.uids[first].tolist()]) - BEGIN_US,
                errors.compared(future.made_us) > 0,
            )
        )


def _declared(tasks: U64, declared_us: I64) -> I64:
    return declared_us[(tasks & np.uint64(_TASK)).astype(np.int64) - 1]


def _units_of(state: ClusterState) -> list[I64]:
    """The rows of the waiting tasks of each gang, and of each task of none; by age."""
    tasks = state.tasks
    rows = (tasks.state == WAITING).nonzero()[0]
    gang = tasks.gang[rows]
    unit = np.where(gang >= 0, gang, -1 - np.arange(len(rows)))
    found = []
    for number in np.unique(unit).tolist():
        members = rows[unit == number]
        found.append((int(tasks.created_us[members].min()), int(tasks.uid[members].min()), members))
    return [members for _, _, members in sorted(found, key=lambda each: each[:2])]


def _planned(state: ClusterState, declared_us: I64, waiting: list[I64], now_us: int) -> list[int]:
    """The starts that Slurm would plan; microseconds since the epoch."""
    tasks, nodes = state.tasks, state.present_nodes()
    position = np.full(state.nodes.capacity, -1)
    position[nodes] = np.arange(len(nodes))
    running = (tasks.on_nodes & (position[tasks.node] >= 0)).nonzero()[0]
    started = np.where(tasks.started_us[running] > 0, tasks.started_us[running], now_us)
    jobs = []
    for members in waiting:
        cls = int(tasks.cls[members[0]])
        selected, taint = state.node_index.evaluate(state.classes.demand(cls), nodes)
        declared = int(_declared(tasks.uid[members[:1]], declared_us)[0])
        jobs.append(QueuedJob(len(members), state.classes.requests[cls], declared, selected & (taint < 0)))
    free = state.nodes.allocatable[nodes] - state.nodes.used[nodes]
    ends = started + _declared(tasks.uid[running], declared_us)
    return planned_starts(
        now_us, free, ends, position[tasks.node[running]], state.classes.requests[tasks.cls[running]], jobs
    )


def measure(case: Case, options: Options) -> Sample:
    sizes = case.sizes
    trace = _trace(case, options)
    rng = np.random.default_rng([options.seed, 2001])
    of_job = 1.0 + sizes["overestimate"] * rng.random(len(trace.jobs))
    declared_us = rounded_s((trace.task_duration_us * of_job[trace.task_job]).astype(np.int64)) * SECOND
    service = _ForecastingService(sizes["policy"], declared_us, trace)
    settings = Settings(expectations=True, declared_us=declared_us, check_waiting_every=0)
    horizon = int(sizes["hours"] * HOUR) if sizes["hours"] else trace.span_us * 2
    outcome = replay(trace, service, max(horizon, 1), settings)
    judged = _Judged(service.made, outcome)
    checks = [Check(rule, False, detail) for rule, detail in outcome.violations.items()]
    checks.append(Check("forecasts were judged", len(judged.wait_us) > 0, f"of {len(service.made)} forecasts"))
    facts = {
        "forecasts": len(service.made),
        "judged": len(judged.wait_us),
        "waits_s": float(np.median(judged.wait_us)) / 1e6 if len(judged.wait_us) else 0.0,
        **judged.by_quartile(),
    }
    return Sample(judged.figures(), facts, checks)


def _trace(case: Case, options: Options) -> Trace:
    sizes = case.sizes
    if sizes["mix"]:
        jobs = options.scaled(sizes["jobs"], 60)
        return mix(sizes["mix"], jobs, sizes["nodes"], sizes["load"], sizes["task_gpus"], options.seed)
    hours = sizes["hours"] * min(options.scale * 4, 1.0)
    return generate(PRESETS[sizes["preset"]], options.scaled(sizes["nodes"], 12), hours, options.seed, sizes["load"])


class _Judged:
    """Forecasts of units that started, and had been trusted: each unit by its first forecast (N,)."""

    def __init__(self, made: Sequence[_Made], outcome: Outcome) -> None:
        seen, rows = set[int](), []
        for each in made:
            start = outcome.first_start_us[each.tasks]
            for i, task in enumerate(each.tasks.tolist()):
                if task in seen or outcome.attempts[task] or (not each.trusted):
                    continue
                seen.add(task)
                if start[i] < 0:
                    continue  # the replay has ended before
                columns = each.earliest_us, each.likely_us, each.latest_us, each.planned_us
                rows.append((each.made_us, int(start[i]), *(int(column[i]) for column in columns)))
        table = np.array(rows, np.int64).reshape(-1, 6)
        made_us, self.start_us, self.earliest_us, self.likely_us, self.latest_us, self.planned_us = table.T
        self.wait_us = self.start_us - made_us

    def inside(self) -> F64:
        return ((self.earliest_us <= self.start_us) & (self.start_us <= self.latest_us)).astype(np.float64)

    def figures(self) -> dict[str, float]:
        if not len(self.wait_us):
            return dict.fromkeys(("inside", "error_s", "planned_error_s", "error_ratio"), 0.0)
        error = np.abs(self.likely_us - self.start_us) / 1e6
        planned = self.planned_us >= 0
        of_planned = np.abs(self.planned_us - self.start_us)[planned] / 1e6
        both = float(np.median(error[planned])) if planned.any() else 0.0
        median = float(np.median(of_planned)) if planned.any() else 0.0
        return {
            "inside": float(self.inside().mean()),
            "error_s": float(np.median(error)),
            "planned_error_s": median,
            "error_ratio": both / median if median else 0.0,
        }

    def by_quartile(self) -> dict[str, float]:
        """Of the waits: the share of starts inside the interval."""
        if len(self.wait_us) < 4:
            return {}
        edges = np.quantile(self.wait_us, [0.25, 0.5, 0.75])
        quartile = np.searchsorted(edges, self.wait_us)
        inside = self.inside()
        there = [q for q in range(4) if (quartile == q).any()]
        return {f"inside_quartile_{q + 1}": float(inside[quartile == q].mean()) for q in there}
