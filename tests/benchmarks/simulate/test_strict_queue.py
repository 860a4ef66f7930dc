"""Queues in strict order: a job that does not fit blocks all behind it."""

import pytest

from benchmarks.simulate.replay import Settings
from benchmarks.simulate.running import Run, run
from benchmarks.traces.form import SECOND, MachineEvent, Shape, TraceBuilder


def waits(scheduler, jobs):
    """Seconds until each job (second of arrival, cores, seconds, tasks) starts, on one machine of 4 cores."""
    builder = TraceBuilder("t")
    builder.event(0, builder.machine("m"), MachineEvent.ADD, {"cpu": 4000, "memory": 64})
    for j, (at, cores, seconds, tasks) in enumerate(jobs):
        job = builder.job(f"j{j}", gang_minimum=tasks if tasks > 1 else 0)
        for _ in range(tasks):
            builder.task(at * SECOND, job, seconds * SECOND, builder.shape(Shape.of({"cpu": 1000 * cores})))
    trace = builder.build()
    settings = Settings(round_ms=1, bind_ms=0, check_waiting_every=0, expectations=True)
    sample, outcome = run(trace, Run(scheduler, settings), 10_000 * SECOND)
    assert [check for check in sample.checks if not check.ok] == []
    first = [outcome.first_start_us[trace.task_job == j].max() for j in range(len(jobs))]
    return [round((start - at * SECOND) / SECOND) for start, (at, *_) in zip(first, jobs, strict=True)]


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("fifo", [0, 99, 148]),  # the third fits beside the first, but the second is older
        ("sjf", [0, 99, 0]),  # the third is the shortest
        ("first-fit", [0, 99, 0]),
    ],
)
def test_the_order_of_jobs(scheduler, expected):
    assert waits(scheduler, [(0, 2, 100, 1), (1, 4, 50, 1), (2, 2, 10, 1)]) == expected


def test_the_shortest_blocks_even_what_fits():
    assert waits("sjf", [(0, 2, 100, 1), (1, 4, 50, 1), (2, 2, 70, 1)]) == [0, 99, 148]


@pytest.mark.parametrize("scheduler", ["fifo", "sjf"])
def test_gangs_start_whole(scheduler):
    assert waits(scheduler, [(0, 2, 100, 1), (1, 1, 20, 4)]) == [0, 99]
