"""Discrete-event replay of a trace through a scheduler, in virtual time.

At each moment binds take effect, tasks end, machines change and jobs arrive, in this order; then a round starts if
there is work and the previous round is over. A round's placements allocate their requests at once. They are bound when
the round is over and the latency of binds has passed, and then run for the duration in the trace. When a machine is
removed, its running tasks become pending again, as new tasks, from the beginning; if one is a member of a gang, so do
all running members of that gang. A bind to a removed machine is rejected.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulate.events import BEGIN_US, EventSource
from benchmarks.simulate.recording import Outcome, Recorder
from benchmarks.simulate.service import Service
from benchmarks.simulate.world import State, World
from benchmarks.traces.form import FOREVER, SECOND, MachineEvent, Trace
from benchmarks.traces.generate import offered_load
from firmament_py.model.arrays import I64
from firmament_py.model.events import Event, GangRemoved, NodeRemoved, PlacementRejected, TasksRemoved


@dataclass(frozen=True, slots=True)
class Settings:
    """round_ms: duration of a round; None: its real duration, so that the result depends on the machine. bind_ms: from
    the end of a round to the effect of its binds. gap_ms: minimum time between the starts of two rounds. samples:
    number of samples over the whole time. check_waiting_every: number of rounds between checks for pending tasks that
    fit; 0: no such checks. expectations: tasks have expected durations, to two significant digits. declared_us (T,):
    these, if they are not the true ones.
    """

    round_ms: float | None = 100.0
    bind_ms: float = 50.0
    gap_ms: float = 0.0
    samples: int = 480
    check_waiting_every: int = 16
    expectations: bool = False
    declared_us: I64 | None = None


Progress = Callable[[int, int], None]
"""Called at every sample with the virtual time and the end of the replay, in microseconds."""


def replay(
    trace: Trace,
    service: Service,
    horizon_us: int,
    settings: Settings | None = None,
    progress: Progress = lambda *_: None,
) -> Outcome:
    """Replays a trace up to horizon_us, through a new service."""
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
        declared_us = trace.task_duration_us if self._settings.declared_us is None else self._settings.declared_us
        expected_us = declared_us if self._settings.expectations else None
        self._events = EventSource(self._world, links=service.counts_links, expected_us=expected_us)
        self._recorder = Recorder(self._world, self._contended)
        self._row = {machine.name: i for i, machine in enumerate(trace.machines)}
        self._next_task = self._next_event = 0
        self._ends: list[tuple[int, int, int]] = []  # time, task, attempt
        self._binds: list[tuple[int, int, I64]] = []  # time, round, tasks
        self._next_round_us = 0  # when the next round may start
        self._unfinished: I64 = np.bincount(trace.task_job, minlength=len(trace.jobs)).astype(np.int64)
        self._changed = False
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
            now = self._next_time()
            if moments := range(next_sample, min(now, self._horizon) + 1, step):
                self._recorder.sample(moments)
                next_sample += len(moments) * step
                self._progress(moments[-1], self._horizon)
            if now > self._horizon:
                break
            self._recorder.advance(now)
            self._service.now_us = BEGIN_US + now
            self._take_binds(now)
            self._take_ends(now)
            self._take_machine_events(now)
            self._take_arrivals(now)
            if self._changed and self._world.waiting and now >= self._next_round_us:
                self._round(now)
        self._recorder.advance(self._horizon)
        self._world.check_totals()
        self._progress(self._horizon, self._horizon)

    def outcome(self) -> Outcome:
        world, recorder = self._world, self._recorder
        contested, share = recorder.contested()
        violations = {rule: f"{count} times, e.g. {world.examples[rule]}" for rule, count in world.violations.items()}
        if self._dropped:
            violations["the engine dropped no placements"] = f"{self._dropped} times"
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
            violations=violations,
        )

    # -- time -------------------------------------------------------------------------------------------------

    def _next_time(self) -> int:
        trace, moments = self._trace, [self._horizon + 1]
        if self._next_task < len(trace.task_us):
            moments.append(int(trace.task_us[self._next_task]))
        if self._next_event < len(trace.event_us):
            moments.append(int(trace.event_us[self._next_event]))
        if self._ends:
            moments.append(self._ends[0][0])
        if self._binds:
            moments.append(self._binds[0][0])
        if self._changed and self._world.waiting:
            moments.append(max(self._next_round_us, self._recorder.now_us))
        return min(moments)

    def _take_binds(self, now: int) -> None:
        while self._binds and self._binds[0][0] <= now:
            _, _, tasks = heapq.heappop(self._binds)
            machines = self._world.machine[tasks]
            bound, failed = self._world.bind(tasks)
            if len(failed):
                names = [self._trace.machines[m].name for m in machines[np.isin(tasks, failed)].tolist()]
                uids = self._events.uids(failed).tolist()
                self._service.apply([PlacementRejected(u, n) for u, n in zip(uids, names, strict=True)])
                self._bind_failures += len(failed)
                self._changed = True
            if len(bound):
                self._start(bound, now)

    def _start(self, tasks: I64, now: int) -> None:
        world, trace = self._world, self._trace
        self._service.apply([self._events.bound(tasks, now)])
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
        removed = TasksRemoved(self._events.uids(tasks))
        for task in ended:
            self._world.end(task)
        self._end[tasks] = now
        jobs, counts = np.unique(self._trace.task_job[tasks], return_counts=True)
        self._unfinished[jobs] -= counts
        gangs = [job for job in jobs.tolist() if job in self._events.gangs]
        self._service.apply(
            [
                *(self._events.gang(job) for job in gangs if self._unfinished[job]),
                removed,
                *(GangRemoved(job + 1) for job in gangs if not self._unfinished[job]),
            ]
        )
        self._changed = True

    def _take_machine_events(self, now: int) -> None:
        trace = self._trace
        while self._next_event < len(trace.event_us) and trace.event_us[self._next_event] <= now:
            i, self._next_event = self._next_event, self._next_event + 1
            machine, kind = int(trace.event_machine[i]), MachineEvent(int(trace.event_kind[i]))
            self._world.machine_event(machine, kind, trace.event_allocatable[i])
            if kind == MachineEvent.REMOVE:
                self._lose(machine)
            else:
                self._service.apply([self._events.machine(machine)])
            self._changed = True

    def _lose(self, machine: int) -> None:
        """A machine is removed: its running tasks, and those of the same gangs, become pending again."""
        world, trace = self._world, self._trace
        lost = np.flatnonzero((world.machine == machine) & (world.state == State.RUNNING))
        gangs = [j for j in np.unique(trace.task_job[lost]).tolist() if trace.jobs[j].gang_minimum > 1]
        if gangs:
            members = np.concatenate([world.members(j) for j in gangs])
            lost = np.union1d(lost, members[world.state[members] == State.RUNNING])
        events: list[Event] = [NodeRemoved(trace.machines[machine].name)]
        if len(lost):
            events.append(TasksRemoved(self._events.uids(lost)))
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
        self._service.apply(self._events.submitted(tasks))
        self._changed = True

    def _round(self, now: int) -> None:
        self._changed = False
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
        self._next_round_us = max(over, now + int(settings.gap_ms * 1000))
        tasks, attempts = self._events.parse(result.uids)
        machines = np.array([self._row.get(node, -1) for node in result.nodes], np.int64)
        stale = world.attempt[tasks] != attempts
        if stale.any():
            world.violations["no task is placed after it was lost"] += int(stale.sum())
            world.examples["no task is placed after it was lost"] = self._trace.task_name(int(tasks[stale][0]))
            tasks, machines = tasks[~stale], machines[~stale]
        if len(tasks):
            world.assume(tasks, machines)
            placed = tasks[world.state[tasks] == State.ASSUMED]
            heapq.heappush(self._binds, (over + int(settings.bind_ms * 1000), self._rounds, placed))
            self._placements += len(placed)
        # the check does not count links: a task may wait for bandwidth
        every = settings.check_waiting_every
        if every and not self._service.counts_links and self._rounds % every == 0:
            after_us = self._service.reserve_after_us
            world.check_waiting(None if after_us is None else now - after_us)
