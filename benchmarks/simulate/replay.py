"""Discrete-event replay of a trace through a scheduler, on a clock of its own.

At each moment: binds take effect, tasks end, machines change, jobs arrive, in this order; then a round starts if there
is work and the one before is over. A round's placements hold their room at once; they are bound when the round is over
and the bind's latency has passed, and from then on tasks run for as long as the trace says. A machine that goes takes
its running tasks with it: they wait again at once, as new tasks, from the beginning; if one of them belongs to a gang,
so do all of the gang that run. A bind to a machine that has gone is rejected.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulate.recording import Outcome, Recorder
from benchmarks.simulate.service import Service
from benchmarks.simulate.telling import BEGIN_US, Teller
from benchmarks.simulate.world import State, World
from benchmarks.traces.form import FOREVER, SECOND, MachineEvent, Trace
from benchmarks.traces.generate import offered_load
from firmament_py.model.arrays import I64
from firmament_py.model.events import Event, GangRemoved, NodeRemoved, PlacementRejected, TasksRemoved


@dataclass(frozen=True, slots=True)
class Settings:
    """round_ms: how long each round takes, None: as long as it really takes (then the result depends on the machine).
    bind_ms: from a round's end to its binds' effect. gap_ms: from a round's start to the next one's at least.
    samples: how many over the whole time. waste_every: every so many rounds the judge looks for wasted room; 0: never.
    expectations: jobs say how long their tasks will run, to two significant digits.
    """

    round_ms: float | None = 100.0
    bind_ms: float = 50.0
    gap_ms: float = 0.0
    samples: int = 480
    waste_every: int = 16
    expectations: bool = False


Progress = Callable[[int, int], None]
"""Told now and then: virtual microseconds that have passed, and of how many."""


def replay(
    trace: Trace,
    service: Service,
    horizon_us: int,
    settings: Settings | None = None,
    progress: Progress = lambda *_: None,
) -> Outcome:
    """Replays a trace up to a moment. The service is new and knows nothing."""
    run = _Replay(trace, service, horizon_us, settings or Settings(), progress)
    run.run()
    return run.outcome()


class _Replay:
    def __init__(self, trace: Trace, service: Service, horizon_us: int, settings: Settings, progress: Progress) -> None:
        self._trace, self._service, self._settings, self._progress = trace, service, settings, progress
        self._horizon = horizon_us
        self._world = World(trace)
        named = [r for r in trace.resources if r != "pods"]
        self._contended = max(named, key=lambda name: offered_load(trace, name))
        self._teller = Teller(self._world, links=service.counts_links, expectations=self._settings.expectations)
        self._recorder = Recorder(self._world, self._contended)
        self._row = {machine.name: i for i, machine in enumerate(trace.machines)}
        self._next_task = self._next_event = 0
        self._ends: list[tuple[int, int, int]] = []  # time, task, attempt
        self._binds: list[tuple[int, int, I64]] = []  # time, round, tasks
        self._free_at = 0  # when the next round may start
        self._left: I64 = np.bincount(trace.task_job, minlength=len(trace.jobs)).astype(np.int64)  # not ended
        self._news = False
        self._rounds = self._placements = self._bind_failures = self._restarts = self._solves = 0
        self._dropped = 0
        self._round_s: list[float] = []
        self._solve_s = 0.0
        self._first_start: I64 = np.full(len(trace.task_us), -1, np.int64)
        self._end: I64 = np.full(len(trace.task_us), -1, np.int64)
        self._last_machine: I64 = np.full(len(trace.task_us), -1, np.int64)

    def run(self) -> None:
        step = max(self._horizon // max(self._settings.samples, 1), 1)
        next_sample = 0
        while True:
            now = self._next_moment()
            while next_sample <= min(now, self._horizon):
                self._recorder.advance(next_sample)
                self._recorder.sample()
                self._progress(next_sample, self._horizon)
                next_sample += step
            if now > self._horizon:
                break
            self._recorder.advance(now)
            self._take_binds(now)
            self._take_ends(now)
            self._take_machine_events(now)
            self._take_arrivals(now)
            if self._news and self._world.waiting and now >= self._free_at:
                self._round(now)
        self._recorder.advance(self._horizon)
        self._world.judge_end()
        self._progress(self._horizon, self._horizon)

    def outcome(self) -> Outcome:
        world, recorder = self._world, self._recorder
        contested, share = recorder.contested()
        blamed = {what: f"{count} times, e.g. {world.examples[what]}" for what, count in world.violations.items()}
        if self._dropped:
            blamed["the scheduler's own check dropped placements"] = f"{self._dropped} times"
        return Outcome(
            trace=self._trace,
            scheduler=self._service.name,
            horizon_us=self._horizon,
            resources=world.resources,
            contended=self._contended,
            first_start_us=self._first_start,
            end_us=self._end,
            attempts=world.attempt,
            machine=self._last_machine,
            state=world.state.astype(np.int64),
            utilisation=recorder.utilisation(),
            utilisation_contested=contested,
            contested_share=share,
            samples_us=np.array(recorder.samples_us, np.int64),
            sampled=recorder.sampled(),
            rounds=self._rounds,
            round_s=self._round_s,
            solve_s=self._solve_s,
            solves=self._solves,
            placements=self._placements,
            bind_failures=self._bind_failures,
            restarts=self._restarts,
            violations=blamed,
        )

    # -- time -------------------------------------------------------------------------------------------------

    def _next_moment(self) -> int:
        trace, moments = self._trace, [self._horizon + 1]
        if self._next_task < len(trace.task_us):
            moments.append(int(trace.task_us[self._next_task]))
        if self._next_event < len(trace.event_us):
            moments.append(int(trace.event_us[self._next_event]))
        if self._ends:
            moments.append(self._ends[0][0])
        if self._binds:
            moments.append(self._binds[0][0])
        if self._news and self._world.waiting:
            moments.append(max(self._free_at, self._recorder.now_us))
        return min(moments)

    def _take_binds(self, now: int) -> None:
        while self._binds and self._binds[0][0] <= now:
            _, _, tasks = heapq.heappop(self._binds)
            machines = self._world.machine[tasks]
            bound, failed = self._world.bind(tasks)
            if len(failed):
                names = [self._trace.machines[m].name for m in machines[np.isin(tasks, failed)].tolist()]
                uids = self._teller.uids(failed).tolist()
                self._service.apply([PlacementRejected(u, n) for u, n in zip(uids, names, strict=True)])
                self._bind_failures += len(failed)
                self._news = True
            if len(bound):
                self._start(bound, now)

    def _start(self, tasks: I64, now: int) -> None:
        world, trace = self._world, self._trace
        self._service.apply([self._teller.bound(tasks, now)])
        self._recorder.started(tasks)
        fresh = self._first_start[tasks] < 0
        self._first_start[tasks[fresh]] = now
        self._last_machine[tasks] = world.machine[tasks]
        durations = trace.task_duration_us[tasks].tolist()
        for task, duration, attempt in zip(tasks.tolist(), durations, world.attempt[tasks].tolist(), strict=True):
            if duration != FOREVER and now + duration <= self._horizon:
                heapq.heappush(self._ends, (now + duration, task, attempt))

    def _take_ends(self, now: int) -> None:
        ended = []
        while self._ends and self._ends[0][0] <= now:
            _, task, attempt = heapq.heappop(self._ends)
            if self._world.attempt[task] == attempt and self._world.state[task] == State.RUNNING:
                ended.append(task)
        if not ended:
            return
        tasks = np.array(ended)
        removed = TasksRemoved(self._teller.uids(tasks))
        for task in ended:
            self._world.end(task)
        self._end[tasks] = now
        jobs, counts = np.unique(self._trace.task_job[tasks], return_counts=True)
        self._left[jobs] -= counts
        gangs = [job for job in jobs.tolist() if job in self._teller.gangs]
        self._service.apply(
            [
                *(self._teller.gang(job) for job in gangs if self._left[job]),
                removed,
                *(GangRemoved(job + 1) for job in gangs if not self._left[job]),
            ]
        )
        self._news = True

    def _take_machine_events(self, now: int) -> None:
        trace = self._trace
        while self._next_event < len(trace.event_us) and trace.event_us[self._next_event] <= now:
            i, self._next_event = self._next_event, self._next_event + 1
            machine, kind = int(trace.event_machine[i]), MachineEvent(int(trace.event_kind[i]))
            self._world.machine_event(machine, kind, trace.event_allocatable[i])
            if kind == MachineEvent.REMOVE:
                self._lose(machine)
            else:
                self._service.apply([self._teller.machine(machine)])
            self._news = True

    def _lose(self, machine: int) -> None:
        """A machine is gone: what ran there waits again, and with it what ran of the same gangs."""
        world, trace = self._world, self._trace
        lost = np.flatnonzero((world.machine == machine) & (world.state == State.RUNNING))
        gangs = [j for j in np.unique(trace.task_job[lost]).tolist() if trace.jobs[j].gang_minimum > 1]
        if gangs:
            members = np.concatenate([world.members(j) for j in gangs])
            lost = np.union1d(lost, members[world.state[members] == State.RUNNING])
        events: list[Event] = [NodeRemoved(trace.machines[machine].name)]
        if len(lost):
            events.append(TasksRemoved(self._teller.uids(lost)))
        self._service.apply(events)
        if len(lost):
            world.lose(lost)
            self._restarts += len(lost)
            self._submit(lost)

    def _take_arrivals(self, now: int) -> None:
        first = self._next_task
        last = int(np.searchsorted(self._trace.task_us, now, side="right"))
        if last == first:
            return
        self._next_task = last
        tasks = np.arange(first, last)
        self._world.submit(tasks)
        self._submit(tasks)

    # -- rounds -----------------------------------------------------------------------------------------------

    def _submit(self, tasks: I64) -> None:
        self._service.apply(self._teller.submitted(tasks))
        self._news = True

    def _round(self, now: int) -> None:
        self._news = False
        result = self._service.round(BEGIN_US + now)
        if result is None:
            return
        world, settings = self._world, self._settings
        self._rounds += 1
        self._round_s.append(result.seconds)
        self._solve_s += result.solve_s
        self._solves += result.solves
        self._dropped += result.dropped
        seconds = result.seconds if settings.round_ms is None else settings.round_ms / 1000
        over = now + max(int(seconds * SECOND), 1)
        self._free_at = max(over, now + int(settings.gap_ms * 1000))
        tasks, attempts = self._teller.parse(result.uids)
        machines = np.array([self._row.get(node, -1) for node in result.nodes], np.int64)
        stale = world.attempt[tasks] != attempts
        if stale.any():
            world.violations["a task is placed that is not there any more"] += int(stale.sum())
            world.examples["a task is placed that is not there any more"] = self._trace.task_name(int(tasks[stale][0]))
            tasks, machines = tasks[~stale], machines[~stale]
        if len(tasks):
            world.assume(tasks, machines)
            placed = tasks[world.state[tasks] == State.ASSUMED]
            heapq.heappush(self._binds, (over + int(settings.bind_ms * 1000), self._rounds, placed))
            self._placements += len(placed)
        # the judge knows nothing of links, for want of which a task may wait
        if settings.waste_every and not self._service.counts_links and self._rounds % settings.waste_every == 0:
            after_us = self._service.reserve_after_us
            world.judge_waste(None if after_us is None else now - after_us)
