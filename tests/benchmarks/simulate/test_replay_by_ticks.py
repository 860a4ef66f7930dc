"""The replay compared with a simulation in steps of a millisecond."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulate.baselines import first_fit
from benchmarks.simulate.replay import Settings, replay
from benchmarks.traces.form import FOREVER, MachineEvent
from tests.benchmarks.simulate.tiny_traces import tiny

REMOVE = MachineEvent.REMOVE


@dataclass
class Slow:
    """A task in the simulation by ticks."""

    number: int
    state: str = "later"  # later, waiting, assumed, running, done
    attempt: int = 0
    node: int = -1
    bind_at: int = -1
    end_at: int = -1
    started: int = -1
    ended: int = -1


def by_ticks(trace, horizon_ms, round_ms, bind_ms):
    """First-fit on a trace, in steps of a millisecond: the starts and ends of tasks."""
    tasks = [Slow(i) for i in range(len(trace.task_us))]
    ms = [int(us) // 1000 for us in trace.task_us]
    last = [None if d == FOREVER else int(d) // 1000 for d in trace.task_duration_us]
    need = [trace.requests[s] for s in trace.task_shape]
    offer: dict[int, np.ndarray] = {}
    order: list[int] = []  # machines by when they were first there
    events = list(zip(trace.event_us, trace.event_machine, trace.event_kind, trace.event_allocatable, strict=True))
    round_free, news = 0, False

    def left(node):
        in_use = [need[t.number] for t in tasks if t.node == node and t.state in ("assumed", "running")]
        return offer[node] - sum(in_use, np.zeros(len(trace.resources), np.int64))

    def place(some):
        """All of `some` on the first nodes that take them, or (for gangs) none."""
        done = []
        for t in some:
            node = next((n for n in order if n in offer and (left(n) >= need[t.number]).all()), None)
            if node is not None:
                t.state, t.node = "assumed", node
                done.append(t)
        return done

    def gang_of(t):
        job = int(trace.task_job[t.number])
        return job if trace.jobs[job].gang_minimum > 1 else None

    for now in range(horizon_ms + 1):
        for t in tasks:
            if t.state == "assumed" and t.bind_at == now:
                if t.node in offer:
                    t.state = "running"
                    t.started = now if t.started < 0 else t.started
                    length = last[t.number]
                    t.end_at = -1 if length is None else now + length
                else:
                    t.state, t.node, news = "waiting", -1, True
        for t in tasks:
            if t.state == "running" and t.end_at == now:
                t.state, t.node, t.ended, news = "done", -1, now, True
        while events and events[0][0] // 1000 <= now:
            _, node, kind, amounts = events.pop(0)
            news = True
            if kind == REMOVE:
                del offer[node]
                lost = {t.number for t in tasks if t.state == "running" and t.node == node}
                gangs = {gang_of(tasks[n]) for n in lost} - {None}
                lost |= {t.number for t in tasks if t.state == "running" and gang_of(t) in gangs}
                for n in lost:
                    tasks[n].state, tasks[n].node, tasks[n].attempt = "waiting", -1, tasks[n].attempt + 1
            else:
                offer[node] = amounts.copy()
                if node not in order:
                    order.append(node)
        for t in tasks:
            if t.state == "later" and ms[t.number] <= now:
                t.state, news = "waiting", True
        waiting = [t for t in tasks if t.state == "waiting"]
        if news and waiting and now >= round_free:
            news, round_free = False, now + round_ms
            waiting.sort(key=lambda t: (ms[t.number], t.attempt, t.number))
            placed, tried = [], set()
            for t in waiting:
                gang = gang_of(t)
                if gang is None:
                    placed += place([t])
                elif gang not in tried:
                    tried.add(gang)
                    of_gang = [u for u in tasks if gang_of(u) == gang]
                    there = sum(u.state in ("assumed", "running", "done") for u in of_gang)
                    found = place([u for u in waiting if u in of_gang])
                    if there + len(found) < trace.jobs[gang].gang_minimum:
                        for u in found:
                            u.state, u.node = "waiting", -1
                    else:
                        placed += found
            for t in placed:
                t.bind_at = now + round_ms + bind_ms
    return [t.started for t in tasks], [t.ended for t in tasks]


@given(trace=tiny(), round_ms=st.sampled_from((1, 7, 50)), bind_ms=st.sampled_from((0, 3, 40)))
@pytest.mark.slow
def test_the_replay_is_the_simulation_by_ticks(trace, round_ms, bind_ms):
    found = replay(trace, first_fit(), 600_000, Settings(round_ms=round_ms, bind_ms=bind_ms))
    started, ended = by_ticks(trace, 600, round_ms, bind_ms)
    in_ms = [
        [us // 1000 if us >= 0 else -1 for us in column.tolist()] for column in (found.first_start_us, found.end_us)
    ]
    assert in_ms == [started, ended]
    assert not found.violations
