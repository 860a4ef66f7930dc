"""The suite of forecasts: Slurm's way against plans by hand."""

import numpy as np
import pytest

from benchmarks.suites.starts.walltime_backfill import JOBS_TESTED, QueuedJob, planned_starts

ALL = np.ones(2, np.bool_)


def job(cpu, hours, tasks=1, suitable=ALL):
    return QueuedJob(tasks, np.array([cpu, 0]), hours, np.array(suitable))


def plan(*jobs, ends=(4, 6), used=(4, 4), size=4, now=0):
    """Two nodes of 4 cpus, each with what uses `used` until `ends`."""
    free = np.array([[size - cpu, 9] for cpu in used])
    requests = np.array([[cpu, 0] for cpu in used])
    return planned_starts(now, free, np.array(ends), np.arange(2), requests, jobs)


@pytest.mark.parametrize(
    ("jobs", "starts"),
    [
        pytest.param([job(4, 2)], [4], id="when the first one ends"),
        pytest.param([job(4, 2), job(4, 1), job(4, 1)], [4, 6, 6], id="each after those before it"),
        pytest.param([job(4, 2, tasks=2)], [6], id="two nodes at once"),
        pytest.param([job(4, 5, tasks=2), job(4, 2), job(4, 3)], [6, 4, 11], id="the short one is backfilled"),
        pytest.param([job(5, 1), job(4, 1)], [-1, 4], id="what never fits delays nobody"),
        pytest.param([job(4, 1, suitable=[False, True])], [6], id="on suitable nodes"),
        pytest.param([job(2, 3), job(2, 3), job(2, 3)], [4, 4, 6], id="two on one node"),
    ],
)
def test_plans(jobs, starts):
    assert plan(*jobs) == starts


def test_what_is_free_now_is_used_now():
    assert plan(job(2, 9), used=(4, 2)) == [0]


def test_what_runs_for_longer_than_declared_ends_now():
    assert plan(job(4, 1), ends=(4, 6), now=5) == [6]


def test_later_jobs_of_a_long_queue_have_no_start():
    starts = plan(*(job(4, 1) for _ in range(JOBS_TESTED + 2)))
    assert starts[JOBS_TESTED - 1] > 0
    assert starts[JOBS_TESTED:] == [-1, -1]
